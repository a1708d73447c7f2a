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


def prompt(rng: np.random.Generator) -> str:
    """A prompt unlike any other from its first words on, so that no prefix cache knows it.

    Args:
        rng: Source of randomness.

    Returns:
        About forty tokens of English.
    """
    words = " ".join(rng.choice(_WORDS, 6))
    start = int(rng.integers(1000, 9000))
    return (
        f"{words}. Count upwards from {start} in words, one number after the other, "
        "and do not stop, explain or summarise. Go on without end."
    )
