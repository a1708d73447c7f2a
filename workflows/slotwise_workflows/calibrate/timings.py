"""From a measured run to the instants that a calibration is fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from slotwise_sim.observed import Measured
from slotwise_workflows.errors import InputError
from slotwise_workflows.run_directory import TRAFFIC
from slotwise_workflows.traffic import Traffic, probe_log

MOST_REQUESTS = 3000
"""The first so many by arrival are fitted to: a fit simulates its requests thousands of times."""

_TTFT, _LATENCY = "gen_ai.response.time_to_first_chunk", "e2e_latency"
_PROMPT = "gen_ai.usage.input_tokens"
_MOST_PLACES = 3  # of unusable values, among the notes


@dataclass(frozen=True, slots=True)
class Timings:
    """The requests of a log whose first token and end are known.

    Attributes:
        measured: Their arrays; the first arrival is at 0.
        places: Where in the log each stands, for errors.
        left_out: Kept rows without timings or prompt, or beyond `MOST_REQUESTS`, by reason.
        notes: What a reader must know.
    """

    measured: Measured
    places: Sequence[str]
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


def timed_log(run: str) -> str:
    """The log of a run: a file is its own; a probe and a run directory hold one.

    Raises:
        InputError: A directory holds neither.
    """
    path = Path(run)
    if not path.is_dir():
        return run
    for name in (probe_log.NAME, TRAFFIC):
        if (path / name).is_file():
            return str(path / name)
    raise InputError(
        "no measured run here",
        where=run,
        why=f"neither {probe_log.NAME} nor {TRAFFIC} is in it",
        hint="Give a log file, or a directory that `slotwise probe` or `slotwise diagnose` wrote",
    )


def probe_rows(log: str) -> tuple[str, ...]:
    """Conditions for the rows of a log that are fitted to, unless the user names others.

    Of a probe with a cost stage its rows alone, without those of equal prompts; of any other log
    all.
    """
    return probe_log.COST_ROWS if probe_log.has_cost_rows(Path(log)) else ()


def timings_of(traffic: Traffic) -> Timings:
    """Picks the requests with an arrival, a first token and an end.

    Raises:
        InputError: The log has no arrivals, or no request has all three.
    """
    where = ", ".join(file.name for file in traffic.files)
    if traffic.clock is None:
        raise InputError("cannot be fitted to", where=where, why="arrival times are not known")
    table = traffic.table.with_row_index("row")
    timed = table.filter(
        pl.col(_TTFT).is_not_null() & (pl.col(_TTFT) >= 0) & (pl.col(_LATENCY) >= pl.col(_TTFT))
    )
    prompts = timed[_PROMPT].null_count() < len(timed)
    known = timed.filter(pl.col(_PROMPT).is_not_null()) if prompts else timed
    kept = known.sort("start_time", "row").head(MOST_REQUESTS)
    left_out = {
        "no_timings": len(table) - len(timed),
        "no_prompt": len(timed) - len(known),
        "beyond_the_most": len(known) - len(kept),
    }
    if kept.is_empty():
        latencies, firsts = (int(table[column].count()) for column in (_LATENCY, _TTFT))
        raise InputError(
            "cannot be fitted to",
            where=where,
            why=(
                "no request has both a time to first token and a latency that is not shorter: of"
                f" {len(table)}, {latencies} have a latency and {firsts} a time to first token,"
                " where one that is negative, or comes with the end of several tokens, counts as"
                " none"
            ),
            hint=(
                "Log both, or name their columns: --map 'ttft=COLUMN [ms]' and 'latency=COLUMN"
                " [ms]' for durations, first_token=COLUMN and end=COLUMN for instants"
            ),
        )
    return Timings(
        measured=_measured(replace(traffic, table=kept, origin="first")),
        places=kept["source"].to_list(),
        left_out={reason: count for reason, count in left_out.items() if count},
        notes=(
            *_notes_of_the_log(traffic),
            *_notes(kept, left_out, len(table)),
            *(() if prompts else (_no_prompts(traffic),)),
        ),
    )


def _measured(kept: Traffic) -> Measured:
    workload, table = kept.workload(), kept.table
    return Measured(
        workload,
        workload.arrival_s + table[_TTFT].to_numpy(),
        workload.arrival_s + table[_LATENCY].to_numpy(),
    )


def _notes_of_the_log(traffic: Traffic) -> list[str]:
    notes = []
    out = {reason: count for reason, count in traffic.excluded.items() if count}
    if out:
        told = ", ".join(f"{reason} {count}" for reason, count in out.items())
        notes.append(f"{sum(out.values())} of {traffic.rows} rows of the log are left out: {told}")
    if traffic.flags:
        notes.append(f"flags of the log: {', '.join(traffic.flags)}")
    # Places are told by the file's name alone: where it lay is no part of a calibration.
    return [*notes, *(Path(place).name for place in traffic.notes[:_MOST_PLACES])]


def _no_prompts(traffic: Traffic) -> str:
    unread = any("its prompt tokens cannot be read" in place for place in traffic.notes)
    told = "are told, but cannot be read" if unread else "are not known"
    return f"prompt lengths {told}: what prefill costs is in the other terms"


def _notes(kept: pl.DataFrame, left_out: Mapping[str, int], rows: int) -> list[str]:
    notes = []
    if left_out["no_timings"]:
        notes.append(
            f"{left_out['no_timings']} of {rows} requests have no timings; if they ran beside the"
            " others, they loaded the server unseen"
        )
    if left_out["no_prompt"]:
        notes.append(
            f"{left_out['no_prompt']} of {rows} requests have no prompt length that can be read;"
            " they loaded the server unseen"
        )
    if left_out["beyond_the_most"]:
        notes.append(f"fitted to the first {len(kept)} requests by arrival")
    return notes
