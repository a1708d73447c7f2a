"""The page on endpoints says of every product what the table says, and names every field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slotwise_workflows.probe.model import Endpoint
from slotwise_workflows.probe.wire.client import LONGEST_WAIT_S
from slotwise_workflows.probe.wire.dialect import OWN_ENDS
from slotwise_workflows.probe.wire.faults import SENTENCES
from slotwise_workflows.probe.wire.products import OPTIONAL, PRODUCTS, UNKNOWN, Product

PAGE = (Path(__file__).parents[2] / "docs/reference/endpoints.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def row(title: str, first: str) -> list[str]:
    lines = [line for line in section(title).splitlines() if line.startswith(f"| {first} |")]
    assert len(lines) == 1, f"{first} in {title}"
    return [cell.strip() for cell in lines[0].strip("|").split("|")]


@pytest.mark.parametrize("product", [*PRODUCTS, UNKNOWN], ids=lambda product: product.kind)
def test_what_each_product_is_sent(product: Product) -> None:
    head = row("What is sent", "`kind`")
    cells = row("What is sent", f"`{product.kind}`")
    assert cells[1] == f"`{product.limit}`"
    for name in OPTIONAL:
        column = f"`{name}.include_usage`" if name == "stream_options" else f"`{name}"
        [index] = [i for i, title in enumerate(head) if title.startswith(column)]
        assert cells[index] == ("yes" if name in product.optional else "no"), name
    assert len(head) == 2 + len(OPTIONAL)


@pytest.mark.parametrize("product", [*PRODUCTS, UNKNOWN], ids=lambda product: product.kind)
def test_how_each_product_is_recognised(product: Product) -> None:
    [line] = [
        li for li in section("How it finds out").splitlines() if f"| `{product.kind}` |" in li
    ]
    signs = (*product.owners, product.server, product.page_key)
    signs += tuple(host.removeprefix(".") for host in product.hosts)
    assert all(f"`{sign}`" in line for sign in signs if sign)
    assert all(f"`GET {path}`" in line for path in product.pages)
    told = [".".join(key for key in keys if key != "data") for keys in
            (product.max_tokens_at, product.slots_at)]  # fmt: skip
    assert all(f"`{key}`" in line for key in told if key)


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.kind)
def test_where_each_product_is_documented(product: Product) -> None:
    cells = row("Where that is from", f"`{product.kind}`")
    assert re.findall(r"\((https://[^)]+)\)", cells[1]) == list(product.sources)


@pytest.mark.parametrize("name", Endpoint.model_fields)
def test_every_field_of_an_endpoint_is_explained(name: str) -> None:
    row("What is kept of it", f"`{name}`")


@pytest.mark.parametrize("fault", SENTENCES)
def test_every_fault_is_explained(fault: str) -> None:
    row("Faults", f"`{fault}`")


def test_the_numbers_and_names_of_the_rest() -> None:
    assert f"never after more than {LONGEST_WAIT_S:g} s" in PAGE
    assert all(f"`{name}`" in PAGE for name in OWN_ENDS)
