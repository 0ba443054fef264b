"""Errors of torque, in one piece or in many."""

import dataclasses

import numpy as np
import pytest

from jointbench.identification.judgement.torque_error import ErrorSums, TorqueError, torque_error

RNG = np.random.default_rng(0)
MEASURED = 100.0 + RNG.standard_normal((600, 3)) * [1.0, 5.0, 0.0]
PREDICTED = MEASURED + RNG.standard_normal((600, 3))
COUNTED = RNG.random((600, 3)) < 0.8
COMPLETE = np.asarray(COUNTED.any(axis=1))


def test_r_squared_is_the_explained_share_of_the_variance():
    error = torque_error(MEASURED, PREDICTED, COUNTED, COMPLETE)
    for joint in (0, 1):
        torque, left = MEASURED[COUNTED[:, joint], joint], (MEASURED - PREDICTED)[COUNTED[:, joint], joint]
        expected = 1.0 - np.sum(left**2) / np.sum((torque - torque.mean()) ** 2)
        assert error.r_squared[joint] == pytest.approx(expected, rel=1e-9)
    assert np.isnan(error.r_squared[2])  # a torque that does not vary has no variance to explain
    # The relative error counts the mean and calls both good: only R² tells them apart.
    assert error.relative[:2] == pytest.approx([0.01, 0.01], rel=0.1)
    assert error.r_squared[0] < 0.2 < 0.9 < error.r_squared[1]


def test_the_mean_alone_explains_nothing():
    mean = np.full(MEASURED.shape, MEASURED.mean(axis=0))
    everywhere = np.ones(MEASURED.shape, dtype=np.bool_)
    error = torque_error(MEASURED, mean, everywhere, everywhere[:, 0])
    assert error.r_squared[:2] == pytest.approx(0.0, abs=1e-9)
    worse = torque_error(MEASURED, mean + 5.0, everywhere, everywhere[:, 0])
    assert worse.r_squared[0] < -20.0


@pytest.mark.parametrize("size", [1, 7, 599])
def test_blocks_are_as_one(size: int):
    sums = ErrorSums(3)
    for start in range(0, 600, size):
        part = slice(start, start + size)
        sums.add(MEASURED[part], PREDICTED[part], COUNTED[part], COMPLETE[part])
    whole = torque_error(MEASURED, PREDICTED, COUNTED, COMPLETE)
    for name, expected in dataclasses.asdict(whole).items():
        np.testing.assert_allclose(getattr(sums.result(), name), expected, rtol=1e-9)  # sums in another order


def test_dictionary_of_today_and_of_before():
    error = torque_error(MEASURED, PREDICTED, COUNTED, COMPLETE)
    for name, expected in dataclasses.asdict(error).items():
        np.testing.assert_array_equal(getattr(TorqueError.from_dict(error.to_dict()), name), expected)
    older = TorqueError.from_dict(
        {"rms": [1.0, None], "relative": [0.1, None], "total_relative": None, "share": [1, 0]}
    )
    assert np.isnan(older.r_squared).all()
    assert np.isnan(older.total_relative)
