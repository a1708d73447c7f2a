"""The split of the gain in words, and what a report says of a step cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from slotwise_sim import Step
from slotwise_workflows.costs import CostRecord, Preset, StatedCost, all_presets
from slotwise_workflows.costs.stated import Checked
from slotwise_workflows.record import Estimate
from slotwise_workflows.report import cost_reading, load_words, render_report
from slotwise_workflows.report.after_test import command_of_then
from slotwise_workflows.report.charts.factors import product
from slotwise_workflows.report.sections.attribution import one_line
from slotwise_workflows.report.words import Language
from slotwise_workflows.result import Fact, Result

Make = Callable[..., Result]


def test_the_split_keeps_refilling_apart_from_memory(make_result: Make) -> None:
    page = render_report(make_result("step_cost"), language="en").markdown
    assert "Of 5.41× in all with paged KV memory of this size, 1.89× comes from refilling" in page
    assert "(19 in place of 4.0)" in page
    assert "12,300 tokens here" in page
    assert "Faster kernels are in none of these figures" in page
    assert "| Refilling slots, same slots and same step cost | 1.89× |" in page
    assert "| What larger batches cost in longer iterations | 0.86× |" in page


def test_memory_for_fewer_requests_than_slots_is_told(
    make_result: Make, language: Language
) -> None:
    split = {"order": 1.9, "memory": 0.7, "larger_batch": 1.1, "total": 1.46}
    running = {"batch": 4.1, "continuous": 8.0, "paged": 5.3}
    result = make_result("step_cost", attribution=split | {"running": running})
    words = load_words(language)
    told = words("attribution.lead_less", order=1.9, now=8.0, running=5.3, total=1.46)
    assert told in render_report(result, language=language).markdown


def test_with_memory_the_verdict_is_about_the_gain_within_it(make_result: Make) -> None:
    gain = Estimate(estimate=1.64, low=1.6, high=1.69)
    page = render_report(make_result("step_cost", gain=gain), language="en").markdown
    assert "The verdict's own gain is 1.64×" in page
    assert "what this verdict is about" not in page
    assert "The memory told reserves" not in page


def test_memory_reserved_whole_is_split_as_if_it_were_paged(make_result: Make) -> None:
    told = {"kv_tokens": 12_300, "block_tokens": 16, "reserve": "max_tokens"}
    result = make_result("step_cost", memory=told)
    page = render_report(result, language="en").markdown
    assert "The memory told reserves prompt and answer whole" in page
    assert "| KV memory if it were paged, 19 in place of 4.0 requests at once" in page
    assert "| Paged KV memory" not in page
    assert result.attribution is not None
    line = one_line(result, result.attribution, load_words("en"))
    assert line.startswith("If the KV memory told were paged, 5.41× in all: 1.89×")


def test_what_a_calibrated_server_held_is_not_said_of_a_preset(
    make_result: Make, language: Language
) -> None:
    made = make_result("order_alone")
    assert made.cost is not None
    cost = made.cost.model_copy(update={"kind": "calibration", "kv_tokens": 41_408})
    page = render_report(made.model_copy(update={"cost": cost}), language=language).markdown
    words = load_words(language)
    assert words("attribution.held_calibration", tokens=41_408) in page
    assert words("attribution.held_preset", tokens=41_408) not in page


def test_without_memory_the_report_says_what_is_not_counted(make_result: Make) -> None:
    page = render_report(make_result("order_alone"), language="en").markdown
    assert "All of the 1.89× comes from refilling slots" in page
    assert "is not counted, because it is not described" in page
    assert "held 66,144 tokens" in page
    assert "The gain in capacity as a product" not in page


def test_a_time_per_token_has_no_split(make_result: Make, language: Language) -> None:
    page = render_report(make_result("adopt"), language=language)
    assert 'id="attribution"' not in page.html
    assert "step_cost" not in page.html


def test_padding_that_falls_away_is_named(make_result: Make) -> None:
    padded = render_report(make_result("hostile_cost"), language="en").markdown
    assert "contains the padding that falls away" in padded
    unknown = render_report(make_result("step_cost"), language="en").markdown
    assert "contains the padding that falls away" not in unknown


def test_the_cost_is_shown_with_source_quality_and_terms(
    make_result: Make, language: Language
) -> None:
    page = render_report(make_result("step_cost"), language=language).markdown
    quality = {
        "en": "a paper, fitted to published tables, decoding iterations within 3% of the tables",
        "ja": "a paper、公表された表への当てはめ、生成1回分の時間の誤差は公表値の3%以内",
    }
    assert quality[language] in page
    assert "published; decode" not in page  # the record's own line is data, and English
    assert "23.5" in page
    assert "0.000593" in page  # per token held
    assert "0.000491" in page  # from 95 sequences on
    assert "95" in page


@pytest.mark.parametrize(
    ("held_out", "told"), [(63, "5.3% at most, 63 of them"), (0, "5.3% at most on those")]
)
def test_a_fit_says_how_far_it_is_off(make_result: Make, held_out: int, told: str) -> None:
    checked = Checked("fitted", 0.053, requests=126, held_out=held_out, reliable=False)
    stated = StatedCost(Step(base_ms=8.0), "calibration", "c", "a run", "5 % off", None)
    record, words = CostRecord.of(replace(stated, checked=checked)), load_words("en")
    assert told in cost_reading.quality(record, words)
    assert "not to be relied on" in cost_reading.quality(record, words)
    numbers = {"off": 0.053, "held_out": held_out or None}
    limits = [{"code": "cost_calibrated", "numbers": numbers}]
    page = render_report(make_result("step_cost", cost=record, limits=limits), language="en")
    assert "(126 requests)" in page.markdown
    assert "off by 5.3% at most" in page.markdown


@pytest.mark.parametrize("preset", all_presets(), ids=lambda preset: preset.name)
def test_what_a_preset_leaves_out_has_a_sentence(preset: Preset, language: Language) -> None:
    remark = load_words(language)(f"cost.remark_{preset.remark}")
    assert cost_reading.quality(CostRecord.of(preset.stated()), load_words(language)).endswith(
        remark
    )


def test_the_gain_stands_beside_what_lengths_alone_would_give(make_result: Make) -> None:
    page = render_report(make_result("step_cost"), language="en").markdown
    assert "At 8 slots refilling carries 2.07× as much at this step cost" in page
    assert "By lengths alone, regrouped at random" in page


def test_bars_begin_where_the_last_one_ended() -> None:
    spec = product([("a", 2.0), ("b", 3.0), ("c", 0.5)], ("d", 3.0), {"axis": "times"})
    rows = spec["data"]["values"]
    assert [(row["from"], row["to"]) for row in rows] == [(1, 2), (2, 6), (6, 3), (1, 3)]
    assert [row["kind"] for row in rows] == ["gain", "gain", "loss", "total"]
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low <= 1
    assert high >= 6


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ([("cost", "llama", "preset")], "--preset llama"),
        ([("cost", "c.json", "calibration")], "--calibration c.json"),
        ([("cost", "stated", "given")], "--workload WORKLOAD.yaml"),
        ([("cost", "llama", "preset"), ("memory", 9.0, "given")], "--workload WORKLOAD.yaml"),
    ],
)
def test_the_after_test_keeps_the_cost(
    facts: list[tuple[str, str | float, str]], options: str
) -> None:
    told = [Fact(name=n, value=value, source="given", basis=basis) for n, value, basis in facts]
    command = command_of_then(["slotwise", "run", "diagnose"], told)
    assert command == f"slotwise diagnose NEW_LOG {options}"
