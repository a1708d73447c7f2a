"""Zip archives whose bytes follow from their contents alone."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping

CHECKSUMS = "SHA256SUMS"

# The earliest date a zip can hold: no build's clock is in the bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_REGULAR_FILE_0644 = 0o100644 << 16


def canonical_zip(entries: Mapping[str, bytes]) -> bytes:
    """A zip of these files: stored, in the order given, with one date and one mode.

    Stored, because the bytes of a deflate stream differ between builds of zlib.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.create_system = _UNIX  # else Windows writes other bytes
            entry.external_attr = _REGULAR_FILE_0644
            archive.writestr(entry, content)
    return buffer.getvalue()


def checksums(entries: Mapping[str, bytes]) -> bytes:
    """What `sha256sum --check` reads: a line a file, in the order of their names."""
    lines = (
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(entries.items())
    )
    return "".join(lines).encode()
