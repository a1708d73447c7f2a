"""What is done, step by step, from a log to a report."""
