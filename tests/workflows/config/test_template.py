"""What `config init` writes can be read back, with every answer in its place."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.config import check_workload, load_workload, to_given
from slotwise_workflows.config.model import WorkloadFile
from slotwise_workflows.config.template import Language, hearing_sheet, interview, template

LANGUAGES: tuple[Language, ...] = ("ja", "en")
COUNTS = st.none() | st.integers(1, 9999).map(str)
NUMBERS = st.none() | st.floats(0.001, 1e6).map(repr)


@pytest.fixture
def read_back(tmp_path: Path) -> Callable[[str], WorkloadFile]:
    def read(text: str) -> WorkloadFile:
        path = tmp_path / "w.yaml"
        path.write_text(text, encoding="utf-8")
        return load_workload(path)

    return read


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_template_loads_and_tells_nothing_unasked(
    read_back: Callable[[str], WorkloadFile], language: Language
) -> None:
    workload = read_back(template(language))
    told = to_given(workload)
    assert told.slots is told.replicas is told.ms_per_token is None
    assert told.serving is None
    assert told.gpu_hour_price is told.latency_p95_s is told.max_delay_ms is None
    assert workload.report.language == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_that_is_off_is_right_once_it_is_on(tmp_path: Path, language: Language) -> None:
    # Each single option of the template, switched on alone, is a key the schema knows.
    text = template(language)
    switches = re.findall(r"^ +# ((?:- )?[a-z_0-9]+: .*)$", text, re.MULTILINE)
    assert len(switches) > 15
    for line in switches:
        if "synthetic" in line or "requests: 600" in line:
            continue
        on = text.replace(f"# {line}", line, 1)
        path = tmp_path / "on.yaml"
        path.write_text(on, encoding="utf-8")
        assert check_workload(path)[1] == [], line


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_synthetic_block_is_right_once_it_is_on(
    read_back: Callable[[str], WorkloadFile], language: Language
) -> None:
    lines = template(language).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  # synthetic:"))
    last = next(i for i, line in enumerate(lines) if "prompt_tokens: {log" in line)
    log = next(i for i, line in enumerate(lines) if line == "  log:")
    kept = lines[:log] + [line.replace("# ", "", 1) for line in lines[first : last + 1]]
    workload = read_back("\n".join(kept + lines[last + 1 :]))
    assert workload.traffic.synthetic is not None
    assert workload.traffic.synthetic.requests == 600


@given(
    st.sampled_from(LANGUAGES),
    st.fixed_dictionaries(
        {
            "engine": st.none() | st.text(max_size=80),
            "slots": COUNTS,
            "replicas": COUNTS,
            "max_delay_ms": NUMBERS,
            "latency_p95_s": NUMBERS,
            "gpu_hour_price": NUMBERS,
        }
    ),
)
def test_any_answers_give_a_file_that_says_them(
    tmp_path_factory: pytest.TempPathFactory, language: Language, answers: dict[str, str | None]
) -> None:
    path = tmp_path_factory.mktemp("init") / "w.yaml"
    path.write_bytes(template(language, answers).encode("utf-8", "replace"))
    told = to_given(load_workload(path))
    for key in ("slots", "replicas", "max_delay_ms", "latency_p95_s", "gpu_hour_price"):
        answer = answers[key]
        assert getattr(told, key) == (None if answer is None else float(answer))


@pytest.mark.parametrize(
    ("engine", "serving"),
    [
        ("vLLM 0.19", "self_hosted"),
        ("vLLM (OpenAI compatible)", "self_hosted"),
        ("自作サーバー", "self_hosted"),
        ("OpenAI API", "managed_api"),
        ("Amazon Bedrock", "managed_api"),
        ("something else", None),
        ("x\nname: injected", None),
    ],
)
def test_the_engine_tells_who_runs_the_server(
    read_back: Callable[[str], WorkloadFile], engine: str, serving: str | None
) -> None:
    workload = read_back(template("en", {"engine": engine}))
    assert workload.server.serving == serving
    assert workload.name == "my-traffic"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_interview_asks_six_questions_in_both_languages(language: Language) -> None:
    asked = interview(language)
    assert [q.key for q in asked.questions] == [
        "engine",
        "slots",
        "replicas",
        "max_delay_ms",
        "latency_p95_s",
        "gpu_hour_price",
    ]
    for question in asked.questions:
        for unknown in ("", "?", "I don't know.", "わかりません", "不明"):
            assert asked.parse(question, unknown) is None


@pytest.mark.parametrize(
    ("key", "answer", "parsed"),
    [
        ("slots", " 16 ", "16"),
        ("slots", "1,024", "1024"),
        ("slots", "8.0", "8"),
        ("max_delay_ms", "0", "0"),
        ("latency_p95_s", "2.5", "2.5"),
        ("engine", "  vLLM   0.19 ", "vLLM 0.19"),
    ],
)
def test_answers_are_understood(key: str, answer: str, parsed: str) -> None:
    asked = interview("en")
    question = next(q for q in asked.questions if q.key == key)
    assert asked.parse(question, answer) == parsed


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("slots", "0"),
        ("slots", "8.5"),
        ("slots", "100001"),
        ("slots", "many"),
        ("slots", "nan"),
        ("replicas", "-1"),
        ("max_delay_ms", "-1"),
        ("max_delay_ms", "inf"),
        ("gpu_hour_price", "0"),
    ],
)
def test_other_answers_are_asked_again(key: str, answer: str) -> None:
    asked = interview("en")
    question = next(q for q in asked.questions if q.key == key)
    with pytest.raises(ValueError, match="Please give a"):
        asked.parse(question, answer)


def test_the_hearing_sheets_ask_the_same_number_of_questions() -> None:
    sheets = {language: hearing_sheet(language) for language in LANGUAGES}
    numbers = {
        language: re.findall(r"^\| (\d+) \|", sheet, re.MULTILINE)
        for language, sheet in sheets.items()
    }
    assert numbers["ja"] == numbers["en"] == [str(n) for n in range(1, 17)]


def test_both_templates_have_the_same_keys() -> None:
    plain = {language: yaml.safe_load(template(language)) for language in LANGUAGES}
    plain["en"]["report"]["language"] = "ja"
    assert plain["en"] == plain["ja"]
