"""One run of one workflow, from its first event to its last.

This module imports nothing heavy: a host sees `run.started`, and can stop the run, before the
libraries that do the work are loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from slotwise_workflows.errors import Cancelled, InputError, SlotwiseError, UsageError
from slotwise_workflows.events import (
    Artifact,
    Event,
    OnEvent,
    Progress,
    StepFinished,
    StepStarted,
)
from slotwise_workflows.host.event_log import Clock, EventLog, open_event_log, utc_now
from slotwise_workflows.host.finished import Finished
from slotwise_workflows.host.inputs import defaults, read_inputs
from slotwise_workflows.host.termination import restored_handlers, stoppable
from slotwise_workflows.resources import MANIFEST, load_yaml


def run_workflow(
    workflow: str,
    *,
    inputs_file: Path,
    output_dir: Path,
    events_file: Path,
    command: Sequence[str],
    now: Clock = utc_now,
) -> Finished:
    """Runs a workflow of the manifest as a host asks for it.

    The events file ends with `run.finished` or `error`, whatever happens, as long as it can be
    written at all.

    Args:
        workflow: Its id, e.g. ``diagnose``.
        inputs_file: JSON, valid against the workflow's inputs.
        output_dir: Made if missing; must hold nothing but, perhaps, the events file.
        events_file: JSON lines; replaced if it is there.
        command: The command line, for provenance.
        now: The clock of the events.

    Returns:
        Exit code and outputs.

    Raises:
        UsageError: There is no such workflow.
        InputError: An input, a log or a directory cannot be used.
        Cancelled: Stopped by SIGTERM, Ctrl-C or Ctrl-Break.
    """
    codes = {int(code): name for code, name in load_yaml(MANIFEST)["exitCodes"].items()}
    with open_event_log(events_file, now) as log, restored_handlers():
        try:
            with stoppable():
                log.write("run.started", workflow=workflow, version=version("slotwise"))
                finished = _run(workflow, inputs_file, output_dir, events_file, command, log)
        except KeyboardInterrupt:
            cancelled = Cancelled("cancelled", why="the run was told to stop")
            _write_error(log, codes, cancelled)
            raise cancelled from None
        except SlotwiseError as error:
            _write_error(log, codes, error)
            raise
        except Exception as error:
            # Its message may quote the log: name its kind alone.
            kind = type(error).__name__
            _write_error(log, codes, SlotwiseError("internal error", why=kind))
            raise
        log.write(
            "run.finished",
            exitCode=finished.exit_code,
            status=codes[finished.exit_code],
            outputs=finished.outputs,
        )
    return finished


def _run(
    workflow: str,
    inputs_file: Path,
    output_dir: Path,
    events_file: Path,
    command: Sequence[str],
    log: EventLog,
) -> Finished:
    definition = _definition(workflow)
    inputs = read_inputs(inputs_file, definition["inputs"])
    _make_empty(output_dir, events_file)
    declared = definition["artifacts"]
    produced: set[str] = set()
    on_event = _listener(log, definition, output_dir, produced)

    # The only workflow so far; the manifest and this branch grow together. Imported here, because
    # this is where the numerical libraries come in.
    from slotwise_workflows.host import diagnose

    finished = diagnose.run(
        inputs,
        defaults(definition["inputs"]),
        base=inputs_file.resolve().parent,
        output_dir=output_dir,
        command=command,
        on_event=on_event,
    )
    missing = [item["id"] for item in declared if item["required"] and item["id"] not in produced]
    if missing:
        raise SlotwiseError("internal error", why=f"no artifact {', '.join(missing)} was written")
    return finished


def _definition(workflow: str) -> dict[str, Any]:
    offered = {item["id"]: item["definition"] for item in load_yaml(MANIFEST)["workflows"]}
    if workflow not in offered:
        raise UsageError(
            f"there is no workflow {workflow[:80]!r}",
            hint=f"There is: {', '.join(sorted(offered))}",
        )
    return load_yaml(offered[workflow])


def _make_empty(output_dir: Path, events_file: Path) -> None:
    """Artifacts of two runs must not mix: the directory is new, or empty."""
    # Imported here: it brings in the models of the result.
    from slotwise_workflows.files import prepare_directory

    prepare_directory(output_dir)
    if any(not _same(entry, events_file) for entry in output_dir.iterdir()):
        raise InputError(
            "the output directory is not empty",
            where=str(output_dir),
            hint="Name a new directory with --output-dir",
        )


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _listener(
    log: EventLog, definition: dict[str, Any], output_dir: Path, produced: set[str]
) -> OnEvent:
    """Turns the pipeline's events into lines; collects the ids of `produced` artifacts."""
    titles = {step["id"]: step["title"] for step in definition["steps"]}
    percent = -1

    def listen(event: Event) -> None:
        nonlocal percent
        match event:
            case StepStarted(step):
                percent = -1
                log.write("step.started", step=step, title=titles[step])
            case Progress(step, done, total):
                reached = 100 * done // total if total > 0 else -1
                if reached > percent:  # a line a percent is enough for any bar
                    percent = reached
                    log.write("progress", step=step, done=done, total=total)
            case Artifact(step, path):
                relative = path.relative_to(output_dir).as_posix()
                item = _declared(relative, definition["artifacts"])
                produced.add(item["id"])
                log.write(
                    "artifact",
                    step=step,
                    id=item["id"],
                    path=relative,
                    mediaType=item["mediaType"],
                    bytes=path.stat().st_size,
                    sha256=_sha256(path),
                )
            case StepFinished(step):
                log.write("step.finished", step=step)

    return listen


def _declared(path: str, artifacts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The manifest's entry for an artifact's path, which may be a pattern."""
    name = PurePosixPath(path)
    for item in artifacts:
        pattern = PurePosixPath(item["path"])
        if len(pattern.parts) == len(name.parts) and name.match(item["path"]):
            return item
    raise SlotwiseError("internal error", why=f"{path} is not declared as an artifact")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write_error(log: EventLog, codes: dict[int, str], error: SlotwiseError) -> None:
    place = {"where": error.where} if error.where else {}
    log.write(
        "error",
        exitCode=error.exit_code,
        status=codes[error.exit_code],
        message=str(error),
        **place,
    )
