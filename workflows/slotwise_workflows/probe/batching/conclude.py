"""From the evidence of all trials to one verdict, or to why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.probe.batching.slots import LADDER
from slotwise_workflows.probe.model import Alone, Baseline, Batching, Evidence, Release
from slotwise_workflows.result import Confidence, Reason

_DOUBTS = ("rate_limited", "cached_responses", "lengths_not_honoured", "requests_failed")
"""The ones that name a cause come before failures of whatever kind."""
_NO_EVIDENCE = {"nobody_waited", "too_noisy"}
"""Of a slots or refill test: it says nothing, and contradicts nothing."""
_NEEDS_QUIET = {"serial", "dynamic"}
GATHERING_NOISE_S = 0.0025
"""Noise of the time to the first token above which a short wait for company cannot be seen."""
_ENOUGH_ALONE = 3
_FEW = 8
_SHOWN = 2
_REPEATED = 2
_LOWER: dict[Confidence, Confidence] = {"high": "medium", "medium": "low", "low": "low"}


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What all trials say together.

    Attributes:
        batching: The verdict.
        confidence: From repeated agreement.
        reason: The deciding one.
        remarks: What limits it.
        slots: Exact, where two trials showed the same and none more.
        slots_at_least: Most that ran at once.
        release: Batches only.
        gather_s: Batches only: how long they wait for company, between so much and so much.
    """

    batching: Batching
    confidence: Confidence
    reason: Reason
    remarks: tuple[Reason, ...]
    slots: int | None
    slots_at_least: int
    release: Release | None
    gather_s: tuple[float, float | None] | None


def conclude(
    trials: Sequence[Evidence], baseline: Baseline, alone: Alone, *, paced: Reason | None = None
) -> Conclusion:
    """What the trials say together: only what all of them say.

    Args:
        trials: The evidence of each, in the order made.
        baseline: The first request alone.
        alone: All requests alone.
        paced: Whether something between seems to release tokens at a pace of its own.

    Returns:
        The conclusion; trials that differ leave it open.
    """
    reason = _doubt(trials, alone, paced)
    groups = [trial for trial in trials if trial.stage == "group"]
    batching: Batching = "undetermined" if reason is not None or not groups else _agreed(trials)
    if reason is None:
        told = [trial for trial in groups if trial.batching == batching]
        reason = (
            told[0].reason
            if told
            else groups[0].reason
            if groups
            else Reason(code="too_little_done")
        )
    remarks = _remarks(trials, baseline, alone)
    together = max((trial.together for trial in trials), default=1)
    if batching == "undetermined":
        return Conclusion(batching, "low", reason, remarks, None, together, None, None)
    if batching == "dynamic":
        reason = next(trial.reason for trial in trials if trial.batching == "dynamic")
    slots = _slots(trials, batching, alone)
    batches = batching in {"static", "dynamic"}
    return Conclusion(
        batching,
        _confidence(trials, batching, baseline, alone),
        reason,
        remarks,
        slots,
        together if slots is None else slots,
        _release(groups) if batches else None,
        _gather(trials) if batches else None,
    )


def telling(trials: Sequence[Evidence], end: Conclusion) -> int:
    """The number of the group test that shows what was concluded; 0 if there is none.

    A picture of it says who began beside the long request. Those of the other tests would need to
    be read otherwise: a refill test's first request is a plug that everybody waits for.

    Args:
        trials: The evidence of each.
        end: What was concluded.
    """
    groups = [trial for trial in trials if trial.stage == "group"]
    agreeing = [trial for trial in groups if trial.batching == end.batching] or groups
    # of equals, the one whose reason is told
    agreeing.sort(key=lambda trial: trial.reason.code != end.reason.code)
    return agreeing[0].trial if agreeing else 0


def _doubt(trials: Sequence[Evidence], alone: Alone, paced: Reason | None) -> Reason | None:
    """Why there is no verdict; None if there is one."""
    # A rung of the slots test may run into a limit that leaves the other tests alone.
    telling = [t for t in trials if t.stage != "slots" or t.reason.code != "rate_limited"]
    for code in _DOUBTS:
        for trial in telling:
            if trial.reason.code == code:
                return trial.reason
    if paced is not None:
        return paced
    opened = [t for t in telling if t.batching == "undetermined" and not _says_nothing(t)]
    found = {_family(t.batching) for t in trials if t.batching != "undetermined"}
    if found == {"continuous"} and _joined(trials) and all(map(_softens, opened)):
        return None
    if opened or len(found) > 1:
        if alone.varies:
            return _busy(alone)
        return opened[0].reason if opened else Reason(code="trials_differ")
    return _unconfirmed(trials, alone)


def _joined(trials: Sequence[Evidence]) -> bool:
    """Whether all shorts were seen to join at once, and no group test saw any of them wait."""
    codes = {trial.reason.code for trial in trials if trial.stage == "group"}
    return "joined_at_once" in codes and codes <= {"joined_at_once", "joined_late"}


def _softens(trial: Evidence) -> bool:
    """Whether a trial only lowers the confidence in joins that others saw.

    Others' requests can make ours wait, but cannot make all of them begin at once beside a long one
    on a server that lets none join; a fleet can, hence the low confidence.
    """
    late = trial.stage == "group" and trial.reason.code == "joined_late"
    return late or (trial.stage != "group" and trial.reason.code == "replicas")


def _says_nothing(trial: Evidence) -> bool:
    return trial.stage != "group" and trial.reason.code in _NO_EVIDENCE


def _unconfirmed(trials: Sequence[Evidence], alone: Alone) -> Reason | None:
    """Why what all trials say is not enough."""
    groups = [trial for trial in trials if trial.stage == "group"]
    if not groups:
        return None
    few = next((trial for trial in groups if trial.reason.code == "few_slots"), None)
    verdict = _agreed(trials)
    if alone.varies and (few is not None or verdict in _NEEDS_QUIET):
        return _busy(alone)
    if few is not None and not _refilled(trials):
        return Reason(code="some_joined", numbers=few.reason.numbers)
    if groups[0].batching == "static":
        gathered = {trial.gather_s[0] > 0 for trial in trials if trial.gather_s is not None}
        if len(gathered) > 1 or (not gathered and alone.varies):
            return _busy(alone) if alone.varies else Reason(code="gathering_unclear")
    return None


def _refilled(trials: Sequence[Evidence]) -> bool:
    """Whether a refill test saw all that queued take the places of those that ended."""
    return any(t.stage == "refill" and t.batching == "continuous" for t in trials)


def _busy(alone: Alone) -> Reason:
    return Reason(code="busy", numbers={"wait_ms": alone.wait_s * 1e3})


def _family(batching: Batching) -> str:
    """A group test cannot tell dynamic from static: that is for the slots test."""
    return "static" if batching == "dynamic" else batching


def _agreed(trials: Sequence[Evidence]) -> Batching:
    found = {trial.batching for trial in trials} - {"undetermined"}
    if "dynamic" in found:
        return "dynamic"
    return next(iter(found), "undetermined")


def _confidence(
    trials: Sequence[Evidence], batching: Batching, baseline: Baseline, alone: Alone
) -> Confidence:
    """Two group tests, and enough of other kinds, are high; a step down for each limit."""
    groups = sum(trial.stage == "group" for trial in trials)
    others = sum(trial.stage != "group" and trial.batching != "undetermined" for trial in trials)
    joined = all(t.reason.code == "joined_at_once" for t in trials if t.stage == "group")
    enough = groups > 1 and (joined or others > 1)
    confidence: Confidence = "high" if enough else "medium" if groups + others > 1 else "low"
    softened = any(t.batching == "undetermined" and _softens(t) for t in trials)
    fleet = joined and _may_be_a_fleet(trials)
    if softened or fleet or alone.requests < _ENOUGH_ALONE or _low(trials, batching, alone):
        confidence = "low"
    if batching == "dynamic" and sum(t.batching == "dynamic" for t in trials) < _REPEATED:
        confidence = _LOWER[confidence]
    if not baseline.streams:
        confidence = _LOWER[confidence]
    return _LOWER[confidence] if alone.varies else confidence


def _may_be_a_fleet(trials: Sequence[Evidence]) -> bool:
    """Whether servers that let nobody join, one idle for each request, would have done as well.

    Those that have to wait in a slots test may, by chance, each wait at a server that is done soon;
    all that queue in a refill test can hardly share the one server with the shorter request. Where
    the longest rung was not long enough to make anybody wait, there is nothing more to be seen.
    """
    return not _refilled(trials) and max(trial.together for trial in trials) < LADDER[-1]


def _low(trials: Sequence[Evidence], batching: Batching, alone: Alone) -> bool:
    """Whether static was not told apart from batches that wait a little for company.

    Requests sent 5 ms apart arrive so only over a network that varies less.
    """
    if batching == "dynamic":
        return False
    # The time to the first token holds a step, whose noise does not change who arrives when.
    network_s = min(alone.noise_s, max(0.0, alone.ttft_s - alone.step_s) / 2)
    return batching == "static" and (_gather(trials) is None or network_s > GATHERING_NOISE_S)


def _slots(trials: Sequence[Evidence], batching: Batching, alone: Alone) -> int | None:
    """Exact only if two trials saw a request wait at the same number, and none saw another.

    Three, where there are many: others' requests may take a few of many slots unseen, and the same
    number twice may be chance.
    """
    if batching == "serial":
        return 1
    shown = [trial.slots for trial in trials if trial.slots is not None]
    most = max((max([t.together, *t.clusters]) for t in trials), default=1)
    enough = _SHOWN if most <= _FEW else _SHOWN + 1
    if alone.varies or len(shown) < enough or set(shown) != {most}:
        return None
    return most


def _release(groups: Sequence[Evidence]) -> Release | None:
    found = {trial.release for trial in groups}
    return groups[0].release if len(found) == 1 else None


def _gather(trials: Sequence[Evidence]) -> tuple[float, float | None] | None:
    """The bounds that all rungs leave. A full batch waits for nobody, and so bounds nothing."""
    largest = max((max(t.clusters[1:], default=1) for t in trials if t.clusters), default=1)
    seen = [(t.gather_s, t.clusters[0] < largest) for t in trials if t.gather_s is not None]
    if not seen:
        return None
    highs = [gather[1] for gather, room in seen if room and gather[1] is not None]
    low, high = max(gather[0] for gather, _room in seen), min(highs, default=None)
    return (low, high if high is None or high > low else None)


def _remarks(trials: Sequence[Evidence], baseline: Baseline, alone: Alone) -> tuple[Reason, ...]:
    remarks = []
    if not baseline.streams:
        remarks.append(Reason(code="streaming_off"))
    if alone.varies:
        remarks.append(_busy(alone))
    if _joined(trials):
        remarks += [t.reason for t in trials if t.batching == "undetermined" and _softens(t)][:1]
    limited = [t for t in trials if t.stage == "slots" and t.reason.code == "rate_limited"]
    if limited:
        remarks.append(limited[0].reason)
    return tuple(remarks)
