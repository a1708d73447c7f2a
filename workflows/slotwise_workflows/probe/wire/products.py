"""Products that serve models, by their own pages: how each is recognised, what may be sent to it.

A new product is a row of `PRODUCTS`, its name in `slotwise_workflows.probe.model.Kind`, and its
rows in ``docs/reference/endpoints.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from slotwise_workflows.probe.model import Kind

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
        pages: Where, at its root, a page is that costs nothing; its newer place first.
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
    pages: tuple[str, ...] = ()
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
        pages=("/server_info", "/get_server_info"),
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
        pages=("/props",),
        page_key="total_slots",
        max_tokens_at=("default_generation_settings", "n_ctx"),
        slots_at=("total_slots",),
    ),
    Product(
        "tgi",
        ("https://huggingface.co/docs/text-generation-inference/reference/api_reference",),
        optional=(USAGE,),
        pages=("/info",),
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
        pages=("/api/v0/models",),
        page_key="data",
        max_tokens_at=("data", "loaded_context_length"),
    ),
    Product(
        "ollama",
        ("https://docs.ollama.com/api/openai-compatibility",),
        optional=(USAGE,),
        pages=("/api/version",),
        page_key="version",
    ),
)
UNKNOWN = Product("unknown", (), optional=(USAGE,))
"""Everybody else: nothing but what OpenAI's first API has, and the counts if it gives them."""


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
