"""The verdict on each handed trace, from the log alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from slotwise_workflows.diagnose import diagnose
from slotwise_workflows.given import Given
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.result import Provenance, Result
from slotwise_workflows.traffic import read_traffic

TRACES = Path(__file__).parents[3] / "shared/data/traffic/traces"
NOWHERE = Provenance(
    slotwise="0", python="", platform="", packages={}, seed=0, command=[], inputs=[], config={},
    created=None,
)  # fmt: skip

pytestmark = pytest.mark.skipif(not TRACES.exists(), reason="the handed traces are not here")


def verdict_on(name: str, given: Given) -> Result:
    traffic = read_traffic([str(TRACES / name)])
    return diagnose(
        traffic, given, name=name, seed=0, thresholds=Thresholds(), provenance=NOWHERE
    ).result


@pytest.mark.parametrize(
    "name",
    [
        "azure2023_conv.csv.gz",
        "azure2023_code.csv.gz",
        "mooncake_conversation_trace.jsonl.gz",
        "mooncake_synthetic_trace.jsonl.gz",
    ],
)
def test_varied_lengths_are_worth_it_wherever_batches_form(name: str) -> None:
    result = verdict_on(name, Given())
    assert (result.verdict, result.reasons[0].code) == ("adopt", "gain_lengths_only")
    assert result.confidence != "high"  # the server is not known
    assert result.waiting is None


@pytest.mark.parametrize("gpu", ["RTX4090_Llama-3.1-8B", "RTXPRO6000_Qwen3-30B-A3B-Instruct-2507"])
def test_a_vllm_log_is_never_told_to_adopt(gpu: str) -> None:
    result = verdict_on(f"vllm_measured_{gpu}_requests.jsonl", Given())
    assert (result.verdict, result.reasons[0].code) == ("already", "batches_continuously")
    assert "bench_load" in {limit.code for limit in result.limits}


def test_an_overloaded_conversation_server_adopts_for_its_load() -> None:
    """5.5 requests a second of 211 tokens at 20 ms fill 23 slots; batches of 8 hold over 40."""
    result = verdict_on(
        "azure2023_conv.csv.gz", Given(slots=8, ms_per_token=20, replicas=3, serving="self_hosted")
    )
    assert (result.verdict, result.reasons[0].code) == ("adopt", "gain_overload")
    assert result.utilisation["dynamic"] == pytest.approx(
        5.53 * 0.2111 * 20 * result.gain.estimate / 24 if result.gain else 0, rel=0.02
    )


def test_a_quiet_code_server_waits_for_its_load() -> None:
    """2.6 requests a second of 28 tokens at 10 ms keep less than one of 64 slots busy."""
    result = verdict_on("azure2023_code.csv.gz", Given(slots=64, ms_per_token=10, replicas=1))
    assert result.verdict in {"adopt", "conditional"}
    assert result.utilisation["continuous"] < 0.02
