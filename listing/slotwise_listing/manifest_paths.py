"""Every file that a manifest names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def manifest_paths(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths, relative to the manifest's folder, that must be there beside it."""
    return tuple(dict.fromkeys(_paths(manifest)))


def _paths(manifest: Mapping[str, Any]) -> Iterator[str]:
    metadata = manifest["metadata"]
    yield metadata["licenseFile"]
    yield metadata["icon"]
    if "iconDark" in metadata:
        yield metadata["iconDark"]
    for link in metadata["links"].values():
        yield from _each_language(link)
    yield manifest["runtime"]["wheel"]
    yield manifest["runtime"]["lock"]
    for workflow in manifest["workflows"]:
        yield workflow["definition"]
        for artifact in workflow["artifacts"]:
            if "schema" in artifact:
                yield artifact["schema"]
    yield manifest["events"]["schema"]
    yield from _listing_paths(manifest["listing"])


def _listing_paths(listing: Mapping[str, Any]) -> Iterator[str]:
    yield from _each_language(listing["pages"])
    for screenshot in listing.get("screenshots", ()):
        yield screenshot["file"]
    sample = listing.get("sampleReport", {})
    for name in ("html", "pdf", "data"):
        if name in sample:
            yield sample[name]
    if "pricing" in listing:
        yield listing["pricing"]
    yield from listing.get("legal", {}).values()


def _each_language(link: str | Mapping[str, str]) -> Iterator[str]:
    if isinstance(link, str):
        yield link
    else:
        yield from link.values()
