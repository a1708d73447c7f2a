"""vLLM on two CPU cores: continuous runs predicted from static ones, ``vllm_cpu.md``.

uv run docs/validation/vllm_cpu.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from markdown_table import markdown_table
from slotwise_sim import Continuous, Dynamic, Policy, Static, Step, Workload, simulate
from slotwise_sim.calibration import Calibration, calibrate
from slotwise_sim.observed import Measured
from slotwise_sim.replay import Server
from slotwise_sim.workload import Floats

AT_ONCE = "vllmcpu_4m_quiet_mixed_upfront.csv"
POISSON = "vllmcpu_4m_mixed_poisson_r1.0.csv"
SLOTS = 8
FITTED_TO = {
    "both": ("static_full", "static_padded"),
    "those that stop rows": ("static_full",),
}


@dataclass(frozen=True)
class Makespans:
    """Seconds, measured as the mean of the runs or simulated."""

    continuous: float
    static_full: float
    static_padded: float

    @property
    def ratios(self) -> tuple[float, float]:
        """Static over continuous: rows that end stop, or are padded."""
        return self.static_full / self.continuous, self.static_padded / self.continuous


@dataclass(frozen=True)
class Comparison:
    """What was measured, and what two fits say of it."""

    measured: Makespans
    fits: dict[str, tuple[Calibration, Makespans]]
    ttft_measured: dict[str, float]
    ttft_simulated: dict[str, float]


def measure(folder: Path) -> Comparison:
    """Returns the makespans and first tokens, measured and simulated."""
    runs, arrivals = pl.read_csv(folder / AT_ONCE), pl.read_csv(folder / POISSON)
    first = runs.filter((pl.col("mode") == "server") & (pl.col("run") == 0)).sort("req")
    workload = _workload(first, np.zeros(len(first)))
    fits = {}
    for name, modes in FITTED_TO.items():
        fit = calibrate(_seen(runs, modes), Server(Continuous(), SLOTS))
        fits[name] = (fit, _simulated(workload, fit.step))
    one = arrivals.filter((pl.col("mode") == "continuous") & (pl.col("run") == 0)).sort("arrival")
    poisson = _workload(one, one["arrival"].to_numpy() - one["arrival"].min())
    policies: dict[str, Policy] = {
        "continuous": Continuous(),
        "static_greedy": Dynamic(0, pad=False),
        "static_full": Static(pad=False),
    }
    step = fits["both"][0].step
    return Comparison(
        measured=Makespans(
            *(_makespan(runs, mode) for mode in ("continuous", "static_full", "static_padded"))
        ),
        fits=fits,
        ttft_measured={mode: _ttft_s(arrivals, mode) for mode in policies},
        ttft_simulated={mode: _simulated_ttft_s(poisson, p, step) for mode, p in policies.items()},
    )


def tables(found: Comparison) -> list[str]:
    """Returns the tables of the page."""
    rows = [("measured", *_cells(found.measured, None))]
    rows += [
        (f"simulated, fitted to {name}", *_cells(spans, found.measured))
        for name, (_, spans) in found.fits.items()
    ]
    return [
        markdown_table(
            (
                "",
                "continuous s",
                "static s",
                "padded s",
                "static over continuous",
                "padded over continuous",
            ),
            rows,
        ),
        markdown_table(
            ("fitted to", "base_ms", "per_seq_ms", "per_kv_token_ms", "per_prefill_token_ms"),
            [(name, *_terms(fit)) for name, (fit, _) in found.fits.items()],
        ),
        markdown_table(
            ("mean TTFT at 1 request/s", "measured s", "simulated s"),
            [
                (mode, f"{seen:.2f}", f"{found.ttft_simulated[mode]:.2f}")
                for mode, seen in found.ttft_measured.items()
            ],
        ),
    ]


def _workload(rows: pl.DataFrame, arrival_s: Floats) -> Workload:
    output = rows["target_tokens"].to_numpy().astype(np.int64)
    return Workload(arrival_s, output, rows["prompt_tokens"].to_numpy().astype(np.int64))


def _seen(runs: pl.DataFrame, modes: Sequence[str]) -> Measured:
    """All runs of some modes in one row of time, far apart."""
    rows = runs.filter(pl.col("mode").is_in(modes)).with_columns(
        (1000.0 * (pl.col("mode") + pl.col("run").cast(pl.String)).rank("dense")).alias("apart")
    )
    sent, first, end = (
        (rows[column] + rows["apart"]).to_numpy() for column in ("send", "first", "end")
    )
    workload = Workload(
        sent,
        rows["output_tokens"].to_numpy().astype(np.int64),
        rows["prompt_tokens"].to_numpy().astype(np.int64),
    )
    return Measured(workload, first, end)


def _makespan(runs: pl.DataFrame, mode: str) -> float:
    ends = runs.filter(pl.col("mode") == mode).group_by("run").agg(pl.col("end").max())
    return float(ends["end"].to_numpy().mean())


def _simulated(workload: Workload, step: Step) -> Makespans:
    def makespan(policy: Policy) -> float:
        return float(simulate(workload, policy, step, slots=SLOTS).end_s.max())

    return Makespans(makespan(Continuous()), makespan(Static(pad=False)), makespan(Static()))


def _ttft_s(runs: pl.DataFrame, mode: str) -> float:
    rows = runs.filter(pl.col("mode") == mode)
    return float((rows["first"] - rows["arrival"]).to_numpy().mean())


def _simulated_ttft_s(workload: Workload, policy: Policy, step: Step) -> float:
    outcome = simulate(workload, policy, step, slots=SLOTS)
    return float((outcome.first_token_s - outcome.arrival_s).mean())


def _cells(spans: Makespans, against: Makespans | None) -> list[str]:
    values = [spans.continuous, spans.static_full, spans.static_padded, *spans.ratios]
    if against is None:
        return [f"{value:.2f}" for value in values]
    seen = [against.continuous, against.static_full, against.static_padded, *against.ratios]
    return [f"{v:.2f} ({100 * (v / s - 1):+.1f} %)" for v, s in zip(values, seen, strict=True)]


def _terms(fit: Calibration) -> list[str]:
    cells = []
    for term, digits in (
        ("base_ms", 2),
        ("per_seq_ms", 3),
        ("per_kv_token_ms", 5),
        ("per_prefill_token_ms", 3),
    ):
        fitted = fit.terms[term]
        half = (fitted.high - fitted.low) / 2
        cells.append(f"{fitted.value:.{digits}f} ± {half:.{digits}f}")
    return cells


if __name__ == "__main__":
    print("\n\n".join(tables(measure(Path(sys.argv[1])))))
