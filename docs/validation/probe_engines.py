"""llama.cpp's own server: the gain predicted from a calibration and lengths: ``probe_engines.md``.

uv run docs/validation/probe_engines.py
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from markdown_table import markdown_table
from slotwise_sim import Continuous, Dynamic, PerToken, Policy, Step, Workload, simulate
from slotwise_sim.calibration import Calibration, HoldOut, calibrate, hold_out
from slotwise_sim.fitting import UnidentifiableError
from slotwise_sim.observed import Measured
from slotwise_sim.replay import Server

ROWS = Path(__file__).with_suffix(".csv")
SLOTS = 8
POLICIES: Mapping[str, Policy] = {
    "continuous": Continuous(),
    "static": Dynamic(0, release="own", pad=False),  # what waits, once no slot is in use
}
FITTED_TO = {
    "continuous: users": ("continuous", ("users",)),
    "static: groups and up front": ("static", ("groups", "mixed")),
    "static: users": ("static", ("users",)),
}
MAIN = "continuous: users"
TERMS = {"base_ms": 2, "per_seq_ms": 2, "per_kv_token_ms": 5, "per_prefill_token_ms": 2}
LENGTHS = {"mixed": "85 % 40 to 200, 15 % 400 to 1,000", "equal": "all 150"}


@dataclass(frozen=True)
class Makespans:
    """Seconds of one run on both servers."""

    continuous: float
    static: float

    @property
    def gain(self) -> float:
        """Static over continuous."""
        return self.static / self.continuous


@dataclass(frozen=True)
class Run:
    """One list of requests on both servers; simulated by name of what was fitted to."""

    lengths: str
    measured: Makespans
    simulated: dict[str, Makespans]
    tokens_alone: Makespans


@dataclass(frozen=True)
class Fit:
    """What a calibration found."""

    found: Calibration
    held_out: HoldOut | None


@dataclass(frozen=True)
class Comparison:
    """All that was measured, and what was predicted."""

    fits: dict[str, Fit]
    runs: list[Run]


def read() -> pl.DataFrame:
    """Returns what ``engine_load.py`` measured, by arrival."""
    return pl.read_csv(ROWS).sort("arrival_s")


def measure() -> Comparison:
    """Returns the runs and their predictions."""
    rows = read()
    fits = {name: _fit(rows, *sent) for name, sent in FITTED_TO.items()}
    runs = [
        _run(rows.filter(sent_for=lengths, run=run), lengths, fits)
        for lengths in LENGTHS
        for run in rows.filter(sent_for=lengths)["run"].unique().sort()
    ]
    return Comparison(fits, runs)


def _fit(rows: pl.DataFrame, server: str, sent_for: Sequence[str]) -> Fit:
    cost = rows.filter(pl.col("server") == server, pl.col("sent_for").is_in(sent_for))
    first_s = (cost["arrival_s"] + cost["ttft_s"]).to_numpy()
    end_s = (cost["arrival_s"] + cost["latency_s"]).to_numpy()
    measured = Measured(_workload(cost), first_s, end_s)
    told = Server(POLICIES[server], SLOTS)
    found = calibrate(measured, told)
    try:
        return Fit(found, hold_out(measured, told))
    except UnidentifiableError:
        return Fit(found, None)


def _run(rows: pl.DataFrame, lengths: str, fits: Mapping[str, Fit]) -> Run:
    by_server = {server: rows.filter(server=server) for server in POLICIES}
    spans = [
        float((seen["arrival_s"] + seen["latency_s"] - seen["arrival_s"].min()).to_numpy().max())
        for seen in by_server.values()
    ]
    # All were there before the first step. Their order is all that is taken from the runs.
    sent = _workload(by_server["continuous"])
    workload = replace(sent, arrival_s=np.zeros(len(sent)))
    simulated = {name: _simulated(workload, fit.found.step) for name, fit in fits.items()}
    return Run(lengths, Makespans(*spans), simulated, _simulated(workload, PerToken(1.0)))


def _workload(rows: pl.DataFrame) -> Workload:
    return Workload(
        rows["arrival_s"].to_numpy(),
        rows["output_tokens"].to_numpy().astype(np.int64),
        rows["prompt_tokens"].to_numpy().astype(np.int64),
    )


def _simulated(workload: Workload, cost: Step | PerToken) -> Makespans:
    def makespan(policy: Policy) -> float:
        outcome = simulate(workload, policy, cost, slots=SLOTS)
        return float(outcome.end_s.max())

    return Makespans(*(makespan(policy) for policy in POLICIES.values()))


def tables(found: Comparison) -> list[str]:
    """Returns the tables of the page."""
    return [_gains(found), _makespans(found), _terms(found)]


def gain(found: Comparison, lengths: str, fitted_to: str | None = None) -> float:
    """Median of the runs' gains: measured, or simulated with a fit."""
    runs = [run for run in found.runs if run.lengths == lengths]
    return statistics.median(
        (run.simulated[fitted_to] if fitted_to else run.measured).gain for run in runs
    )


def _gains(found: Comparison) -> str:
    rows = []
    for lengths, words in LENGTHS.items():
        seen = gain(found, lengths)
        counted = statistics.median(
            run.tokens_alone.gain for run in found.runs if run.lengths == lengths
        )
        cells = [_against(gain(found, lengths, fit), seen) for fit in found.fits]
        rows.append((words, f"{seen:.2f}", *cells, _against(counted, seen)))
    head = [f"fitted to {name}" for name in found.fits]
    return markdown_table(("lengths", "measured", *head, "a fixed time per token"), rows)


def _makespans(found: Comparison) -> str:
    """Those of the fit that holds; the others are judged by their gains."""
    rows = []
    for run in found.runs:
        seen, spans = run.measured, run.simulated[MAIN]
        rows.append(
            (
                run.lengths,
                *(f"{seconds:.1f}" for seconds in (seen.continuous, seen.static)),
                _against(spans.continuous, seen.continuous, digits=1),
                _against(spans.static, seen.static, digits=1),
                f"{seen.gain:.2f}",
                _against(spans.gain, seen.gain),
            )
        )
    head = ("continuous s", "static s", "simulated", "simulated", "gain", "simulated")
    return markdown_table(("lengths", *head), rows)


def _terms(found: Comparison) -> str:
    rows = []
    for name, fit in found.fits.items():
        cells = [
            f"{term.value:.{digits}f} ± {(term.high - term.low) / 2:.{digits}f}"
            if (term := fit.found.terms[key]).how == "fitted"
            else "not told"
            for key, digits in TERMS.items()
        ]
        bend = fit.found.terms.get("bend")
        rows.append(
            (
                name,
                f"{fit.found.batch[0]} to {fit.found.batch[1]}",
                *cells,
                f"{100 * bend.value:.0f} % at {fit.found.bend_seqs}" if bend else "none",
                _held_out(fit.held_out),
            )
        )
    head = ("fitted to", "batch", *TERMS, "bend", "hold-out: mean and p95 latency, TTFT")
    return markdown_table(head, rows)


def _held_out(judged: HoldOut | None) -> str:
    if judged is None:
        return "not told"
    errors = judged.errors
    shares = (errors.latency_mean, errors.latency_p95, errors.ttft_mean)
    return ", ".join(f"{100 * share:+.1f} %" for share in shares)


def _against(value: float, measured: float, *, digits: int = 2) -> str:
    return f"{value:.{digits}f} ({100 * (value / measured - 1):+.0f} %)"


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
