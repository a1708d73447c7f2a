"""From a workload file to the values that the steps take."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slotwise_sim.policies import Continuous, Dynamic, PerToken, Policy, Static
from slotwise_workflows.config.load import base_directory, where
from slotwise_workflows.config.model import SCHEMA_ID, PolicyEntry, WorkloadFile
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.given import Given

if TYPE_CHECKING:  # both bring more than the check of a file should wait for
    from slotwise_workflows.report import Branding
    from slotwise_workflows.traffic import ReadOptions


def to_given(workload: WorkloadFile) -> Given:
    """What the file says about the server; keys that were left out stay unknown.

    Raises:
        ConfigError: The file names a cost model that cannot be replayed yet.
    """
    delays = [p.dynamic.max_delay_ms for p in workload.policies if p.dynamic is not None]
    cost = None if workload.server.cost is None else to_cost(workload)
    return Given(
        serving=workload.server.serving,
        mode=workload.server.mode,
        replicas=workload.server.replicas,
        slots=workload.server.slots,
        ms_per_token=None if cost is None else cost.ms_per_token,
        max_delay_ms=delays[0] if delays else None,
        latency_p95_s=workload.objectives.latency_p95_s,
        ttft_p95_s=workload.objectives.ttft_p95_s,
        gpu_hour_price=workload.report.gpu_hour_price,
        currency=workload.report.currency,
    )


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
    policies: dict[str, Policy] = {}
    seen: dict[str, int] = {}
    for entry in workload.policies:
        seen[entry.name] = seen.get(entry.name, 0) + 1
        key = entry.name if seen[entry.name] == 1 else f"{entry.name}#{seen[entry.name]}"
        policies[key] = _policy(entry)
    return policies


def _policy(entry: PolicyEntry) -> Policy:
    if entry.static is not None:
        return Static(release=entry.static.release, pad=entry.static.pad)
    if entry.dynamic is not None:
        options = entry.dynamic
        return Dynamic(options.max_delay_ms, release=options.release, pad=options.pad)
    return Continuous()


def to_cost(workload: WorkloadFile) -> PerToken:
    """The cost model.

    Raises:
        ConfigError: There is none, or it is one that this version does not simulate.
    """
    cost = workload.server.cost
    if cost is None:
        raise ConfigError(
            "server.cost is required to simulate",
            where=where(workload, "server"),
            hint="For example cost: {ms_per_token: 8}",
        )
    if cost.ms_per_token is None:
        kind = next(name for name in ("step", "preset", "calibration") if getattr(cost, name))
        raise ConfigError(
            f"server.cost.{kind} cannot be simulated by this version",
            where=where(workload, f"server.cost.{kind}"),
            why="it simulates the cost of a token only",
            hint="Use cost: {ms_per_token: ...}",
        )
    return PerToken(cost.ms_per_token)


def to_server(workload: WorkloadFile) -> tuple[int, int]:
    """Slots and replicas to simulate with.

    Raises:
        ConfigError: The slots are not told, or the balancer is one that this version does not know.
    """
    server = workload.server
    if server.slots is None:
        raise ConfigError(
            "server.slots is required to simulate",
            where=where(workload, "server"),
            hint="Give the number of requests one server runs at once, such as slots: 8",
        )
    if server.balancer != "round_robin" and (server.replicas or 1) > 1:
        raise ConfigError(
            f"server.balancer {server.balancer} cannot be simulated by this version",
            where=where(workload, "server.balancer"),
            why="it spreads requests over replicas in turn",
            hint="Use balancer: round_robin",
        )
    return server.slots, server.replicas or 1


def to_branding(workload: WorkloadFile) -> Branding:
    """Whose report it is, and for whom."""
    from slotwise_workflows.report import Branding

    return Branding(client=workload.report.client, prepared_by=workload.report.prepared_by)


def without_effect(workload: WorkloadFile) -> list[str]:
    """What the file says that changes nothing in this version, one sentence each."""
    said: list[str] = []

    def note(field: str, why: str) -> None:
        said.append(f"{where(workload, field)}: {field} has no effect: {why}")

    cost = workload.server.cost
    if cost is not None and cost.ms_per_token is not None:
        if workload.server.memory is not None:
            note("server.memory", "memory limits a step cost only, and the cost is ms_per_token")
        for index, entry in enumerate(workload.policies):
            options = entry.continuous
            for name in sorted(options.model_fields_set) if options is not None else ():
                why = "prefill matters under a step cost only, and the cost is ms_per_token"
                said.append(
                    f"{_place(workload, index)}: policies[{index}].continuous.{name}"
                    f" has no effect: {why}"
                )
    for index, entry in enumerate(workload.policies):
        if entry.static is not None and entry.static.max_delay_ms is not None:
            said.append(
                f"{_place(workload, index)}: policies[{index}].static.max_delay_ms"
                " has no effect: static waits for a full batch; dynamic has a delay"
            )
    if workload.report.logo is not None:
        note("report.logo", "this version's report carries names, no logo")
    return said


def missing_logs(workload: WorkloadFile) -> list[str]:
    """The log's paths and patterns behind which there is nothing, one sentence each."""
    return [
        f"{where(workload, 'traffic.log.path')}: nothing is at {log}"
        for log in to_logs(workload)
        if log != "-" and not glob.glob(log, recursive=True)  # noqa: PTH207 - absolute patterns
    ]


def _place(workload: WorkloadFile, index: int) -> str:
    source = workload._source
    if source is None:
        return "policies"
    return f"{source.path}:{source.tree.line_of(('policies', index))}"


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
