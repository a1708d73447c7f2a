"""Made-up traffic as a workload file describes it."""

from __future__ import annotations

import numpy as np

from slotwise_sim import synthetic as made
from slotwise_sim.workload import Floats, Ints, Workload
from slotwise_workflows.config.sections.traffic import Arrivals, Lengths, SimpleLengths, Synthetic
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.traffic.model import Traffic, made_traffic

_LONGEST_S = 4.6e9  # about as much as 63 bits of nanoseconds, half of what 64 hold


def draw(synthetic: Synthetic, rng: np.random.Generator) -> Workload:
    """Draws the requests.

    Arrivals, outputs and prompts each have a stream of random numbers of their own, so that a
    change of one leaves the others as they were.

    Args:
        synthetic: What to draw, and how many.
        rng: Source of all randomness.

    Raises:
        ConfigError: The numbers are so extreme that arrivals or lengths overflow.
    """
    n = synthetic.requests
    of_arrivals, of_outputs, of_prompts = rng.spawn(3)
    try:
        return Workload(
            arrival_s=_arrivals(n, synthetic.arrivals, of_arrivals),
            output_tokens=_lengths(n, synthetic.output_tokens, of_outputs),
            prompt_tokens=_lengths(n, synthetic.prompt_tokens, of_prompts),
            max_tokens=None if synthetic.max_tokens is None else np.full(n, synthetic.max_tokens),
        )
    except ValueError as error:
        raise ConfigError("traffic.synthetic cannot be drawn", why=str(error)) from None


def draw_traffic(synthetic: Synthetic, rng: np.random.Generator) -> Traffic:
    """The same requests as `Traffic`, so that they can be diagnosed as a log is.

    Raises:
        ConfigError: As `draw`, or the arrivals span more time than a log's clock can tell.
    """
    drawn = draw(synthetic, rng)
    last_s = float(drawn.arrival_s.max())
    if last_s > _LONGEST_S:
        raise ConfigError(
            "traffic.synthetic.arrivals spans too much time",
            why=f"the last request would arrive after {last_s:.3g} seconds",
            hint="Give a higher rate, or fewer requests",
        )
    return made_traffic(drawn, format_id="synthetic")


def _arrivals(n: int, arrivals: Arrivals, rng: np.random.Generator) -> Floats:
    if arrivals.constant is not None:
        return made.constant_arrivals(n, arrivals.constant.rate)
    if arrivals.poisson is not None:
        return made.poisson_arrivals(n, arrivals.poisson.rate, rng)
    if arrivals.gamma is not None:
        return made.gamma_arrivals(n, arrivals.gamma.rate, arrivals.gamma.cv, rng)
    if arrivals.trace is not None:
        return np.asarray(arrivals.trace, dtype=np.float64)  # in the order given
    return made.upfront_arrivals(n)


def _lengths(n: int, lengths: Lengths, rng: np.random.Generator) -> Ints:
    if lengths.mixture is None:
        return _simple(lengths)(n, rng)
    return made.mixture(n, [(part.weight, _simple(part)) for part in lengths.mixture], rng)


def _simple(lengths: SimpleLengths) -> made.Lengths:
    """One distribution with its parameters bound."""
    if lengths.uniform is not None:
        low, high = lengths.uniform
        return lambda n, rng: made.uniform(n, low, high, rng)
    if lengths.lognormal is not None:
        mean, cv = lengths.lognormal.mean, lengths.lognormal.cv
        return lambda n, rng: made.lognormal(n, mean, cv, rng)
    if lengths.empirical is not None:
        values = lengths.empirical
        return lambda n, rng: made.empirical(n, values, rng)
    value = lengths.constant or 0
    return lambda n, _rng: made.constant(n, value)
