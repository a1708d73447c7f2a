"""Results made by hand, one for every kind of report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Branding, Document
from slotwise_workflows.report.words import LANGUAGES, Language, load_words
from slotwise_workflows.result import Result

HOSTILE = (
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "a|b\nc # *d* [e](http://evil.example) `f`",
    "=HYPERLINK(1)",
    "x" * 5000,
)


def _lengths(mean: float = 211.4, cv: float | None = 0.77) -> dict[str, Any]:
    std = None if cv is None else mean * cv
    return {"mean": mean, "p50": 129.0, "p95": 451.0, "max": 1000.0, "std": std, "cv": cv}


def _times(scale: float) -> dict[str, float]:
    figures = {"mean": 2.1, "p50": 1.9, "p90": 4.2, "p95": 5.3, "p99": 7.7, "max": 9.9}
    return {name: value * scale for name, value in figures.items()}


def _policy(scale: float, idle: float) -> dict[str, Any]:
    return {
        "latency_s": _times(scale),
        "queue_delay_s": _times(scale / 2),
        "ttft_s": _times(scale / 1.5),
        "tpot_s": _times(0.01),
        "makespan_s": 3600.0 * scale,
        "requests_per_s": 5.4 / scale,
        "output_tokens_per_s": 1140.0 / scale,
        "busy_slot_s": 9000.0,
        "idle_share": idle,
        "preemptions": 0,
    }


def _estimate(value: float, half: float = 0.1) -> dict[str, float]:
    return {"estimate": value, "low": value - half, "high": value + half}


def _what_if(slots: int, load: float) -> dict[str, Any]:
    over = load >= 2
    return {
        "slots": slots,
        "load": load,
        "gain": 1.5 + slots / 16,
        "latency_mean_s": {"dynamic": 3.0 * (load or 1), "continuous": 1.1 * (load or 1)}
        if load
        else {},
        "latency_p95_s": {"dynamic": 8.0, "continuous": 3.0} if load else {},
        "idle_share": {"dynamic": 0.52, "continuous": 0.031},
        "overloaded": {"dynamic": over, "continuous": False},
    }


def _limit(policy: str, cv: float | None, gain: float, load: float | None) -> dict[str, Any]:
    """What was searched; under the baseline nothing is worth having in its own place."""
    own = policy == "continuous"
    return {
        "cost": "stated",
        "slots": 8,
        "replicas": 1,
        "balancer": "round_robin",
        "length_cv": cv,
        "policy": policy,
        "replications": 5,
        "gain": _estimate(gain if own else 1.0, 0.1 if own else 0.0),
        "capacity_load": _estimate(1.5 * gain if own else 1.5),
        "capacity_per_s": _estimate(4.73 if own else 2.29),
        "servers_needed": _estimate(1.0 if own else 2.4, 0.0 if own else 0.4),
        "break_even_load": _estimate(load, 0.05) if own and load is not None else None,
        "break_even_until": _estimate(1.8, 0.05) if own and load and gain < 1.2 else None,
        "break_even_cv": _estimate(0.11, 0.02) if own and cv is None else None,
    }


def _sweep() -> dict[str, Any]:
    """A small sweep: worth it from 0.6 times today's load, in a band alone at equal lengths."""
    edges = ((None, 2.07, 0.6), (0.0, 1.0, 1.4), (0.5, 1.6, 0.8), (1.0, 2.4, 0.5), (2.0, 3.9, None))
    return {
        "objectives": {},
        "thresholds": {"gain_adopt": 1.2, "waiting_adopt": 0.2},
        "baseline": "dynamic",
        "here": {"requests": 1940, "length_cv": 0.77, "rate_per_s": 0.31, "slots": 8},
        "rows": [],
        "limits": [
            _limit(policy, cv, gain, load)
            for cv, gain, load in edges
            for policy in ("dynamic", "continuous")
        ],
    }


def _bar(slot: int, start: float, own: float, held: float) -> dict[str, Any]:
    return {"slot": slot, "start_s": start, "own_end_s": own, "held_until_s": held}


def _base() -> dict[str, Any]:
    bound = {str(2**k): _estimate(1.2 + 0.3 * k, 0.02 * (k + 1)) for k in range(1, 9)}
    return {
        "schema": "slotwise/result/v1",
        "name": "support-chat",
        "model": "llama-3-70b",
        "requests": 1940,
        "token_share": 1.0,
        "verdict": "adopt",
        "confidence": "medium",
        "reasons": [
            {
                "code": "gain_waiting",
                "numbers": {"gain": 2.07, "low": 1.97, "high": 2.17}
                | {"waiting": 0.483, "waiting_low": 0.443, "waiting_high": 0.523},
            },
            {
                "code": "variation",
                "numbers": {"mean": 211.4, "cv": 0.77, "max_over_mean": 2.16, "slots": 8},
            },
        ],
        "limits": [
            {"code": "short_window", "numbers": {"hours": 3.2}},
            {"code": "constant_time_per_token", "numbers": {}},
        ],
        "actions": [
            {"code": "pilot", "numbers": {"replicas": 1, "slots": 8}},
            {"code": "measure_after", "numbers": {"low": 1.97, "high": 2.17}},
        ],
        "alternatives": [{"code": "prefix_sharing", "numbers": {"share": 0.31}}],
        "flip": [{"code": "flip_cv", "numbers": {"cv": 0.11}}],
        "gain": _estimate(2.07),
        "drift": 0.09,
        "waiting": _estimate(0.483, 0.04),
        "gain_bound": bound,
        "idle_share": {"static": 0.55, "dynamic": 0.52, "continuous": 0.31},
        "idle_at_full": {
            "dynamic": {"estimate": 0.517, "low": 0.492, "high": 0.539},
            "continuous": _estimate(0.0, 0.0),
        },
        "replay": "arrivals",
        "policies": {
            "static": _policy(1.3, 0.55),
            "dynamic": _policy(1.0, 0.52),
            "continuous": _policy(0.5, 0.31),
        },
        "capacity_per_s": {"dynamic": 2.29, "continuous": 4.73},
        "utilisation": {"dynamic": 0.61, "continuous": 0.29},
        "intervals": {"latency_ratio": _estimate(1.93)},
        "what_if": [_what_if(s, load) for s in (4, 8, 16) for load in (0.5, 1.0, 2.0)],
        "sweep": _sweep(),
        "facts": [
            {
                "name": "serving",
                "value": "self_hosted",
                "source": "given",
                "basis": "given",
                "weight": "none",
            },
            {
                "name": "slots",
                "value": 8.0,
                "source": "given",
                "basis": "given",
                "weight": "none",
            },
            {
                "name": "ms_per_token",
                "value": 8.0,
                "low": 7.0,
                "high": 9.5,
                "unit": "ms",
                "source": "estimated",
                "basis": "latency_envelope",
                "weight": "some",
            },
            {
                "name": "max_delay_ms",
                "value": 50.0,
                "unit": "ms",
                "source": "given",
                "basis": "given",
                "weight": "some",
            },
        ],
        "output_tokens": _lengths(),
        "prompt_tokens": _lengths(1155.0),
        "histogram": {"start": 1.0, "width": 25.0, "counts": [40, 160, 320, 80, 20, 0, 5, 1]},
        "arrivals": {
            "span_s": 11_520.0,
            "rate_per_s": 0.168,
            "rate_by_bin": [0.1, 0.2, 0.31, 0.15],
            "bin_s": 2880.0,
            "busiest_start_s": 5000.0,
            "busiest_span_s": 3600.0,
            "busiest_rate_per_s": 0.31,
            "gap_cv": 1.4,
            "days": 0.13,
        },
        "timeline": {
            "start_s": 5100.0,
            "span_s": 60.0,
            "slots": 8,
            "drawn_slots": 8,
            "batch": "dynamic",
            "static": [_bar(s, 1.0, 10.0 + 4 * s, 39.0) for s in range(8)],
            "continuous": [_bar(s, 0.5, 9.0 + 4 * s, 9.0 + 4 * s) for s in range(8)],
            "idle_slot_s": {"static": 266.0, "continuous": 41.5},
            "tokens_axis": False,
        },
        "slots": 8,
        "slots_is_range": False,
        "ms_per_token": 8.0,
        "money": {},
        "traffic": {
            "schema": "slotwise/inspection/v1",
            "format": "azure_llm_trace",
            "rows": 2000,
            "requests": 1940,
            "excluded": {"failed": 40, "no_output": 15, "duplicate": 5},
            "flags": ["truncated:12/1940", "naive_timestamps_assumed_utc"],
            "output_tokens": _lengths(),
            "prompt_tokens": _lengths(1155.0),
            "arrival": {"first": "2026-09-01T09:00:00Z", "last": "2026-09-01T12:12:00Z"},
            "latency_s": {"n": 1940, "mean": 2.2},
            "ttft_s": None,
            "truncated": 12,
            "aborted": 0,
            "gain_bound": bound,
            "segments": {
                "route": {
                    "values": {
                        "chat": {
                            "requests": 1200,
                            "token_share": 0.81,
                            "output_tokens": _lengths(260.0),
                            "gain_bound": bound,
                        }
                    },
                    "others": 740,
                    "between_share": 0.62,
                }
            },
            "notes": ["log.csv:17: not a number"],
        },
        "models": [],
        "thresholds": {"min_requests": 72, "adopt_from": 1.2},
        "provenance": {
            "slotwise": "0.1.0",
            "python": "3.12.1",
            "platform": "Linux 6 x86_64",
            "packages": {"numpy": "2.1.0"},
            "seed": 7,
            "command": ["slotwise", "diagnose", "my logs/a.csv"],
            "inputs": [{"name": "a.csv", "sha256": "ab" * 32, "bytes": 123456}],
            "config": {"server": {"slots": 8}},
            "created": "2026-09-02T00:00:00Z",
        },
    }


def _overloaded() -> dict[str, Any]:
    numbers = {"gain": 2.07, "low": 1.97, "high": 2.17, "utilisation": 6.19}
    return {
        "reasons": [{"code": "gain_overload", "numbers": numbers}],
        "limits": [{"code": "overload_ratio", "numbers": {}}],
        "utilisation": {"dynamic": 6.19, "continuous": 2.17},
    }


def _no_arrivals() -> dict[str, Any]:
    return {
        "replay": "backlog",
        "arrivals": None,
        "waiting": None,
        "utilisation": {},
        "intervals": {},
        "what_if": [_what_if(s, 0.0) for s in (4, 8, 16)],
        "slots_is_range": True,
        "reasons": [
            {"code": "gain_lengths_only", "numbers": {"gain": 2.1, "low": 1.7, "high": 3.1}}
        ],
        "limits": [
            {"code": "arrivals_unknown", "numbers": {}},
            {"code": "slots_assumed", "numbers": {"low": 4, "high": 64}},
        ],
    }


def _tiny() -> dict[str, Any]:
    base = _base()
    lengths = _lengths(cv=None)
    traffic = base["traffic"] | {
        "rows": 1,
        "requests": 1,
        "excluded": {},
        "flags": ["too_few_requests"],
        "output_tokens": lengths,
        "prompt_tokens": None,
        "arrival": None,
        "latency_s": None,
        "truncated": 0,
        "gain_bound": {},
        "segments": {},
        "notes": [],
    }
    return _no_arrivals() | {
        "verdict": "insufficient_data",
        "confidence": "low",
        "requests": 1,
        "reasons": [
            {"code": "too_few_requests", "numbers": {"requests": 1, "needed": 72}},
            {
                "code": "variation",
                "numbers": {"mean": 211.4, "cv": None, "max_over_mean": None, "slots": 8},
            },
        ],
        "actions": [{"code": "collect_requests", "numbers": {"more_requests": 71}}],
        "flip": [],
        "gain": None,
        "drift": None,
        "gain_bound": {},
        "idle_share": {},
        "idle_at_full": {},
        "policies": {},
        "capacity_per_s": {},
        "what_if": [],
        "sweep": None,
        "output_tokens": lengths,
        "prompt_tokens": None,
        "histogram": {"start": 211.0, "width": 1.0, "counts": [1]},
        "timeline": None,
        "traffic": traffic,
    }


def _verdict(verdict: str, code: str, numbers: dict[str, Any]) -> dict[str, Any]:
    base = _base()
    return {
        "verdict": verdict,
        "reasons": [{"code": code, "numbers": numbers}, base["reasons"][1]],
    }


def _several_models() -> dict[str, Any]:
    base = _base()
    fields = [
        "requests token_share verdict confidence reasons limits actions alternatives flip gain",
        "drift waiting gain_bound idle_share idle_at_full policies what_if sweep facts",
        "output_tokens prompt_tokens histogram arrivals timeline slots slots_is_range ms_per_token",
    ]
    own = {name: base[name] for name in " ".join(fields).split()}
    even = _verdict("no_gain", "even_lengths", {"gain_high": 1.05})
    apart = {"models": 2, "pooled_gain": 1.95, "gain": 1.0}
    return {
        "model": None,
        "reasons": [*base["reasons"], {"code": "models_apart", "numbers": apart}],
        "models": [
            own | {"model": "llama-3-70b", "token_share": 0.7},
            own | even | {"model": HOSTILE[0], "token_share": 0.3},
        ],
    }


def _step_cost(**changes: Any) -> dict[str, Any]:
    """A preset of two pieces, with memory: 5.4 times in all, 1.9 of it from refilling."""
    terms = {"base_ms": 23.475, "per_seq_ms": 0.06073, "per_kv_token_ms": 5.929e-4}
    piece = {"from_seqs": 95, "base_ms": 20.206, "per_seq_ms": 0.12, "per_kv_token_ms": 4.908e-4}
    cost = {
        "kind": "preset",
        "name": "opt-13b",
        "source": "a paper",
        "quality": "published; decode within 3 %",
        "kv_tokens": 66_144,
        "checked": {"how": "derived", "off": 0.03, "remark": "host_overhead_excluded"},
        "values": {
            **terms,
            "prefill_base_ms": None,
            "per_prefill_token_ms": 0.0,
            "pieces": [piece],
        },
    }
    told = {"name": "cost", "value": "opt-13b", "source": "given", "basis": "preset"}
    facts = [fact for fact in _base()["facts"] if fact["name"] != "ms_per_token"]
    facts += [
        {**told, "detail": "a paper; published; decode within 3 %", "weight": "some"},
        {
            "name": "memory",
            "value": 12_300.0,
            "unit": "tokens",
            "source": "given",
            "basis": "given",
        },
        {"name": "padding", "value": None, "source": "assumed", "basis": "default"},
    ]
    preset = {"name": "opt-13b"}
    return {
        "ms_per_token": None,
        "cost": cost,
        "memory": {"kv_tokens": 12_300, "block_tokens": 16, "reserve": "paged"},
        "attribution": {
            "order": 1.89,
            "memory": 3.34,
            "larger_batch": 0.858,
            "total": 5.41,
            "running": {"batch": 2.06, "continuous": 4.0, "paged": 18.7},
        },
        "facts": facts,
        "limits": [
            {"code": "cost_of_preset", "numbers": preset},
            {"code": "padding_not_counted", "numbers": {"padded": 1.96}},
        ],
        **changes,
    }


def _order_alone() -> dict[str, Any]:
    split = {"order": 1.89, "memory": None, "larger_batch": None, "total": 1.89}
    split["running"] = {"batch": 2.06, "continuous": 4.0}  # type: ignore[assignment]
    return _step_cost(memory=None, attribution=split)


def _hostile() -> dict[str, Any]:
    base = _base()
    values = base["traffic"]["segments"]["route"]["values"]["chat"]
    return _several_models() | {
        "name": HOSTILE[2],
        "alternatives": [
            {
                "code": "route_apart",
                "numbers": {"segment": HOSTILE[1], "value": HOSTILE[0], "share": 0.6},
            }
        ],
        "traffic": base["traffic"]
        | {
            "format": HOSTILE[2],
            "flags": [HOSTILE[0], f"truncated:{HOSTILE[2]}"],
            "excluded": {HOSTILE[0]: 60},
            "notes": list(HOSTILE),
            "segments": {
                HOSTILE[0]: {
                    "values": dict.fromkeys(HOSTILE, values),
                    "others": 0,
                    "between_share": None,
                }
            },
        },
        "provenance": base["provenance"]
        | {
            "command": ["slotwise", *HOSTILE],
            "inputs": [{"name": text, "sha256": "ab" * 32, "bytes": 1} for text in HOSTILE],
            "config": {text: text for text in HOSTILE},
        },
    }


_CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "adopt": dict,
    "overloaded": _overloaded,
    "no_arrivals": _no_arrivals,
    "conditional": lambda: _verdict(
        "conditional", "from_load", {"gain": 2.07, "load": 3.0, "rate": 0.93}
    ),
    "no_gain": lambda: _verdict("no_gain", "even_lengths", {"gain_high": 1.05}),
    "already": lambda: (
        _verdict("already", "batches_continuously", {"idle_saved": 0.52, "slots": 8}) | {"flip": []}
    ),
    "not_yours": lambda: _verdict("not_yours", "managed_api", {}) | {"flip": []},
    "marginal": lambda: _verdict("marginal", "marginal", {"gain": 1.15, "low": 1.1, "high": 1.19}),
    "interval_wide": lambda: _verdict(
        "insufficient_data", "interval_wide", {"low": 0.9, "high": 1.6, "more_requests": 5200}
    ),
    "tiny": _tiny,
    "several_models": _several_models,
    "hostile": _hostile,
    "step_cost": _step_cost,
    "order_alone": _order_alone,
    "hostile_cost": lambda: _step_cost(
        cost=_step_cost()["cost"] | {"name": HOSTILE[0], "source": HOSTILE[2]},
        facts=[
            {"name": "cost", "value": HOSTILE[0], "source": "given", "detail": HOSTILE[2]},
            {"name": "padding", "value": "yes", "source": "given", "basis": "given"},
        ],
        limits=[{"code": "cost_calibrated", "numbers": {"off": 0.04, "held_out": 60}}],
    ),
    "money": lambda: {
        "money": {
            "currency": "JPY",
            "server_hour": 420.0,
            "servers_now": 3,
            "servers_after": 2,
            "hour_now": 1260.0,
            "hour_after": 840.0,
            "hour_saved": 420.0,
        }
    },
    "few": lambda: {"requests": 80},
    "many_slots": lambda: {
        "slots": 64,
        "timeline": _base()["timeline"]
        | {
            "slots": 64,
            "drawn_slots": 32,
            "static": [
                _bar(s, i * 0.06, i * 0.06 + 0.03, i * 0.06 + 0.06)
                for s in range(32)
                for i in range(900)
            ],
        },
    },
}


def _make(case: str, **changes: Any) -> Result:
    return Result.model_validate(_base() | _CASES[case]() | changes)


@pytest.fixture(scope="session")
def make_result() -> Callable[..., Result]:
    """A result of the kind named; keywords replace its fields."""
    return _make


@pytest.fixture(scope="session", params=sorted(_CASES))
def any_result(request: pytest.FixtureRequest) -> Result:
    """One result of every kind in turn."""
    return _make(request.param)


@pytest.fixture(scope="session")
def any_document(any_result: Result, language: Language) -> Document:
    """The document of every kind of result in every language in turn, drawn once."""
    return compose(any_result, load_words(language), Branding("A & Co <Ltd>", "B"))


@pytest.fixture(scope="session", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> Language:
    return request.param  # type: ignore[no-any-return]
