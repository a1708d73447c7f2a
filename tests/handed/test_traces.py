"""The larger real traces give their right answers to the last digit that there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import Traffic, read_traffic

_ANSWERS = Path(__file__).parents[3] / "shared" / "data" / "traffic" / "traces" / "answers.json"
_ALL = json.loads(_ANSWERS.read_text(encoding="utf-8")) if _ANSWERS.is_file() else {}
pytestmark = pytest.mark.skipif(not _ALL, reason="no handed logs beside the repository")


@pytest.mark.parametrize("name", list(_ALL) or ["none"])
def test_trace(name: str, figures_of: Callable[[Traffic], dict[str, Any]]) -> None:
    traffic = read_traffic([str(_ANSWERS.parent / name)])
    found = figures_of(traffic)
    for key in (found.keys() & _ALL[name].keys()) - {"models"}:
        want = _ALL[name][key]
        if isinstance(want, float):
            rel = 0 if key in {"first", "last"} else 1e-9
            want = pytest.approx(want, rel=rel, abs=1e-6)
        assert found[key] == want, key


def test_mooncake_clock_is_known_to_be_coarse() -> None:
    traffic = read_traffic([str(_ANSWERS.parent / "mooncake_conversation_trace.jsonl.gz")])
    assert traffic.flags == ("time_resolution:3s",)
    assert traffic.table["start_time"].n_unique() == 1180


def test_both_vllm_runs_together_lose_nothing() -> None:
    # Their ids are the same on both machines, their arrivals are not.
    traffic = read_traffic([str(_ANSWERS.parent / "vllm_measured_*_requests.jsonl")])
    assert len(traffic) == 600
    assert traffic.excluded == {}


def test_directory_of_several_formats_is_refused_with_what_each_file_is() -> None:
    with pytest.raises(InputError) as caught:
        read_traffic([str(_ANSWERS.parent)])
    message = str(caught.value)
    for told in ("are each Azure LLM", "are each Mooncake trace", "are each vLLM request times"):
        assert told in message
