"""Numbers carry the digits that they have earned."""

import math

import pytest

from jointbench.results.content import column, count, percent, typeset, value_and_sigma


@pytest.mark.parametrize(
    ("value", "sigma", "shown"),
    [
        (1.23456, 0.0432, ("1.235", "0.043")),
        (-12.3456, 2.5, ("−12.3", "2.5")),
        (12345.6, 340.0, ("12346", "340")),
        (0.00123456, 0.0000012, ("0.0012346", "0.0000012")),
        (-1.2346e-8, 3.1e-10, ("−1.235e−8", "0.031e−8")),
        (0.0, 0.5, ("0.00", "0.50")),
    ],
)
def test_value_ends_at_second_digit_of_its_sigma(value: float, sigma: float, shown: tuple[str, str]) -> None:
    assert value_and_sigma(value, sigma) == shown


@pytest.mark.parametrize("sigma", [0.0, math.nan])
def test_value_without_an_error_says_so(sigma: float) -> None:
    assert value_and_sigma(2.5, sigma) == ("2.5", "–")


def test_nothing_is_shown_of_a_value_that_nothing_is_known_of() -> None:
    assert value_and_sigma(0.0, math.inf) == ("–", "–")
    assert value_and_sigma(math.nan, 1.0) == ("–", "–")


def test_column_has_one_number_of_decimals() -> None:
    assert column([12.345, 0.0567, math.nan, -3.0]) == ["12.345", "0.057", "–", "−3.000"]
    assert column([math.nan, 0.0]) == ["–", "0"]


def test_percent_of_small_and_large_fractions() -> None:
    shown = [percent(fraction) for fraction in (0.0123, 0.079, 0.5, 1.234, math.nan)]
    assert shown == ["1.2\u00a0%", "7.9\u00a0%", "50\u00a0%", "123\u00a0%", "–"]


def test_count_in_groups_of_three() -> None:
    assert count(1234567) == "1\u202f234\u202f567"


def test_sentences_are_set_like_the_numbers_beside_them() -> None:
    assert typeset("error 14.0% is above 10% (100 %)") == "error 14.0\u00a0% is above 10\u00a0% (100 %)"
    assert typeset("j2 -51.0%, p = 5e-151, on 2026-05-04") == "j2 −51.0\u00a0%, p = 5e-151, on 2026-05-04"
