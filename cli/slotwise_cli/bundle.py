"""`slotwise bundle build` and `slotwise bundle verify`: the package, from both its sides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotwise_cli import options
from slotwise_cli.console import Console


def build(
    source: Annotated[
        Path, typer.Option("--source", metavar="DIR", help="A git checkout of slotwise.")
    ] = Path(),
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE.zip", help="dist/slotwise-VERSION.zip if left out."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Build the bundle of the checked-out commit; the same commit gives the same bytes."""
    from slotwise_listing.build import build_bundle

    console = Console(quiet=quiet)
    bundle = build_bundle(source, output)
    if bundle.uncommitted:
        console.note("note: the working tree holds changes that are not in the bundle")
    if json:
        console.json(
            {
                "bundle": str(bundle.path),
                "version": bundle.version,
                "commit": bundle.commit,
                "files": bundle.files,
                "sha256": bundle.sha256,
            }
        )
    else:
        console.out(f"{bundle.path}: {bundle.files} files of commit {bundle.commit[:12]}")
        console.out(f"SHA-256 {bundle.sha256}")


def verify(
    bundle: Annotated[Path, typer.Argument(metavar="FILE.zip", help="A bundle.")],
    json: options.Json = False,
) -> None:
    """Check that a bundle is whole and unchanged, before anything of it is unpacked."""
    from slotwise_listing.verify import verify_bundle

    console = Console()
    verified = verify_bundle(bundle)
    if json:
        console.json({"bundle": str(bundle), "files": verified.files, "sha256": verified.sha256})
    else:
        console.out(f"{bundle} is whole: {verified.files} files")
        console.out(f"SHA-256 {verified.sha256}")
