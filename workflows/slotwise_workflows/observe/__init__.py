"""How the server behind a log filled its slots, by the log's own times.

`observe_batching` is the whole of it: `timed` picks the instants, `starts` counts what they show,
`sharing` looks for signs of one engine, `likelihood` weighs them.
"""

from __future__ import annotations

from slotwise_workflows.observe.batching import observe_batching
from slotwise_workflows.observe.record import ObservedBatching

__all__ = ["ObservedBatching", "observe_batching"]
