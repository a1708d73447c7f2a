from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.probe.prompts import ANY_WORDS, Scale, prompt_of


@given(tokens=st.integers(40, 5000), per_word=st.floats(0.5, 8), fixed=st.floats(0, 30))
def test_prompts_have_the_wanted_tokens(tokens: int, per_word: float, fixed: float) -> None:
    scale = Scale(fixed, per_word, measured=True)
    assert abs(fixed + per_word * scale.words(tokens) - tokens) <= max(per_word, 0)


def test_no_two_prompts_begin_alike() -> None:
    rng = np.random.default_rng(5)
    prompts = [prompt_of(3, rng) for _ in range(500)]
    assert len({prompt.split()[0] for prompt in prompts}) > 495
    assert prompts[0] == prompt_of(3, np.random.default_rng(5))


def test_it_asks_for_an_answer_without_end() -> None:
    text = prompt_of(ANY_WORDS, np.random.default_rng(1))
    assert len(text.partition(".")[0].split()) == 1 + ANY_WORDS
    assert text.endswith("Go on without end.")
