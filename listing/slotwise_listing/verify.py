"""Checks a bundle before anything of it is unpacked; the zip itself is not trusted."""

from __future__ import annotations

import hashlib
import io
import re
import stat
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from slotwise_listing.archive import CHECKSUMS, canonical_zip
from slotwise_workflows.errors import InputError
from slotwise_workflows.resources import MANIFEST

_LARGEST_BYTES = 256 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True, slots=True)
class Verified:
    """A bundle that is whole: how many files it holds, and the SHA-256 of the zip."""

    files: int
    sha256: str


def verify_bundle(path: Path) -> Verified:
    """Checks that a bundle holds exactly the files its SHA256SUMS names, unchanged.

    Raises:
        InputError: It is no zip, or an entry is missing, extra, changed, named twice, compressed,
            no regular file, or named so that unpacking could write elsewhere.
    """
    content = _read(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            faults = list(_name_faults(archive.infolist())) or list(_entry_faults(archive))
            if faults:
                raise _refused(path, faults)
            entries = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
        raise InputError("is no zip that can be read", where=str(path), why=str(error)) from None
    faults = list(_content_faults(entries))
    if not faults and content != canonical_zip(entries):
        # Hidden bytes, comments and extra fields all end here.
        faults = ["holds bytes beside its files, or was packed by another program"]
    if faults:
        raise _refused(path, faults)
    return Verified(len(entries), hashlib.sha256(content).hexdigest())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise InputError(
            "cannot be read", where=str(path), why=error.strerror or "", hint="Name a bundle's zip"
        ) from None
    if len(content) > _LARGEST_BYTES:
        raise InputError("is larger than 256 MiB", where=str(path))
    return content


def _refused(path: Path, faults: list[str]) -> InputError:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return InputError(
        f"the bundle is refused: {faults[0]}{more}",
        where=str(path),
        hint="Get it again from where it is sold, and do not install this one",
    )


def _name_faults(infos: list[zipfile.ZipInfo]) -> Iterator[str]:
    for info in infos:
        # As stored: `filename` is already cut at a null byte.
        if info.orig_filename != info.filename or not _is_plain(info.filename):
            yield f"{info.orig_filename[:200]!r} is no plain relative path"
    # Names that some file system takes for one, e.g. README.md and readme.MD.
    folded = Counter(unicodedata.normalize("NFC", info.filename).casefold() for info in infos)
    for name, times in folded.items():
        if times > 1:
            yield f"{name[:200]!r} is there {times} times"


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return (
        name.isprintable()
        and not any(letter in name for letter in '\\:*?"<>|')
        and all(part not in ("", ".", "..") for part in parts)
        and not any(part.endswith((".", " ")) for part in parts)
    )


def _entry_faults(archive: zipfile.ZipFile) -> Iterator[str]:
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            yield f"{info.filename} is compressed"
        elif info.flag_bits & 0x1:
            yield f"{info.filename} is encrypted"
        elif not stat.S_ISREG(info.external_attr >> 16):
            yield f"{info.filename} is no regular file"
    if sum(info.file_size for info in archive.infolist()) > _LARGEST_BYTES:
        yield "it unpacks to more than 256 MiB"


def _content_faults(entries: Mapping[str, bytes]) -> Iterator[str]:
    for needed in (CHECKSUMS, MANIFEST):
        if needed not in entries:
            yield f"{needed} is missing"
            return
    listed: dict[str, str] = {}
    for number, line in enumerate(entries[CHECKSUMS].decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in listed or match[2] == CHECKSUMS:
            yield f"{CHECKSUMS}:{number} is no line of its own for a file"
        else:
            listed[match[2]] = match[1]
    for name in sorted(listed.keys() - entries.keys()):
        yield f"{name[:200]} is missing"
    for name in sorted(entries.keys() - listed.keys() - {CHECKSUMS}):
        yield f"{name} is not in {CHECKSUMS}"
    for name in sorted(listed.keys() & entries.keys()):
        if hashlib.sha256(entries[name]).hexdigest() != listed[name]:
            yield f"{name} was changed"
