"""What became of every request."""

from __future__ import annotations

from dataclasses import dataclass

from slotwise_sim.workload import Floats, Ints


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy's outcome, request by request, in the order of the workload's rows.

    Arrays have shape (n,); times are seconds since the workload's origin. Always
    ``arrival_s <= start_s <= first_token_s <= own_end_s <= end_s`` and
    ``own_end_s <= held_until_s``, up to rounding.

    Attributes:
        arrival_s: When each request arrived.
        output_tokens: Tokens it generated.
        start_s: When its slot or its batch started.
        first_token_s: When its first token was computed.
        own_end_s: When its own last token was computed.
        end_s: When its answer was delivered: the end of the batch if the batch is released
            together, else ``own_end_s``.
        held_until_s: When its slot could be given to another request.
        slots: Slots of all replicas together.
        busy_slot_s: Slot-seconds from start to own last token, less time preempted.
        preemptions: How often a running request had to give its slot back.
        preempted_s: Seconds between its start and its own end in which each request waited to be
            admitted again; None where nothing can be preempted.
    """

    arrival_s: Floats
    output_tokens: Ints
    start_s: Floats
    first_token_s: Floats
    own_end_s: Floats
    end_s: Floats
    held_until_s: Floats
    slots: int
    busy_slot_s: float
    preemptions: int = 0
    preempted_s: Floats | None = None

    def __len__(self) -> int:
        return len(self.start_s)
