"""Rows that tell of a request that another row tells of too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slotwise_workflows.traffic.reconcile import Request

# A long number that a spreadsheet has rounded: 1.78822E+18.
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?E\+?\d+", re.IGNORECASE)
_COUNTER_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Drop:
    """Positions of duplicates, and whether the ids cannot tell."""

    positions: frozenset[int]
    ids_unusable: bool = False


def duplicates(requests: Sequence[Request]) -> Drop:
    """Rows of a request whose fullest row is another.

    Of rows with one id the one with the largest output stays: snapshots of a streamed answer
    grow. Rows without an id are never duplicates. An id that is a mere counter, or that comes from
    another file, may have started again: there the arrival must be the same too.
    """
    if any(r.request_id is not None and _ROUNDED.fullmatch(r.request_id) for r in requests):
        return Drop(frozenset(), ids_unusable=True)
    fullest: dict[tuple[str, ...], int] = {}
    out: set[int] = set()
    for i, request in enumerate(requests):
        keys = _keys(request)
        other = next((fullest[key] for key in keys if key in fullest), None)
        if other is not None:
            fuller = request.output_tokens > requests[other].output_tokens
            out.add(other if fuller else i)
            kept = i if fuller else other
        else:
            kept = i
        fullest.update(dict.fromkeys(keys, kept))
    return Drop(frozenset(out))


def _keys(request: Request) -> tuple[tuple[str, ...], ...]:
    identity = request.request_id
    if identity is None:
        return ()
    anywhere = ("", identity, str(request.arrival))
    if identity.isdigit() and len(identity) <= _COUNTER_DIGITS:
        return (anywhere,)
    return (anywhere, (request.source.rpartition(":")[0], identity))


def rollups(requests: Sequence[Request], parents: Mapping[str, str]) -> frozenset[int]:
    """Spans above another span with usage: they repeat what their descendants count.

    Args:
        requests: Kept requests.
        parents: Span id to the id of the span above, of all spans.
    """
    if not parents:
        return frozenset()
    above: set[str] = set()
    for request in requests:
        span = parents.get(request.span_id or "")
        while span is not None and span not in above:
            above.add(span)
            span = parents.get(span)
    return frozenset(i for i, request in enumerate(requests) if request.span_id in above)
