from __future__ import annotations

import numpy as np
import pytest

from slotwise_workflows.probe.prompts import prompt


def test_prompts_differ_from_their_first_words_on() -> None:
    rng = np.random.default_rng(0)
    begun = {prompt(rng)[:30] for _ in range(500)}
    assert len(begun) > 490


def test_the_same_seed_gives_the_same_prompt() -> None:
    first, again = (prompt(np.random.default_rng(5), tokens=300) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("tokens", "words"), [(1, 6), (40, 6), (134, 100), (2034, 2000)])
def test_a_longer_prompt_begins_with_more_words(tokens: int, words: int) -> None:
    text = prompt(np.random.default_rng(1), tokens=tokens)
    assert len(text.partition(".")[0].split()) == words
    assert "do not stop" in text
