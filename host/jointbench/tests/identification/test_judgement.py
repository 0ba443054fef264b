"""Verdicts, errors of the torque, and whether a torque says something."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification import fit, validate
from jointbench.identification.judgement import (
    ErrorSums,
    InformationSums,
    TorqueError,
    TorqueInformation,
    judge_joint,
    judge_joints,
    judge_parameter,
    judge_whole,
    noise_in_band,
    torque_error,
    unseen_parameters,
)
from jointbench.recording import Run
from jointbench.signals import LowPass
from jointbench.tests.identification.synthetic import arm, synthetic_run


@pytest.mark.parametrize(
    ("value", "sigma", "word"),
    [(10.0, 1.0, "identified"), (-10.0, 1.0, "identified"), (10.0, 3.0, "poorly excited"), (10.0, 6.0, "refused"),
     (0.0, 1.0, "refused"), (0.0, np.inf, "not observable")],
)  # fmt: skip
def test_words_on_parameters(value: float, sigma: float, word: str):
    assert judge_parameter("j1.viscous", value, sigma).word == word


def test_reasons_hold_the_figures():
    assert judge_parameter("p", 10.0, 6.0).reason == "10 ± 6 is within 2 σ of zero"
    assert "has no effect on the torques" in judge_parameter("p", 0.0, np.inf).reason
    assert "25.0% of the torque over 80% of the time" in judge_joint("j1", 0.25, 0.8).reason


def test_words_on_joints_and_the_whole():
    errors = np.array([0.05, 0.2, 0.4, np.nan])
    joints = judge_joints(("a", "b", "c", "d"), errors, np.ones(4))
    assert [joint.word for joint in joints] == ["identified", "poor fit", "refused", "refused"]
    assert judge_whole(joints, errors).reason.startswith("worst joint d: the joint never moves")
    assert judge_whole(joints[:2], errors[:2]).word == "poor fit"
    fine = judge_joints(("a", "b"), np.array([0.02, 0.04]), np.ones(2))
    assert str(judge_whole(fine, np.array([0.02, 0.04]))).startswith("model: identified (worst joint b: torque error 4")


@pytest.mark.parametrize(
    ("error", "left_out", "word"),
    [
        (0.05, 0.06, "identified"),
        (0.05, 0.08, "poor fit"),  # below a tenth, but 1.6 times the error of the fit
        (0.05, 0.12, "poor fit"),
        (0.05, 0.4, "refused"),
        (0.12, 0.11, "poor fit"),  # the error of the fit counts where it is larger
    ],
)
def test_a_joint_is_judged_by_time_left_out(error: float, left_out: float, word: str):
    verdict = judge_joint("j1", error, 0.9, left_out=left_out, optimism=left_out / error)
    assert verdict.word == word
    assert f"{left_out:.1%} on time left out of the fit" in verdict.reason


def test_torque_error_counts_only_what_is_counted():
    measured = np.array([[3.0, 1.0], [4.0, 1.0], [100.0, 1.0]])
    predicted = measured + np.array([[0.3, 0.0], [0.4, 0.0], [50.0, 0.0]])
    counted = np.array([[True, False], [True, False], [False, False]])
    error = torque_error(measured, predicted, counted, np.ones(3, dtype=np.bool_))
    assert error.rms[0] == pytest.approx(np.sqrt(0.125))
    assert error.relative[0] == error.total_relative == pytest.approx(0.1)
    assert np.isnan(error.rms[1])
    assert np.isnan(error.relative[1])
    assert error.share == pytest.approx([2.0 / 3.0, 0.0])


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
def test_errors_of_blocks_are_those_of_one(size: int):
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


ARM = arm(3)
ROWS = np.arange(4000)
EVERYWHERE = np.ones((4000, 1), dtype=np.bool_)


def information(torque: Array, used: NDArray[np.bool_] = EVERYWHERE, block: int = 4000) -> TorqueInformation:
    sums = InformationSums(torque.shape[1])
    for start in range(0, len(torque), block):
        sums.add(start, torque[start : start + block], used[start : start + block])
    return sums.result()


def white(deviation: float, seed: int = 0) -> Array:
    return deviation * np.random.default_rng(seed).standard_normal((4000, 1))


@pytest.mark.parametrize("amplitude", [0.5, 2.0, 20.0])
def test_variation_and_noise_are_told_apart(amplitude: float):
    torque = 7.0 + amplitude * np.sqrt(2.0) * np.sin(2.0 * np.pi * ROWS / 20.0)[:, None] + white(1.0)

    found = information(torque)

    # 4000 rows tell a deviation to 2 %; of a motion at a twentieth of the rows' rate 0.7 % of its amplitude is left.
    expected = np.hypot(1.0, 0.007 * amplitude)
    assert found.noise[0] == pytest.approx(expected, rel=0.04)
    # The smaller the variation beside the noise, the less its own deviation is known: that of its square is 2 %.
    assert found.variation[0] == pytest.approx(amplitude, rel=0.02 + 0.04 / amplitude**2)
    assert found.informative[0] == (amplitude > 1.0)


def test_a_constant_beside_noise_is_no_information():
    assert not information(50.0 + white(0.1)).informative[0]


def test_a_stuck_current_is_no_information():
    found = information(np.full((4000, 1), 0.1) * 3.0)
    assert not found.informative[0]
    assert found.reasons(arm(1)) == {"j1": "j1's current does not vary: it is stuck, or not connected"}


def test_a_quiet_joint_is_information():
    assert information(white(1e-6) + 1e-5 * np.sin(ROWS / 5.0)[:, None]).informative[0]


def test_information_of_blocks_is_that_of_one():
    torque, used = np.cumsum(white(1.0), axis=0) + white(3.0, 1), np.random.default_rng(2).random((4000, 1)) > 0.1
    whole = information(torque, used)
    for size in (1, 2, 7, 1000):
        parts = information(torque, used, size)
        # Sums in another order.
        np.testing.assert_allclose([parts.noise, parts.variation], [whole.noise, whole.variation], rtol=1e-9)


def test_differences_do_not_reach_across_gaps():
    sums = InformationSums(1)
    for start in range(0, 100):  # three rows, a gap, and another level: no four neighbours
        sums.add(10 * start, np.full((3, 1), float(start)), np.ones((3, 1), dtype=np.bool_))
    assert np.isnan(sums.result().noise[0])
    assert sums.result().informative[0]


def test_noise_between_repeats_counts_where_it_is_larger():
    torque = white(0.1) + np.sin(ROWS / 10.0)[:, None]
    sums = InformationSums(1)
    sums.add(0, torque, EVERYWHERE)
    assert sums.result(np.array([np.nan])).informative[0]
    assert not sums.result(np.array([0.9])).informative[0]


def test_white_noise_in_the_band():
    low_pass = LowPass(20.0, 0.001)
    filtered = low_pass.apply(np.random.default_rng(0).standard_normal(200_000))
    # 200 000 samples hold 8000 independent ones: a deviation to 1 %.
    assert noise_in_band(np.array([1.0]), low_pass)[0] == pytest.approx(filtered.std(), rel=0.03)


def test_dictionaries_of_what_is_known_and_not():
    for each in (information(white(1.0)), TorqueInformation.unknown(1)):
        read = TorqueInformation.from_dict(each.to_dict())
        np.testing.assert_array_equal([read.variation, read.noise], [each.variation, each.noise])
    assert TorqueInformation.unknown(3).informative.all()


def deaf(run: Run, joint: int, torque: Array) -> Run:
    measured = run.samples.motor_torque
    assert measured is not None
    changed = measured.copy()
    changed[:, joint] = torque
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, motor_torque=changed))


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic_run(ARM, motion_seed=1, noise_seed=1)


def test_a_joint_below_its_noise_is_refused_with_the_reason(run: Run):
    noise = 2.0 + 0.3 * np.random.default_rng(3).standard_normal(run.samples.n_samples)
    broken = deaf(run, 2, noise)

    model = fit(broken)

    joint = model.joint_verdicts[2]
    assert joint.word == "refused"
    assert joint.reason.startswith("j3's current is below its noise (")
    assert joint.reason.endswith(" N·m)")
    words = dict(zip(model.names, model.parameter_verdicts, strict=True))
    for name in ("j3.coulomb", "j3.viscous", "j3.offset"):
        assert words[name].word == "not observable"
        assert words[name].reason == f"seen only through j3: {joint.reason}"
    assert words["j1.coulomb"].word == words["j2.viscous"].word == "identified"
    assert model.value("j1.coulomb") == pytest.approx(6.0, abs=5.0 * model.sigma[model.names.index("j1.coulomb")])
    assert model.verdict.word == "refused"
    assert any("its rows are left out" in note for note in model.notes)
    check = validate(fit(run), broken, in_sample=True)
    assert check.joint_verdicts[2] == dataclasses.replace(joint, reason=check.reasons["j3"])
    assert check.joint_verdicts[0].word == "in-sample"


def test_a_current_that_does_not_vary_is_refused_however_small_its_error(run: Run):
    """Of a large constant a model explains nearly all, and knows nothing."""
    model = fit(deaf(run, 2, np.full(run.samples.n_samples, 5.0)))
    assert model.joint_verdicts[2].reason == "j3's current does not vary: it is stuck, or not connected"
    assert not model.is_identified("j3.offset")


def test_a_torque_that_tells_is_not_refused_for_its_noise(run: Run):
    """Noise of half of the torque's variation costs precision, not the joint."""
    measured = run.samples.motor_torque
    assert measured is not None
    loud = measured[:, 2] + 10.0 * np.random.default_rng(3).standard_normal(len(measured))
    model = fit(deaf(run, 2, loud))
    assert model.information.informative.all()
    assert not model.uninformative


def test_what_other_joints_also_see_says_which_is_missing():
    model = fit(synthetic_run(ARM, motion_seed=1, noise_seed=1))
    found = unseen_parameters(model.base, ARM, {"j2": "j2's current does not vary"})
    assert found["j2.coulomb"] == "seen only through j2: j2's current does not vary"
    assert found["j3.Ixx"] == "not told without j2: j2's current does not vary"
    assert "j1.coulomb" not in found
    assert "j3.coulomb" not in found
    assert unseen_parameters(model.base, ARM, {}) == {}
