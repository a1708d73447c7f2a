"""What one endpoint is sent: what its product knows, less what it has refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from slotwise_workflows.probe.model import Api, Kind
from slotwise_workflows.probe.wire.products import FORCING, OPTIONAL, Limit, Product

OWN_ENDS = ("gpt-oss",)
"""Models whose answers are read by their own end of turn: forced past it, the server fails.
https://github.com/vllm-project/guidellm/pull/982"""


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
