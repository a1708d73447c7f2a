"""What the cost stage found: a calibration, or why there is none; and whether prefixes are kept."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from slotwise_workflows.errors import InputError
from slotwise_workflows.probe.files import requests_jsonl
from slotwise_workflows.probe.findings import CostFinding, CostUnknown, PrefixCache
from slotwise_workflows.probe.load.cost import CostRun
from slotwise_workflows.probe.load.cost_plan import BATCHES
from slotwise_workflows.probe.model import Batching, Release, Sample
from slotwise_workflows.traffic import probe_log
from slotwise_workflows.traffic.probe_log import COST_ROWS, EQUAL, UNLIKE

if TYPE_CHECKING:
    from slotwise_sim.replay import Server
    from slotwise_workflows.traffic import Traffic

_MOST_FAILED = 0.1
"""As a share: what fails may have been worked on beforehand, beside what is fitted to."""


def server_of(
    batching: Batching, slots: int, *, release: Release | None = None, max_delay_ms: float = 0.0
) -> Server:
    """The server that was found, as it is simulated.

    A live server does not wait for a full batch as `Static` does: it takes what waits once nobody
    runs, which is dynamic batching, with no delay unless one was found. With one slot all are one.

    Raises:
        ValueError: How it batches was not found.
    """
    from slotwise_sim.policies import Continuous, Dynamic
    from slotwise_sim.replay import Server

    if batching == "undetermined":
        raise ValueError("how the server batches is not known")
    if batching in BATCHES:
        return Server(Dynamic(max_delay_ms, release or "batch"), slots)
    return Server(Continuous(), 1 if batching == "serial" else slots)


def fit_cost(run: CostRun, server: Server, *, others: Sequence[Sample] = ()) -> CostFinding:
    """Fits the cost of an iteration to the requests of the cost stage.

    That it cannot be fitted is a finding, not an error. With one slot batches are all of one, so
    ``per_seq_ms`` is given as 0, and ``base_ms`` holds it.

    Args:
        run: What was sent and seen.
        server: How it was served; see `server_of`.
        others: Samples of the stages before. They are not fitted to; with them the calibration
            names the very file that a probe of both keeps.
    """
    from slotwise_workflows.calibrate.run import calibrate_run

    given = {"per_seq_ms": 0.0} if server.slots * server.replicas == 1 else {}
    calibration, unknown = None, _unusable(run.samples)
    if unknown is None:
        try:
            traffic = traffic_of([*others, *run.samples], COST_ROWS)
            calibration = calibrate_run(traffic, server, given=given)
        except InputError as error:
            detail = error.why or error.what  # the sentence says already what is not told
            unknown = CostUnknown(code="not_identified", detail=detail)
    return CostFinding(
        calibration=calibration,
        cost_unknown=unknown,
        prefix_cache=prefix_cache(run.samples),
        prompt_scale_measured=run.scale.measured,
        prompt_factor=run.prompt_factor,
        client=run.client,
        requests=len(run.samples),
        unsent=run.unsent,
        failed=sum(not sample.answered for sample in run.samples),
    )


def traffic_of(samples: Sequence[Sample], where: Sequence[str] = ()) -> Traffic:
    """Samples as a log, by way of the very file in which a probe keeps them.

    Raises:
        InputError: No row is left.
    """
    from slotwise_workflows.traffic import ReadOptions, read_traffic

    with tempfile.TemporaryDirectory(prefix="slotwise-") as directory:
        path = Path(directory, probe_log.NAME)
        path.write_bytes(requests_jsonl(samples))
        options = ReadOptions(format="slotwise_probe", where=tuple(where))
        return read_traffic([str(path)], options)


def prefix_cache(samples: Sequence[Sample]) -> PrefixCache | None:
    """Equal prompts against unlike ones; the first equal one only fills the cache."""
    equal, unlike = (
        [sample for sample in samples if sample.name == name and sample.answered]
        for name in (EQUAL, UNLIKE)
    )
    if len(equal) < 2 or not unlike:
        return None
    again, fresh = (median(_ttft_s(sample) for sample in kind) for kind in (equal[1:], unlike))
    return PrefixCache(
        ttft_ratio=again / fresh,
        equal_ttft_s=again,
        unlike_ttft_s=fresh,
        prompt_tokens=equal[0].prompt_tokens,
        requests=len(equal) + len(unlike),
    )


def _unusable(samples: Sequence[Sample]) -> CostUnknown | None:
    """What keeps the samples from being fitted to, where that is seen beforehand."""
    failed = [sample for sample in samples if not sample.answered]
    answered = [sample for sample in samples if sample.answered]
    limited = sum(sample.fault == "rate_limited" for sample in failed)
    told = f"{len(failed)} of {len(samples)} requests failed"
    if limited:
        return CostUnknown(code="rate_limited", detail=f"{told}, {limited} by a limit on requests")
    if len(failed) > _MOST_FAILED * len(samples) or not answered:
        first = next((sample.fault for sample in failed if sample.fault), "no answer")
        return CostUnknown(code="requests_failed", detail=f"{told}, the first with {first}")
    if all(sample.output_tokens is None for sample in answered):
        return CostUnknown(code="tokens_not_counted", detail="the endpoint tells no usage")
    if all(sample.first_token_ns == sample.last_token_ns for sample in answered):
        return CostUnknown(
            code="tokens_not_seen", detail="first and last tokens of an answer came together"
        )
    return None


def _ttft_s(sample: Sample) -> float:
    first_ns = sample.first_token_ns
    return 0.0 if first_ns is None else (first_ns - sample.sent_ns) / 1e9
