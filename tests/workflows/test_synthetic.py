"""Made-up traffic is what the file says, and the same for the same seed."""

from typing import Any

import numpy as np
import pytest

from slotwise_sim.workload import Workload
from slotwise_workflows.config.sections.traffic import Synthetic
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.synthetic import draw, draw_traffic

OUTPUT = {"constant": 5}


def drawn(seed: int = 0, requests: int = 20_000, **keys: object) -> Workload:
    plain = {"requests": requests, "arrivals": "upfront", "output_tokens": OUTPUT, **keys}
    return draw(Synthetic.model_validate(plain), np.random.default_rng(seed))


def test_constant_gaps() -> None:
    np.testing.assert_allclose(
        drawn(requests=4, arrivals={"constant": {"rate": 4}}).arrival_s, [0, 0.25, 0.5, 0.75]
    )


def test_all_upfront_without_prompts() -> None:
    made = drawn(requests=3)
    assert made.arrival_s.tolist() == [0, 0, 0]
    assert made.output_tokens.tolist() == [5, 5, 5]
    assert made.prompt_tokens.tolist() == [0, 0, 0]
    assert made.max_tokens is None
    limits = drawn(requests=2, max_tokens=9).max_tokens
    assert limits is not None
    assert limits.tolist() == [9, 9]


@pytest.mark.parametrize(
    "arrivals", [{"trace": [0, 1e300]}, {"constant": {"rate": 1e-12}}, {"trace": [0, 4.7e9]}]
)
def test_more_time_than_a_clock_tells_is_refused(arrivals: object) -> None:
    plain = {"requests": 2, "arrivals": arrivals, "output_tokens": OUTPUT}
    with pytest.raises(ConfigError, match="too much time"):
        draw_traffic(Synthetic.model_validate(plain), np.random.default_rng(0))


def test_a_trace_keeps_its_order() -> None:
    assert drawn(requests=3, arrivals={"trace": [2, 0, 1.5]}).arrival_s.tolist() == [2, 0, 1.5]


@pytest.mark.parametrize(
    ("arrivals", "rate", "cv"),
    [({"poisson": {"rate": 12}}, 12, 1.0), ({"gamma": {"rate": 3, "cv": 2.5}}, 3, 2.5)],
)
def test_random_gaps_have_rate_and_variation(arrivals: object, rate: float, cv: float) -> None:
    gaps = np.diff(drawn(arrivals=arrivals).arrival_s)
    # 20,000 draws: standard errors of about 1 % (mean) and 2 % (cv of skewed gaps).
    assert gaps.mean() == pytest.approx(1 / rate, rel=0.06)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.08)


def test_the_articles_mixture_has_its_mean() -> None:
    parts = [{"weight": 17, "uniform": [40, 199]}, {"weight": 3, "uniform": [400, 999]}]
    tokens = drawn(output_tokens={"mixture": parts}).output_tokens
    assert tokens.min() >= 40
    assert tokens.max() <= 999
    assert not ((tokens > 199) & (tokens < 400)).any()
    assert tokens.mean() == pytest.approx(0.85 * 119.5 + 0.15 * 699.5, rel=0.03)


def test_lognormal_and_empirical_lengths() -> None:
    made = drawn(
        output_tokens={"lognormal": {"mean": 500, "cv": 1.2}},
        prompt_tokens={"empirical": [3, 7, 7]},
    )
    assert made.output_tokens.mean() == pytest.approx(500, rel=0.04)
    assert made.output_tokens.std() / made.output_tokens.mean() == pytest.approx(1.2, rel=0.1)
    assert np.bincount(made.prompt_tokens, minlength=8)[[3, 7]] / 20_000 == pytest.approx(
        [1 / 3, 2 / 3], rel=0.03
    )


def test_the_same_seed_gives_the_same_and_streams_are_apart() -> None:
    keys: dict[str, Any] = {
        "arrivals": {"poisson": {"rate": 1}},
        "output_tokens": {"uniform": [1, 99]},
    }
    first, again, other = drawn(**keys), drawn(**keys), drawn(seed=1, **keys)
    np.testing.assert_array_equal(first.arrival_s, again.arrival_s)
    np.testing.assert_array_equal(first.output_tokens, again.output_tokens)
    assert (first.output_tokens != other.output_tokens).any()
    changed = drawn(**keys, prompt_tokens={"uniform": [1, 9]})
    np.testing.assert_array_equal(first.output_tokens, changed.output_tokens)
    np.testing.assert_array_equal(first.arrival_s, changed.arrival_s)


def test_extremes_are_refused_and_not_wrapped_around() -> None:
    with pytest.raises(ConfigError, match=r"traffic\.synthetic"):
        drawn(arrivals={"gamma": {"rate": 1e-308, "cv": 1}})
    with pytest.raises(ConfigError, match="at most 2147483647 tokens"):
        drawn(output_tokens={"lognormal": {"mean": 1e7, "cv": 20}})
