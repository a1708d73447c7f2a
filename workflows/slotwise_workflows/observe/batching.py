"""From a log to what its own times say of how its server filled its slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slotwise_workflows.observe.ends import Ends, count_ends
from slotwise_workflows.observe.likelihood import likelihoods
from slotwise_workflows.observe.record import Kind, ObservedBatching, Undetermined
from slotwise_workflows.observe.sharing import slowing
from slotwise_workflows.observe.starts import Starts, count_starts
from slotwise_workflows.observe.timed import Timed, timed
from slotwise_workflows.traffic.model import Traffic

# A kind is told where so much of the likelihood is its own.
TOLD = 0.99
# Fewer requests that came while others were there tell nothing.
FEWEST_MET = 10
# Answers must take so many times what the clock cannot tell apart.
COARSE = 3.0


def observe_batching(traffic: Traffic, replicas: int | None = None) -> ObservedBatching:
    """Says how the server behind one model's traffic filled its slots, if its times tell.

    Args:
        traffic: The requests of one model.
        replicas: How many servers there are, if known. Unknown, several servers that batch at once
            are an explanation that continuous batching has to beat.
    """
    requests = timed(traffic)
    if not isinstance(requests, Timed):
        return ObservedBatching(kind="undetermined", reason=requests)
    starts, ends, slower = count_starts(requests), count_ends(requests), slowing(requests)
    likelihood = likelihoods(starts, ends, slower, replicas)
    kind = _kind(likelihood) if starts.met >= FEWEST_MET else "undetermined"
    if kind == "continuous" and requests.in_turn:
        kind = "undetermined"
    return ObservedBatching(
        kind=kind,
        reason=_why_not(requests, starts, likelihood) if kind == "undetermined" else "",
        likelihood=dict(likelihood),
        first_tokens=requests.streamed,
        tolerance_s=requests.tolerance,
        **_evidence(starts, ends),
        slowing=slower,
    )


def _kind(likelihood: Mapping[str, float]) -> Kind:
    kinds: tuple[Kind, ...] = ("continuous", "serial", "static", "dynamic")
    for kind in kinds:
        if likelihood[kind] >= TOLD:
            return kind
    if likelihood["static"] + likelihood["dynamic"] >= TOLD:
        return "batch_at_once"
    open_still = likelihood["continuous"] + likelihood["unexplained"]
    return "not_continuous" if open_still <= 1 - TOLD else "undetermined"


def _why_not(requests: Timed, starts: Starts, likelihood: Mapping[str, float]) -> Undetermined:
    if starts.met < FEWEST_MET:
        return "never_overlaps"
    one_server = sum(likelihood[kind] for kind in ("serial", "static", "dynamic"))
    if one_server <= 1 - TOLD and likelihood["several"] > likelihood["unexplained"]:
        return "several_servers"
    service = (
        requests.end - requests.latest if requests.streamed else requests.pace * requests.tokens
    )
    if 0 < float(np.median(service)) < COARSE * requests.tolerance:
        return "clock_coarse"
    return "ambiguous" if requests.streamed else "no_first_tokens"


def _evidence(starts: Starts, ends: Ends) -> dict[str, Any]:
    return {
        "met": starts.met,
        "joined": list(starts.joined),
        "let_in": starts.let_in,
        "held": starts.held,
        "beside": starts.beside,
        "waited": starts.waited,
        "paced": ends.paced,
        "queued": ends.queued,
        "tied": ends.tied,
        "apart": ends.apart,
        "tied_by_chance": ends.expected,
    }
