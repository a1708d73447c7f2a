"""How an endpoint batches, told from the times of a few requests."""
