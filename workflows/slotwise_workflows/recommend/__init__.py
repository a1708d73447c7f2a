"""From what was measured and simulated to a verdict with its reasons."""
