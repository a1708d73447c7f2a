"""Was the client the bottleneck? Its own delays, told with what it measured."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from slotwise_sim.metrics import percentile
from slotwise_workflows.probe.findings import ClientReport, Delays
from slotwise_workflows.probe.wire.client import Clock

LATE_S = 0.02
"""A 95th percentile beyond which the client is told to be the bottleneck: as long as a fast
server's iteration, so that what was measured may be one off."""

_BEAT_S = 0.05


async def watch_loop(lags_ns: list[int], clock: Clock) -> None:
    """Notes how late a regular timer goes off, until it is cancelled.

    What keeps the event loop from its timers keeps it from stamping answers, too.
    """
    while True:
        due_ns = clock() + round(_BEAT_S * 1e9)
        await asyncio.sleep(_BEAT_S)
        lags_ns.append(max(0, clock() - due_ns))


def client_report(
    *,
    delays_ns: Sequence[int],
    lags_ns: Sequence[int],
    wall_ns: int,
    busy_ns: int,
    most_in_flight: int,
    held_back: int,
) -> ClientReport:
    """Sums up a client.

    Args:
        delays_ns: Handed on less due, one a request.
        lags_ns: From `watch_loop`.
        wall_ns: How long it sent and waited.
        busy_ns: Processor time of its process meanwhile.
        most_in_flight: Requests unanswered at once.
        held_back: Requests that waited for the limit on those.
    """
    delay, lag = delays_of(delays_ns), delays_of(lags_ns)
    late = {"dispatch_delay": delay, "loop_lag": lag}
    why = [name for name, times in late.items() if times is not None and times.p95 > LATE_S]
    why += ["max_in_flight"] if held_back else []
    return ClientReport(
        requests=len(delays_ns),
        dispatch_delay_s=delay,
        loop_lag_s=lag,
        busy_share=busy_ns / max(wall_ns, 1),
        most_in_flight=most_in_flight,
        held_back=held_back,
        bottleneck=why,
        client_bottleneck=bool(why),
    )


def delays_of(times_ns: Sequence[int]) -> Delays | None:
    """Percentiles as `slotwise_sim.metrics.percentile` defines them; None of nothing."""
    if not times_ns:
        return None
    seconds = np.asarray(times_ns, dtype=np.float64) / 1e9
    p50, p95, p99 = (percentile(seconds, percent) for percent in (50, 95, 99))
    return Delays(p50=p50, p95=p95, p99=p99, max=float(seconds.max()))


def worst_of(reports: Sequence[ClientReport]) -> ClientReport:
    """Several clients, or one at several times, told as the worst of them; there is at least one.

    Requests and waits for the limit are summed up; every other figure is the largest.
    """

    def worst(times: Sequence[Delays | None]) -> Delays | None:
        known = [time for time in times if time is not None]
        names = Delays.model_fields
        return Delays(**{n: max(getattr(t, n) for t in known) for n in names}) if known else None

    return ClientReport(
        requests=sum(report.requests for report in reports),
        dispatch_delay_s=worst([report.dispatch_delay_s for report in reports]),
        loop_lag_s=worst([report.loop_lag_s for report in reports]),
        busy_share=max(report.busy_share for report in reports),
        most_in_flight=max(report.most_in_flight for report in reports),
        held_back=sum(report.held_back for report in reports),
        bottleneck=sorted({why for report in reports for why in report.bottleneck}),
        client_bottleneck=any(report.client_bottleneck for report in reports),
    )
