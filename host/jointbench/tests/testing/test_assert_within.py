"""The judge of measured values: first of all, that it can say no."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from jointbench.errors import BeyondLimit, RequirementsError
from jointbench.testing.assert_within import assert_within
from jointbench.testing.requirements import Requirement


def required(relation: str, limit: float | None, unit: str = "ms") -> Requirement:
    return Requirement("line.answer", relation, limit, unit, "design", "why", ("test_line.py",))


@pytest.mark.parametrize("limit", [0.1, 3.0, -2.5, 1e-300, 1e300, 0.0])
def test_one_step_of_a_float_beyond_is_beyond(limit: float) -> None:
    above, below = math.nextafter(limit, math.inf), math.nextafter(limit, -math.inf)
    for relation, kept, broken in (("<=", below, [above]), (">=", above, [below]), ("==", limit, [above, below])):
        assert assert_within(limit, required(relation, limit)) == limit
        assert assert_within(kept, required(relation, limit)) == kept
        for value in broken:
            with pytest.raises(BeyondLimit) as raised:
                assert_within(value, required(relation, limit))
            assert repr(value) in str(raised.value)
            assert raised.value.value == value


def test_whole_numbers_are_compared_exactly() -> None:
    """As floats the two would be the same number."""
    count = 2**53
    assert_within(np.array([count, 1]), required("<=", float(count), "bytes"))
    with pytest.raises(BeyondLimit, match=r"9007199254740993, the worst of 2$"):
        assert_within(np.array([count + 1, 1]), required("<=", float(count), "bytes"))


def test_it_says_what_was_required_and_what_came() -> None:
    with pytest.raises(AssertionError, match=r"^line\.answer must be <= 20 ms, and is 20\.5$"):
        assert_within(20.5, required("<=", 20))
    with pytest.raises(AssertionError, match=r"^line\.answer must be >= 20 ms, and is 3, the worst of 3$"):
        assert_within([21, 3, 40], required(">=", 20))


@pytest.mark.parametrize("relation", ["<=", ">=", "=="])
@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, -math.inf, np.float32("nan"), [0.0, math.nan], np.array([0.0, np.nan]), [math.nan, 0.0],
        None, [None], [0, None], np.array([0, None]), np.ma.masked, np.ma.array([0.0, 0.0], mask=[False, True]),
        [], (), [[]], [[0.0], []], np.zeros(0), np.zeros((3, 0)), {}, {"value": 0.0}, range(0),
        pytest.param(iter([0.0]), id="iterator"), pytest.param(object(), id="object"),  # their repr is an address
        True, False, np.True_, [False], np.zeros(2, bool), np.timedelta64(0, "us"), np.zeros(2, "m8[us]"),
        "0", "0 ms", b"0", np.array(["0"]), 0j, Fraction(0), object,
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_number_never_passes(value: object, relation: str) -> None:
    with pytest.raises(BeyondLimit, match=r"no number|nothing was measured|nothing can be said|not measured") as raised:
        assert_within(value, required(relation, 0.0))
    assert raised.value.value is None


@pytest.mark.parametrize("limit", [math.inf, math.nan])
def test_a_limit_that_is_none_lets_nothing_pass(limit: float) -> None:
    """Such a requirement is not read from a file; one that is made nevertheless must not say yes to a NaN."""
    with pytest.raises(BeyondLimit):
        assert_within(math.nan, required("==", limit))


def test_the_other_relation_says_the_other_thing() -> None:
    for relation, value in (("<=", 30), (">=", 10), ("==", 10), ("==", 30)):
        with pytest.raises(BeyondLimit):
            assert_within(value, required(relation, 20))
    for relation, value in (("<=", 10), (">=", 30), ("==", 20)):
        assert_within(value, required(relation, 20))


def test_one_bad_value_among_many_is_found_wherever_it_is() -> None:
    for place in range(24):
        values = np.zeros((2, 3, 4))
        values.flat[place] = 21.0
        with pytest.raises(BeyondLimit, match=r"is 21\.0, the worst of 24"):
            assert_within(values, required("<=", 20))
        with pytest.raises(BeyondLimit, match=r"is -21\.0, the worst of 24"):
            assert_within(-values, required("==", 0))


def test_a_value_in_another_unit_does_not_pass() -> None:
    assert_within(3.0, required("<=", 20, "ms"), "ms")
    with pytest.raises(BeyondLimit, match="the value is in s: give it in ms"):
        assert_within(0.003, required("<=", 20, "ms"), "s")
    with pytest.raises(BeyondLimit, match="the value is in "):
        assert_within(3.0, required("<=", 20, "ms"), "")


def test_a_percentage_is_no_fraction_in_either_direction() -> None:
    """A window of ±300 % that was meant as 3 %; and 95 % that passes for more than nine tenths because it is 95."""
    assert_within([0.0, 0.03], required("<=", 0.03, "fraction"))
    assert_within([0.9, 1.0], required(">=", 0.9, "fraction"))
    for value, relation, limit in ((3, "<=", 0.03), (95, ">=", 0.9), (12, ">=", 0.9), (-0.01, "<=", 0.03)):
        with pytest.raises(BeyondLimit):
            assert_within(value, required(relation, limit, "fraction"))
    with pytest.raises(BeyondLimit, match=r"0\.95 … 95 are no fractions: 3 % is 0\.03"):
        assert_within([0.95, 95], required(">=", 0.9, "fraction"))


def test_a_limit_is_not_scaled_by_the_value() -> None:
    """A limit of 3 is 3, and not three times, or 3 % of, anything."""
    with pytest.raises(BeyondLimit):
        assert_within(100.0, required("<=", 3.0))
    with pytest.raises(BeyondLimit):
        assert_within(0.0, required(">=", 3.0))


def test_it_returns_the_worst() -> None:
    assert assert_within([3, 7, 5], required("<=", 20)) == 7
    assert assert_within(np.array([33.0, 27.0]), required(">=", 20)) == 27.0
    assert assert_within(np.float32(0.5), required("<=", 20)) == 0.5
    assert type(assert_within(np.int64(3), required("<=", 20))) is int


def test_a_statement_has_no_limit() -> None:
    with pytest.raises(RequirementsError, match=r"'line\.answer' is a statement and has no limit"):
        assert_within(0.0, required("holds", None, ""))


def test_it_says_no_without_assertions() -> None:
    """Python -O leaves assert statements out."""
    program = """
from jointbench.testing.assert_within import assert_within
from jointbench.testing.requirements import Requirement
assert_within(2, Requirement("a.b", "<=", 1, "ms", "design", "why", ("test_a.py",)))
"""
    ended = subprocess.run([sys.executable, "-O", "-c", program], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.endswith("BeyondLimit: a.b must be <= 1 ms, and is 2\n")
