"""Which product an endpoint is, and what may be sent to it: one table, taken from their own pages.

A new product is a row of `PRODUCTS`, its name in `slotwise_workflows.probe.model.Kind`, and a row
in ``docs/reference/endpoints.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from slotwise_workflows.probe.model import Api, Kind

Limit = Literal["max_tokens", "max_completion_tokens"]

USAGE = "stream_options"
USAGE_IN_CHUNKS = "stream_options.continuous_usage_stats"
OPTIONAL: Mapping[str, Any] = {
    "ignore_eos": True,
    "cache_prompt": False,
    USAGE: {"include_usage": True},
    USAGE_IN_CHUNKS: True,
}
"""Every field that not all products know, with the value it is sent with."""
FORCING = frozenset({"ignore_eos"})
"""Those that make an answer as long as ``max_tokens`` says."""

OWN_ENDS = ("gpt-oss",)
"""Models whose answers are read by their own end of turn: forced past it, the server fails.
https://github.com/vllm-project/guidellm/pull/982"""


@dataclass(frozen=True, slots=True)
class Product:
    """What a product's own documentation says of it.

    Attributes:
        kind: Its name in results.
        sources: The pages or files that say so.
        optional: Which of `OPTIONAL` it knows.
        limit: The field that limits chat completions; ``max_tokens`` limits completions everywhere.
        hosts: Host names of its own service, or their ends after a dot.
        server: How its ``Server`` header begins.
        owners: What ``owned_by`` is in its list of models.
        page: A page at its root that costs nothing.
        page_key: A key on that page by which it is recognised.
        max_tokens_at: Where the page or the model's entry in the list says the longest sequence,
            a key in each level.
        slots_at: Where the page says how many requests run at once.
    """

    kind: Kind
    sources: tuple[str, ...]
    optional: tuple[str, ...] = ()
    limit: Limit = "max_tokens"
    hosts: tuple[str, ...] = ()
    server: str = ""
    owners: tuple[str, ...] = ()
    page: str = ""
    page_key: str = ""
    max_tokens_at: tuple[str, ...] = ()
    slots_at: tuple[str, ...] = ()


PRODUCTS: tuple[Product, ...] = (
    Product(
        "openai",
        ("https://platform.openai.com/docs/api-reference/chat/create",),
        optional=(USAGE,),
        limit="max_completion_tokens",
        hosts=("api.openai.com",),
    ),
    Product(
        "azure",
        ("https://learn.microsoft.com/azure/ai-foundry/openai/reference",),
        optional=(USAGE,),
        limit="max_completion_tokens",
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    ),
    Product(
        "vllm",
        (
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server/",
            "https://github.com/vllm-project/vllm/tree/main/vllm/entrypoints/openai",
        ),
        optional=("ignore_eos", USAGE, USAGE_IN_CHUNKS),
        owners=("vllm",),
        max_tokens_at=("max_model_len",),
    ),
    Product(
        "sglang",
        (
            "https://docs.sglang.ai/basic_usage/sampling_params.html",
            "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py",
        ),
        optional=("ignore_eos", USAGE, USAGE_IN_CHUNKS),
        owners=("sglang",),
        page="/get_server_info",
        page_key="max_running_requests",
        max_tokens_at=("max_model_len",),
        slots_at=("max_running_requests",),
    ),
    Product(
        "tensorrt-llm",
        ("https://github.com/NVIDIA/TensorRT-LLM/blob/main/tensorrt_llm/serve/openai_protocol.py",),
        optional=("ignore_eos", USAGE, USAGE_IN_CHUNKS),
        owners=("tensorrt_llm",),
    ),
    Product(
        "llama.cpp",
        ("https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",),
        optional=("ignore_eos", "cache_prompt", USAGE),
        server="llama.cpp",
        owners=("llamacpp",),
        page="/props",
        page_key="total_slots",
        max_tokens_at=("default_generation_settings", "n_ctx"),
        slots_at=("total_slots",),
    ),
    Product(
        "tgi",
        ("https://huggingface.co/docs/text-generation-inference/reference/api_reference",),
        optional=(USAGE,),
        page="/info",
        page_key="max_concurrent_requests",
        max_tokens_at=("max_total_tokens",),
        slots_at=("max_batch_size",),
    ),
    Product(
        "lmstudio",
        (
            "https://lmstudio.ai/docs/developer/openai-compat/chat-completions",
            "https://lmstudio.ai/docs/developer/rest/endpoints",
        ),
        optional=(USAGE,),
        owners=("organization_owner",),
        page="/api/v0/models",
        page_key="data",
        max_tokens_at=("data", "loaded_context_length"),
    ),
    Product(
        "ollama",
        ("https://docs.ollama.com/api/openai-compatibility",),
        optional=(USAGE,),
        page="/api/version",
        page_key="version",
    ),
)
UNKNOWN = Product("unknown", (), optional=(USAGE,))
"""Everybody else: nothing but what OpenAI's first API has, and the counts if it gives them."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one endpoint is sent; less than its product knows where it has refused something.

    Attributes:
        kind: The product.
        limit: The field that limits chat completions.
        optional: Which of `OPTIONAL` are sent.
        dropped: What it refused, in that order.
    """

    kind: Kind
    limit: Limit
    optional: tuple[str, ...]
    dropped: tuple[str, ...] = ()

    @property
    def forced_by(self) -> list[str]:
        """The fields sent that force lengths."""
        return [name for name in self.optional if name in FORCING]

    def body(self, api: Api, *, model: str | None, tokens: int, prompt: str) -> dict[str, Any]:
        """The JSON of one request.

        Args:
            api: Which API it goes to.
            model: The model's name, where it has one.
            tokens: Output tokens asked for.
            prompt: The prompt.

        Returns:
            The object to send.
        """
        limit = self.limit if api == "chat" else "max_tokens"
        body: dict[str, Any] = {limit: tokens, "stream": True}
        if model is not None:
            body["model"] = model
        if api == "chat":
            body["messages"] = [{"role": "user", "content": prompt}]
        else:
            body["prompt"] = prompt
        for name in self.optional:
            outer, _dot, inner = name.partition(".")
            value = OPTIONAL[name]
            if inner:
                body[outer] = {**body[outer], inner: value}
            else:
                body[outer] = value
        return body

    def after_refusal(self, said: str, api: Api, *, last: bool = False) -> Dialect | None:
        """What to send instead, after HTTP 400 or 422.

        The optional fields that the refusal names are dropped; if it names none, the other of
        ``max_tokens`` and ``max_completion_tokens`` is tried where it names the one sent; else all
        optional fields are dropped at once, since each further request may cost. Nothing is dropped
        or tried twice.

        Args:
            said: The refusal's text.
            api: Which API refused.
            last: Whether there is one more try only; then all optional fields go with the named.

        Returns:
            The dialect with less, or None if there is nothing left to leave out.
        """
        named = {name for name in self.optional if name.rpartition(".")[2] in said}
        named -= {name.partition(".")[0] for name in named if "." in name}  # its place, not itself
        if named:
            return self._without(self.optional if last else named)
        may_swap = api == "chat" and not {"max_tokens", "max_completion_tokens"} & {*self.dropped}
        if may_swap and (self.limit in said or not self.optional):
            other: Limit = "max_tokens"
            if self.limit == "max_tokens":
                other = "max_completion_tokens"
            return replace(self, limit=other, dropped=(*self.dropped, self.limit))
        return self._without(self.optional) if self.optional else None

    def _without(self, names: Collection[str]) -> Dialect:
        """A field's own fields go with it."""
        gone = [name for name in self.optional if name in names or name.partition(".")[0] in names]
        kept = tuple(name for name in self.optional if name not in gone)
        return replace(self, optional=kept, dropped=(*self.dropped, *gone))


def dialect_of(product: Product, model: str | None = None) -> Dialect:
    """What a product is sent before it has refused anything.

    Answers of `OWN_ENDS` models break where their end is ignored: they are not forced.

    Args:
        product: The product.
        model: The model's name.

    Returns:
        The dialect.
    """
    free = model is not None and any(name in model.lower() for name in OWN_ENDS)
    optional = tuple(name for name in product.optional if not (free and name in FORCING))
    return Dialect(product.kind, product.limit, optional)


def product_of_host(host: str) -> Product | None:
    """The product whose own service this host is."""
    for product in PRODUCTS:
        if any(host == name or (name[0] == "." and host.endswith(name)) for name in product.hosts):
            return product
    return None


def product_of_list(server: str, owners: Sequence[str]) -> tuple[Product, str] | None:
    """The product that a list of models gives away.

    Args:
        server: The answer's ``Server`` header.
        owners: Every model's ``owned_by``.

    Returns:
        The product and what it was recognised by. Models with several owners, as gateways list
        them, are nobody's.
    """
    for product in PRODUCTS:
        if product.server and server.startswith(product.server):
            return product, "Server header"
        if owners and all(owner in product.owners for owner in owners):
            return product, "owned_by in GET /models"
    return None


def told(page: object, keys: Sequence[str], *, model: str | None = None) -> int | None:
    """A whole number that a page holds.

    Args:
        page: The page's JSON, from a server nobody vouches for.
        keys: One for each level; in a list of models, that of the model is looked at.
        model: Its name.

    Returns:
        The number if it is there and positive.
    """
    if not keys:
        return None
    for key in keys:
        if isinstance(page, list):
            page = next((e for e in page if isinstance(e, dict) and e.get("id") == model), None)
        page = page.get(key) if isinstance(page, dict) else None
    whole = isinstance(page, int) and not isinstance(page, bool) and 0 < page < 2**53
    return page if whole else None  # type: ignore[return-value]
