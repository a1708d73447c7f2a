"""The options of the commands, each written once, so that a command's signature is a list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from slotwise_workflows.given import MOST_REPLICAS, MOST_SLOTS

# --- how a command speaks ------------------------------------------------------------------------

Json = Annotated[
    bool,
    typer.Option("--json", help="Print the machine-readable result, and only that, on stdout."),
]
OutputDir = Annotated[
    Path | None,
    typer.Option("--output-dir", metavar="DIR", help="Where files are written; made if missing."),
]
Language = Annotated[
    Literal["ja", "en"] | None,
    typer.Option("--language", metavar="ja|en", help="Of the report; the locale's if left out."),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, metavar="N", help="Of every random draw; same seed, same result."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No messages or progress on stderr.")]
NoInput = Annotated[
    bool, typer.Option("--no-input", help="Never ask anything; fail where an answer is needed.")
]

Yes = Annotated[bool, typer.Option("--yes", help="Send requests to the endpoint without asking.")]

# --- the report ----------------------------------------------------------------------------------

Client = Annotated[
    str | None, typer.Option("--client", metavar="NAME", help="For whom the report is.")
]
PreparedBy = Annotated[
    str | None, typer.Option("--prepared-by", metavar="NAME", help="Who hands the report over.")
]
Date = Annotated[
    str | None, typer.Option("--date", metavar="TEXT", help="The date that stands on the report.")
]
DocumentNumber = Annotated[
    str | None,
    typer.Option("--document-number", metavar="TEXT", help="The report's number in your files."),
]
Confidential = Annotated[
    str | None,
    typer.Option("--confidential", metavar="TEXT", help="Who may read it: a line on each page."),
]
Accent = Annotated[
    str | None,
    typer.Option("--accent", metavar="COLOUR", help="As #0b6b7d; readable on white."),
]
Logo = Annotated[str | None, typer.Option("--logo", metavar="FILE", help="Your logo, PNG or SVG.")]
Formats = Annotated[
    str | None,
    typer.Option("--formats", metavar="LIST", help="Of the report: html,md,summary,pdf."),
]

# --- reading a log -------------------------------------------------------------------------------

Logs = Annotated[
    list[str],
    typer.Argument(metavar="LOG...", help="Files, patterns or directories; - is standard input."),
]
LogsIfAny = Annotated[
    list[str] | None,
    typer.Argument(metavar="[LOG]...", help="Files, patterns or directories; - is standard input."),
]
Format = Annotated[
    str, typer.Option("--format", metavar="ID", help="The log's format; auto looks at the content.")
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Where a field stands in a table of one's own, e.g. arrival=ts. Repeatable.",
    ),
]
TimeUnit = Annotated[
    Literal["auto", "s", "ms", "us", "ns"] | None,
    typer.Option("--time-unit", metavar="auto|s|ms|us|ns", help="Unit of numeric times."),
]
TimeZone = Annotated[
    str | None,
    typer.Option("--tz", metavar="ZONE", help="Of times that name none, e.g. Asia/Tokyo; UTC."),
]
Decimal = Annotated[
    Literal["auto", ".", ","] | None,
    typer.Option("--decimal", metavar="auto|.|,", help="Decimal sign of a CSV's numbers."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="COLUMN=VALUE",
        help="Only rows like this; also != < <= > >=. Repeatable.",
    ),
]
Segment = Annotated[
    list[str] | None,
    typer.Option(
        "--segment", metavar="COLUMN", help="Split the results by this column. Repeatable."
    ),
]
AllowTruncated = Annotated[
    bool,
    typer.Option("--allow-truncated", help="Read a gzip file that ends early up to its cut."),
]

# --- the server and what is asked of it ----------------------------------------------------------

Workload = Annotated[Path, typer.Argument(metavar="WORKLOAD.yaml", help="A workload file.")]
WorkloadIfAny = Annotated[
    Path | None,
    typer.Option("--workload", metavar="FILE", help="A workload file; options go before it."),
]
Slots = Annotated[
    int | None,
    typer.Option(
        "--slots", min=1, max=MOST_SLOTS, metavar="N", help="Requests one server runs at once."
    ),
]
MsPerToken = Annotated[
    float | None,
    typer.Option("--ms-per-token", metavar="MS", help="Time one output token takes."),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="A published step cost, in place of --ms-per-token; `config presets` lists them.",
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="A step cost that `calibrate` fitted, in place of --ms-per-token.",
    ),
]
Replicas = Annotated[
    int | None,
    typer.Option(
        "--replicas", min=1, max=MOST_REPLICAS, metavar="N", help="Servers behind the balancer."
    ),
]
MaxDelayMs = Annotated[
    float | None,
    typer.Option(
        "--max-delay-ms",
        min=0,
        metavar="MS",
        help="How long a batch that is not full waits today; inf: until it is full.",
    ),
]
Serving = Annotated[
    Literal["self_hosted", "managed_api", "unknown"] | None,
    typer.Option(
        "--serving", metavar="self_hosted|managed_api|unknown", help="Who runs the server."
    ),
]
Mode = Annotated[
    Literal["online", "offline"] | None,
    typer.Option("--mode", metavar="online|offline", help="Users wait, or a job is to be done."),
]
LatencyP95 = Annotated[
    float | None,
    typer.Option("--latency-p95-s", metavar="S", help="Objective for 95 % of whole answers."),
]
TtftP95 = Annotated[
    float | None,
    typer.Option("--ttft-p95-s", metavar="S", help="Objective for 95 % of first tokens."),
]
Probe = Annotated[
    str | None,
    typer.Option(
        "--probe",
        metavar="URL|DIR",
        help="Look at the live endpoint as `probe` does, or take what that wrote into a directory. "
        "A model, an API or limits: give them to `probe`, and its directory here.",
    ),
]
