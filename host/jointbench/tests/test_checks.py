"""The frame that people and CI read: it must be able to say no."""

import json
import math

import pytest

from jointbench.checks import Check, Result


@pytest.mark.parametrize(
    ("value", "relation", "limit", "ok"),
    [(0, "<=", 0, True), (1, "<=", 0, False), (0.9, ">=", 0.9, True), (0.89, ">=", 0.9, False), (3, "==", 4, False)],
)
def test_check_compares_value_with_limit(value, relation, limit, ok):
    assert Check("figure", value, relation, limit).ok is ok


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_never_passes(value):
    assert not Check("figure", value, "<=", 1.0).ok
    assert not Check("figure", value, ">=", -1.0).ok


def test_one_failed_check_is_exit_code_1():
    good, bad = Check("a", 1, "<=", 2), Check("b", 3, "<=", 2)

    assert Result("fit", checks=(good,)).exit_code == 0
    assert Result("fit", checks=(good, bad)).exit_code == 1
    assert Result("fit", checks=(good,), refused=True).exit_code == 1


def test_frame_has_the_common_keys_and_the_fields(tmp_path):
    result = Result("fit", seed=3, checks=(Check("a", 1, "<=", 2, "s"),), fields={"condition_number": 12.5})
    result.write(str(tmp_path / "result.json"), seconds=1.23456)

    assert json.loads((tmp_path / "result.json").read_text()) == {
        "command": "fit",
        "seed": 3,
        "seconds": 1.235,
        "checks": [{"name": "a", "value": 1, "relation": "<=", "limit": 2, "unit": "s", "ok": True}],
        "condition_number": 12.5,
    }


def test_check_says_its_figures_to_a_person():
    assert str(Check("samples_lost", 3, "<=", 0, "samples")) == "NO  samples_lost: 3 samples (wanted <= 0 samples)"
