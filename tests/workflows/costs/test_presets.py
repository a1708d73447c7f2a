"""Presets are usable costs that say where they come from."""

from __future__ import annotations

import pickle

import pytest

from slotwise_sim import PerToken, Piece, Step
from slotwise_workflows.costs import CostRecord, Preset, StatedCost, all_presets, find_preset
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.errors import ConfigError


@pytest.mark.parametrize("preset", all_presets(), ids=lambda preset: preset.name)
def test_each_says_what_it_costs_where_it_is_from_and_how_good_it_is(preset: Preset) -> None:
    assert preset.kind in {"published", "derived"}
    assert preset.source
    assert preset.quality
    assert min(preset.step.per_seq_ms, preset.step.per_kv_token_ms) > 0
    stated = preset.stated()
    assert (stated.kind, stated.name) == ("preset", preset.name)
    assert stated.quality.startswith(f"{preset.kind}; ")
    assert stated.kv_tokens == preset.kv_tokens


@pytest.mark.parametrize("preset", all_presets(), ids=lambda preset: preset.name)
def test_derived_ones_say_how_far_they_are_off(preset: Preset) -> None:
    if preset.kind == "published":
        assert preset.error is None
        assert preset.quality.startswith("error not stated; ")
    else:
        assert preset.error is not None
        assert 0 < preset.error.mean < preset.error.most < 0.2
        assert preset.quality.startswith(f"{preset.error}; ")


def test_an_error_in_words() -> None:
    assert find_preset("llama-3.1-8b-a100").quality == (
        "decode within 3.1 % of the tables on average, 11.5 % at most; host overhead excluded"
    )


def test_the_first_as_it_stands_at_its_source() -> None:
    assert find_preset("opt-13b-a100-vllm").step == Step(
        base_ms=23.475,
        per_seq_ms=0.06073,
        per_kv_token_ms=5.929e-4,
        per_prefill_token_ms=0.14051,
        per_prefill_token2_ms=8.08e-6,
        prefill_base_ms=22.052,
        pieces=(Piece(95, 20.206, 0.12, 4.908e-4),),
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("opt-13b-a100-vlm", "Did you mean 'opt-13b-a100-vllm'?"),
        ("LLAMA-3.1-8B-H100", "Did you mean 'llama-3.1-8b-h100'?"),
        ("", "`slotwise config presets` describes them"),
    ],
)
def test_another_name_is_refused_with_all_names(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_preset(name, where="w.yaml:3")
    told = str(pickle.loads(pickle.dumps(caught.value)))
    assert told.startswith(f"w.yaml:3: {name!r} is no preset: the presets are opt-13b-a100-vllm, ")
    assert told.endswith(said)
    assert all(preset.name in told for preset in all_presets())


def test_the_record_of_a_stated_cost() -> None:
    step = Step(base_ms=8, pieces=(Piece(3, 9.0),))
    stated = StatedCost(step, "calibration", "c.json", "a run", "2 % off", 400)
    record = CostRecord.of(stated)
    assert CostRecord.model_validate_json(record.model_dump_json()).values == step
    fixed = CostRecord.of(by_the_user(PerToken(8.0), "ms_per_token"))
    assert CostRecord.model_validate_json(fixed.model_dump_json()).values == PerToken(8.0)
    plain = record.model_dump(mode="json")
    assert plain["values"]["base_ms"] == 8
    assert plain["values"]["pieces"] == [
        {"from_seqs": 3, "base_ms": 9, "per_seq_ms": 0, "per_kv_token_ms": 0}
    ]
    del plain["values"]
    assert plain == {
        "kind": "calibration",
        "name": "c.json",
        "source": "a run",
        "quality": "2 % off",
        "kv_tokens": 400,
        "checked": None,
    }
