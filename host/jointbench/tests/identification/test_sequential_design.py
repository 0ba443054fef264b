"""Identification until it is precise, on simulated recordings: when it ends, what it says, and what it comes to."""

from dataclasses import replace

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import fit
from jointbench.identification.sequential_design import PATIENCE, Precision, SequentialIdentification, identify_until
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

ARM = arm(2)
PIECE_S = 3.2


def play(excitation: Excitation, number: int) -> Run:
    return synthetic_run(ARM, motion_seed=0, noise_seed=number, repeats=1, plan=excitation)


def identified(wanted: float, most: float) -> SequentialIdentification:
    return identify_until(ARM, play, wanted, most=most, piece=PIECE_S, plan_time=0.3)


@pytest.fixture(scope="module")
def ten_percent() -> SequentialIdentification:
    return identified(0.1, 48.0)


@pytest.mark.slow
def test_it_ends_when_all_that_can_be_is_known(ten_percent: SequentialIdentification) -> None:
    precision = ten_percent.precision
    assert precision.is_reached
    assert not ten_percent.precisions[-2].is_reached
    assert ten_percent.motion == pytest.approx(PIECE_S * len(ten_percent.runs))
    # Five standard deviations: one in two million of so many draws.
    assert np.max(np.abs(ten_percent.model.deviations(truth(ARM)))) < 5.0


@pytest.mark.slow
def test_the_worst_is_known_better_than_by_as_much_random_motion(ten_percent: SequentialIdentification) -> None:
    """Pieces are planned for what is known worst; random ones are not."""
    size = ten_percent.precision.size
    worst = ten_percent.precision.relative_sigma.max()
    n = len(ten_percent.runs)
    by_chance = [
        (
            fit([play(random_excitation(ARM, period=PIECE_S, seed=10 * draw + k), k) for k in range(n)]).sigma / size
        ).max()
        for draw in range(3)
    ]
    assert worst < min(by_chance)


@pytest.mark.slow
def test_what_the_time_does_not_allow_is_out_of_reach() -> None:
    identification = identified(0.002, PIECE_S * (PATIENCE + 2))
    precision = identification.precision
    assert precision.is_out_of_reach.any()
    assert precision.is_reached or len(identification.runs) == PATIENCE + 2
    missed = np.flatnonzero(precision.is_out_of_reach)
    assert np.all(precision.time_needed(identification.motion)[missed] > identification.motion)
    assert np.all(precision.at_best[missed] > 0.002)


def precision_of(relative_sigma: list[float], missed: list[int]) -> Precision:
    values = np.array(relative_sigma)
    names = tuple(f"p{k}" for k in range(len(values)))
    confused = (("p0", 0.5),) * len(values)
    return Precision(
        names, np.ones(len(values)), values, values, np.ones(len(values)), 1.0, np.array(missed), confused, 0.1
    )


def test_a_parameter_is_given_up_after_some_judgements_and_counts_again_once_it_is_known() -> None:
    precision = precision_of([0.05, 0.5, 0.5, 0.05], [0, PATIENCE - 1, PATIENCE, PATIENCE])
    assert precision.is_known.tolist() == [True, False, False, True]
    assert precision.is_out_of_reach.tolist() == [False, False, True, False]
    assert not precision.is_reached
    assert replace(precision, missed_before=np.full(4, PATIENCE)).is_reached


def test_the_time_that_is_needed_grows_with_the_square_of_what_is_missing() -> None:
    assert precision_of([0.05, 0.1, 0.4], [0, 0, 0]).time_needed(20.0).tolist() == pytest.approx([20.0, 20.0, 320.0])


@pytest.mark.parametrize(("wanted", "most"), [(0.0, 60.0), (1.5, 60.0), (0.1, 3.0)])
def test_what_cannot_be_is_refused_before_anything_moves(wanted: float, most: float) -> None:
    def must_not_move(excitation: Excitation, number: int) -> Run:
        raise AssertionError(number)

    with pytest.raises(FitError, match=r"give a share between 0 and 1|do not hold one piece of 3\.2 s"):
        identify_until(ARM, must_not_move, wanted, most=most, piece=PIECE_S)
