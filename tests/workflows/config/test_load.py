"""Workload files: what is accepted, and what each fault says, with its line."""

import math
from pathlib import Path
from typing import Protocol

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim.policies import Continuous, Dynamic, PerToken, Static
from slotwise_workflows.config import (
    check_workload,
    field_names,
    load_workload,
    plain_values,
    resolved,
    schema,
    to_cost,
    to_given,
    to_logs,
    to_policies,
    to_server,
    where,
    without_effect,
)
from slotwise_workflows.config.load import _fields
from slotwise_workflows.errors import ConfigError

EVERY_KEY = """\
version: 1
name: support-chat
traffic:
  log:
    path: ["logs/*.jsonl.gz", other.csv]
    format: auto
    timezone: Asia/Tokyo
    segment: route
    map: {arrival: t_ms, output_tokens: out}
    time_unit: ms
    origin: first
    decimal: ","
    where: [status=200, "tokens>3"]
    allow_truncated: true
server:
  serving: self_hosted
  mode: online
  replicas: 1
  balancer: round_robin
  slots: 8
  cost: {ms_per_token: 8}
  memory: {kv_tokens: 400000, block_tokens: 16, reserve: paged}
policies:
  - static: {release: batch, pad: true}
  - dynamic: {max_delay_ms: 50, release: own, pad: false}
  - continuous: {prefill: mixed, max_batched_tokens: 2048}
objectives: {latency_p95_s: 20, ttft_p95_s: 2}
sweep: {slots: [4, 8, 16, 32], load: [0.25, 0.5, 1, 2], replications: 20}
execution: {engine: auto, address: null}
report:
  language: ja
  client: "株式会社サンプル"
  prepared_by: me
  logo: logo.png
  formats: [html, md]
  gpu_hour_price: null
  currency: JPY
thresholds: {min_requests: 100}
"""

SYNTHETIC = """\
version: 1
traffic:
  synthetic:
    requests: 6e2
    arrivals: {poisson: {rate: 12}}
    output_tokens: {mixture: [{weight: 17, uniform: [40, 199]}, {weight: 3, uniform: [400, 999]}]}
    prompt_tokens: {lognormal: {mean: 500, cv: 1.2}}
server: {slots: 8, cost: {ms_per_token: 8}}
"""


class Write(Protocol):
    """Writes a workload file; gives its path."""

    def __call__(self, text: str, name: str = "w.yaml") -> Path: ...


@pytest.fixture
def workload_at(tmp_path: Path) -> Write:
    def write(text: str, name: str = "w.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def faults_of(path: Path) -> list[tuple[int, str]]:
    workload, faults = check_workload(path)
    assert workload is None
    return [(int(f.where.rpartition(":")[2]), str(f).partition(": ")[2]) for f in faults]


def test_every_key_is_accepted_and_has_its_value(workload_at: Write) -> None:
    workload = load_workload(workload_at(EVERY_KEY))
    assert workload.traffic.log is not None
    assert workload.traffic.log.path == ("logs/*.jsonl.gz", "other.csv")
    assert workload.traffic.log.segment == ("route",)
    assert workload.sweep.slots == (4, 8, 16, 32)
    assert workload.sweep.load == (0.25, 0.5, 1.0, 2.0)
    assert workload.report.gpu_hour_price is None
    assert workload.thresholds.min_requests == 100
    assert workload.thresholds.adopt_from == 1.2


def test_what_is_left_out_has_its_default(workload_at: Write) -> None:
    workload = load_workload(workload_at(SYNTHETIC))
    assert workload.traffic.synthetic is not None
    assert workload.traffic.synthetic.requests == 600
    assert to_policies(workload) == {"static": Static(), "continuous": Continuous()}
    assert to_server(workload) == (8, 1)
    assert to_cost(workload) == PerToken(8.0)
    assert workload.sweep.replications == 20
    assert workload.execution.engine == "auto"


def test_a_section_without_keys_is_a_section_left_out(workload_at: Write) -> None:
    text = SYNTHETIC + "objectives:\nreport:\n  # client: x\nsweep: null\n"
    assert resolved(load_workload(workload_at(text))) == resolved(
        load_workload(workload_at(SYNTHETIC, "other.yaml"))
    )


def test_facts_of_the_server(workload_at: Write) -> None:
    told = to_given(load_workload(workload_at(EVERY_KEY)))
    assert (told.serving, told.mode, told.replicas, told.slots) == ("self_hosted", "online", 1, 8)
    assert (told.ms_per_token, told.max_delay_ms) == (8.0, 50.0)
    assert (told.latency_p95_s, told.ttft_p95_s) == (20.0, 2.0)
    unsaid = to_given(load_workload(workload_at("version: 1\ntraffic: {log: {path: a}}\n")))
    assert unsaid.slots is unsaid.replicas is unsaid.max_delay_ms is None
    assert unsaid.serving is None


def test_paths_start_at_the_file(workload_at: Write) -> None:
    path = workload_at(EVERY_KEY)
    assert to_logs(load_workload(path)) == [
        str(path.parent / "logs/*.jsonl.gz"),
        str(path.parent / "other.csv"),
    ]


def test_repeated_policies_are_numbered(workload_at: Write) -> None:
    text = SYNTHETIC + (
        "policies: [static, dynamic: {max_delay_ms: .inf}, static: {release: own}, "
        "continuous, static, dynamic]\n"
    )
    assert to_policies(load_workload(workload_at(text))) == {
        "static": Static(),
        "dynamic": Dynamic(math.inf),
        "static#2": Static(release="own"),
        "continuous": Continuous(),
        "static#3": Static(),
        "dynamic#2": Dynamic(0.0),
    }


def test_options_of_kin_are_accepted_and_said_to_have_no_effect(workload_at: Write) -> None:
    text = SYNTHETIC.replace("server: {", "server: {memory: {kv_tokens: 9, reserve: max_tokens}, ")
    text += "policies: [static: {max_delay_ms: 5}, continuous: {prefill: separate}]\n"
    said = without_effect(load_workload(workload_at(text)))
    assert [line.split(":")[1] for line in (s.split("w.yaml")[1] for s in said)] == ["8", "9", "9"]
    assert "server.memory" in said[0]
    assert "prefill" in said[1]
    assert "max_delay_ms" in said[2]


@pytest.mark.parametrize("word", ["upfront", "{upfront: true}", "{upfront: {}}", "{upfront: }"])
def test_upfront_may_be_a_word(workload_at: Write, word: str) -> None:
    text = SYNTHETIC.replace("{poisson: {rate: 12}}", word)
    made = load_workload(workload_at(text)).traffic.synthetic
    assert made is not None
    assert made.arrivals.upfront is True


FAULTS = [
    ("slots: 3\n", 9, "slots is no key of a workload file. Did you mean 'server.slots'?"),
    ("objectivs: {}\n", 9, "objectivs is no key of a workload file. Did you mean 'objectives'?"),
    ("sweep:\n  slots: [4]\n  laod: [1]\n", 11, "sweep.laod is no key of a workload file. "
     "Did you mean 'load'?"),
    ("policies:\n  - statc\n", 10, "policies[0].statc is no key of a workload file. "
     "Did you mean 'static'?"),
    ("policies:\n  - static\n  - {static: {}, continuous: {}}\n", 11,
     "policies[1] needs exactly one of static, dynamic, continuous; "
     "static and continuous are there"),
    ("policies: []\n", 9, "policies must hold at least 1 item"),
    ("sweep:\n  slots: [4, 0]\n", 10, "sweep.slots[1] must be greater than or equal to 1, not 0"),
    ("sweep:\n  slots: [4.5]\n", 10, "sweep.slots[0] must be a whole number, not 4.5"),
    ("sweep:\n  slots: 4\n", 10, "sweep.slots must be a list, not 4"),
    ("execution: {engine: rey}\n", 9,
     "execution.engine must be one of auto, local, ray, not 'rey'. Did you mean 'ray'?"),
    ("objectives: {latency_p95_s: .inf}\n", 9,
     "objectives.latency_p95_s must be a finite number, not inf"),
    ("objectives: {latency_p95_s: 1e7}\n", 9,
     "objectives.latency_p95_s must be less than or equal to 1000000, not 10000000.0"),
    ("report: {gpu_hour_price: 2e9}\n", 9,
     "report.gpu_hour_price must be less than or equal to 1000000000, not 2000000000.0"),
    ("sweep:\n  slots: [100001]\n", 10,
     "sweep.slots[0] must be less than or equal to 100000, not 100001"),
    ("objectives: {latency_p95_s: true}\n", 9,
     "objectives.latency_p95_s must be a number, not true"),
    ("objectives: [1]\n", 9, "objectives must be a mapping (key: value), not a list"),
    ("report: {client: 3}\n", 9, "report.client must be text, not 3"),
    ("report: {formats: [html, docx]}\n", 9,
     "report.formats[1] must be one of html, md, pdf, not 'docx'"),
    ("thresholds: {min_request: 3}\n", 9, "thresholds.min_request is no key of a workload file. "
     "Did you mean 'min_requests'?"),
    ("name: \"a\\nb\"\n", 9, "name must be one line of printable characters"),
]  # fmt: skip


@pytest.mark.parametrize(("added", "line", "said"), FAULTS)
def test_each_fault_names_line_field_and_remedy(
    workload_at: Write, added: str, line: int, said: str
) -> None:
    assert faults_of(workload_at(SYNTHETIC + added)) == [(line, said)]


IN_PLACE = [
    ("slots: 8", "slots: '8'", 8, "server.slots must be a whole number, not '8'"),
    ("slots: 8", "slots: true", 8, "server.slots must be a whole number, not true"),
    ("ms_per_token: 8", "ms_per_token: 0", 8,
     "server.cost.ms_per_token must be greater than 0, not 0"),
    ("ms_per_token: 8", "ms_per_token: 1e300", 8,
     "server.cost.ms_per_token must be less than or equal to 60000, not 1e+300"),
    ("slots: 8", "slots: 100001", 8,
     "server.slots must be less than or equal to 100000, not 100001"),
    ("slots: 8", "slots: 8, replicas: 1e20", 8,
     "server.replicas must be less than or equal to 100000, not 100000000000000000000"),
    ("ms_per_token: 8", "ms_per_token: 8, preset: x", 8, "server.cost needs exactly one of "
     "ms_per_token, step, preset, calibration; ms_per_token and preset are there"),
    ("requests: 6e2", "requests: 0", 4,
     "traffic.synthetic.requests must be greater than or equal to 1, not 0"),
    ("poisson: {rate: 12}", "poisson: {}", 5,
     "traffic.synthetic.arrivals.poisson.rate is required"),
    ("poisson: {rate: 12}", "trace: [0, 1]", 5,
     "traffic.synthetic.arrivals trace holds 2 times for 600 requests"),
    ("[40, 199]", "[199, 40]", 6, "[199, 40] must ascend"),
    ("[40, 199]", "[0, 199]", 6, "output_tokens must be at least 1"),
    ("weight: 17, uniform", "uniform", 6,
     "traffic.synthetic.output_tokens.mixture[0].weight is required"),
    ("version: 1", "version: 2", 1, "version must be one of 1, not 2"),
    ("version: 1\n", "", 1, "version is required"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "said"), IN_PLACE)
def test_each_fault_in_place(workload_at: Write, old: str, new: str, line: int, said: str) -> None:
    found = faults_of(workload_at(SYNTHETIC.replace(old, new)))
    assert len(found) == 1
    assert found[0][0] == line
    assert said in found[0][1]


def test_an_unknown_time_zone_is_named(workload_at: Write) -> None:
    path = workload_at(EVERY_KEY.replace("Asia/Tokyo", "Asia/Tokio"))
    ((line, said),) = faults_of(path)
    assert line == 7
    assert "'Asia/Tokio' is no IANA time zone" in said


def test_log_and_synthetic_exclude_each_other(workload_at: Write) -> None:
    path = workload_at(SYNTHETIC.replace("traffic:\n", "traffic:\n  log: {path: a.csv}\n"))
    ((line, said),) = faults_of(path)
    assert line == 2
    assert "exactly one of log, synthetic; log and synthetic are there" in said


def test_several_faults_come_in_the_order_of_the_file_and_are_counted(workload_at: Write) -> None:
    path = workload_at(SYNTHETIC.replace("slots: 8", "slot: 8") + "foo: 1\nversion_: 2\n")
    assert [line for line, _ in faults_of(path)] == [8, 9, 10]
    with pytest.raises(ConfigError, match=r"w\.yaml:8: server\.slot .*and 2 more"):
        load_workload(path)


def test_a_missing_file_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file.*config init"):
        load_workload(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_workload(tmp_path)


def test_a_list_is_no_workload(workload_at: Write) -> None:
    with pytest.raises(ConfigError, match=r"w\.yaml:1: is no workload file"):
        load_workload(workload_at("- 1\n"))


@pytest.mark.parametrize(
    ("cost", "field"),
    [
        ("{step: {base_ms: 8, per_seq_ms: 0.1}}", "server.cost.step"),
        ("{preset: opt-13b}", "server.cost.preset"),
        ("{calibration: c.json}", "server.cost.calibration"),
    ],
)
def test_a_cost_that_cannot_be_simulated_yet_is_refused_by_name(
    workload_at: Write, cost: str, field: str
) -> None:
    workload = load_workload(workload_at(SYNTHETIC.replace("{ms_per_token: 8}", cost)))
    with pytest.raises(ConfigError, match=rf"w\.yaml:8: {field} cannot be simulated"):
        to_cost(workload)
    with pytest.raises(ConfigError, match=field):
        to_given(workload)


def test_what_a_simulation_needs_is_asked_for(workload_at: Write) -> None:
    workload = load_workload(workload_at("version: 1\ntraffic: {log: {path: a}}\n"))
    with pytest.raises(ConfigError, match=r"server\.slots is required"):
        to_server(workload)
    with pytest.raises(ConfigError, match=r"server\.cost is required"):
        to_cost(workload)


def test_a_balancer_that_cannot_be_simulated_matters_with_replicas_only(workload_at: Write) -> None:
    text = SYNTHETIC.replace("slots: 8", "slots: 8, replicas: 2, balancer: least_busy")
    with pytest.raises(ConfigError, match="least_busy"):
        to_server(load_workload(workload_at(text)))
    alone = text.replace("replicas: 2", "replicas: 1")
    assert to_server(load_workload(workload_at(alone, "alone.yaml"))) == (8, 1)


def test_lines_of_fields(workload_at: Write) -> None:
    path = workload_at(EVERY_KEY)
    workload = load_workload(path)
    assert where(workload, "server.cost") == f"{path}:21"
    assert where(workload, "server.nothing") == f"{path}:15"


@pytest.mark.parametrize("text", [EVERY_KEY, SYNTHETIC])
def test_the_published_schema_accepts_what_is_accepted(text: str) -> None:
    published = schema()
    jsonschema.Draft202012Validator.check_schema(published)
    validator = jsonschema.Draft202012Validator(published)
    validator.validate(yaml.safe_load(text.replace("6e2", "600")))
    validator.validate(
        yaml.safe_load(text.replace("6e2", "600")) | {"policies": ["static", {"dynamic": None}]}
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"foo": 1},
        {"policies": ["statc"]},
        {"policies": [{"static": {}, "continuous": {}}]},
        {"traffic": {}},
        {"server": {"slots": 0}},
        {"sweep": {"load": [0]}},
    ],
)
def test_the_published_schema_refuses_what_is_refused(
    workload_at: Write, wrong: dict[str, object]
) -> None:
    plain = yaml.safe_load(SYNTHETIC.replace("6e2", "600")) | wrong
    assert not jsonschema.Draft202012Validator(schema()).is_valid(plain)
    assert check_workload(workload_at(yaml.safe_dump(plain)))[1]


def test_everything_resolved_reads_back_the_same(workload_at: Write) -> None:
    text = EVERY_KEY + "\n"
    first = load_workload(workload_at(text))
    again = load_workload(workload_at(yaml.safe_dump(resolved(first)), "again.yaml"))
    assert resolved(again) == resolved(first)


def test_infinity_survives_json() -> None:
    assert plain_values({"a": (math.inf, 1), "b": -math.inf}) == {"a": [".inf", 1], "b": "-.inf"}


def test_every_key_is_described() -> None:
    for name in field_names():
        steps = name.split(".")
        parent = _fields(tuple(steps[:-1]))
        assert steps[-1] in parent
    undescribed = [
        f"{definition}.{key}"
        for definition, body in schema()["$defs"].items()
        for key, value in body.get("properties", {}).items()
        if not value.get("description")
    ]
    assert undescribed == []


@given(st.text(max_size=60))
def test_any_text_in_any_place_gives_a_workload_or_faults_of_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = Path(tmp_path_factory.mktemp("any")) / "w.yaml"
    body = SYNTHETIC.replace("lognormal: {mean: 500, cv: 1.2}", text)
    path.write_text(body, encoding="utf-8", errors="replace")
    try:
        workload, faults = check_workload(path)
    except ConfigError as error:
        faults = [error]
        workload = None
    assert (workload is None) == bool(faults)
    assert all("\n" not in fault.where for fault in faults)
