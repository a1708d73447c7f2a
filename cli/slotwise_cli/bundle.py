"""`slotwise bundle build` and `slotwise bundle verify`: the package, from both its sides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def build(
    source: Annotated[
        Path, typer.Option("--source", metavar="DIR", help="A git checkout of slotwise.")
    ] = Path(),
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE.zip", help="dist/slotwise-VERSION.zip if left out."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No messages on stderr.")] = False,
) -> None:
    """Build the bundle of the checked-out commit; the same commit gives the same bytes."""
    from slotwise_listing.build import build_bundle

    bundle = build_bundle(source, output)
    if not quiet:
        if bundle.uncommitted:
            typer.echo("note: the working tree holds changes that are not in the bundle", err=True)
        typer.echo(
            f"slotwise {bundle.version}, commit {bundle.commit[:12]}, {bundle.files} files",
            err=True,
        )
    typer.echo(bundle.path)


def verify(
    bundle: Annotated[Path, typer.Argument(metavar="FILE.zip", help="A bundle.")],
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing if it is whole.")] = False,
) -> None:
    """Check that a bundle is whole and unchanged, before anything of it is unpacked."""
    from slotwise_listing.verify import verify_bundle

    verified = verify_bundle(bundle)
    if not quiet:
        typer.echo(f"whole: {verified.files} files, SHA-256 {verified.sha256}")
