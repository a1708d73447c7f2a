"""What may be sent to whom, and what is left out after a refusal."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.probe.model import Kind
from slotwise_workflows.probe.wire.dialect import Dialect, dialect_of
from slotwise_workflows.probe.wire.products import (
    FORCING,
    OPTIONAL,
    PRODUCTS,
    UNKNOWN,
    product_of_host,
    product_of_list,
    told,
)

PROMPT = "count"
BASE = {"model": "m", "stream": True, "messages": [{"role": "user", "content": PROMPT}]}
USAGE = {"include_usage": True}
EVERY_USAGE = {"include_usage": True, "continuous_usage_stats": True}
SENT: dict[str, dict[str, Any]] = {
    "vllm": {"max_tokens": 7, "ignore_eos": True, "stream_options": EVERY_USAGE},
    "sglang": {"max_tokens": 7, "ignore_eos": True, "stream_options": EVERY_USAGE},
    "tensorrt-llm": {"max_tokens": 7, "ignore_eos": True, "stream_options": EVERY_USAGE},
    "llama.cpp": {
        "max_tokens": 7,
        "ignore_eos": True,
        "cache_prompt": False,
        "stream_options": USAGE,
    },
    "tgi": {"max_tokens": 7, "stream_options": USAGE},
    "ollama": {"max_tokens": 7, "stream_options": USAGE},
    "lmstudio": {"max_tokens": 7, "stream_options": USAGE},
    "openai": {"max_completion_tokens": 7, "stream_options": USAGE},
    "azure": {"max_completion_tokens": 7, "stream_options": USAGE},
    "unknown": {"max_tokens": 7, "stream_options": USAGE},
}
ALL = [*PRODUCTS, UNKNOWN]


@pytest.mark.parametrize("product", ALL, ids=lambda product: product.kind)
def test_the_body_of_each_product_field_by_field(product: Any) -> None:
    body = dialect_of(product).body("chat", model="m", tokens=7, prompt=PROMPT)
    assert body == BASE | SENT[product.kind]


@pytest.mark.parametrize("product", ALL, ids=lambda product: product.kind)
def test_completions_are_limited_by_max_tokens_everywhere(product: Any) -> None:
    body = dialect_of(product).body("completions", model=None, tokens=7, prompt=PROMPT)
    assert (body["max_tokens"], body["prompt"]) == (7, PROMPT)
    assert not {"max_completion_tokens", "messages", "model"} & body.keys()


def test_every_product_is_in_the_table_once() -> None:
    assert sorted(product.kind for product in ALL) == sorted(get_args(Kind)) == sorted(SENT)
    for product in PRODUCTS:
        assert all(source.startswith("https://") for source in product.sources)
        assert product.sources
        assert product.hosts or product.owners or product.server or product.pages
        assert set(product.optional) <= set(OPTIONAL)
    assert set(OPTIONAL) >= FORCING


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("api.openai.com", "openai"),
        ("x.openai.azure.com", "azure"),
        ("x.services.ai.azure.com", "azure"),
        ("api.openai.com.example.org", None),
        ("notapi.openai.com", None),
        ("openai.azure.com", None),
        ("localhost", None),
        ("", None),
    ],
)
def test_host_names(host: str, kind: str | None) -> None:
    product = product_of_host(host)
    assert (None if product is None else product.kind) == kind


@pytest.mark.parametrize(
    ("server", "owners", "kind"),
    [
        ("uvicorn", ["vllm"], "vllm"),
        ("uvicorn", ["vllm", "vllm"], "vllm"),
        ("uvicorn", ["vllm", "sglang"], None),
        ("uvicorn", ["openai"], None),
        ("llama.cpp", [], "llama.cpp"),
        ("", ["llamacpp"], "llama.cpp"),
        ("", ["organization_owner"], "lmstudio"),
        ("", ["tensorrt_llm"], "tensorrt-llm"),
        ("", [], None),
        ("", ["None"], None),
    ],
)
def test_lists_of_models(server: str, owners: list[str], kind: str | None) -> None:
    found = product_of_list(server, owners)
    assert (None if found is None else found[0].kind) == kind


def test_models_that_break_when_forced_are_not() -> None:
    vllm = next(product for product in PRODUCTS if product.kind == "vllm")
    assert dialect_of(vllm, "openai/gpt-oss-120b").forced_by == []
    assert dialect_of(vllm, "meta/llama").forced_by == ["ignore_eos"]


@pytest.mark.parametrize(
    ("said", "limit", "optional", "dropped"),
    [
        ("ignore_eos: extra inputs", "max_tokens", ("a.b", "stream_options"), ("ignore_eos",)),
        ("Unknown: 'stream_options'", "max_tokens", ("ignore_eos",), ("stream_options", "a.b")),
        ("continuous_usage_stats?", "max_tokens", ("ignore_eos", "stream_options"), ("a.b",)),
        ("'max_tokens' is not supported", "max_completion_tokens", None, ("max_tokens",)),
        ("no", "max_tokens", (), ("ignore_eos", "stream_options", "a.b")),
    ],
)
def test_a_refusal_that_names_a_field_costs_that_field(
    said: str, limit: str, optional: tuple[str, ...] | None, dropped: tuple[str, ...]
) -> None:
    full = "stream_options.continuous_usage_stats"
    before = Dialect("vllm", "max_tokens", ("ignore_eos", "stream_options", full))
    after = before.after_refusal(said, "chat")
    assert after is not None
    assert after.limit == limit
    wanted = before.optional if optional is None else optional
    assert {*after.optional} == {name.replace("a.b", full) for name in wanted}
    assert after.dropped == tuple(name.replace("a.b", full) for name in dropped)


def test_on_the_last_try_all_that_is_optional_goes() -> None:
    before = Dialect("vllm", "max_tokens", ("ignore_eos", "stream_options"))
    kept = before.after_refusal("ignore_eos", "chat")
    assert kept is not None
    assert kept.optional == ("stream_options",)
    gone = before.after_refusal("ignore_eos", "chat", last=True)
    assert gone is not None
    assert gone.optional == ()


def test_both_limits_are_tried_once_each() -> None:
    first = Dialect("openai", "max_completion_tokens", ())
    second = first.after_refusal("max_completion_tokens", "chat")
    assert second is not None
    assert second.limit == "max_tokens"
    assert second.after_refusal("max_tokens", "chat") is None
    assert first.after_refusal("max_completion_tokens", "completions") is None


@given(
    st.sampled_from(ALL),
    st.sets(st.sampled_from([*OPTIONAL, "max_tokens", "max_completion_tokens"])),
    st.booleans(),
)
def test_a_server_that_refuses_anything_gets_it_no_second_time(
    product: Any, refused: set[str], named: bool
) -> None:
    """A strict server stands for every one: it refuses a body that holds a field it lacks."""
    dialect: Dialect | None = dialect_of(product)
    seen = []
    while dialect is not None:
        body = dialect.body("chat", model="m", tokens=7, prompt=PROMPT)
        inner = {f"stream_options.{key}" for key in body.get("stream_options", ())}
        wrong = sorted((body.keys() | inner) & refused)
        assert body not in seen
        seen.append(body)
        if not wrong:
            break
        dialect = dialect.after_refusal(str(wrong) if named else "no", "chat")
    assert len(seen) <= 2 + len(OPTIONAL)
    one_limit_left = not {"max_tokens", "max_completion_tokens"} <= refused
    assert (dialect is not None) == one_limit_left


@pytest.mark.parametrize(
    ("page", "keys", "expected"),
    [
        ({"a": {"b": 5}}, ("a", "b"), 5),
        ({"data": [{"id": "x", "n": 1}, {"id": "m", "n": 2}]}, ("data", "n"), 2),
        ({"data": [{"id": "x", "n": 1}]}, ("data", "n"), None),
        ({"a": True}, ("a",), None),
        ({"a": 0}, ("a",), None),
        ({"a": "5"}, ("a",), None),
        ({"a": 2**60}, ("a",), None),
        ([1], ("a",), None),
        (None, ("a",), None),
        ({"a": 5}, (), None),
    ],
)
def test_numbers_told(page: object, keys: tuple[str, ...], expected: int | None) -> None:
    assert told(page, keys, model="m") == expected
