"""Workload files: what is accepted, and what each fault says, with its line."""

import math
from pathlib import Path
from typing import Protocol

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import (
    Binned,
    Continuous,
    Dynamic,
    Memory,
    PerToken,
    Piece,
    Static,
    Step,
)
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
    to_memory,
    to_policies,
    to_prediction_errors,
    to_server,
    where,
)
from slotwise_workflows.config.load import _fields
from slotwise_workflows.config.yaml_tree import parse_yaml
from slotwise_workflows.costs import find_preset
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
  - binned: {bins: 8, prediction_error: 0.5, max_delay_ms: 50, release: own, pad: false}
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
    assert to_server(workload) == (8, 1, "round_robin")
    assert to_cost(workload).cost == PerToken(8.0)
    assert to_given(workload).cost is None
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


@pytest.mark.parametrize(
    ("policies", "release", "pad"),
    [
        ("[static: {release: own}, continuous]", "own", None),
        ("[static: {pad: true}]", None, True),
        ("[static: {pad: true}, dynamic: {release: own}]", "own", None),  # dynamic is today's
        ("[continuous]", None, None),
    ],
)
def test_of_batches_only_what_is_written_is_told(
    workload_at: Write, policies: str, release: str | None, pad: bool | None
) -> None:
    told = to_given(load_workload(workload_at(SYNTHETIC + f"policies: {policies}\n")))
    assert (told.release, told.pad) == (release, pad)


def test_the_default_policies_written_down_tell_nothing_more(workload_at: Write) -> None:
    text = SYNTHETIC.replace("{ms_per_token: 8}", "{preset: opt-13b-a100-vllm}")
    unsaid = to_given(load_workload(workload_at(text, "unsaid.yaml")))
    told = to_given(load_workload(workload_at(text + "policies: [static, continuous]\n")))
    assert told == unsaid
    assert told.pad is None


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
     "policies[1] needs exactly one of static, dynamic, binned, continuous; "
     "static and continuous are there"),
    ("policies:\n  - binned: {bins: 0}\n", 10,
     "policies[0].binned.bins must be greater than or equal to 1, not 0"),
    ("policies:\n  - binned: {prediction_error: 11}\n", 10,
     "policies[0].binned.prediction_error must be less than or equal to 10, not 11"),
    ("policies:\n  - dynamic: {max_delay_ms: 86400001}\n", 10,
     "policies[0].dynamic.max_delay_ms must be at most 86,400,000 (a day), or .inf, not 86400001"),
    ("policies:\n  - continuous: {prefill: chunked}\n", 10,
     "policies[0].continuous.prefill must be one of mixed, separate, not 'chunked'"),
    ("policies:\n  - continuous: {max_batched_tokens: 0}\n", 10,
     "policies[0].continuous.max_batched_tokens must be greater than or equal to 1, not 0"),
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
    ("report:\n  notes: |\n    x\n\n    > y\n", 10,
     "report.notes holds a quotation on its line 3, which a report does not show: "
     "write paragraphs, headings, lists, bold and links"),
    ("report:\n  actions:\n    - {what: x, due: 2026-02-30}\n", 11,
     "report.actions[0].due is no day of the calendar: 2026-02-30"),
    ("report:\n  actions:\n    - {what: x, due: soon}\n", 11,
     "report.actions[0].due must be a day such as 2026-12-31, not 'soon'"),
    ("report:\n  actions:\n    - {owner: x}\n", 11, "report.actions[0].what is required"),
    ("report: {formats: [html, docx]}\n", 9,
     "report.formats[1] must be one of html, md, pdf, summary, not 'docx'"),
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
    ("ms_per_token: 8", "ms_per_token: 8, calibration: x", 8, "server.cost needs exactly one of "
     "ms_per_token, step, preset, calibration; ms_per_token and calibration are there"),
    ("ms_per_token: 8", "preset: opt-13b-a100-vlm", 8, "server.cost.preset 'opt-13b-a100-vlm' is "
     "no preset: the presets are opt-13b-a100-vllm, opt-13b-a100-distserve, "),
    ("ms_per_token: 8", "preset: opt-13b-a100-vlm", 8, "Did you mean 'opt-13b-a100-vllm'?"),
    ("ms_per_token: 8", "step: {}", 8, "server.cost.step.base_ms is required"),
    ("ms_per_token: 8", "step: {base_ms: -1}", 8,
     "server.cost.step.base_ms must be greater than or equal to 0, not -1"),
    ("ms_per_token: 8", "step: {base_ms: .nan}", 8,
     "server.cost.step.base_ms must be a finite number, not nan"),
    ("ms_per_token: 8", "step: {base_ms: 1, per_seq_ms: .inf}", 8,
     "server.cost.step.per_seq_ms must be a finite number, not inf"),
    ("ms_per_token: 8", "step: {base_ms: 0}", 8, "server.cost.step an iteration must take some "
     "time: base_ms or per_seq_ms must be > 0"),
    ("ms_per_token: 8", "step: {base_ms: 1, pieces: [{from_seqs: 9, base_ms: 0}]}", 8,
     "base_ms or per_seq_ms must be > 0 in the piece of from_seqs 9"),
    ("ms_per_token: 8", "step: {base_ms: 1, per_sequence_ms: 1}", 8, "server.cost.step."
     "per_sequence_ms is no key of a workload file. Did you mean 'per_seq_ms'?"),
    ("ms_per_token: 8", "step: {base_ms: 1, pieces: [{from_seqs: 1, base_ms: 1}]}", 8,
     "server.cost.step.pieces[0].from_seqs must be greater than or equal to 2, not 1"),
    ("ms_per_token: 8", "step: {base_ms: 1, pieces: [{from_seqs: 9, base_ms: 1}, "
     "{from_seqs: 9, base_ms: 2}]}", 8, "server.cost.step pieces must ascend in from_seqs"),
    ("slots: 8", "slots: 8, memory: {kv_tokens: 0}", 8,
     "server.memory.kv_tokens must be greater than or equal to 1, not 0"),
    ("slots: 8", "slots: 8, memory: {block_tokens: 16}", 8, "server.memory.kv_tokens is required"),
    ("slots: 8", "slots: 8, memory: {kv_tokens: 1e13}", 8,
     "server.memory.kv_tokens must be less than or equal to 1000000000000, not 10000000000000"),
    ("slots: 8", "slots: 8, memory: {kv_tokens: 9, reserve: pages}", 8, "server.memory.reserve "
     "must be one of paged, max_tokens, not 'pages'. Did you mean 'paged'?"),
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


STEP = """{step: {base_ms: 8, per_seq_ms: 1e-1, per_kv_token_ms: 1e-05, per_prefill_token_ms: 0.05,
    per_prefill_token2_ms: 1e-6, prefill_base_ms: 0,
    pieces: [{from_seqs: 9, base_ms: 9, per_seq_ms: 0.2, per_kv_token_ms: 2e-05},
             {from_seqs: 1e2, base_ms: 10}]}}"""


def test_every_term_of_a_step_cost_reaches_the_simulator(workload_at: Write) -> None:
    workload = load_workload(workload_at(SYNTHETIC.replace("{ms_per_token: 8}", STEP)))
    stated = to_cost(workload)
    assert stated.cost == Step(
        8.0,
        0.1,
        1e-05,
        0.05,
        1e-6,
        prefill_base_ms=0.0,
        pieces=(Piece(9, 9.0, 0.2, 2e-05), Piece(100, 10.0)),
    )
    assert (stated.kind, stated.name, stated.kv_tokens) == ("step", "", None)
    assert stated.quality == "not checked against a server"
    told = to_given(workload)
    assert told.ms_per_token is None
    assert told.cost == stated
    short = SYNTHETIC.replace("{ms_per_token: 8}", "{step: {base_ms: 8}}")
    assert to_cost(load_workload(workload_at(short, "short.yaml"))).cost == Step(8.0)


def test_a_preset_brings_its_source_and_quality(workload_at: Write) -> None:
    text = SYNTHETIC.replace("{ms_per_token: 8}", "{preset: opt-13b-a100-vllm}")
    workload = load_workload(workload_at(text))
    assert to_cost(workload) == find_preset("opt-13b-a100-vllm").stated()
    assert to_given(workload).cost == to_cost(workload)
    assert resolved(workload)["server"]["cost"] == {"preset": "opt-13b-a100-vllm"}


def test_memory_reaches_the_simulator_under_a_step_cost_only(workload_at: Write) -> None:
    text = SYNTHETIC.replace("slots: 8", "slots: 8, memory: {kv_tokens: 4e5}")
    assert to_memory(load_workload(workload_at(text))) is None
    step = text.replace("{ms_per_token: 8}", "{step: {base_ms: 8}}")
    workload = load_workload(workload_at(step))
    assert to_memory(workload) == to_given(workload).memory == Memory(400_000, 16, "paged")
    other = step.replace("kv_tokens: 4e5", "kv_tokens: 9, block_tokens: 4, reserve: max_tokens")
    assert to_memory(load_workload(workload_at(other))) == Memory(9, 4, "max_tokens")
    assert to_memory(load_workload(workload_at(SYNTHETIC, "none.yaml"))) is None


def test_a_calibration_is_looked_for_beside_the_file(workload_at: Write) -> None:
    path = workload_at(SYNTHETIC.replace("{ms_per_token: 8}", "{calibration: c.json}"))
    workload = load_workload(path)
    with pytest.raises(ConfigError) as caught:
        to_cost(workload)
    assert str(caught.value).startswith(f"{path}:8: server.cost.calibration cannot be used: ")
    assert str(path.parent / "c.json") in str(caught.value)


def test_options_of_policies_reach_the_simulator(workload_at: Write) -> None:
    text = (
        SYNTHETIC
        + """policies:
  - binned
  - binned: {bins: 8, prediction_error: 0.5, max_delay_ms: .inf, release: own, pad: false}
  - continuous: {prefill: separate, max_batched_tokens: 2048}
"""
    )
    workload = load_workload(workload_at(text))
    assert to_policies(workload) == {
        "binned": Binned(4),
        "binned#2": Binned(8, math.inf, "own", pad=False),
        "continuous": Continuous("separate", 2048),
    }
    assert to_prediction_errors(workload) == {"binned": 0.0, "binned#2": 0.5}


def test_what_a_simulation_needs_is_asked_for(workload_at: Write) -> None:
    workload = load_workload(workload_at("version: 1\ntraffic: {log: {path: a}}\n"))
    with pytest.raises(ConfigError, match=r"server\.slots is required"):
        to_server(workload)
    with pytest.raises(ConfigError, match=r"server\.cost is required"):
        to_cost(workload)


def test_a_balancer_goes_with_its_replicas(workload_at: Write) -> None:
    text = SYNTHETIC.replace("slots: 8", "slots: 8, replicas: 2, balancer: least_busy")
    workload = load_workload(workload_at(text))
    assert to_server(workload) == (8, 2, "least_busy")
    assert to_given(workload).balancer == "least_busy"


def test_lines_of_fields(workload_at: Write) -> None:
    path = workload_at(EVERY_KEY)
    workload = load_workload(path)
    assert where(workload, "server.cost") == f"{path}:21"
    assert where(workload, "server.nothing") == f"{path}:15"


@pytest.mark.parametrize(
    "text",
    [
        EVERY_KEY,
        SYNTHETIC,
        SYNTHETIC.replace("ms_per_token: 8", "preset: opt-13b-a100-vllm"),
        SYNTHETIC.replace("{ms_per_token: 8}", STEP),
    ],
)
def test_the_published_schema_accepts_what_is_accepted(text: str) -> None:
    published = schema()
    jsonschema.Draft202012Validator.check_schema(published)
    validator = jsonschema.Draft202012Validator(published)
    plain = parse_yaml(text.encode(), name="w.yaml").value
    validator.validate(plain)
    validator.validate(plain | {"policies": ["static", "binned", {"dynamic": None}]})


@pytest.mark.parametrize(
    "wrong",
    [
        {"foo": 1},
        {"policies": ["statc"]},
        {"policies": [{"static": {}, "continuous": {}}]},
        {"traffic": {}},
        {"server": {"slots": 0}},
        {"sweep": {"load": [0]}},
        {"server": {"cost": {"preset": "opt"}}},
        {"server": {"cost": {"step": {"base_ms": 1, "pieces": [{"base_ms": 1}]}}}},
        {"policies": [{"binned": {"bins": 0}}]},
    ],
)
def test_the_published_schema_refuses_what_is_refused(
    workload_at: Write, wrong: dict[str, object]
) -> None:
    plain = yaml.safe_load(SYNTHETIC.replace("6e2", "600")) | wrong
    assert not jsonschema.Draft202012Validator(schema()).is_valid(plain)
    assert check_workload(workload_at(yaml.safe_dump(plain)))[1]


@pytest.mark.parametrize("text", [EVERY_KEY, SYNTHETIC.replace("{ms_per_token: 8}", STEP)])
def test_everything_resolved_reads_back_the_same(workload_at: Write, text: str) -> None:
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
