"""What a log's own times show of how its server batches, as reasons beside the verdict."""

from __future__ import annotations

from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.recommend.evidence import Evidence
from slotwise_workflows.result import Reason

# A few requests of those that met others are stamped wrong, or missed their mates' missing rows.
FEW_OF_MET = 0.02


def batching_unknown(e: Evidence) -> bool:
    """Whether nothing tells how the server batches; a delay that was given describes batches."""
    return e.facts.batches_already.source == "assumed" and e.facts.max_delay_ms.source != "given"


def servers_instead(e: Evidence) -> int | None:
    """How many servers that batch at once would log the same as one continuous server.

    None where nothing speaks for a continuous one, or how the server batches is known.
    """
    observed = e.facts.observed
    if not batching_unknown(e) or observed is None or observed.reason != "several_servers":
        return None
    return 1 + sum(joined > FEW_OF_MET * observed.met for joined in observed.joined)


def seen(e: Evidence) -> list[Reason]:
    """What the log's times show, unless they tell otherwise than what the verdict rests on."""
    observed = e.facts.observed
    if observed is None or observed.kind == "undetermined":
        return []
    if (observed.kind == "continuous") != e.facts.batches_already.value:
        return []
    if observed.kind == "continuous":
        joined = {"joined": observed.joined[0], "met": observed.met}
        return [Reason(code="seen_joining", numbers=dict(joined))]
    if observed.kind == "serial":
        return [_one_by_one(observed)]
    found = []
    if observed.held:
        tried = observed.held + observed.let_in
        found.append(Reason(code="seen_waiting", numbers={"held": observed.held, "tried": tried}))
    if observed.tied > observed.tied_by_chance:
        found.append(
            Reason(
                code="seen_together",
                numbers={
                    "tied": observed.tied,
                    "apart": observed.apart,
                    "by_chance": round(observed.tied_by_chance),
                },
            )
        )
    return found


def _one_by_one(observed: ObservedBatching) -> Reason:
    """By first tokens, none beside the one before; by the ends, each its own time after it."""
    alone, waited = observed.waited - observed.beside, observed.waited
    if not waited:
        alone, waited = observed.paced, observed.queued
    return Reason(code="seen_one_by_one", numbers={"alone": alone, "waited": waited})
