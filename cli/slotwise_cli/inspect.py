"""`slotwise inspect`: what a log is, without simulating anything."""

from __future__ import annotations

from slotwise_cli import options
from slotwise_cli.console import Console


def inspect(
    logs: options.Logs,
    format_: options.Format = "auto",
    map_: options.Map = None,
    time_unit: options.TimeUnit = None,
    time_zone: options.TimeZone = None,
    decimal: options.Decimal = None,
    where: options.Where = None,
    segment: options.Segment = None,
    allow_truncated: options.AllowTruncated = False,
    output_dir: options.OutputDir = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Say what a log is and how its lengths vary.

    What was kept, what was left out and why; length figures; what their variation alone can gain.

    With --output-dir, the canonical table is written as traffic.parquet; it holds no text.
    """
    from slotwise_cli.reading import read_options
    from slotwise_workflows.files import prepare_directory
    from slotwise_workflows.run_directory import write_traffic
    from slotwise_workflows.traffic import ReadOptions, read_traffic

    console = Console(quiet=quiet)
    reading = read_options(
        ReadOptions(),
        format_=format_,
        map_=map_,
        time_unit=time_unit,
        time_zone=time_zone,
        decimal=decimal,
        where=where,
        segment=segment,
        allow_truncated=allow_truncated,
    )
    if output_dir is not None:
        prepare_directory(output_dir)
    with console.progress("reading") as advance:
        traffic = read_traffic(logs, reading, on_progress=advance)
    from slotwise_workflows.measure import inspect as measure  # not needed for a wrong file

    inspection = measure(traffic, seed)
    if json:
        console.json(inspection)
    else:
        from slotwise_cli.summary import print_inspection

        print_inspection(inspection)
    if output_dir is not None:
        for path in write_traffic(traffic, output_dir):
            console.note(f"wrote {path}")
