"""The `slotwise` command: every command by name, and nothing loaded that it does not need.

A command is one plain function in a file of its own. Those files import Typer alone; what a command
works with is imported inside its function, so that `--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from slotwise_cli import (
    bundle,
    calibrate,
    config,
    demo,
    diagnose,
    inspect,
    probe,
    report,
    run,
    simulate,
    sweep,
)
from slotwise_cli.console import prepare_streams
from slotwise_cli.faults import Commands, keep_interrupts

GREETING = """slotwise: will continuous batching help your traffic?

  slotwise demo             see it on a well-known case, with a report
  slotwise diagnose LOG     your own log in, a verdict and a report out
  slotwise inspect LOG      what the log is, and how its output lengths vary

`slotwise --help` lists all commands."""

app = typer.Typer(
    name="slotwise",
    cls=Commands,
    invoke_without_command=True,
    rich_markup_mode=None,  # plain help starts twice as fast
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import platform
        from importlib.metadata import version

        typer.echo(
            f"slotwise {version('slotwise')}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}"
        )
        raise typer.Exit


@app.callback()
def slotwise(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 - eager: acts before any command
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the versions of slotwise and Python, and the platform.",
        ),
    ] = False,
    debug: Annotated[  # noqa: ARG001 - read where faults are turned into lines
        bool, typer.Option("--debug", help="Print the traceback of a fault. May stand anywhere.")
    ] = False,
) -> None:
    """Will continuous batching help your traffic? Measured from your own logs, with evidence."""
    if ctx.invoked_subcommand is None:
        typer.echo(GREETING)


app.command()(demo.demo)
app.command()(diagnose.diagnose)
app.command()(inspect.inspect)
app.command()(simulate.simulate)
app.command()(sweep.sweep)
app.command()(probe.probe)
app.command()(calibrate.calibrate)
app.command()(report.report)
app.command()(run.run)

_config = typer.Typer(help="Write, check and explain workload files.", no_args_is_help=True)
_config.command()(config.init)
_config.command()(config.check)
_config.command()(config.schema)
_config.command()(config.show)
_config.command()(config.presets)
app.add_typer(_config, name="config")

_bundle = typer.Typer(help="Build and verify the package that is sold.", no_args_is_help=True)
_bundle.command()(bundle.build)
_bundle.command()(bundle.verify)
app.add_typer(_bundle, name="bundle")


def main() -> None:
    """Runs the command line and exits with its code."""
    prepare_streams()
    keep_interrupts()
    app()
