"""What the rows of a sweep are of, and which of them answer: what its sections share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.sweep.record import SweepFigures, SweepLimit, SweepRow

Names = Callable[[str], str]
"""From a policy's name in the file to what it is called."""


def in_file(policy: str) -> str:
    """A policy by the name that the workload file gives it."""
    return clean(policy, 32)


def quoted(words: Words) -> Names:
    """The same as it stands in a sentence."""
    return lambda policy: words("sweep.named", policy=in_file(policy))


@dataclass(frozen=True, slots=True)
class Server:
    """One kind of server, and how many of them; fields as in a row."""

    cost: str
    slots: int
    replicas: int
    balancer: str


def server_of(line: SweepRow | SweepLimit) -> Server:
    """The server that a row or a limit is of."""
    return Server(line.cost, line.slots, line.replicas, line.balancer)


def servers(sweep: SweepFigures) -> list[Server]:
    """All servers, in the order of the grid."""
    return list(dict.fromkeys([*map(server_of, sweep.rows), *map(server_of, sweep.limits)]))


def kinds(sweep: SweepFigures) -> list[Server]:
    """Of servers that differ in nothing but slots, one: with today's slots, else the fewest.

    Where limits were searched, of the servers that they were searched on.
    """
    every = list(dict.fromkeys(map(server_of, sweep.limits))) or servers(sweep)
    last = sorted(every, key=lambda own: (own.slots == sweep.here.slots, -own.slots))
    chosen = {replace(own, slots=0): own for own in last}
    return [chosen[kind] for kind in dict.fromkeys(replace(own, slots=0) for own in every)]


def alike(sweep: SweepFigures, server: Server) -> list[Server]:
    """The servers that differ from this one in nothing but slots, fewest first."""
    same = [own for own in servers(sweep) if replace(own, slots=server.slots) == server]
    return sorted(same, key=lambda own: own.slots)


def policies(sweep: SweepFigures) -> list[str]:
    """All policies, in the order of the file."""
    return list(dict.fromkeys(line.policy for line in (*sweep.rows, *sweep.limits)))


def challenger(sweep: SweepFigures) -> str | None:
    """The policy that the pictures are about: the first continuous one, else the last."""
    others = [name for name in policies(sweep) if name != sweep.baseline]
    refilling = (name for name in others if name.partition("#")[0] == "continuous")
    return next(refilling, others[-1] if others else None)


def gains(sweep: SweepFigures, policy: str) -> dict[tuple[Server, float | None], Estimate]:
    """A policy's gain in capacity by server and variation; it is the same at every load.

    A replay's stands before a search's, since there may be fewer searches.
    """
    found: dict[tuple[Server, float | None], Estimate] = {}
    lines: tuple[SweepRow | SweepLimit, ...] = (*sweep.rows, *sweep.limits)
    for line in lines:
        if line.policy == policy and line.gain is not None:
            found.setdefault((server_of(line), line.length_cv), line.gain)
    return found


def limits_of(sweep: SweepFigures, server: Server, policy: str) -> list[SweepLimit]:
    """What was searched of a policy on a server, the lengths' own variation first."""
    own = [line for line in sweep.limits if (server_of(line), line.policy) == (server, policy)]
    return sorted(own, key=lambda line: -1.0 if line.length_cv is None else line.length_cv)


def own_limit(sweep: SweepFigures, server: Server, policy: str | None) -> SweepLimit | None:
    """What was searched at the lengths' own variation."""
    if policy is None:
        return None
    own = limits_of(sweep, server, policy)
    return next((line for line in own if line.length_cv is None), None)


def standing(sweep: SweepFigures, server: Server, policy: str | None) -> str:
    """Where the traffic itself stands to what was found on a server, as a code.

    ``any``, ``inside``, ``edge`` and ``outside`` tell today's load from those at which the change
    is worth it, ``none`` that there are none; ``_waiting`` behind it that only waiting falls, up to
    some load. ``mixed``: today's is beyond the lowest such load, but in some replications there may
    be a highest one as well. Without loads, ``capacity``, ``no_capacity`` and ``unsure`` tell what
    is gained in capacity.
    ``respread``: its own lengths were not swept; ``unknown``: it is too short to say anything;
    ``alone``: nothing was compared.
    """
    if policy is None:
        return "alone"
    gain, own = gains(sweep, policy).get((server, None)), own_limit(sweep, server, policy)
    if gain is None:
        return "respread" if _respread(sweep, server, policy) else "unknown"
    adopt = sweep.thresholds["gain_adopt"]
    if own is None or sweep.here.rate_per_s is None:
        return "capacity" if gain.low >= adopt else "no_capacity" if gain.high < adopt else "unsure"
    load, until = own.break_even_load, own.break_even_until
    if load is None:
        return "none"
    if until is not None:
        return f"{_place(load, until)}_waiting"
    place, over = _place(load), over_baseline(sweep, own)
    if place == "inside" and over is not None and over.low < adopt:
        return "mixed"
    return "any" if load.high == 0 else place


def _place(load: Estimate, until: Estimate | None = None) -> str:
    """Where a load of 1 lies to the loads from one to another."""
    if load.low > 1 or (until is not None and until.high < 1):
        return "outside"
    return "inside" if load.high <= 1 and (until is None or until.low >= 1) else "edge"


def over_baseline(sweep: SweepFigures, own: SweepLimit) -> Estimate | None:
    """The gain in capacity over the baseline, which batches in another order gain themselves."""
    base = next(
        (
            line.gain
            for line in limits_of(sweep, server_of(own), sweep.baseline)
            if line.length_cv == own.length_cv
        ),
        None,
    )
    if own.gain is None or base is None:
        return own.gain
    return Estimate(
        estimate=own.gain.estimate / base.estimate,
        low=own.gain.low / base.high,
        high=own.gain.high / base.low,
    )


def standing_sentence(
    sweep: SweepFigures, server: Server, words: Words, named: Names | None = None
) -> str:
    """The same in one sentence, with its numbers."""
    named = named or quoted(words)
    policy = challenger(sweep)
    gain = None if policy is None else gains(sweep, policy).get((server, None))
    own = own_limit(sweep, server, policy)
    code = standing(sweep, server, policy)
    load = until = None
    if own is not None and own.break_even_load is not None:
        load, until, gain = own.break_even_load, own.break_even_until, over_baseline(sweep, own)
    if code == "respread" and policy is not None:
        (least, first), *_, (most, last) = _respread(sweep, server, policy)
        return words(
            "standing.respread",
            server=server_name(server, sweep, words),
            policy=named(policy),
            least=least,
            first=shown(first, "times", words),
            most=most,
            last=shown(last, "times", words),
        )
    return words(
        f"standing.{code}",
        server=server_name(server, sweep, words),
        baseline=named(sweep.baseline),
        policy=named(policy or sweep.baseline),
        load=shown(load, "load", words),
        loads=loads(load, until, words),
        gain=shown(gain, "times", words),
        adopt=words.number(sweep.thresholds["gain_adopt"], "factor"),
    )


def _respread(sweep: SweepFigures, server: Server, policy: str) -> list[tuple[float, Estimate]]:
    """The gain by variation, where it was swept at two at least."""
    of_server = [(cv, gain) for (own, cv), gain in gains(sweep, policy).items() if own == server]
    known = sorted(((cv, g) for cv, g in of_server if cv is not None), key=lambda own: own[0])
    return known if len(known) > 1 else []


def rows_of(sweep: SweepFigures, server: Server, arrivals: str) -> list[SweepRow]:
    """The replays on a server of one way of arriving, at one variation.

    That is the lengths' own or, where it was not replayed, the one nearest to it.
    """
    rows = [row for row in sweep.rows if server_of(row) == server and row.arrivals == arrivals]
    here = sweep.here.length_cv or 0.0
    cvs = dict.fromkeys(row.length_cv for row in rows)
    chosen = min(cvs, key=lambda cv: -1.0 if cv is None else abs(cv - here), default=None)
    return [row for row in rows if row.length_cv == chosen]


def replications(lines: Sequence[SweepRow] | Sequence[SweepLimit], words: Words) -> str:
    """How many the intervals of these lines are of; fewer where some failed."""
    counts = {own.replications for own in lines}
    low, high = min(counts, default=0), max(counts, default=0)
    key = "sweep.replications" if low == high else "sweep.replications_between"
    return words(key, low=low, high=high)


def server_name(server: Server, sweep: SweepFigures, words: Words) -> str:
    """A server in words: its slots, and what else servers of this sweep differ in."""
    every = servers(sweep)
    told = [words("sweep.server", slots=server.slots)]
    if any(own.replicas > 1 for own in every):
        told.append(words("sweep.replicas", replicas=server.replicas))
    if len({own.balancer for own in every}) > 1:
        told.append(balancer_name(server.balancer, words))
    if len({own.cost for own in every}) > 1:
        told.append(clean(server.cost, 40))
    return words("format.list_separator").join(told)


def balancer_name(balancer: str, words: Words) -> str:
    """How requests are spread, in words; an unknown way as it is."""
    key = f"sweep.balancer_{balancer}"
    return words(key) if key in words else clean(balancer, 24)


def shown(value: Estimate | None, kind: str, words: Words) -> str:
    """An estimate with its interval; a dash for none."""
    if value is None or value.low == value.high:
        return words.number(None if value is None else value.estimate, kind)
    return words.estimate(value, kind)


def load_from(value: Estimate | None, words: Words) -> str:
    """The load from which something is worth it."""
    return (
        words("sweep.any_load")
        if value is not None and value.high == 0
        else shown(value, "load", words)
    )


def load_until(load: Estimate | None, until: Estimate | None, words: Words) -> str:
    """The load up to which it is; a dash where there is none from which it is."""
    if load is not None and until is None:
        return words("sweep.no_end")
    return shown(until, "load", words)


def loads(load: Estimate | None, until: Estimate | None, words: Words) -> str:
    """From which load to which something is worth it."""
    if load is None:
        return words("plane.none")
    if until is None:
        return words(
            "sweep.any_load" if load.high == 0 else "sweep.loads_from",
            load=shown(load, "load", words),
        )
    return words(
        "sweep.loads_up_to" if load.high == 0 else "sweep.loads_between",
        load=shown(load, "load", words),
        until=shown(until, "load", words),
    )


def cv_from(value: Estimate | None, words: Words) -> str:
    """The variation from which something is worth it."""
    if value is not None and value.high == 0:
        return words("sweep.any_cv")
    return shown(value, "cv", words)


def capacity(value: Estimate | None, kind: str, words: Words) -> str:
    """The most that is carried with every objective met."""
    if value is not None and value.high == 0:
        return words("sweep.never_meets")
    return shown(value, kind, words)


def whole(value: Estimate | None, words: Words) -> str:
    """Whole servers, since nobody buys a part of one: what is needed on average is rounded up."""
    if value is None:
        return words.number(None, "count")
    low, mean, high = (
        words.number(own, "count")
        for own in (math.floor(value.low), math.ceil(value.estimate), math.ceil(value.high))
    )
    return mean if low == high else words("format.estimate", value=mean, low=low, high=high)
