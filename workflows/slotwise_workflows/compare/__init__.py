"""The same requests under batch-at-once and under continuous batching, on the same slots."""
