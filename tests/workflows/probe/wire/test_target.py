from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.wire.target import check_model, targets


@pytest.mark.parametrize(
    ("url", "api", "expected"),
    [
        (
            "http://h:8000",
            "auto",
            ["http://h:8000/v1/chat/completions", "http://h:8000/v1/completions"],
        ),
        ("http://h:8000/", "chat", ["http://h:8000/v1/chat/completions"]),
        ("https://h/v1", "completions", ["https://h/v1/completions"]),
        ("https://h/v1/", "completions", ["https://h/v1/completions"]),
        ("https://h/v1/chat/completions", "auto", ["https://h/v1/chat/completions"]),
        ("https://h/v1/completions", "auto", ["https://h/v1/completions"]),
        ("https://h/completions", "auto", ["https://h/completions"]),
        ("https://h/a/b?v=2", "chat", ["https://h/a/b/chat/completions?v=2"]),
        ("http://[::1]:80", "chat", ["http://[::1]:80/v1/chat/completions"]),
        (
            "https://x.openai.azure.com",
            "chat",
            ["https://x.openai.azure.com/openai/v1/chat/completions"],
        ),
        (
            "https://x.openai.azure.com/openai/deployments/d?api-version=1",
            "chat",
            ["https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"],
        ),
    ],
)
def test_a_url_is_made_whole(url: str, api: str, expected: list[str]) -> None:
    found = targets(url, api)  # type: ignore[arg-type]
    assert [target.url for target in found] == expected


def test_models_and_what_is_shown() -> None:
    [target] = targets("https://h/v1/chat/completions?key=secret", "auto")
    assert target.models_url == "https://h/v1/models?key=secret"
    assert target.shown == "https://h/v1/chat/completions"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h:8000",
        "ftp://h",
        "http://",
        "http://h:x",
        "http://h:99999",
        "http://u:p@h",
        "http://[h",
        "http://xn--/",
        "http://h/\x01",
        "http://h/a\tb",
        "http://h/" + "x" * 70_000,
    ],
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError):
        targets(url, "auto")


@given(st.text(max_size=20), st.sampled_from(["", "http://", "https://h", "http://h/"]))
def test_whatever_is_given_is_no_url_or_one_that_can_be_asked(text: str, begin: str) -> None:
    try:
        found = targets(begin + text, "auto")
    except UsageError:
        return
    for target in found:
        for url in (target.url, target.models_url, f"{target.root}/props"):
            assert httpx.URL(url).host


def test_a_url_and_an_api_that_contradict() -> None:
    with pytest.raises(UsageError, match="chat"):
        targets("http://h/v1/chat/completions", "completions")


@pytest.mark.parametrize(
    ("url", "host", "root"),
    [
        ("http://H:8000", "h", "http://H:8000"),
        ("http://h/v1/completions", "h", "http://h"),
        ("https://h/proxy/v1?k=1", "h", "https://h/proxy"),
        ("http://[::1]:80/v1", "::1", "http://[::1]:80"),
        ("http://h/other", "h", "http://h/other"),
    ],
)
def test_where_a_servers_own_pages_are(url: str, host: str, root: str) -> None:
    target = targets(url, "auto")[0]
    assert (target.host, target.root) == (host, root)


def test_a_name_that_is_no_text_cannot_be_sent() -> None:
    """As the command line hands on a byte 0xff."""
    with pytest.raises(UsageError, match="no UTF-8"):
        check_model(b"tiny-\xff".decode("utf-8", "surrogateescape"))
    for name in (None, "", "tiny", "モデル"):
        check_model(name)


def test_an_azure_deployment_names_its_model_and_needs_a_version() -> None:
    url = "https://x.openai.azure.com/openai/deployments/d/chat/completions"
    assert targets(f"{url}?api-version=2024-10-21", "auto")[0].names_model
    assert not targets("https://x.openai.azure.com/openai/v1", "auto")[0].names_model
    with pytest.raises(UsageError, match="version of its API"):
        targets(url, "auto")
