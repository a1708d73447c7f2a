"""A probe's result on the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slotwise_workflows.probe import ProbeResult
    from slotwise_workflows.probe.findings import CostFinding, ReplayFigures
    from slotwise_workflows.report import Words
    from slotwise_workflows.report.words import Language
    from slotwise_workflows.result import Result


def probe_lines(result: ProbeResult, words: Words) -> list[str]:
    """The verdict, why, what else was found, and what limits it; a sentence a line."""
    from slotwise_workflows.probe import figures_of
    from slotwise_workflows.report import probe_reading

    figures = figures_of(result)
    lines = [
        probe_reading.verdict(figures, words),
        f"  {probe_reading.because(figures.reason, words)}",
        *(f"  {told}" for told in probe_reading.findings(figures, words)),
        f"  {_alone(result, words)}",
    ]
    if result.stopped_by is not None:
        lines.append("  " + words(f"probe.stopped_{result.stopped_by}"))
    if result.cost is not None:
        lines += [f"  {told}" for told in _cost(result.cost, words)]
    if result.replay is not None:
        lines += [f"  {told}" for told in _replay(result.replay, words)]
    return lines


def probed_lines(result: Result, language: Language) -> list[str]:
    """What a diagnosis was told by the live endpoint; nothing where none was probed."""
    if result.probe is None:
        return []
    from slotwise_workflows.report import load_words, probe_reading

    words = load_words(language)
    found = probe_reading.findings(result.probe, words)
    return [probe_reading.verdict(result.probe, words), *(f"  {told}" for told in found), ""]


def _alone(result: ProbeResult, words: Words) -> str:
    if result.baseline.streams:
        return words(
            "probe.alone", ttft=result.alone.ttft_s, per_token=result.alone.seconds_per_token
        )
    first = result.samples[0]
    return words("probe.alone_whole", tokens=first.asked_tokens, seconds=result.baseline.latency_s)


def _cost(cost: CostFinding, words: Words) -> list[str]:
    if cost.cost_unknown is not None:
        unknown = cost.cost_unknown
        return [words("probe.cost_unknown", detail=unknown.detail)]
    if cost.calibration is None:
        return []
    step, (low, high) = cost.calibration.cost, cost.calibration.batch
    told = words(
        "probe.cost_is",
        base=step.base_ms / 1000,
        per_seq=step.per_seq_ms / 1000,
        low=low,
        high=high,
    )
    cache = cost.prefix_cache
    if cache is None:
        return [told]
    return [told, words("probe.prefix_cache", ratio=cache.ttft_ratio)]


def _replay(replay: ReplayFigures, words: Words) -> list[str]:
    from slotwise_workflows.report import probe_reading

    measured = replay.measured.latency_mean
    if replay.simulated is None:
        return [words("probe.replayed", requests=replay.answered, measured=measured)]
    simulated = replay.simulated.latency_mean
    return [
        words(
            "probe.predicted",
            requests=replay.answered,
            measured=measured,
            simulated=simulated,
            error=probe_reading.signed(simulated / measured - 1, words),
        )
    ]
