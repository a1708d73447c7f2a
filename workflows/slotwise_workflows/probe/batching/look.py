"""The tests of a probe, one after the other, within its plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from slotwise_workflows.probe.batching.baseline import measure, pace_s, refine, summarise
from slotwise_workflows.probe.batching.classify import judge_group
from slotwise_workflows.probe.batching.group import group_trial
from slotwise_workflows.probe.batching.measures import Measures
from slotwise_workflows.probe.batching.queues import judge_refill, judge_slots
from slotwise_workflows.probe.batching.refill import QUEUED, refill_trial, size_refill
from slotwise_workflows.probe.batching.send import Ask
from slotwise_workflows.probe.batching.slots import LADDER, Burst, size_burst, slots_trial
from slotwise_workflows.probe.model import Alone, Baseline, Evidence, Plan, Sample, Sizes
from slotwise_workflows.probe.plan import (
    ALONE_TOKENS,
    BASELINE_TOKENS,
    WHOLE_TOKENS,
    size_trial,
)
from slotwise_workflows.probe.wire.preflight import TRIES

Judge = Callable[[Measures], Evidence]


@dataclass
class Found:
    """What has been seen so far; read when the probe is interrupted, so never half a trial.

    Attributes:
        first: The first request alone.
        alone: It and the others alone.
        trials: The evidence of each trial, as far as it was known then.
        judges: Judges each trial.
        samples: Of each trial, by its number.
        sizes: Of the group tests.
        requests: Sent so far, or meant to be.
        tokens: Asked for so far.
    """

    first: Sample
    alone: list[Sample] = field(default_factory=list)
    trials: list[Evidence] = field(default_factory=list)
    judges: list[Judge] = field(default_factory=list)
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    sizes: Sizes | None = None
    requests: int = TRIES
    tokens: int = TRIES * BASELINE_TOKENS

    @property
    def baseline(self) -> Baseline:
        """The measure of the requests alone."""
        return refine([self.first, *self.alone])

    @property
    def summary(self) -> Alone:
        """Of the requests alone, and of those that opened a trial."""
        # Of the slots test the second request may overtake the first, and make it wait.
        openers = [trial[0] for trial in self.samples.values() if trial[0].stage != "slots"]
        baseline = self.baseline
        shortest = min(self.sizes.shorts) if self.sizes is not None else 0
        return summarise(
            [self.first, *self.alone],
            baseline,
            openers=openers,
            shortest_s=shortest * baseline.seconds_per_token,
        )

    @property
    def measures(self) -> Measures:
        """What the next trial is held against."""
        releases = {t.release for t in self.trials if t.release is not None}
        release = next(iter(releases)) if len(releases) == 1 else None
        return Measures(self.baseline, self.summary, release)

    @property
    def judged(self) -> list[Evidence]:
        """All trials, held against all requests alone: the more there are, the better known."""
        measures = self.measures
        return [judge(measures) for judge in self.judges]


async def look(ask: Ask, plan: Plan, found: Found, *, deadline: float) -> bool:
    """Runs the tests of a plan: alone, group, slots, refill, and again, so that drift cancels.

    What is done is added to ``found`` trial by trial; whoever interrupts this has what was done. A
    trial that the deadline cut short is left out, and so is whatever does not fit into the plan.
    Answers that no further trial could make sense of end it.

    Args:
        ask: Sends a request.
        plan: What may be sent.
        found: With the first request alone in it.
        deadline: On the event loop's clock.

    Returns:
        Whether the plan was carried out; False if its time ran out.
    """
    tests = _Tests(ask, plan, found, size_trial(plan, found.baseline), deadline)
    if not measure(found.first).streams:
        # Another length tells the time per token from what every answer takes.
        await tests.one_alone(groups=plan.trials, tokens=WHOLE_TOKENS)
    for done in range(plan.trials):
        if not await tests.round(first=done == 0, left=plan.trials - done - 1):
            return not tests.late
    await tests.one_alone(groups=0)
    return not tests.late


@dataclass
class _Tests:
    """The tests of one probe, and what they may still use."""

    ask: Ask
    plan: Plan
    found: Found
    sizes: Sizes
    deadline: float
    late: bool = False

    async def round(self, *, first: bool, left: int) -> bool:
        """One group test and what goes with it; False if the probe should end."""
        await self.one_alone(groups=left + 1)
        self._size()
        if not self._in_time(self.sizes.long) or not await self._group():
            return False
        if self.found.trials[-1].reason.code in _FINAL:
            return False
        if not await self._slots(first=first, left=left):
            return False
        await self.one_alone(groups=left)
        return await self._refill(left=left)

    async def one_alone(self, *, groups: int, tokens: int = ALONE_TOKENS) -> None:
        """One request more alone, if it fits beside the group tests to come."""
        if self.late or not self._fits(1, tokens, groups=groups):
            return
        pause_s = max(_PAUSE_S, _PAUSE_TTFTS * self.found.baseline.ttft_s)
        if not self._in_time(tokens, after_s=pause_s):
            return
        await asyncio.sleep(pause_s)
        self._spend(1, tokens)
        name = f"alone-{len(self.found.alone) + 1}"
        sample = await self.ask(stage="baseline", name=name, trial=0, tokens=tokens)
        self.found.alone.append(sample)
        self._in_time()

    def _size(self) -> None:
        """Sizes the next group test, by the last long one's pace: some slow down as they grow."""
        baseline = self.found.baseline
        longs = [samples[0] for samples in self.found.samples.values()]
        longs = [one for one in longs if one.stage == "group" and one.answered]
        # Where only whole answers are seen, a long one's time may hold what it waited for.
        paces = [pace_s(one) for one in longs] if baseline.streams else []
        if paces:
            baseline = baseline.model_copy(update={"seconds_per_token": paces[-1]})
        self.sizes = self.found.sizes = size_trial(self.plan, baseline)

    async def _group(self) -> bool:
        trial = self._next()
        self._spend(1 + len(self.sizes.shorts), self.sizes.total)
        sizes = self.sizes
        samples = await group_trial(self.ask, sizes, self.found.baseline, trial=trial)
        return self._keep(samples, lambda held: judge_group(samples, held, sizes, trial=trial))

    async def _slots(self, *, first: bool, left: int) -> bool:
        """Rungs until somebody waits; in later rounds, the last rung of the first one again."""
        for requests in self._rungs(first=first):
            share = self._free_tokens(left) // 3 if first else self._free_tokens(left) // (left + 2)
            burst = size_burst(requests, self.found.summary, tokens_left=share)
            if burst is None or not self._fits(requests, burst.total, groups=left):
                return True
            if not self._in_time(max(burst.tokens), after_s=burst.offsets_s[-1]):
                return False
            trial = self._next()
            self._spend(requests, burst.total)
            samples = await slots_trial(self.ask, burst, trial=trial)
            if not self._keep(samples, partial(_slots_of, samples, burst, trial)):
                return False
            last = self.found.trials[-1]
            if last.slots is not None or last.reason.code not in _MORE:
                return True
        return True

    def _rungs(self, *, first: bool) -> tuple[int, ...]:
        joined = any(trial.reason.code == "joined_at_once" for trial in self.found.trials)
        if first:
            return LADDER[1:] if joined else LADDER  # the group test has shown the first one
        done = [trial for trial in self.found.trials if trial.stage == "slots"]
        if joined and not any(trial.slots for trial in done):
            return ()
        return (len(self.found.samples[done[-1].trial]),) if done else LADDER[:1]

    async def _refill(self, *, left: int) -> bool:
        slots = max((trial.slots or 0 for trial in self.found.trials), default=0)
        if slots < _FEWEST:
            return True
        sizes = size_refill(
            slots,
            self.found.summary,
            shorter=len(self.found.trials) % slots,
            tokens_left=self._free_tokens(left) // (left + 1),
        )
        if sizes is None or not self._fits(slots + 1 + QUEUED, sizes.total, groups=left):
            return True
        if not self._in_time(sizes.plug + max(sizes.members)):
            return False
        trial = self._next()
        self._spend(sizes.requests, sizes.total)
        samples = await refill_trial(self.ask, sizes, trial=trial)
        return self._keep(samples, lambda held: judge_refill(samples, held, sizes, trial=trial))

    def _next(self) -> int:
        return len(self.found.trials) + 1

    def _keep(self, samples: list[Sample], judge: Judge) -> bool:
        """Adds a trial, unless the deadline cut it short; False if the time is up."""
        in_time = self._in_time()
        if not in_time and any(sample.fault == "timeout" for sample in samples):
            return False
        self.found.judges.append(judge)
        self.found.samples[self._next()] = samples
        self.found.trials.append(judge(self.found.measures))
        return in_time

    def _in_time(self, tokens: int = 0, *, after_s: float = 0.0) -> bool:
        """Whether there is time for a request of so many tokens that nothing makes wait.

        Once there is not, the probe is late: what it sent now would only be cut short.
        """
        needed_s = after_s + tokens * self.found.baseline.seconds_per_token
        if asyncio.get_running_loop().time() + needed_s >= self.deadline:
            self.late = True
        return not self.late

    def _spend(self, requests: int, tokens: int) -> None:
        self.found.requests += requests
        self.found.tokens += tokens

    def _free_tokens(self, groups: int) -> int:
        """Left for other tests if so many group tests are still to come."""
        reserved = groups * (self.sizes.total + 2 * ALONE_TOKENS) + 2 * ALONE_TOKENS
        return max(0, self.plan.output_tokens - self.found.tokens - reserved)

    def _fits(self, requests: int, tokens: int, *, groups: int) -> bool:
        """Whether a test leaves enough for so many group tests."""
        requests += self.found.requests + groups * (1 + len(self.sizes.shorts))
        tokens += self.found.tokens + groups * self.sizes.total
        return requests <= self.plan.requests and tokens <= self.plan.output_tokens


def _slots_of(samples: list[Sample], burst: Burst, trial: int, held: Measures) -> Evidence:
    return judge_slots(samples, held, burst, trial=trial)


_FEWEST = 2
_PAUSE_S = 0.25
_PAUSE_TTFTS = 2.0
"""A server may be busy with a batch for a while after its last answer has ended."""
_MORE = {"nobody_waited", "began_together", "began_with_later_ones"}
"""More requests may show what these did not: how many slots there are."""
_FINAL = {"rate_limited", "cached_responses", "lengths_not_honoured", "requests_failed"}
