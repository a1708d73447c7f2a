"""What an endpoint is and can, found out with free pages and one small request."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx
import numpy as np

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.model import Endpoint, Sample
from slotwise_workflows.probe.prompts import ANY_WORDS, prompt_of
from slotwise_workflows.probe.wire.answer import Answer
from slotwise_workflows.probe.wire.chunks import model_cards
from slotwise_workflows.probe.wire.client import (
    Clock,
    Connection,
    Page,
    backoff_s,
    get_page,
    send,
    tells_key,
)
from slotwise_workflows.probe.wire.dialect import dialect_of
from slotwise_workflows.probe.wire.faults import (
    endpoint_error,
    fault_of_exception,
    fault_of_status,
)
from slotwise_workflows.probe.wire.products import (
    PRODUCTS,
    UNKNOWN,
    Product,
    product_of_host,
    product_of_list,
    told,
)
from slotwise_workflows.probe.wire.target import Target

TRIES = 3
"""Requests at most: the other API, or fewer fields, may have to be tried."""
_MOST_TIMES = 2
_LIST_S = 15.0
_PAGE_S = 5.0


@dataclass(frozen=True, slots=True)
class Preflight:
    """An endpoint that has answered.

    Attributes:
        connection: How to ask it.
        endpoint: What it is and can.
        sample: Its answer, which is the measure of all further ones.
        requests: Requests sent, those refused included.
    """

    connection: Connection
    endpoint: Endpoint
    sample: Sample
    requests: int


async def preflight(
    client: httpx.AsyncClient,
    candidates: tuple[Target, ...],
    *,
    model: str | None,
    tokens: int,
    rng: np.random.Generator,
    clock: Clock,
    deadline: float,
) -> Preflight:
    """Finds out which product it is, then sends one request, at most three if it refuses.

    Args:
        client: The HTTP client.
        candidates: The APIs to try, in order; at least one.
        model: The model wanted, or None for the endpoint's only one.
        tokens: Output tokens to ask for.
        rng: Of the prompts.
        clock: Nanoseconds of a clock that never steps back.
        deadline: When everything is given up, on the event loop's clock.

    Returns:
        The endpoint, and the answer to the request.

    Raises:
        EndpointError: It cannot be reached, serves several models and none was chosen, or does not
            answer.
    """
    target = candidates[0]
    listed = await _list_models(client, target, wanted=model, deadline=deadline)
    cards = [] if listed is None else model_cards(listed.body)
    cards = [card for card in cards if not tells_key(client, card["id"])]
    model = _chosen(cards, target) if model is None else model
    product, sign, page = await _recognise(client, target, listed, cards, deadline)
    connection = Connection(client, target, model, dialect_of(product, model), clock, deadline)
    connection, sample, requests = await _first_answer(
        connection, candidates[1:], tokens=tokens, rng=rng
    )
    if page is None:
        page, _path = await _page(client, target, product, deadline)
    card = next((card for card in cards if card["id"] == model), None)
    longest = told(card, product.max_tokens_at) or told(page, product.max_tokens_at, model=model)
    endpoint = _endpoint(
        connection, sample, sign, longest=longest, slots=told(page, product.slots_at)
    )
    return Preflight(connection, endpoint, sample, requests)


def _endpoint(
    connection: Connection, sample: Sample, sign: str, *, longest: int | None, slots: int | None
) -> Endpoint:
    forced_by = connection.dialect.forced_by
    counted = sample.output_tokens
    forced = None if counted is None or not forced_by else True
    if counted is not None and counted != sample.asked_tokens:
        forced = False
    return Endpoint(
        kind=connection.dialect.kind,
        sign=sign,
        api=connection.target.api,
        model=connection.model,
        streams=sample.streamed,
        usage=counted is not None,
        cached_tokens_told=sample.cached_tokens is not None,
        lengths_forced=forced,
        forced_by=forced_by,
        dropped_fields=list(connection.dialect.dropped),
        max_model_tokens=longest,
        slots_told=slots,
    )


async def _list_models(
    client: httpx.AsyncClient, target: Target, *, wanted: str | None, deadline: float
) -> Page | None:
    """The endpoint's list of models; None for a URL that names its model itself.

    Raises:
        EndpointError: The endpoint cannot be reached, sends away, or wants another key.
    """
    if target.names_model:
        return None
    try:
        page = await get_page(client, target.models_url, seconds=_left(deadline, _LIST_S))
    except (httpx.HTTPError, TimeoutError) as error:
        raise endpoint_error(fault_of_exception(error), where=target.shown, status=None) from None
    fault = fault_of_status(page.status)
    if fault == "redirect":
        raise endpoint_error(
            fault, where=target.shown, status=page.status, detail=_to(client, page.redirect_host)
        )
    # A key may be good for requests and not for the list; with a model given, the list is no need.
    if fault == "unauthorized" and wanted is None:
        raise endpoint_error(fault, where=target.shown, status=page.status)
    return page


def _chosen(cards: Sequence[dict[str, object]], target: Target) -> str | None:
    """The endpoint's model, if it lists exactly one; None if it lists nothing.

    Raises:
        EndpointError: It lists several.
    """
    names = [str(card["id"]) for card in cards]
    if len(names) > 1:
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise EndpointError(
            f"the endpoint serves {len(names)} models",
            where=target.shown,
            why=some,
            hint="Choose one with --model",
        )
    return names[0] if names else None


async def _recognise(
    client: httpx.AsyncClient,
    target: Target,
    listed: Page | None,
    cards: Sequence[dict[str, object]],
    deadline: float,
) -> tuple[Product, str, dict[str, Any] | None]:
    """The product, what gave it away, and its own page where that was it."""
    product = product_of_host(target.host)
    if product is not None:
        return product, "host name", None
    server = "" if listed is None else listed.server
    found = product_of_list(server, [str(card.get("owned_by")) for card in cards])
    if found is not None:
        return *found, None
    for product in PRODUCTS:
        page, path = await _page(client, target, product, deadline)
        if page is not None:
            return product, f"GET {path}", page
    return UNKNOWN, "none", None


async def _page(
    client: httpx.AsyncClient, target: Target, product: Product, deadline: float
) -> tuple[dict[str, Any] | None, str]:
    """The product's own page and where it is, if there is one that holds the product's key."""
    for path in product.pages:
        try:
            page = await get_page(client, target.root + path, seconds=_left(deadline, _PAGE_S))
        except (httpx.HTTPError, TimeoutError):
            continue
        if page.status == 200 and isinstance(page.body, dict) and product.page_key in page.body:
            return page.body, path
    return None, ""


def _left(deadline: float, most: float) -> float:
    """Seconds that a page may take."""
    return min(most, deadline - asyncio.get_running_loop().time())


async def _first_answer(
    connection: Connection,
    others: Sequence[Target],
    *,
    tokens: int,
    rng: np.random.Generator,
) -> tuple[Connection, Sample, int]:
    """One request alone, on the first API that is there, with the fields that are not refused.

    What passes by itself (HTTP 429 and 5xx, a connection that breaks) is tried again after a wait.

    Raises:
        EndpointError: It is not answered.
    """
    remaining = list(others)
    for tries in range(1, TRIES + 1):
        answer = await send(connection, tokens=tokens, prompt=prompt_of(ANY_WORDS, rng))
        sample = answer.sample(stage="baseline", name="baseline", trial=0)
        if sample.fault is None:
            _check_length(connection, sample)
            break
        wait_s = backoff_s(sample, tries - 1)
        if wait_s is not None and tries < TRIES and wait_s < _left(connection.deadline, math.inf):
            await asyncio.sleep(wait_s)  # what passes is no reason to give up
            continue
        following = _following(connection, remaining, answer, sample, last=tries == TRIES - 1)
        if following is None or tries == TRIES:
            raise endpoint_error(
                sample.fault,
                where=connection.target.shown,
                status=sample.status,
                detail=_detail(connection, answer, sample),
            )
        connection = following
    return connection, sample, tries


def _check_length(connection: Connection, sample: Sample) -> None:
    """Refuses an endpoint whose answers have no bound: nobody could say what a probe costs there.

    Raises:
        EndpointError: The answer is more than twice as long as was asked for.
    """
    tokens = sample.output_tokens or 0
    if tokens > _MOST_TIMES * sample.asked_tokens:
        raise EndpointError(
            "the endpoint does not keep to max_tokens",
            where=connection.target.shown,
            why=f"it answered with {tokens} tokens where {sample.asked_tokens} were asked for",
            hint="Probe an endpoint that does, such as the server behind it",
        )


def _following(
    connection: Connection, others: list[Target], answer: Answer, sample: Sample, *, last: bool
) -> Connection | None:
    """What to try after a refusal, if anything; takes the API tried next off the others."""
    if sample.fault == "not_found" and others:
        return replace(connection, target=others.pop(0))
    if sample.status in {400, 422}:
        api = connection.target.api
        dialect = connection.dialect.after_refusal(answer.refusal, api, last=last)
        return None if dialect is None else replace(connection, dialect=dialect)
    return None


def _detail(connection: Connection, answer: Answer, sample: Sample) -> str:
    if sample.retry_after_s is not None:
        return f"again in {sample.retry_after_s:g} s"
    return _to(connection.client, answer.redirect_host)


def _to(client: httpx.AsyncClient, host: str) -> str:
    return f"to {host}" if host and not tells_key(client, host) else ""
