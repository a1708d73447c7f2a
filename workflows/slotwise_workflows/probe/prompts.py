"""The generated prompts: unlike each other, of a wanted length, asking for an answer without end.

So `max_tokens` ends it. How long a prompt is in tokens, the endpoint says of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slotwise_workflows.probe.model import Sample

_SYLLABLES = (
    *("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe"),
    *("ri", "so", "tu", "va", "we", "xi", "yo", "zu"),
)
_ASK = "Count upwards in words, one number after the other, and do not stop. Go on without end."
ANY_WORDS = 6
"""Of a prompt whose length does not matter: some forty tokens in all."""
SIZING_WORDS = (8, 72)
"""Words of the two prompts that tell how many tokens a word is."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How many tokens a prompt of so many words is on one endpoint.

    Attributes:
        fixed: Tokens of the request for an answer and of the chat template.
        per_word: Tokens of each further word.
        measured: Whether the endpoint's own counts told both; else they are assumed.
    """

    fixed: float = 30.0
    per_word: float = 2.2
    measured: bool = False

    def words(self, tokens: int) -> int:
        """Words of the prompt that comes nearest to so many tokens."""
        return max(1, round((tokens - self.fixed) / self.per_word))


def prompt_of(words: int, rng: np.random.Generator) -> str:
    """A prompt unlike any other from its first word on, so that no prefix cache knows it.

    Args:
        words: Made-up words before the request for an answer without end.
        rng: Source of randomness.
    """
    drawn = rng.integers(0, len(_SYLLABLES), (words, 2))
    said = " ".join(_SYLLABLES[a] + _SYLLABLES[b] for a, b in drawn.tolist())
    return f"{int(rng.integers(1_000_000, 9_999_999))} {said}. {_ASK}"


def scale_of(samples: Sequence[Sample]) -> Scale:
    """The line through the prompt tokens that the endpoint counts for the two of `SIZING_WORDS`.

    Args:
        samples: Of those two prompts, in their order.

    Returns:
        The scale; an assumed one where the endpoint counts no prompt tokens, or the same for both.
    """
    counts = [sample.prompt_tokens for sample in samples]
    few, many = SIZING_WORDS
    if len(counts) != 2 or counts[0] is None or counts[1] is None or counts[1] <= counts[0]:
        return Scale()
    per_word = (counts[1] - counts[0]) / (many - few)
    return Scale(counts[0] - few * per_word, per_word, measured=True)
