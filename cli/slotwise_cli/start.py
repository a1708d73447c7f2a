"""Where the process begins: nothing is imported yet, so that Ctrl-C is heard from the start."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits with its code; 130 where Ctrl-C comes before or after it."""
    try:
        from slotwise_cli.app import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("cancelled\n")
        raise SystemExit(130) from None
