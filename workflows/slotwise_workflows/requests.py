"""The requests that a workload file describes: read or drawn, and known to fit its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from slotwise_sim import Memory, NeverFitsError, Workload
from slotwise_sim.memory import check_fits
from slotwise_workflows.config import WorkloadFile, to_logs, to_read_options, where
from slotwise_workflows.errors import ConfigError, InputError
from slotwise_workflows.traffic.model import Traffic

OnProgress = Callable[[int, int], None]


def input_files(workload_file: WorkloadFile) -> tuple[Path, ...]:
    """The log files that a workload file reads; none for synthetic traffic.

    Raises:
        InputError: A log is not there.
    """
    from slotwise_workflows.traffic.paths import expand

    logs = to_logs(workload_file)
    return expand(logs) if logs else ()


def build_workload(
    workload_file: WorkloadFile,
    memory: Memory | None,
    *,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> tuple[Workload, list[str]]:
    """The requests that a workload file describes, read or drawn; each fits the memory.

    Args:
        workload_file: The workload.
        memory: KV memory of one server, where any of the costs is one that it can limit.
        seed: Of the draws of synthetic traffic.
        on_progress: Hears how many bytes of how many are read.

    Returns:
        The requests, and what must be known about them: rows left out, flags.

    Raises:
        ConfigError: ``origin: zero`` for times that have no zero of their own.
        InputError: The log cannot be used, or a request can never run in this memory.
    """
    synthetic, log = workload_file.traffic.synthetic, workload_file.traffic.log
    if synthetic is not None:
        from slotwise_workflows.synthetic import draw

        drawn = draw(synthetic, np.random.default_rng(seed))
        return drawn, _about_memory(drawn, memory, workload_file)
    if log is None:
        raise ConfigError("traffic names neither log nor synthetic")
    from slotwise_workflows.traffic import read_traffic

    traffic = read_traffic(
        to_logs(workload_file), to_read_options(workload_file), on_progress=on_progress
    )
    if log.origin == "zero" and traffic.clock != "relative":
        raise ConfigError(
            "traffic.log.origin zero is for times that count from the log's own zero",
            where=where(workload_file, "traffic.log.origin"),
            why=f"the times of this log are {traffic.clock or 'unknown'}",
            hint="Use origin: first",
        )
    workload = _arrays(traffic, workload_file)
    about_memory = _about_memory(workload, memory, workload_file, traffic)
    notes = [
        f"{count} {'row' if count == 1 else 'rows'} left out: {reason}"
        for reason, count in traffic.excluded.items()
    ]
    if traffic.clock is None:
        notes.append("arrival times are not known: all requests arrive at once")
    cost = workload_file.server.cost
    if cost is not None and cost.ms_per_token is None:
        notes += _about_prompts(traffic, workload)
    return workload, [*notes, *about_memory, *traffic.flags, *traffic.notes]


def _about_prompts(traffic: Traffic, workload: Workload) -> list[str]:
    """What a step cost makes of prompts that the log does not tell in full."""
    notes = []
    unknown = traffic.table["gen_ai.usage.input_tokens"].null_count()
    if unknown:
        notes.append(
            f"prompt tokens of {unknown:,} of {len(traffic):,} requests are not known: taken as 0,"
            " they cost no prefill and hold no memory"
        )
    if workload.cached_tokens is not None:
        cached, prompts = int(workload.cached_tokens.sum()), int(workload.prompt_tokens.sum())
        notes.append(
            f"{cached:,} of {prompts:,} prompt tokens came from a cache when the log was written:"
            " they are not prefilled"
        )
    return notes


def _arrays(traffic: Traffic, workload_file: WorkloadFile) -> Workload:
    log = workload_file.traffic.log
    origin = log.origin if log is not None else "first"
    try:
        return replace(traffic, origin=origin).workload()
    except ValueError as error:  # times before the log's own zero
        raise ConfigError(
            "the log's requests cannot be replayed",
            where=where(workload_file, "traffic.log"),
            why=str(error),
            hint="Use origin: first",
        ) from None


def _about_memory(
    workload: Workload,
    memory: Memory | None,
    workload_file: WorkloadFile,
    traffic: Traffic | None = None,
) -> list[str]:
    """What the memory makes of the requests, where it limits any of the policies.

    Raises:
        InputError: As `check_memory`.
    """
    if memory is None or all(policy.continuous is None for policy in workload_file.policies):
        return []
    check_memory(workload, memory, traffic, place=where(workload_file, "server.memory"))
    beyond = beyond_caps(workload, memory)
    if beyond == 0:
        return []
    if beyond == 1:
        return ["1 request generated more than its max_tokens; it holds less memory than it needs"]
    return [
        f"{beyond:,} requests generated more than their max_tokens; they hold less memory than they"
        " need"
    ]


def beyond_caps(workload: Workload, memory: Memory | None) -> int:
    """Requests that hold less than they need, because they generated more than was reserved."""
    if memory is None or memory.reserve != "max_tokens" or workload.max_tokens is None:
        return 0
    return int((workload.output_tokens > workload.max_tokens).sum())


def check_memory(
    workload: Workload, memory: Memory, traffic: Traffic | None = None, *, place: str = ""
) -> None:
    """Makes sure that each request can run, before anything does.

    Args:
        workload: The requests.
        memory: KV memory of one server.
        traffic: The log they were read from, row by row; None where they were made.
        place: Where the memory is told, for the error: file and line.

    Raises:
        InputError: One cannot; it is named by its place in the log, else by its number.
    """
    if memory.reserve == "max_tokens" and workload.max_tokens is None:
        raise _caps_missing(traffic, place)
    try:
        check_fits(workload, memory)
    except NeverFitsError as error:
        at, hint = place, "Give server.memory more kv_tokens"
        if traffic is not None:
            at = str(traffic.table["source"][error.row])
            hint += ", or leave such requests out with traffic.log.where"
        raise InputError(
            f"request {error.row + 1} can never run",
            where=at,
            why=_what_it_needs(error, workload, memory),
            hint=hint,
        ) from None


def _what_it_needs(error: NeverFitsError, workload: Workload, memory: Memory) -> str:
    row = error.row
    if memory.reserve == "max_tokens" and workload.max_tokens is not None:
        then, unit = f"max_tokens of {workload.max_tokens[row]:,}", "tokens"
    else:
        then = f"output of {workload.output_tokens[row]:,}"
        unit = f"blocks of {memory.block_tokens} tokens, one of them spare"
    return (
        f"its prompt of {workload.prompt_tokens[row]:,} tokens and {then} need {error.needs:,}"
        f" {unit}, and server.memory holds {error.holds:,}"
    )


def _caps_missing(traffic: Traffic | None, place: str) -> InputError:
    """Contiguous reservation needs to know what it reserves."""
    if traffic is None:
        why = "traffic.synthetic.max_tokens is not given"
    else:
        missing = traffic.table["gen_ai.request.max_tokens"].is_null()
        first = traffic.table["source"][int(missing.arg_max() or 0)]
        why = f"{missing.sum():,} of {len(traffic):,} rows tell none, the first at {first}"
    return InputError(
        "server.memory.reserve max_tokens needs the max_tokens of every request",
        where=place,
        why=why,
        hint="Use reserve: paged, or give every request its max_tokens",
    )
