"""Every handed sample of a format that is read gives its right answers; the others are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import Traffic, read_traffic

_ANSWERS = Path(__file__).parents[3] / "shared" / "data" / "traffic" / "samples" / "answers.json"
_ALL = json.loads(_ANSWERS.read_text(encoding="utf-8")) if _ANSWERS.is_file() else {}

# Formats that are not read yet; their samples must not be read as something else without a word.
_LATER = {
    "tgi_text.log": "TGI text log",
    "sglang_text.log": "SGLang text log",
    "llamacpp_docker.log": "llama.cpp text log",
    "llamacpp_uptime.log": "llama.cpp text log",
    "kong_ai_docs.jsonl": "Kong AI log",
    "codex_rollout_ccusage_fixture.jsonl": "Codex session",
}
# Answers that do not hold: they take Portkey's `created_at`, the end of a call, for its arrival.
_WRONG = {"portkey_export.jsonl": {"first", "last"}}
_READ = [n for n, answer in _ALL.items() if "refuse" not in answer and n not in _LATER]
# Words that the refusal must say, so that it says what the log is.
_REFUSED = {
    "servegen_chunk_trace.csv": "no header",
    "servegen_chunk_dataset.json": "summary",
    "vllm_v1_server.log": "vLLM",
    "vllm_v0_stats.log": "vLLM statistics",
    "inference_perf_stage_lifecycle.json": "aggregated",
    "guidellm_report_v2.json": "GuideLLM",
    "inference_perf_otel_trace.json": "no output-token counts",
    "openai_usage_api.json": "totals",
    "anthropic_usage_export.csv": "daily totals",
    "cloudflare_logpush.jsonl": "encrypted",
    "nginx_access.jsonl": "bytes",
    "haproxy.log": "bytes",
    "ollama_gin.log": "Gin",
    "fastchat_conv_log.jsonl": "texts",
    "trtllm_perf_metrics.json": "timings",
}


@pytest.mark.skipif(not _ALL, reason="no handed logs beside the repository")
@pytest.mark.parametrize("name", _READ or ["none"])
def test_sample(name: str, figures_of: Callable[[Traffic], dict[str, Any]]) -> None:
    traffic = read_traffic([str(_ANSWERS.parent / name)])
    found = figures_of(traffic)
    answer = _ALL[name]
    models = answer["models"]
    for key in (found.keys() & answer.keys()) - {"models"} - _WRONG.get(name, set()):
        # Six digits of a time since 1970 would be half an hour.
        exact = {"rel": 0 if key in {"first", "last"} else 1e-6, "abs": 1e-6}
        want = answer[key]
        if isinstance(want, float | int) and not isinstance(want, bool):
            want = pytest.approx(want, rel=exact["rel"], abs=exact["abs"])
        assert found[key] == want, f"{key}: {found[key]} is not {answer[key]}"
    if models and models > 1:
        assert found["models"] == models
        assert f"multiple_models:{models}" in traffic.flags


@pytest.mark.skipif(not _ALL, reason="no handed logs beside the repository")
@pytest.mark.parametrize("name", sorted(_LATER))
def test_a_sample_that_is_not_read_yet_is_refused_not_misread(name: str) -> None:
    with pytest.raises(InputError, match=name):
        read_traffic([str(_ANSWERS.parent / name)])


@pytest.mark.skipif(not _ALL, reason="no handed logs beside the repository")
@pytest.mark.parametrize("name", sorted(_REFUSED))
def test_refused_sample(name: str) -> None:
    assert "refuse" in _ALL[name]
    with pytest.raises(InputError) as caught:
        read_traffic([str(_ANSWERS.parent / name)])
    message = str(caught.value)
    assert _REFUSED[name] in message
    assert name in message
    assert "\n" not in message
    assert "Traceback" not in message


@pytest.mark.skipif(not _ALL, reason="no handed logs beside the repository")
def test_every_sample_is_accounted_for() -> None:
    refused = {name for name, answer in _ALL.items() if "refuse" in answer}
    assert refused == set(_REFUSED)
    assert set(_LATER) <= set(_ALL) - refused
