"""What is written as TOML reads back as what it was."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointbench.errors import RunError
from jointbench.recording.run_directory import toml_text

# TOML has no characters of UTF-16's surrogate range, and its integers have 64 bits.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALAR = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


def _plain(value: object) -> bool:
    """Whether TOML can hold it as written here: no tables inside lists that hold other things, too."""
    if isinstance(value, dict):
        return all(_plain(item) for item in value.values())
    if isinstance(value, list):
        tables = [isinstance(item, dict) for item in value]
        return all(_plain(item) for item in value) and (not any(tables) or all(tables))
    return True


def _no_nested_tables(value: object, inside: bool = False) -> bool:
    """Tables in lists in lists have no form here; nothing in a run has them."""
    if isinstance(value, dict):
        return not inside and all(_no_nested_tables(item) for item in value.values())
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value) and not inside:
            return all(_no_nested_tables(item) for item in value)
        return all(_no_nested_tables(item, True) for item in value)
    return True


@given(st.dictionaries(TEXT, VALUE.filter(_plain).filter(_no_nested_tables), max_size=4))
def test_everything_comes_back(values: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(values)) == values


def test_numbers_of_numpy_are_numbers() -> None:
    values = {"a": np.float64(0.5), "b": np.array([[1, 2], [3, 4]]), "c": np.bool_(True), "d": None}
    assert tomllib.loads(toml_text(values)) == {"a": 0.5, "b": [[1, 2], [3, 4]], "c": True}


def test_what_has_no_form_is_named() -> None:
    with pytest.raises(RunError, match=r"bench\.port = .* cannot be written to run\.toml"):
        toml_text({"bench": {"port": Path("x")}})
