"""The generated prompts: they ask for an answer without end, so that max_tokens ends it."""

from __future__ import annotations

import numpy as np

_WORDS = (
    "amber",
    "basil",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "jetty",
    "kayak",
    "larch",
    "mango",
    "nylon",
    "ochre",
    "pearl",
    "quill",
    "raven",
    "sable",
    "tulip",
    "umber",
    "vapor",
    "willow",
    "xenon",
    "yacht",
    "zephyr",
)


_TASK = "Count upwards from {start} in words, one number after the other, " + (
    "and do not stop, explain or summarise. Go on without end."
)
_TASK_TOKENS = 34
_FEWEST_WORDS = 6


def prompt(rng: np.random.Generator, *, tokens: int = 40) -> str:
    """A prompt unlike any other from its first words on, so that no prefix cache knows it.

    Args:
        rng: Source of randomness.
        tokens: About how many it should have; how many it has, the server's usage says.

    Returns:
        English, of forty tokens or more.
    """
    words = " ".join(rng.choice(_WORDS, max(_FEWEST_WORDS, tokens - _TASK_TOKENS)))
    return f"{words}. {_TASK.format(start=int(rng.integers(1000, 9000)))}"
