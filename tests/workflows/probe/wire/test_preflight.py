"""The preflight against servers that are as strict as a product can be, over the loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import numpy as np
import pytest

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.model import Endpoint
from slotwise_workflows.probe.wire.client import new_client
from slotwise_workflows.probe.wire.preflight import TRIES, Preflight, preflight
from slotwise_workflows.probe.wire.products import PRODUCTS
from slotwise_workflows.probe.wire.target import targets

Serve = Callable[..., Any]
Fly = Callable[..., Preflight]

CHAT = {"model", "messages", "max_tokens", "stream"}
USAGE = {"stream_options", "stream_options.include_usage"}
IN_CHUNKS = {"stream_options.continuous_usage_stats"}
FAST = {"step_ms": 0.1}

# What each product's own description of a request knows of all that is ever sent, written down
# again from those pages and not from the table.
PRODUCT: dict[str, dict[str, Any]] = {
    "vllm": {
        "owned_by": "vllm",
        "entry": {"max_model_len": 4096},
        "known": CHAT | USAGE | IN_CHUNKS | {"ignore_eos", "min_tokens", "max_completion_tokens"},
    },
    "sglang": {
        "owned_by": "sglang",
        "entry": {"max_model_len": 8192},
        "pages": {"/server_info": {"max_running_requests": 48, "version": "0.5"}},
        "known": CHAT | USAGE | IN_CHUNKS | {"ignore_eos", "min_tokens", "max_completion_tokens"},
    },
    "tensorrt-llm": {
        "owned_by": "tensorrt_llm",
        "known": CHAT | USAGE | IN_CHUNKS | {"ignore_eos", "min_tokens", "max_completion_tokens"},
    },
    "llama.cpp": {
        "owned_by": "llamacpp",
        "pages": {"/props": {"total_slots": 4, "default_generation_settings": {"n_ctx": 2048}}},
        "known": CHAT | USAGE | {"ignore_eos", "cache_prompt", "n_predict"},
    },
    "tgi": {
        "owned_by": "org/model",
        "pages": {"/info": {"max_concurrent_requests": 128, "max_total_tokens": 4096}},
        "known": CHAT | USAGE,
    },
    "ollama": {
        "owned_by": "library",
        "pages": {"/api/version": {"version": "0.12.6"}},
        "known": CHAT | USAGE,
    },
    "lmstudio": {
        "owned_by": "organization_owner",
        "pages": {"/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 1024}]}},
        "known": CHAT | USAGE,
    },
    "unknown": {"known": CHAT | USAGE},
}
LENGTH = {"vllm": 4096, "sglang": 8192, "llama.cpp": 2048, "tgi": 4096, "lmstudio": 1024}
SLOTS = {"sglang": 48, "llama.cpp": 4}
FORCED = {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}


@pytest.fixture
def fly() -> Fly:
    """A preflight to a URL."""

    def run(
        url: str,
        *,
        model: str | None = None,
        api: Any = "auto",
        key: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> Preflight:
        async def main() -> Preflight:
            candidates = targets(url, api)
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(new_client(key, candidates[0]))
                if transport is not None:
                    client = await stack.enter_async_context(
                        httpx.AsyncClient(transport=transport, headers=client.headers)
                    )
                return await preflight(
                    client,
                    candidates,
                    model=model,
                    tokens=32,
                    rng=np.random.default_rng(0),
                    clock=time.perf_counter_ns,
                    deadline=asyncio.get_running_loop().time() + 60,
                )

        return asyncio.run(main())

    return run


@pytest.mark.parametrize("kind", PRODUCT)
def test_each_product_is_recognised_and_sent_only_what_it_knows(
    serve: Serve, fly: Fly, kind: str
) -> None:
    server = serve(**FAST, faults={"models": ("m",), **PRODUCT[kind]})
    found = fly(server.url)
    [(path, _headers, body)] = server.requests
    assert (found.requests, path) == (1, "/v1/chat/completions")
    assert body["max_tokens"] == 32
    assert body.get("ignore_eos") is (True if kind in FORCED else None)
    assert body.get("cache_prompt") is (False if kind == "llama.cpp" else None)
    assert found.endpoint == Endpoint(
        kind=kind,
        sign=found.endpoint.sign,
        api="chat",
        model="m",
        streams=True,
        usage=True,
        cached_tokens_told=True,
        lengths_forced=True if kind in FORCED else None,
        forced_by=["ignore_eos"] if kind in FORCED else [],
        dropped_fields=[],
        max_model_tokens=LENGTH.get(kind),
        slots_told=SLOTS.get(kind),
    )
    in_chunks = kind in {"vllm", "sglang", "tensorrt-llm"}
    assert found.sample.first_chunk_tokens == (1 if in_chunks else None)


@pytest.mark.parametrize(
    ("kind", "page", "holds"),
    [
        ("sglang", "/server_info", {"max_running_requests": None}),
        ("sglang", "/get_server_info", {"max_running_requests": 8}),
        ("llama.cpp", "/props", {"total_slots": 1}),
        ("tgi", "/info", {"max_concurrent_requests": 128}),
        ("lmstudio", "/api/v0/models", {"data": []}),
        ("ollama", "/api/version", {"version": "0.1"}),
        ("unknown", "/api/version", {"error": "Unexpected endpoint"}),
        ("unknown", "/props", []),
    ],
)
def test_products_are_recognised_by_their_own_page(
    serve: Serve, fly: Fly, kind: str, page: str, holds: object
) -> None:
    endpoint = fly(serve(**FAST, faults={"pages": {page: holds}}).url).endpoint
    assert endpoint.kind == kind
    assert endpoint.sign == ("none" if kind == "unknown" else f"GET {page}")


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("openai", "https://api.openai.com/v1"),
        ("azure", "https://x.openai.azure.com"),
        ("azure", "https://x.openai.azure.com/openai/v1/chat/completions"),
        ("azure", "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21"),
    ],
)
def test_hosted_services(serve: Serve, fly: Fly, elsewhere: Any, kind: str, url: str) -> None:
    path = url.partition(".com")[2].partition("?")[0].removesuffix("/chat/completions")
    prefix = path or "/openai/v1"
    known = (CHAT - {"max_tokens"}) | USAGE | {"max_completion_tokens"}
    server = serve(**FAST, faults={"known": frozenset(known), "prefix": prefix})
    found = fly(url, model="gpt", key="sk-1", transport=elsewhere(server.url))
    [(_path, headers, body)] = server.requests
    assert (found.endpoint.kind, found.endpoint.sign) == (kind, "host name")
    assert body["max_completion_tokens"] == 32
    key_header = ("api-key", "sk-1") if kind == "azure" else ("authorization", "Bearer sk-1")
    assert key_header in headers.items()
    assert len({"api-key", "authorization"} & headers.keys()) == 1
    assert found.endpoint.lengths_forced is None
    if "api-version" in url:
        expected = "/openai/deployments/d/chat/completions?api-version=2024-10-21"
        assert server.targets == [expected]  # no list of models: the URL names it
    else:
        assert len(server.targets) == 2


def test_a_model_without_the_newer_limit_is_asked_with_the_older(
    serve: Serve, fly: Fly, elsewhere: Any
) -> None:
    server = serve(**FAST, faults={"known": frozenset(CHAT | USAGE)})
    found = fly("https://api.openai.com", model="gpt-3.5", transport=elsewhere(server.url))
    assert found.requests == len(server.requests) == 2
    assert found.endpoint.dropped_fields == ["max_completion_tokens"]
    assert server.requests[1][2]["max_tokens"] == 32


@pytest.mark.parametrize("mute", [False, True])
@pytest.mark.parametrize("refusal", [400, 422])
@pytest.mark.parametrize(
    "without",
    [
        {"ignore_eos"},
        USAGE | IN_CHUNKS,
        IN_CHUNKS,
        {"ignore_eos"} | USAGE | IN_CHUNKS,
        {"max_tokens"},
        {"ignore_eos", "max_tokens"},
    ],
    ids=lambda fields: "+".join(sorted(fields)),
)
def test_what_is_refused_is_dropped_told_and_not_sent_again(
    serve: Serve, fly: Fly, without: set[str], refusal: int, mute: bool
) -> None:
    """A gateway that gives vLLM's name, and is stricter."""
    everything = CHAT | USAGE | IN_CHUNKS | {"ignore_eos", "max_completion_tokens"}
    faults = {"owned_by": "vllm", "known": frozenset(everything - without)}
    server = serve(**FAST, faults={**faults, "refusal": refusal, "mute": mute})
    found = fly(server.url)
    assert found.requests == len(server.requests) <= TRIES
    last = server.requests[-1][2]
    sent = {*last, *(f"stream_options.{key}" for key in last.get("stream_options", ()))}
    assert not sent & without
    dropped = {*found.endpoint.dropped_fields}
    assert dropped >= without - {"stream_options.include_usage"}
    if not mute:
        assert dropped == without - {"stream_options.include_usage"}
    assert found.endpoint.usage is ("stream_options" in last)
    assert found.endpoint.forced_by == (["ignore_eos"] if "ignore_eos" in last else [])


def test_one_refusal_after_the_other_is_cut_short(serve: Serve, fly: Fly) -> None:
    """With one more request to go, all that may be refused is left out."""
    faults = {"owned_by": "vllm", "known": frozenset(CHAT | {"prompt"}), "one_by_one": True}
    server = serve(**FAST, faults={**faults, "chat": False})
    found = fly(server.url)
    assert [path.rpartition("/v1/")[2] for path, _, _ in server.requests] == [
        "chat/completions", "completions", "completions",
    ]  # fmt: skip
    assert found.endpoint.dropped_fields == [
        "ignore_eos", "stream_options", "stream_options.continuous_usage_stats",
    ]  # fmt: skip


def test_no_more_than_three_requests_however_strict(serve: Serve, fly: Fly) -> None:
    server = serve(faults={"owned_by": "vllm", "known": frozenset({"model"}), "chat": False})
    with pytest.raises(EndpointError, match="rejects the request: HTTP 400"):
        fly(server.url)
    assert len(server.requests) == TRIES


@pytest.mark.parametrize(
    ("faults", "forced"),
    [
        ({"owned_by": "vllm"}, True),
        ({"owned_by": "vllm", "stop_after": 9}, False),
        ({"owned_by": "vllm", "usage": False}, None),
        ({"stop_after": 9}, False),
        ({}, None),
    ],
)
def test_whether_lengths_can_be_forced(
    serve: Serve, fly: Fly, faults: dict[str, Any], forced: bool | None
) -> None:
    endpoint = fly(serve(**FAST, faults=faults).url).endpoint
    assert endpoint.lengths_forced is forced
    assert endpoint.usage is faults.get("usage", True)


def test_answers_without_a_bound_end_it_at_once(serve: Serve, fly: Fly) -> None:
    """Nobody could say what a probe would cost."""
    server = serve(**FAST, faults={"at_least": 65})
    with pytest.raises(EndpointError, match="does not keep to max_tokens") as error:
        fly(server.url)
    assert error.value.why == "it answered with 65 tokens where 32 were asked for"
    assert len(server.requests) == 1
    assert fly(serve(**FAST, faults={"at_least": 64}).url).endpoint.lengths_forced is False


def test_a_server_that_does_not_stream(serve: Serve, fly: Fly) -> None:
    found = fly(serve(**FAST, faults={"stream": False}).url)
    assert (found.endpoint.streams, found.endpoint.usage) == (False, True)


@pytest.mark.parametrize("model", [None, "b"])
def test_several_models(serve: Serve, fly: Fly, model: str | None) -> None:
    server = serve(**FAST, faults={"models": ("a", "b"), "owned_by": "vllm"})
    if model is None:
        with pytest.raises(EndpointError, match=r"serves 2 models: a, b\. Choose one"):
            fly(server.url)
        assert server.requests == []
    else:
        found = fly(server.url, model=model)
        assert (found.endpoint.model, found.endpoint.kind) == ("b", "vllm")


@pytest.mark.parametrize(
    ("key", "model"), [("x", "mixtral-test"), ("test", "mixtral-test"), ("mixtral-test", None)]
)
def test_a_model_vanishes_for_the_key_in_its_name_but_not_for_a_dummy(
    serve: Serve, fly: Fly, key: str, model: str | None
) -> None:
    server = serve(**FAST, faults={"models": ("mixtral-test",)})
    assert fly(server.url, key=key).endpoint.model == model


@pytest.mark.parametrize(("model", "sent"), [(None, 0), ("m", 1)])
def test_a_wrong_key_is_told_by_the_list_of_models(
    serve: Serve, fly: Fly, model: str | None, sent: int
) -> None:
    """Unless a model is chosen: some keys may ask a model and not list any."""
    server = serve(faults={"key": "right"})
    with pytest.raises(EndpointError, match="wants an API key"):
        fly(server.url, model=model, key="wrong")
    asked = [target for target in server.targets if "completions" in target]
    assert len(asked) == sent


def test_a_list_that_is_not_for_this_key_is_no_need_when_a_model_is_chosen(
    serve: Serve, fly: Fly
) -> None:
    server = serve(**FAST, faults={"models": ()})
    assert fly(server.url, model="m").endpoint.model == "m"
    assert server.requests[0][2]["model"] == "m"


@pytest.mark.parametrize("reached", ["/v1/models", "/elsewhere"])
def test_a_get_may_be_redirected_on_its_own_host(serve: Serve, fly: Fly, reached: str) -> None:
    moved = {"/v1/models": "/elsewhere"} if reached == "/elsewhere" else {}
    listed = {"data": [{"id": "moved-here", "owned_by": "vllm"}]}
    server = serve(**FAST, faults={"moved": moved, "pages": {"/elsewhere": listed}})
    assert (fly(server.url).endpoint.model == "moved-here") is (reached == "/elsewhere")


@pytest.mark.parametrize(
    "location",
    ["http://other.example/v1/models", "//other.example/x", "https://other.example/"],
)
def test_no_request_goes_to_another_host(serve: Serve, fly: Fly, location: str) -> None:
    server = serve(faults={"moved": {"/v1/models": location}})
    with pytest.raises(EndpointError, match=r"redirects elsewhere.*HTTP 307, to other\.example"):
        fly(server.url)
    assert server.requests == []
    server = serve(faults={"fail": {1: 307}, "location": location})
    with pytest.raises(EndpointError, match=r"redirects elsewhere.*HTTP 307, to other\.example"):
        fly(server.url)
    assert len(server.requests) == 1


def test_a_circle_of_redirects_ends(serve: Serve, fly: Fly) -> None:
    server = serve(faults={"moved": {"/v1/models": "/v1/models"}})
    with pytest.raises(EndpointError, match="redirects elsewhere"):
        fly(server.url)


def test_a_rate_limit_says_when_to_come_again(serve: Serve, fly: Fly) -> None:
    server = serve(faults={"fail": {1: 429}, "headers": {"retry-after": "20"}})
    with pytest.raises(EndpointError, match="HTTP 429, again in 20 s"):
        fly(server.url)


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    serve: Serve, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = serve(**FAST)
    assert fly(server.url).requests == 1
    with pytest.raises(EndpointError, match="cannot be reached"):
        fly("http://slotwise.invalid", model="m")  # it is the proxy that cannot be


def test_a_key_that_comes_back_is_not_shown(serve: Serve, fly: Fly) -> None:
    server = serve(**FAST, faults={"models": ("sk-SECRET", "tiny sk-secret"), "key": "sk-SECRET"})
    found = fly(server.url, key="sk-SECRET")
    assert "secret" not in repr(found).lower()
    moved = {"/v1/models": "http://sk-secret.example/"}
    server = serve(faults={"moved": moved, "key": "sk-SECRET"})
    with pytest.raises(EndpointError, match="redirects elsewhere") as error:
        fly(server.url, key="sk-SECRET")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("page", [{"data": 5}, {"data": [7, {"id": 3}]}, [], None, "x"])
def test_a_list_of_models_that_is_none(serve: Serve, fly: Fly, page: object) -> None:
    found = fly(serve(**FAST, faults={"pages": {"/v1/models": page}}).url)
    assert (found.endpoint.model, found.endpoint.kind) == (None, "unknown")


def test_pages_are_asked_for_only_where_nothing_else_told(serve: Serve, fly: Fly) -> None:
    server = serve(**FAST, faults={"owned_by": "vllm"})
    fly(server.url)
    assert server.targets == ["/v1/models", "/v1/chat/completions"]
    server = serve(**FAST)
    fly(server.url)
    pages = [path for product in PRODUCTS for path in product.pages]
    assert server.targets == ["/v1/models", *pages, "/v1/chat/completions"]
