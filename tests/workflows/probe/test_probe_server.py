"""The whole probe over HTTP against the test server, whose policy is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from slotwise_workflows.errors import EndpointError, UsageError
from slotwise_workflows.probe import (
    Plan,
    ProbeResult,
    Wanted,
    figures_of,
    look_and_measure,
    make_plan,
    write_probe,
)
from slotwise_workflows.report import load_words, probe_reading

Serve = Callable[..., Any]
PLAN = make_plan(trials=1, max_requests=24, long_s=0.8, seconds=60)
# What a machine that is busy with other things makes of a right answer.
NOISE = {"busy", "too_noisy", "joined_late", "trials_differ", "replicas", "overlap_unclear"}
QUICK = make_plan(trials=1, max_tokens=3 * 32 + 104, long_s=0.1, seconds=60)
# Milliseconds a step where what is asked for and kept matters, and not when it came.
FAST = 2.0


def probe(url: str, plan: Plan, **how: Any) -> ProbeResult:
    return look_and_measure(url, plan, Wanted(cost=False), **how)


def told(found: ProbeResult) -> str:
    return probe_reading.verdict(figures_of(found), load_words("en"))


@pytest.mark.parametrize(
    ("policy", "expected", "release"),
    [
        ({"batching": "continuous", "slots": 8}, "continuous", None),
        ({"batching": "static", "slots": 8, "per_seq_ms": 0.5}, "static", "own"),
        ({"batching": "static", "slots": 8, "release": "batch"}, "static", "batch"),
        ({"batching": "static", "slots": 1}, "serial", None),
    ],
)
def test_a_known_policy_is_found(
    serve: Serve, policy: dict[str, object], expected: str, release: str | None
) -> None:
    server = serve(**policy)
    found = probe(server.url, PLAN)
    if found.batching != "undetermined" or found.reason.code not in NOISE:
        assert found.batching == expected
        assert found.release in (release, None)
    assert found.slots_at_least <= server.most
    assert found.slots in (None, policy["slots"])
    assert found.timeline[0].name in {"long", "plug", "burst-1"}
    assert found.requests_sent == len(server.requests) <= PLAN.requests
    assert (found.api, found.model) == ("chat", "test-model")
    asked = [int(str(body["max_tokens"])) for _, _, body in server.requests]
    assert sorted(asked) == sorted(sample.asked_tokens for sample in found.samples)
    assert sum(asked) == found.output_tokens <= PLAN.output_tokens
    assert told(found).startswith("The endpoint http://127.0.0.1:")


def test_what_cannot_be_told_is_not_guessed(serve: Serve) -> None:
    found = probe(serve(batching="static", replicas=2).url, PLAN)
    assert (found.batching, found.confidence) == ("undetermined", "low")
    assert found.reason.code in {"replicas", *NOISE}
    assert told(found).endswith("batches could not be told from outside.")


@pytest.mark.parametrize(
    "dialect",
    [
        {"crlf": True, "comments": True, "done": False},
        {"usage": False},
        {"stream_options": False},
        {"chat": False},
        {"stream": False},
        {"models": ()},
    ],
)
def test_dialects(serve: Serve, dialect: dict[str, object]) -> None:
    """However the server says it, it is all understood; a slow enough test would also classify."""
    server = serve(step_ms=FAST, faults=dialect)
    found = probe(server.url, QUICK)
    assert {sample.fault for sample in found.samples} == {None}
    counted = found.samples[0].output_tokens
    assert counted == (None if dialect.keys() & {"usage", "stream_options"} else 32)
    assert found.samples[0].streamed is dialect.get("stream", True)
    assert found.api == ("completions" if dialect.get("chat") is False else "chat")
    assert found.model == (None if dialect.get("models") == () else "test-model")
    assert found.requests_sent == len(server.requests) <= QUICK.requests


@pytest.mark.parametrize(
    ("faults", "sentence", "status"),
    [
        ({"key": "right"}, "wants an API key", "HTTP 401"),
        ({"fail": {1: 429, 2: 429, 3: 429}}, "limits the rate", "HTTP 429"),
        ({"fail": {1: 503, 2: 503, 3: 503}}, "failed", "HTTP 503"),
        ({"fail": {1: 308}, "location": "http://elsewhere/v1"}, "redirects elsewhere", "HTTP 308"),
        ({"fail": {1: 402}}, "rejects", "HTTP 402"),
        ({"chat": False, "completions": False}, "no such API", "HTTP 404"),
        ({"models": ("a", "b")}, "serves 2 models: a, b", ""),
        ({"error_after": 3}, "answers with an error in place of tokens", ""),
        ({"drop_after": 3}, "ends in the middle", ""),
    ],
)
def test_a_fault_of_the_first_request_is_one_line(
    serve: Serve, faults: dict[str, object], sentence: str, status: str
) -> None:
    server = serve(faults=faults)
    with pytest.raises(EndpointError, match=sentence) as error:
        probe(server.url, PLAN, api_key="wrong")
    assert status in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 5
    assert len(server.requests) <= 3


def test_a_rate_limit_later_on_leaves_it_open(serve: Serve) -> None:
    found = probe(serve(step_ms=FAST, faults={"fail": {4: 429}}).url, QUICK)
    assert (found.batching, found.reason.code) == ("undetermined", "rate_limited")


def test_a_model_that_ends_by_itself_leaves_it_open(serve: Serve) -> None:
    found = probe(serve(step_ms=FAST, faults={"stop_after": 5}).url, QUICK)
    assert (found.batching, found.reason.code) == ("undetermined", "lengths_not_honoured")


def test_nobody_there() -> None:
    with pytest.raises(EndpointError, match="cannot be reached"):
        probe("http://127.0.0.1:9", PLAN)


def test_a_page_is_no_endpoint(serve: Serve) -> None:
    with pytest.raises(EndpointError, match="knows no such API"):
        probe(f"{serve().url}/docs", PLAN, model="m")


@pytest.mark.parametrize("key", ["", "with\nnewline", "schlüssel", "a\x00b"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(UsageError) as error:
        probe("http://127.0.0.1:9", PLAN, api_key=key)
    assert not key or key not in str(error.value)


def test_prompts_differ_from_their_first_words_on(serve: Serve) -> None:
    server = serve(step_ms=FAST)
    probe(server.url, QUICK)
    prompts = [body["messages"][0]["content"] for _, _, body in server.requests]
    assert len({prompt[:20] for prompt in prompts}) == len(prompts)


def test_no_answer_prompt_or_key_is_kept(serve: Serve, tmp_path: Any) -> None:
    server = serve(step_ms=FAST, faults={"key": "sk-very-secret-quux"})
    found = probe(f"{server.url}/v1?token=hidden", QUICK, api_key="sk-very-secret-quux")
    files = write_probe(found, tmp_path)
    assert [file.name for file in files] == ["probe.jsonl", "probe.json"]
    everything = b"".join(file.read_bytes() for file in tmp_path.iterdir()).decode()
    everything += repr(found) + told(found)
    for _, headers, body in server.requests:
        assert headers["authorization"] == "Bearer sk-very-secret-quux"
        assert body["messages"][0]["content"] not in everything
    for secret in ("sk-very", "secret", "quux", "hidden", "Count upwards", "Bearer"):
        assert secret not in everything
    rows = [json.loads(line) for line in files[0].read_text("utf-8").splitlines()]
    assert [row["name"] for row in rows] == [
        "baseline",
        "long",
        *(f"short-{index}" for index in range(1, 7)),
    ]
    kept = json.loads(files[1].read_text("utf-8"))
    assert kept["schema"] == "slotwise/probe/v1"
    assert kept["endpoint"] == found.endpoint.model_dump()
    assert (kept["endpoint"]["kind"], kept["endpoint"]["usage"]) == ("unknown", True)
