"""Which test breaks the method, or the plant, and sees a check of a paper's demo go red."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jointbench.cli.result import Check

ROOT = Path(__file__).resolve().parents[2]
FILE = "tools/tests/test_papers_break.py"

_LOST = "test_a_sample_that_was_lost_is_seen"
_FRICTION = "test_reductions_of_error_see_friction_of_a_wrong_sign_or_size_or_none"
_RESIDUAL = "test_gains_see_a_residual_of_a_wrong_sign_or_size_or_none"
_INTERVAL = "test_an_interval_far_from_the_truth_is_seen_whatever_the_verdict"

BROKEN_BY: dict[str, dict[str, str]] = {
    "rehab_arm": {
        "base_parameters": "test_base_parameters_see_links_that_turn_together",
        "verification_relative_error": "test_errors_of_the_verification_are_over_all_rows",
        "samples_lost": _LOST,
    },
    "modular7": {
        "samples_lost": _LOST,
        "gain_on_own_mission": "test_gains_see_friction_that_was_left_out",
        "gain_on_worst_unseen_mission": _RESIDUAL,
        "gain_on_worst_unseen_mission_without_friction": "test_gains_on_unseen_missions_see_another_plant",
    },
    "cobot6": {
        "samples_lost": _LOST,
        "rms_reduction_excitation": _FRICTION,
        "rms_reduction_verification": "test_rows_at_rest_count",
        "rms_reduction_excitation_presliding": _FRICTION,
        "rms_reduction_verification_presliding": _FRICTION,
        "rms_reduction_excitation_unmodelled": _FRICTION,
        "rms_reduction_verification_unmodelled": _FRICTION,
        "a1_of_the_published_plant_off": "test_a1_of_the_published_plant_sees_a_gain_that_was_not_fitted",
        "j5_flexibility_off": _INTERVAL,
        "j6_flexibility_off": _INTERVAL,
    },
}
"""By robot and check: a test of FILE."""


def broken_lines(robot: str, checks: Sequence[Check]) -> list[str]:
    """A line for each check of a robot that is listed here; none of others."""
    tests = BROKEN_BY.get(robot, {})
    return [f"- {check.name}: {tests[check.name]}" for check in checks if check.name in tests]
