"""The region in which a change is worth it: load across, variation up, and today's traffic in it.

The sweep page and the report of a diagnosis draw the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from slotwise_workflows.report import sweep_reading as found
from slotwise_workflows.report.charts.plane import Edge, hatch, plane
from slotwise_workflows.report.document import Figure, Label
from slotwise_workflows.report.sections.drawn import figure, table
from slotwise_workflows.report.sweep_reading import Names, Server
from slotwise_workflows.report.words import Words
from slotwise_workflows.sweep.record import SweepFigures, SweepLimit

_MOST_PLANES = 4


def planes(sweep: SweepFigures, words: Words) -> list[Figure]:
    """The plane of today's slots, then of the most; of servers that differ in more, a few."""
    kinds = found.kinds(sweep)
    chosen = kinds[:_MOST_PLANES]
    if len(kinds) == 1:
        same = found.alike(sweep, kinds[0])
        chosen = list(dict.fromkeys((kinds[0], same[-1], same[0])))[:2]
    drawn = (
        plane_figure(sweep, words, server=server, name=f"plane-{i}")
        for i, server in enumerate(chosen, start=1)
    )
    return [own for own in drawn if own is not None]


def plane_figure(
    sweep: SweepFigures,
    words: Words,
    *,
    server: Server | None = None,
    named: Names | None = None,
    label: Label = "simulated",
    name: str = "plane",
) -> Figure | None:
    """Load across, variation up: where a change is worth it, and where the traffic stands.

    Args:
        sweep: What was found.
        words: The language.
        server: Whose; the first of today's slots, else of the fewest, if left out.
        named: What policies are called.
        label: The kind of its numbers.
        name: The figure's identifier.

    Returns:
        None where no load was found at two variations at least, or nothing arrives by itself.
    """
    policy, here = found.challenger(sweep), sweep.here.length_cv
    kinds = found.kinds(sweep)
    if policy is None or here is None or sweep.here.rate_per_s is None or not kinds:
        return None
    own = server or kinds[0]
    adopt = sweep.thresholds["gain_adopt"]
    limits = found.limits_of(sweep, own, policy)
    edges = _edges(sweep, limits, here)
    if len([edge for edge in edges if edge.load]) < 2:
        return None
    named = named or found.quoted(words)
    told = {"policy": named(policy), "baseline": named(sweep.baseline)}
    told["server"] = found.server_name(own, sweep, words)
    spec = plane(
        edges,
        (1.0, here),
        [row.load for row in sweep.rows if row.load],
        adopt,
        {
            key: words(f"plane.{key}")
            for key in ("axis", "y", "capacity", "waiting", "here", "none")
        },
        name,
    )
    rows = [
        (
            words("plane.own" if edge.cv == here else "plane.cv", cv=edge.cv),
            found.load_from(edge.load, words),
            found.load_until(edge.load, edge.until, words),
            words.number(edge.gain, "times"),
            words(_worth(edge)),
        )
        for edge in edges
    ]
    heads = tuple(words(f"plane.head_{key}") for key in ("cv", "load", "until", "gain", "worth"))
    parts = [words("plane.part", cv=e.cv, loads=found.loads(e.load, e.until, words)) for e in edges]
    return figure(
        words,
        name,
        spec,
        title=found.standing_sentence(sweep, own, words, named),
        description=words(
            "plane.description", **told, parts=words("format.list_separator").join(parts), here=here
        ),
        table=table(words("plane.table", **told), heads, rows),
        label=label,
        note=words(
            "plane.note",
            adopt=adopt,
            fall=sweep.thresholds["waiting_adopt"],
            replications=found.replications(limits, words),
        ),
        defs=hatch(name),
    )


def _edges(sweep: SweepFigures, limits: Sequence[SweepLimit], here: float) -> list[Edge]:
    """Ascending in variation; the lengths' own stands among those asked for."""
    edges = {
        cv: Edge(cv, limit.break_even_load, limit.break_even_until, gain.estimate)
        for limit in reversed(limits)
        if (gain := found.over_baseline(sweep, limit)) is not None
        for cv in [here if limit.length_cv is None else limit.length_cv]
    }
    return [edges[cv] for cv in sorted(edges)]


def _worth(edge: Edge) -> str:
    if edge.load is None:
        return "plane.none"
    return "plane.capacity" if edge.capacity else "plane.waiting"
