"""The main job from log files to a run directory, the one sequence that every caller shares.

A person's `slotwise diagnose` and a host's `slotwise run diagnose` differ in how they ask and in
who listens, not in what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from slotwise_sim import PerToken
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.diagnose import diagnose
from slotwise_workflows.errors import Cancelled
from slotwise_workflows.events import Artifact, OnEvent, Progress, StepFinished, StepStarted, ignore
from slotwise_workflows.files import staged
from slotwise_workflows.given import Given
from slotwise_workflows.provenance import provenance
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.report import FILES, Branding, write_report
from slotwise_workflows.result import Result
from slotwise_workflows.run_directory import write_result, write_traffic
from slotwise_workflows.small_sweep import COST
from slotwise_workflows.sweep.files import LIMITS, SWEEP, write_sweep
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic

if TYPE_CHECKING:  # what speaks HTTP is imported by those who look
    from slotwise_workflows.probe.model import ProbeResult

Look = Callable[[Traffic], "ProbeResult"]


def run_diagnose(
    *,
    logs: Sequence[str],
    read_options: ReadOptions,
    given: Given,
    thresholds: Thresholds,
    name: str,
    seed: int,
    output_dir: Path,
    language: Literal["ja", "en"],
    formats: Sequence[str],
    branding: Branding,
    command: Sequence[str],
    config: Mapping[str, Any],
    made: Traffic | None = None,
    look: Look | None = None,
    on_event: OnEvent = ignore,
) -> Result:
    """Reads the logs, diagnoses them, and fills a run directory.

    Args:
        logs: Files, globs or directories.
        read_options: How to read them.
        given: What the user says about their server.
        thresholds: Where one verdict ends and the next begins.
        name: What the traffic is called in the report.
        seed: Of every random draw; the same input and seed give the same files.
        output_dir: An existing directory.
        language: Of the report.
        formats: Of the report, e.g. ``("html", "md")``.
        branding: Whose report it is, and for whom.
        command: The command line as provenance shows it.
        config: Every setting that was in force, as provenance shows it.
        made: Made-up traffic, diagnosed in place of logs.
        look: Looks at the live endpoint, with requests like the traffic's.
        on_event: Hears of steps, progress and finished files.

    Returns:
        The result, as it stands in ``result.json``.

    Raises:
        InputError: A log cannot be used, or the directory cannot be written.
        EndpointError: The endpoint cannot be reached or does not answer.
    """
    with _step("read", on_event):
        traffic = made
        if traffic is None:
            traffic = read_traffic(logs, read_options, on_progress=_progress("read", on_event))

    probed: list[Path] = []
    if look is not None:
        with _step("probe", on_event):
            given, probed = _probed(given, look(traffic), output_dir)

    with _step("diagnose", on_event):
        diagnosed = diagnose(
            traffic,
            given,
            name=name,
            seed=seed,
            thresholds=thresholds,
            provenance=provenance(files=traffic.files, command=command, config=config, seed=seed),
            on_progress=_progress("diagnose", on_event),
        )
    result = diagnosed.result
    for path in probed:
        on_event(Artifact("probe", path))

    with _step("report", on_event):
        with staged(output_dir) as stage:
            written = [
                *write_traffic(traffic, stage),
                *write_report(result, stage, language=language, formats=formats, branding=branding),
                *write_sweep(diagnosed.swept, {COST: _swept_cost(result)}, stage),
                *write_result(result, stage),
            ]
        for name in {*FILES.values(), SWEEP, LIMITS} - {path.name for path in written}:
            (output_dir / name).unlink(missing_ok=True)  # of an earlier run: not of this result
        for path in written:
            on_event(Artifact("report", output_dir / path.relative_to(stage)))
    return result


def _probed(given: Given, found: ProbeResult, directory: Path) -> tuple[Given, list[Path]]:
    """What is known with a probe, whose files are kept at once: asking again costs.

    Raises:
        Cancelled: The probe was interrupted.
    """
    from slotwise_workflows.probe import with_probe, write_probe

    written = write_probe(found, directory)
    if found.stopped_by == "user":
        raise Cancelled(
            "interrupted",
            why=f"what the probe found until then is in {directory}",
            hint=f"Diagnose with it by --probe {directory}, or probe again",
        )
    return with_probe(given, found), written


def _swept_cost(result: Result) -> CostRecord:
    """What the small sweep was replayed at; a fixed time per token may be an assumption."""
    if result.cost is not None:
        return result.cost
    [fact] = [fact for fact in result.facts if fact.name == "ms_per_token"]
    return CostRecord(
        kind="ms_per_token",
        name="",
        source=fact.source,
        quality=fact.basis,
        kv_tokens=None,
        values=PerToken(float(fact.value or 0)),
    )


@contextmanager
def _step(step: str, on_event: OnEvent) -> Iterator[None]:
    on_event(StepStarted(step))
    yield
    on_event(StepFinished(step))


def _progress(step: str, on_event: OnEvent) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        on_event(Progress(step, done, total))

    return tell
