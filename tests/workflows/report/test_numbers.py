from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.report import numbers

finite = st.floats(1e-6, 1e12)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 3, "0"),
        (0.0012345, 3, "0.00123"),
        (9.996, 3, "10.0"),
        (99.96, 3, "100"),
        (1234.5, 3, "1,234"),
        (-2.345, 2, "-2.3"),
        (1e-7, 2, "0.00000010"),
    ],
)
def test_significant_digits(value: float, digits: int, text: str) -> None:
    assert numbers.significant(value, digits) == text


@given(finite)
def test_significant_digits_stay_close(value: float) -> None:
    shown = float(numbers.significant(value).replace(",", ""))
    assert shown == pytest.approx(value, rel=0.006)


@given(finite)
def test_no_number_is_ever_in_e_notation(value: float) -> None:
    for shown in (numbers.significant(value), numbers.plain(value), numbers.count(value)):
        assert "e" not in shown


@pytest.mark.parametrize(
    ("low", "high", "decimals"),
    [(1.91, 2.21, 2), (1.0, 2.5, 1), (1, 30, 0), (1.0, 1.0, 2), (1.001, 1.002, 2), (2.0, 1.0, 1)],
)
def test_decimals_of_an_estimate(low: float, high: float, decimals: int) -> None:
    assert numbers.interval_decimals(low, high) == decimals


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.64, "64"), (0.0995, "10"), (0.0994, "9.9"), (0.995, "99.5"), (1.0, "100"), (6.19, "619")],
)
def test_percent(share: float, text: str) -> None:
    assert numbers.percent(share) == text


@given(st.floats(1e-9, 0.99999))
def test_a_share_that_is_not_nothing_or_all_is_never_shown_as_such(share: float) -> None:
    assert numbers.percent(share) not in {"0", "0.0", "100", "100.0"}
