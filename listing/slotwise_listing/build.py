"""Builds the bundle a seller uploads: wheel, lock, manifest, workflows, listing, checksums.

The bundle holds a commit, not a working tree, and its bytes follow from the commit alone: the
sources come from `git archive`, the build backend is pinned in pyproject.toml, and the wheel is
packed again without compression. SHA256SUMS names every other file.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from slotwise_listing.archive import CHECKSUMS, canonical_zip, checksums
from slotwise_listing.manifest_paths import manifest_paths
from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.files import write_file
from slotwise_workflows.resources import MANIFEST

_FILES = (MANIFEST, "README.md", "CHANGELOG.md", "LICENSE", "requirements.lock")
_PATTERNS = (
    "workflows/*.yaml",
    "workflows/schemas/*.json",
    "listing/**/*",
    # What the README leads to: a buyer reads it without a connection.
    "CONTRIBUTING.md",
    "docs/**/*",
    "benchmarks/*.md",
)
# Code that makes the listing is in the wheel, or of no use to a buyer.
_CODE = (".py", ".typed")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was built.

    Attributes:
        path: The zip.
        version: Of slotwise.
        commit: The commit it was made from, in full.
        files: How many files it holds, SHA256SUMS among them.
        sha256: Of the zip.
        uncommitted: Whether the working tree held changes that are not in it.
    """

    path: Path
    version: str
    commit: str
    files: int
    sha256: str
    uncommitted: bool


def build_bundle(source: Path, output: Path | None = None) -> Bundle:
    """Builds the bundle of the checked-out commit.

    Args:
        source: A git checkout of slotwise.
        output: The zip; ``dist/slotwise-<version>.zip`` in the checkout if left out.

    Raises:
        UsageError: `source` is no git checkout of slotwise, or git, uv and pip are missing.
        InputError: The checkout's parts do not fit together, or the zip cannot be written.
    """
    commit = _git(source, "rev-parse", "HEAD").decode().strip()
    commit_time = _git(source, "show", "-s", "--format=%ct", "HEAD").decode().strip()
    uncommitted = bool(_git(source, "status", "--porcelain").strip())
    with tempfile.TemporaryDirectory(prefix="slotwise-bundle-") as folder:
        tree = Path(folder) / "source"
        _export(source, tree)
        manifest = yaml.safe_load((tree / MANIFEST).read_text(encoding="utf-8"))
        wheel = manifest["runtime"]["wheel"]
        entries = _collect(tree)
        _check([path for path in manifest_paths(manifest) if path != wheel], entries)
        built, content = _build_wheel(tree, Path(folder) / "wheel", commit_time)
    if wheel != f"wheels/{built}":
        raise InputError(
            f"the manifest names {wheel}",
            where=MANIFEST,
            why=f"the commit's wheel is {built}",
            hint="Make the versions in pyproject.toml and the manifest agree",
        )
    entries[wheel] = content
    entries[CHECKSUMS] = checksums(entries)
    version = str(manifest["metadata"]["version"])
    path = output or source / "dist" / f"slotwise-{version}.zip"
    _make_parent(path)
    packed = canonical_zip(dict(sorted(entries.items())))
    write_file(path, packed)
    sha256 = hashlib.sha256(packed).hexdigest()
    return Bundle(path, version, commit, len(entries), sha256, uncommitted)


def _git(source: Path, *args: str) -> bytes:
    try:
        # As committed, whatever line ends this machine's git likes to check out.
        return subprocess.run(  # noqa: S603 - a fixed program, arguments of our own
            ["git", "-C", str(source), "-c", "core.autocrlf=false", *args],  # noqa: S607
            check=True,
            capture_output=True,
        ).stdout
    except FileNotFoundError:
        raise UsageError("git is not installed", hint="A bundle is made from a commit") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(
            "cannot read the commit to build from",
            where=str(source),
            why=_last_line(error.stderr),
            hint="Name a git checkout of slotwise with --source",
        ) from None


def _export(source: Path, tree: Path) -> None:
    if not (source / MANIFEST).is_file():
        raise UsageError(
            f"there is no {MANIFEST}",
            where=str(source),
            hint="Name the top of a git checkout of slotwise with --source",
        )
    archive = _git(source, "archive", "--format=zip", "HEAD")
    with zipfile.ZipFile(io.BytesIO(archive)) as exported:
        exported.extractall(tree)


def _build_wheel(tree: Path, out: Path, commit_time: str) -> tuple[str, bytes]:
    """Builds the wheel in an environment of its own; returns its name and canonical bytes."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time}
    try:
        subprocess.run(  # noqa: S603 - a fixed program, arguments of our own
            _builder(tree, out), check=True, capture_output=True, env=environment, cwd=tree
        )
    except subprocess.CalledProcessError as error:
        raise InputError(
            "the wheel cannot be built", where=str(tree), why=_last_line(error.stderr)
        ) from None
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        entries = {name: wheel.read(name) for name in wheel.namelist()}
    return path.name, canonical_zip(entries)


def _builder(tree: Path, out: Path) -> Sequence[str]:
    uv = shutil.which("uv")
    if uv is not None:
        return [
            uv,
            "build",
            "--wheel",
            "--python",
            sys.executable,
            "--out-dir",
            str(out),
            str(tree),
        ]
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], check=False, capture_output=True).returncode:  # noqa: S603
        raise UsageError("neither uv nor pip is installed", hint="Install uv to build a wheel")
    return [*pip, "wheel", "--no-deps", "--wheel-dir", str(out), str(tree)]


def _collect(tree: Path) -> dict[str, bytes]:
    paths = {tree / name for name in _FILES}
    for pattern in _PATTERNS:
        paths.update(path for path in tree.glob(pattern) if path.is_file())
    return {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in paths
        if path.suffix not in _CODE and path.is_file()
    }


def _check(named: Sequence[str], entries: Mapping[str, bytes]) -> None:
    absent = [path for path in dict.fromkeys((*_FILES, *named)) if path not in entries]
    if absent:
        raise InputError(
            f"the commit lacks {absent[0]}",
            where=MANIFEST,
            why=f"a bundle needs it; lacking in all: {', '.join(absent[:9])}",
            hint="Commit the file, or correct its path in the manifest",
        )


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "cannot make the bundle's folder", where=str(path.parent), why=error.strerror or ""
        ) from None


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else "it said nothing"
