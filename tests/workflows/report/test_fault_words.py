"""What a request failed with is told in words, in either language."""

from __future__ import annotations

import pytest

from slotwise_workflows.probe.wire.faults import SENTENCES
from slotwise_workflows.report import load_words, probe_reading
from slotwise_workflows.report.words import LANGUAGES, Language
from slotwise_workflows.result import Reason


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_fault_has_words(language: Language) -> None:
    words = load_words(language)
    named = {key.removeprefix("fault.") for key in words.table if key.startswith("fault.")}
    assert named == set(SENTENCES)


def test_a_fault_is_told_in_words() -> None:
    failed = Reason(code="requests_failed", numbers={"requests": 4, "fault": "error_event"})
    told = probe_reading.because(failed, load_words("en"))
    assert told == "4 requests failed. Of the first: it answers with an error in place of tokens."
