"""Which test breaks the method, or the plant, and sees a check of a paper's demo go red."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jointbench.checks import Check

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "tools/tests"

_LOST = "test_papers_break.py::test_a_sample_that_was_lost_is_seen"
_RANK = "test_papers_break.py::test_base_parameters_see_links_that_turn_together"
_FRICTION = "test_papers_break.py::test_reductions_of_error_see_friction_of_a_wrong_sign_or_size_or_none"
_RESIDUAL = "test_papers_break.py::test_gains_see_a_residual_of_a_wrong_sign_or_size_or_none"
_INTERVAL = "test_papers_break.py::test_an_interval_far_from_the_truth_is_seen_whatever_the_verdict"
_PLANT = "test_papers_break.py::test_gains_on_unseen_missions_see_another_plant"
_GAIN = "test_papers_break.py::test_a1_of_the_published_plant_sees_a_gain_that_was_not_fitted"
_STROKES = "test_paper_nursing.py::test_friction_by_a_wrong_sign_is_seen"
_STAIRS = "test_paper_nursing.py::test_the_printed_strokes_tell_the_plants_friction"
_LINKS = "test_paper_nursing.py::test_another_robot_than_the_one_that_was_fitted_is_seen"
_REFUSED = ("WrongTotalMass", "StuckFootSensor", "RobotFalls", "FootOffGround")
_NAMED = "test_paper_biped.py::test_a_fault_that_is_called_something_else_is_seen"
_COUNTS = "test_paper_biped.py::test_counts_of_runs_solver_and_faults_can_be_red"

BROKEN_BY: dict[str, dict[str, str]] = {
    "nursing_arm": {
        "samples_lost": _LOST,
        "base_parameters": _RANK,
        "friction_error_rotation": _STROKES,
        "friction_error_pitch": _STROKES,
        "friction_error_played_rotation": _STAIRS,
        "friction_error_played_pitch": _STAIRS,
        **{f"verification_relative_j{j}": _LINKS for j in range(1, 7)},
    },
    "nursing_dual": {
        "samples_lost": _LOST,
        "base_parameters": _RANK,
        "motors": "test_paper_nursing.py::test_an_arm_that_is_not_there_is_seen",
        "start_ticks_apart": "test_paper_nursing.py::test_a_board_that_starts_late_is_seen",
        "mirror_difference": "test_paper_nursing.py::test_an_arm_that_is_no_mirror_image_is_seen",
        "verification_relative": "test_paper_nursing.py::test_the_worst_of_all_joints_counts",
    },
    "gorobot2": {
        "samples_lost": _LOST,
        "boards": "test_paper_biped.py::test_a_board_that_does_not_stream_is_seen",
        "ours_to_paper": "test_paper_biped.py::test_a_wrong_sign_of_a_moment_is_seen",
        "ours_to_sensor_floor": "test_paper_biped.py::test_a_wrong_sign_of_a_moment_is_seen",
        "covered_by_ours": "test_paper_biped.py::test_a_plant_beyond_the_prior_is_seen",
        "spread_smaller": _COUNTS,
        "iterations_to_papers": _COUNTS,
        **{f"named_{what}": _NAMED for what in _REFUSED},
    },
    "rehab_arm": {
        "base_parameters": _RANK,
        "verification_relative_error": "test_papers_break.py::test_errors_of_the_verification_are_over_all_rows",
        "samples_lost": _LOST,
    },
    "modular7": {
        "samples_lost": _LOST,
        "gain_on_own_mission": "test_papers_break.py::test_gains_see_friction_that_was_left_out",
        "gain_on_worst_unseen_mission": _RESIDUAL,
        "gain_on_worst_unseen_mission_without_friction": _PLANT,
    },
    "cobot6": {
        "samples_lost": _LOST,
        "rms_reduction_excitation": _FRICTION,
        "rms_reduction_verification": "test_papers_break.py::test_rows_at_rest_count",
        "rms_reduction_excitation_presliding": _FRICTION,
        "rms_reduction_verification_presliding": _FRICTION,
        "rms_reduction_excitation_unmodelled": _FRICTION,
        "rms_reduction_verification_unmodelled": _FRICTION,
        "a1_of_the_published_plant_off": _GAIN,
        "j5_flexibility_off": _INTERVAL,
        "j6_flexibility_off": _INTERVAL,
    },
}
"""By robot and check: a test in FOLDER."""


def broken_lines(robot: str, checks: Sequence[Check]) -> list[str]:
    """A line for each check of a robot."""
    tests = BROKEN_BY[robot]
    return [f"- {check.name}: {tests.get(check.name, 'none')}" for check in checks]
