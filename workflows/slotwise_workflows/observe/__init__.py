"""How the server behind a log filled its slots, by the log's own times.

`batching.observe_batching` is the whole of it: `timed` picks the instants, `starts` and `ends`
count what they show, `sharing` looks for signs of one engine, `likelihood` weighs them. `record` is
what comes out; results hold it, and must not wait for the rest to be imported.
"""
