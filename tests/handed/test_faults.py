"""Every handed fault gives its right answer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic

_ANSWERS = Path(__file__).parents[3] / "shared" / "data" / "traffic" / "faults" / "answers.json"
_ALL = json.loads(_ANSWERS.read_text(encoding="utf-8")) if _ANSWERS.is_file() else {}
pytestmark = pytest.mark.skipif(not _ALL, reason="no handed logs beside the repository")
_READ = [name for name, answer in _ALL.items() if answer["mode"] != "refuse"]
_FURTHER = [name for name in _READ if _ALL[name]["extra"]]
_REFUSED = [name for name, answer in _ALL.items() if answer["mode"] == "refuse"]


def read_fault(name: str, options: ReadOptions | None = None) -> Traffic:
    return read_traffic([str(_ANSWERS.parent / name)], options or ReadOptions())


def column(traffic: Traffic, name: str) -> list[Any]:
    return [value for value in traffic.table[name].to_list() if value is not None]


@pytest.mark.parametrize("name", _READ or ["none"])
def test_fault(name: str) -> None:
    answer = _ALL[name]
    traffic = read_fault(name)
    assert traffic.rows == len(traffic) + sum(traffic.excluded.values())
    assert column(traffic, "gen_ai.usage.output_tokens") == answer["outputs"]
    assert traffic.excluded == answer["excluded"]
    # One request has no variation, whatever else its log is an example of.
    flags = set(traffic.flags) - ({"too_few_requests"} if len(traffic) == 1 else set())
    assert flags == set(answer["flags"]) - {"too_few_requests"}
    assert ("too_few_requests" in traffic.flags) == (len(traffic) == 1)
    if answer["arrival"] is None:
        assert traffic.clock is None
    else:
        starts = column(traffic, "start_time")
        first, last = answer["arrival"]
        assert min(starts) / 1e9 == pytest.approx(first, rel=0, abs=1e-6)
        assert max(starts) / 1e9 == pytest.approx(last, rel=0, abs=1e-6)


@pytest.mark.parametrize("name", _FURTHER or ["none"])
def test_further_answers(name: str) -> None:
    extra = _ALL[name]["extra"]
    traffic = read_fault(name)
    columns = {
        "ttft_s": "gen_ai.response.time_to_first_chunk",
        "latency_s": "e2e_latency",
        "e2e_s": "e2e_latency",
        "prompt": "gen_ai.usage.input_tokens",
    }
    for key, values in extra.items():
        if key in columns:
            assert column(traffic, columns[key]) == pytest.approx(values, abs=1e-6)
        elif key == "gaps_s":
            starts = sorted(column(traffic, "start_time"))
            assert [(b - a) / 1e9 for a, b in itertools.pairwise(starts)] == values
        else:
            assert key == "span_s_with_tz_Europe/Berlin"
            starts = column(read_fault(name, ReadOptions(timezone="Europe/Berlin")), "start_time")
            assert (max(starts) - min(starts)) / 1e9 == values


@pytest.mark.parametrize("name", _REFUSED or ["none"])
def test_refused_fault(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_fault(name)
    message = str(caught.value)
    assert name in message
    assert "\n" not in message


def test_cut_gzip_may_be_read_as_far_as_it_goes() -> None:
    if "34-truncated.jsonl.gz" not in _ALL:
        pytest.skip("no such log")
    traffic = read_fault("34-truncated.jsonl.gz", ReadOptions(allow_truncated=True))
    assert len(traffic) > 0
    assert "input_cut_off" in traffic.flags
