"""The stages of a probe, in the order of a session: how it batches, what it costs, a replay."""
