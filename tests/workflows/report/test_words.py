from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError
from slotwise_workflows.recommend import codes
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.record import Estimate
from slotwise_workflows.report import clean, load_words, words
from slotwise_workflows.result import Diagnosis, Fact

JA, EN = load_words("ja"), load_words("en")
KNOWN_CODES = [
    (group, code, names)
    for group, table in (
        ("reason", codes.REASONS),
        ("limit", codes.LIMITS),
        ("action", codes.ACTIONS),
        ("alternative", codes.ALTERNATIVES),
        ("flip", codes.FLIPS),
    )
    for code, names in table.items()
]


def placeholders(sentence: str) -> dict[str, set[str]]:
    """Each number a sentence names and the kinds it is printed as."""
    found: dict[str, set[str]] = {}
    for _, name, spec, _ in string.Formatter().parse(sentence):
        if name is not None:
            found.setdefault(name, set()).add((spec or "").split(" ")[0].removeprefix("bare_"))
    return found


def test_catalogues_hold_the_same_keys() -> None:
    assert JA.table.keys() == EN.table.keys()


@pytest.mark.parametrize("key", sorted(EN.table))
def test_a_key_names_the_same_numbers_in_both_languages(key: str) -> None:
    assert placeholders(JA.table[key]) == placeholders(EN.table[key])
    assert JA.table[key]
    assert EN.table[key]


@pytest.mark.parametrize("language", ["ja", "en"])
def test_no_key_stands_twice_in_a_catalogue(language: str) -> None:
    path = Path(words.__file__).parent / "catalogue" / f"{language}.yaml"
    node = yaml.compose(path.read_text("utf-8"), Loader=yaml.SafeLoader)

    def keys(mapping: yaml.Node) -> None:
        if isinstance(mapping, yaml.MappingNode):
            names = [key.value for key, _ in mapping.value]
            assert len(names) == len(set(names)), names
            for _, value in mapping.value:
                keys(value)

    assert node is not None
    keys(node)


@pytest.mark.parametrize("own", [JA, EN], ids=["ja", "en"])
@pytest.mark.parametrize(("group", "code", "names"), KNOWN_CODES)
def test_every_code_has_a_sentence_with_its_numbers(
    own: words.Words, group: str, code: str, names: tuple[str, ...]
) -> None:
    assert set(placeholders(own.table[f"{group}.{code}"])) == set(names)
    values = dict.fromkeys(names, 1.5) | ({"segment": "r", "value": "v"} if names else {})
    sentence = own.sentence(group, code, {name: values[name] for name in names})
    assert sentence
    assert "{" not in sentence


@pytest.mark.parametrize("own", [JA, EN], ids=["ja", "en"])
def test_no_sentence_stands_for_a_code_that_does_not_exist(own: words.Words) -> None:
    known = {f"{group}.{code}" for group, code, _ in KNOWN_CODES} | {"flip.none", "flip.none_found"}
    said = {
        key.removesuffix("_unknown")
        if key.removesuffix("_unknown") in known and key not in known
        else key
        for key in own.table
        if key.split(".")[0] in {"reason", "limit", "action", "alternative", "flip"}
    }
    assert said == known


@pytest.mark.parametrize("own", [JA, EN], ids=["ja", "en"])
def test_everything_a_result_can_name_has_a_word(own: words.Words) -> None:
    fields = Diagnosis.model_fields
    expected = {f"basis.{name}" for name in codes.BASES} | {f"fact.{name}" for name in codes.FACTS}
    expected |= {f"threshold.{name}" for name in Thresholds.model_fields}
    for verdict in fields["verdict"].annotation.__args__:  # type: ignore[union-attr]
        expected |= {f"verdict.{verdict}.badge", f"verdict.{verdict}.sentence"}
    for group, literal in (
        ("confidence", fields["confidence"].annotation),
        ("label", Fact.model_fields["source"].annotation),
        ("weight", Fact.model_fields["weight"].annotation),
    ):
        expected |= {f"{group}.{name}" for name in literal.__args__}  # type: ignore[union-attr]
    excluded = "failed no_output cache_hit not_generation duplicate multi_choice chunk_row"
    expected |= {f"exclusion.{name}" for name in f"{excluded} unparsable filtered".split()}
    assert expected <= own.table.keys()


def test_a_client_is_told_no_in_plain_japanese() -> None:
    assert "見送りを推奨します" in JA("verdict.no_gain.sentence")


@pytest.mark.parametrize(
    ("value", "kind", "en", "ja"),
    [
        (1.954, "times", "1.95×", "1.95倍"),
        (12.34, "times", "12.3×", "12.3倍"),
        (0.64, "percent", "64%", "64%"),
        (0.022, "percent", "2.2%", "2.2%"),
        (0.00001, "percent", "<0.1%", "<0.1%"),
        (0.9999, "percent", ">99.9%", ">99.9%"),
        (0.0, "percent", "0%", "0%"),
        (1.0, "percent", "100%", "100%"),
        (151.36, "seconds", "151 s", "151秒"),
        (34.62, "seconds", "34.6 s", "34.6秒"),
        (0.0324, "seconds", "32.4 ms", "32.4ミリ秒"),
        (0.324, "seconds", "0.324 s", "0.324秒"),
        (3444.0, "seconds", "57.4 min", "57.4分"),
        (7200.0, "seconds", "2.00 h", "2.00時間"),
        (864_000.0, "seconds", "10.0 days", "10.0日"),
        (3.2, "hours", "3.20 h", "3.20時間"),
        (4.84, "rate", "4.84/s", "毎秒4.84件"),
        (0.02, "rate", "1.20/min", "毎分1.20件"),
        (0.0001, "rate", "0.360/h", "毎時0.360件"),
        (211.38, "tokens", "211 tokens", "211トークン"),
        (1234.0, "tokens", "1,234 tokens", "1,234トークン"),
        (1234567, "count", "1,234,567", "1,234,567"),
        (1.5, "number", "1.5", "1.5"),
        (3.0, "factor", "3×", "3倍"),
        (None, "times", "—", "—"),
    ],
)
def test_numbers_carry_sensible_digits(value: float | None, kind: str, en: str, ja: str) -> None:
    assert EN.number(value, kind) == en
    assert JA.number(value, kind) == ja


def test_an_interval_sets_the_digits_of_its_estimate() -> None:
    assert EN.estimate(Estimate(estimate=2.0654, low=1.91, high=2.21)) == "2.07× (1.91–2.21)"
    assert EN.estimate(Estimate(estimate=2.0654, low=1.1, high=5.2)) == "2.1× (1.1–5.2)"
    assert EN.estimate(Estimate(estimate=40.2, low=11.0, high=60.0)) == "40× (11–60)"


def test_a_missing_number_takes_the_sentence_without_it() -> None:
    plain = EN.sentence("reason", "batches_continuously", {"idle_saved": None})
    assert plain == EN("reason.batches_continuously_unknown")


def test_english_counts_one() -> None:
    one = EN.sentence("limit", "few_requests", {"requests": 1})
    assert "1 request;" in one
    assert "2 requests;" in EN.sentence("limit", "few_requests", {"requests": 2})


@pytest.mark.parametrize(
    ("code", "numbers"), [("from_the_future", {}), ("marginal", {"gain": 1.1}), ("\u202e", {})]
)
def test_a_code_of_another_version_is_an_error_that_says_so(
    code: str, numbers: dict[str, float]
) -> None:
    with pytest.raises(InputError, match="not known to this version") as caught:
        EN.sentence("reason", code, numbers)
    assert "\u202e" not in str(caught.value)


@given(st.text(max_size=200), st.integers(2, 80))
def test_clean_text_is_short_and_visible(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert len(shown) <= limit
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", shown)
    assert clean(shown, limit) == shown
