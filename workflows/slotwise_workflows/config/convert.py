"""From a workload file to the values that the steps take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from slotwise_sim.costs import PerToken
from slotwise_sim.memory import Memory
from slotwise_sim.policies import Binned, Continuous, Dynamic, Policy, Static
from slotwise_sim.users import Balancer, Users
from slotwise_workflows.config.load import base_directory, where
from slotwise_workflows.config.model import SCHEMA_ID, WorkloadFile
from slotwise_workflows.config.sections.policies import PolicyEntry
from slotwise_workflows.config.sections.server import Cost
from slotwise_workflows.costs import StatedCost, find_preset
from slotwise_workflows.costs.calibrated import calibrated_cost
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.errors import ConfigError, InputError
from slotwise_workflows.given import Given
from slotwise_workflows.thinking import Thinking

if TYPE_CHECKING:  # both bring more than the check of a file should wait for
    from slotwise_workflows.traffic import ReadOptions

T = TypeVar("T")


def to_given(workload: WorkloadFile) -> Given:
    """What the file says about the server; keys that were left out stay unknown.

    Raises:
        ConfigError: The calibration that the file names cannot be used.
    """
    policies = to_policies(workload).values()
    delays = [policy.max_delay_ms for policy in policies if isinstance(policy, Dynamic)]
    batches = _told_of_batches(workload)
    cost = workload.server.cost
    return Given(
        serving=workload.server.serving,
        mode=workload.server.mode,
        replicas=workload.server.replicas,
        balancer=workload.server.balancer,
        slots=workload.server.slots,
        ms_per_token=None if cost is None else cost.ms_per_token,
        max_delay_ms=delays[0] if delays else None,
        latency_p95_s=workload.objectives.latency_p95_s,
        ttft_p95_s=workload.objectives.ttft_p95_s,
        gpu_hour_price=workload.report.gpu_hour_price,
        currency=workload.report.currency,
        cost=None if cost is None or cost.ms_per_token is not None else to_cost(workload),
        memory=to_memory(workload),
        memory_at="" if workload.server.memory is None else where(workload, "server.memory"),
        release=batches.get("release"),
        pad=batches.get("pad"),
        continuous=next((p for p in policies if isinstance(p, Continuous)), None),
    )


def _told_of_batches(workload: WorkloadFile) -> dict[str, Any]:
    """The options that the file writes down for today's batches: dynamic's, else static's."""
    entries = workload.policies
    for options in (*(entry.dynamic for entry in entries), *(entry.static for entry in entries)):
        if options is not None:
            return options.model_dump(include=options.model_fields_set)
    return {}


def to_logs(workload: WorkloadFile) -> list[str]:
    """The log's files and patterns, seen from the working directory; none for synthetic traffic."""
    log = workload.traffic.log
    base = base_directory(workload)
    return [] if log is None else [p if p == "-" else str(base / p) for p in log.path]


def to_read_options(workload: WorkloadFile) -> ReadOptions:
    """How the file wants its log to be read; the defaults for synthetic traffic."""
    from slotwise_workflows.traffic import ReadOptions

    log = workload.traffic.log
    if log is None:
        return ReadOptions()
    return ReadOptions(
        format=log.format,
        map=log.map,
        time_unit=log.time_unit,
        timezone=log.timezone,
        decimal=log.decimal,
        where=log.where,
        segments=log.segment,
        allow_truncated=log.allow_truncated,
    )


def to_policies(workload: WorkloadFile) -> dict[str, Policy]:
    """The policies by key, in the order of the file: the name, ``name#2`` when it comes again."""
    return {key: _policy(entry) for key, entry in _entries(workload)}


def to_prediction_errors(workload: WorkloadFile) -> dict[str, float]:
    """How far the lengths that each binned policy goes by are off, by the policy's key."""
    return {
        key: entry.binned.prediction_error
        for key, entry in _entries(workload)
        if entry.binned is not None
    }


def _entries(workload: WorkloadFile) -> Iterator[tuple[str, PolicyEntry]]:
    return _numbered((entry.name, entry) for entry in workload.policies)


def _numbered(named: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Names made distinct: what comes again gets ``#2``."""
    seen: dict[str, int] = {}
    for name, value in named:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}", value


def _policy(entry: PolicyEntry) -> Policy:
    static, dynamic, binned = entry.static, entry.dynamic, entry.binned
    if static is not None:
        return Static(static.release, static.pad)
    if dynamic is not None:
        return Dynamic(dynamic.max_delay_ms, dynamic.release, dynamic.pad)
    if binned is not None:
        return Binned(binned.bins, binned.max_delay_ms, binned.release, binned.pad)
    continuous = entry.continuous
    if continuous is None:
        raise TypeError("a policy is one of its choices")
    return Continuous(continuous.prefill, continuous.max_batched_tokens)


def to_cost(workload: WorkloadFile) -> StatedCost:
    """What tokens or iterations cost, and who says so.

    Raises:
        ConfigError: The file tells no cost, or its calibration cannot be used.
    """
    cost = workload.server.cost
    if cost is None:
        raise ConfigError(
            "server.cost is required to simulate",
            where=where(workload, "server"),
            hint="For example cost: {ms_per_token: 8}",
        )
    return _stated(workload, cost, "server.cost")


def to_costs(workload: WorkloadFile) -> dict[str, StatedCost]:
    """The costs of a sweep by name: ``sweep.cost``, or the server's own.

    A cost that has no name of its own is called by its kind; one that comes again gets ``#2``.

    Raises:
        ConfigError: As `to_cost`.
    """
    costs = workload.sweep.cost
    if costs is None:
        stated = [to_cost(workload)]
    else:
        stated = [_stated(workload, cost, f"sweep.cost.{at}") for at, cost in enumerate(costs)]
    return dict(_numbered((_cost_name(own), own) for own in stated))


def _cost_name(stated: StatedCost) -> str:
    if isinstance(stated.cost, PerToken):
        return f"{stated.cost.ms_per_token:.10g} ms per token"
    return stated.name or stated.kind


def _stated(workload: WorkloadFile, cost: Cost, field: str) -> StatedCost:
    if cost.ms_per_token is not None:
        return by_the_user(PerToken(cost.ms_per_token), "ms_per_token")
    if cost.step is not None:
        return by_the_user(cost.step.step(), "step")
    if cost.preset is not None:
        return find_preset(cost.preset, where=where(workload, f"{field}.preset")).stated()
    return _calibrated(workload, cost.calibration or "", f"{field}.calibration")


def _calibrated(workload: WorkloadFile, file: str, field: str) -> StatedCost:
    try:
        return calibrated_cost(base_directory(workload) / file, file)
    except InputError as error:
        raise ConfigError(
            f"{field} cannot be used", where=where(workload, field), why=str(error)
        ) from None


def to_memory(workload: WorkloadFile) -> Memory | None:
    """The KV memory; None where the file tells none, or its cost is one that none can limit."""
    cost = workload.server.cost
    return _memory(workload) if cost is None or cost.ms_per_token is None else None


def to_swept_memory(workload: WorkloadFile) -> Memory | None:
    """The KV memory in a sweep; None also where all of its costs are ones that none can limit."""
    costs = workload.sweep.cost
    if costs is None:
        return to_memory(workload)
    return _memory(workload) if any(cost.ms_per_token is None for cost in costs) else None


def _memory(workload: WorkloadFile) -> Memory | None:
    memory = workload.server.memory
    if memory is None:
        return None
    return Memory(memory.kv_tokens, memory.block_tokens, memory.reserve)


def to_server(workload: WorkloadFile) -> tuple[int, int, Balancer]:
    """Slots, replicas and balancer to simulate with.

    Raises:
        ConfigError: The slots are not told.
    """
    server = workload.server
    if server.slots is None:
        raise ConfigError(
            "server.slots is required to simulate",
            where=where(workload, "server"),
            hint="Give the number of requests one server runs at once, such as slots: 8",
        )
    return server.slots, server.replicas or 1, server.balancer


def to_users(workload: WorkloadFile, requests: int, *, seed: int) -> Users | None:
    """The users of a closed loop, with what is thought before each request; None without any.

    Args:
        workload: The workload file.
        requests: How many requests there are.
        seed: Of the draw of the times that are thought.
    """
    users = workload.traffic.users
    return None if users is None else to_thinking(workload).users(users.count, requests, seed)


def to_thinking(workload: WorkloadFile) -> Thinking:
    """How users of a closed loop think; not at all where the file tells nothing of them."""
    users = workload.traffic.users
    return Thinking() if users is None else Thinking(users.think_s, users.think == "exponential")


def resolved(workload: WorkloadFile) -> dict[str, Any]:
    """Every key with the value in force; lists as lists, so that YAML can hold it."""
    listed = _with_lists(workload.model_dump(mode="python"))
    if not isinstance(listed, dict):
        raise TypeError("a workload file is a mapping")
    return listed


def _with_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _with_lists(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_with_lists(item) for item in value]
    return value


def plain_values(value: Any) -> Any:
    """The same content as JSON can hold it: infinities as the words that YAML writes for them."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_values(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    return value


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a workload file, for editors."""
    published = WorkloadFile.model_json_schema()
    for part in (published, *published["$defs"].values()):
        for body in (part, *part.get("anyOf", ())):
            required = body.get("required", ())
            for key, value in body.get("properties", {}).items():
                if key not in required:
                    body["properties"][key] = _or_null(value)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **published,
    }


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    """Null is the same as left out: a section may stand there with all its keys commented out."""
    beside = ("description", "default", "title")
    told: dict[str, Any] = {key: value[key] for key in beside if key in value}
    rest = {key: item for key, item in value.items() if key not in told}
    if {"type": "null"} in rest.get("anyOf", ()):
        return value
    return {**told, "anyOf": [rest, {"type": "null"}]}
