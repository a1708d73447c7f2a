"""Where the requests go: a URL as a person gives it, made whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import httpx

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.model import Api
from slotwise_workflows.probe.wire.products import product_of_host

PATHS: dict[Api, str] = {"chat": "chat/completions", "completions": "completions"}


@dataclass(frozen=True, slots=True)
class Target:
    """One API of an endpoint. Never a secret: the key lives in the client's headers alone.

    Attributes:
        api: Chat completions or completions.
        url: Where requests are posted.
        models_url: Where the endpoint lists its models.
    """

    api: Api
    url: str
    models_url: str

    @property
    def host(self) -> str:
        """The host's name or address, in lower case."""
        return urlsplit(self.url).hostname or ""

    @property
    def root(self) -> str:
        """The server's address without ``/v1``, where its own pages are."""
        return self.models_url.partition("?")[0].removesuffix("/models").removesuffix("/v1")

    @property
    def names_model(self) -> bool:
        """Whether the URL itself says which model answers, as those of Azure's deployments do."""
        return "/openai/deployments/" in self.url

    @property
    def shown(self) -> str:
        """The URL without its query, which may hold what is nobody else's business."""
        return self.url.partition("?")[0]


def targets(url: str, api: Literal["auto", "chat", "completions"]) -> tuple[Target, ...]:
    """The APIs to try, in order.

    ``http://host:8000`` and ``http://host:8000/v1`` both mean the APIs under ``/v1``; a URL that
    names one of them means that one.

    Args:
        url: As given.
        api: Which API; ``auto`` tries chat completions first.

    Returns:
        One target, or two for ``auto``.

    Raises:
        UsageError: It is no http(s) URL, holds credentials, contradicts ``api``, or is that of an
            Azure deployment without the version of its API.
    """
    try:
        parts = urlsplit(url)
        port_ok = httpx.URL(url).host != "" and (parts.port is None or parts.port > 0)
    except (ValueError, httpx.InvalidURL):
        port_ok = False
    if not port_ok or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            "the endpoint's URL is no http:// or https:// one with a host and a port up to 65535",
            hint="Give one such as http://localhost:8000/v1",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the URL holds credentials",
            hint="Put the key into the environment variable SLOTWISE_API_KEY instead",
        )
    query = f"?{parts.query}" if parts.query else ""
    path = parts.path.rstrip("/")
    named = _named_api(path)
    if named is not None:
        if api not in {"auto", named}:
            raise UsageError(f"the URL is that of the {named} API, and --api says {api}")
        path = path.removesuffix(f"/{PATHS[named]}")
    base = (
        f"{parts.scheme}://{parts.netloc}{path if path or named else _usual_path(parts.hostname)}"
    )
    if "/openai/deployments/" in path and "api-version=" not in parts.query:
        raise UsageError(
            "the URL of an Azure deployment needs the version of its API",
            hint="Add it, such as ?api-version=2024-10-21, or use the URL that ends in /openai/v1",
        )
    wanted: tuple[Api, ...] = ("chat", "completions") if api == "auto" else (api,)
    if named is not None:
        wanted = (named,)
    return tuple(Target(a, f"{base}/{PATHS[a]}{query}", f"{base}/models{query}") for a in wanted)


def check_model(name: str | None) -> None:
    """Refuses a model's name that cannot be sent.

    Raises:
        UsageError: It holds bytes that are no text, as a shell may pass them on.
    """
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the model's name holds bytes that are no UTF-8", hint="Give --model as UTF-8"
        ) from None


def _usual_path(host: str) -> str:
    product = product_of_host(host)
    return "/openai/v1" if product is not None and product.kind == "azure" else "/v1"


def _named_api(path: str) -> Api | None:
    for api in ("chat", "completions"):  # chat/completions ends like completions
        if path.endswith(f"/{PATHS[api]}"):
            return api
    return None
