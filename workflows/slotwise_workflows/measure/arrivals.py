"""How requests arrive over time: rate, burstiness, the busiest hour."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slotwise_sim.workload import Floats, Workload, rows_of
from slotwise_workflows.result import ArrivalFigures, ArrivalSpan
from slotwise_workflows.traffic.model import Traffic
from slotwise_workflows.traffic.times import rfc3339

RATE_BINS = 60
BUSY_WINDOW_S = 3600.0
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, in seconds from the first arrival; `whole` where it is all of the log."""

    start_s: float
    span_s: float
    whole: bool


def arrival_span(traffic: Traffic) -> ArrivalSpan | None:
    """First and last arrival, or None where arrivals are not known."""
    if traffic.clock is None:
        return None
    start = traffic.table["start_time"].to_numpy()
    first, last = int(start.min()), int(start.max())
    if traffic.clock == "epoch":
        return ArrivalSpan(first=rfc3339(first), last=rfc3339(last))
    return ArrivalSpan(first=first / 1e9, last=last / 1e9)


def busiest_window(workload: Workload, span_s: float = BUSY_WINDOW_S) -> Window:
    """The window of `span_s` in which most output tokens are asked for.

    Shorter logs are one window. The window starts at an arrival.
    """
    order = np.argsort(workload.arrival_s, kind="stable")
    arrival = workload.arrival_s[order]
    total = float(arrival[-1] - arrival[0])
    if total <= span_s:
        return Window(0.0, total, whole=True)
    asked = np.concatenate(([0], np.cumsum(workload.output_tokens[order])))
    until = np.searchsorted(arrival, arrival + span_s, side="left")
    best = int(np.argmax(asked[until] - asked[:-1]))
    return Window(float(arrival[best] - arrival[0]), span_s, whole=False)


def inside(workload: Workload, window: Window) -> NDArray[np.bool_]:
    """Which requests arrive in a window, shape (n,)."""
    if window.whole:
        return np.ones(len(workload), dtype=np.bool_)
    start = workload.arrival_s.min() + window.start_s
    kept: NDArray[np.bool_] = (workload.arrival_s >= start) & (
        workload.arrival_s < start + window.span_s
    )
    return kept


def within(workload: Workload, window: Window) -> Workload:
    """The requests that arrive in a window, their arrivals counted from its start.

    A window that is the whole log leaves it as it is, its origin too.
    """
    if window.whole:
        return workload
    kept = rows_of(workload, np.flatnonzero(inside(workload, window)))
    return replace(kept, arrival_s=kept.arrival_s - (workload.arrival_s.min() + window.start_s))


def rate_per_s(requests: int, window: Window) -> float:
    """Arrivals per second in a window of more than no time.

    The ends of a window that is the whole log are arrivals themselves, which n - 1 gaps separate.
    """
    return (requests - 1 if window.whole else requests) / window.span_s


def arrival_figures(traffic: Traffic) -> ArrivalFigures | None:
    """Rate over time, burstiness and the busiest hour; None without arrivals or with one request.

    Burstiness is the coefficient of variation of the gaps (1 for Poisson arrivals); it is left out
    where the log's clock is coarser than the typical gap.
    """
    if traffic.clock is None or len(traffic) < 2:
        return None
    workload = traffic.workload()
    arrival = np.sort(workload.arrival_s)
    span = float(arrival[-1] - arrival[0])
    if span <= 0:
        return None
    counts, edges = np.histogram(arrival, bins=RATE_BINS, range=(0.0, span))
    bin_s = float(edges[1] - edges[0])
    window = busiest_window(workload)
    busy = within(workload, window)
    coarse = any(flag.startswith("time_resolution") for flag in traffic.flags)
    return ArrivalFigures(
        span_s=span,
        rate_per_s=rate_per_s(len(arrival), Window(0.0, span, whole=True)),
        rate_by_bin=[float(rate) for rate in counts / bin_s],
        bin_s=bin_s,
        busiest_start_s=window.start_s,
        busiest_span_s=window.span_s,
        busiest_rate_per_s=rate_per_s(len(busy), window),
        gap_cv=None if coarse or len(arrival) < 3 else _variation(np.diff(arrival)),
        days=span / DAY_S,
    )


def _variation(gaps: Floats) -> float | None:
    mean = float(gaps.mean())
    return float(gaps.std(ddof=1)) / mean if mean > 0 else None
