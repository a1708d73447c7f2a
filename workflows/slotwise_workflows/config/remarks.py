"""What can be said of a workload file that is valid, one sentence each, with its line."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator

from slotwise_workflows.config.convert import to_cost, to_logs
from slotwise_workflows.config.load import where
from slotwise_workflows.config.model import WorkloadFile
from slotwise_workflows.config.sections.policies import PolicyEntry
from slotwise_workflows.costs import StatedCost
from slotwise_workflows.errors import ConfigError

_OF_STEPS = {
    "prefill": "prompts are prefilled under a step cost only, and the cost is ms_per_token",
    "max_batched_tokens": "it bounds iterations, and a cost of ms_per_token has none",
}
_OF_KIN = {
    "static": {
        "max_delay_ms": "static waits for a full batch; dynamic has a delay",
        "bins": "static has one queue; binned has several",
        "prediction_error": "static goes by no lengths; binned does",
    },
    "dynamic": {
        "bins": "dynamic has one queue; binned has several",
        "prediction_error": "dynamic goes by no lengths; binned does",
    },
}


def without_effect(workload: WorkloadFile) -> list[str]:
    """What the file says that changes nothing in this version."""
    cost = workload.server.cost
    per_token = cost is not None and cost.ms_per_token is not None
    found = [*_of_pieces(workload), *_of_memory(workload, per_token=per_token)]
    for index, entry in enumerate(workload.policies):
        place = f"policies.{index}.{entry.name}"
        options = _of_policy(entry, per_token=per_token)
        found += [(f"{place}.{option}", why) for option, why in options]
    return [f"{where(workload, f)}: {_indexed(f)} has no effect: {why}" for f, why in found]


def _of_pieces(workload: WorkloadFile) -> Iterator[tuple[str, str]]:
    """Pieces beyond the slots; with memory, the split of the gain fills more than those."""
    server = workload.server
    if server.cost is None or server.cost.step is None or server.slots is None:
        return
    if server.memory is not None and _refills(workload):
        return
    swept = workload.sweep.slots if "sweep" in workload.model_fields_set else ()
    most = max((server.slots, *swept))
    for index, piece in enumerate(server.cost.step.pieces):
        if piece.from_seqs > most:
            yield (
                f"server.cost.step.pieces.{index}",
                f"no more than {most:,} sequences decode at once, but where a what-if or a sweep"
                " takes more slots",
            )


def _of_memory(workload: WorkloadFile, *, per_token: bool) -> Iterator[tuple[str, str]]:
    memory = workload.server.memory
    if memory is None:
        return
    if per_token:
        yield "server.memory", "memory limits a step cost only, and the cost is ms_per_token"
    elif not _refills(workload):
        yield "server.memory", "memory limits continuous batching, which is not among the policies"
    elif memory.reserve == "max_tokens" and "block_tokens" in memory.model_fields_set:
        yield "server.memory.block_tokens", "reserve: max_tokens counts tokens, not blocks"


def _refills(workload: WorkloadFile) -> bool:
    return any(entry.continuous is not None for entry in workload.policies)


def _of_policy(entry: PolicyEntry, *, per_token: bool) -> Iterator[tuple[str, str]]:
    for option, why in _OF_KIN.get(entry.name, {}).items():
        if getattr(getattr(entry, entry.name), option) is not None:
            yield option, why
    if per_token and entry.continuous is not None:
        for option in sorted(entry.continuous.model_fields_set):
            yield option, _OF_STEPS[option]


def not_diagnosed(workload: WorkloadFile) -> list[str]:
    """What the file says that a diagnosis does not go by, though other commands do."""
    if workload.traffic.users is None:
        return []
    return [
        f"{where(workload, 'traffic.users')}: traffic.users is for simulate and sweep: a diagnosis"
        " judges the log's own times"
    ]


def _indexed(field: str) -> str:
    """``policies[0].static`` for ``policies.0.static``."""
    return re.sub(r"\.(\d+)", r"[\1]", field)


def unlimited_memory(workload: WorkloadFile, cost: StatedCost) -> list[str]:
    """Says so where the server that the cost comes from had a memory that here limits nothing."""
    if cost.kv_tokens is None or workload.server.memory is not None or not _refills(workload):
        return []
    return [
        f"{where(workload, 'server')}: memory limits nothing here, though the server of"
        f" {cost.name} held {cost.kv_tokens:,} tokens; to limit it as well, add"
        f" memory: {{kv_tokens: {cost.kv_tokens}}} to server"
    ]


def missing_logs(workload: WorkloadFile) -> list[str]:
    """The log's paths and patterns behind which there is nothing."""
    return [
        f"{where(workload, 'traffic.log.path')}: nothing is at {log}"
        for log in to_logs(workload)
        if log != "-" and not glob.glob(log, recursive=True)  # noqa: PTH207 - absolute patterns
    ]


def broken_files(workload: WorkloadFile) -> list[ConfigError]:
    """What is wrong with the files that the workload file names, besides its log's."""
    try:
        if workload.server.cost is not None:
            to_cost(workload)
    except ConfigError as error:
        return [error]
    return []
