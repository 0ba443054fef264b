"""Eight numbers that all standard parameters of a biped follow from."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import FileError, RobotError
from jointbench.files import sealed_json
from jointbench.identification.judgement import Verdict
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, judge_reduced, load_stance_estimate
from jointbench.model import Link, floating_standard_parameters, load_robot
from jointbench.tests.identification.zero_moment_point.simulated_stance import biped, simulated_stance

ROBOT = load_robot("gorobot2")
REDUCED = ReducedParameters(ROBOT)
OTHER = np.array([0.25, 0.2, 0.1, 0.03, 9.0, 3.9, 3.1, 1.5])


def test_the_files_own_values_give_the_files_own_parameters() -> None:
    assert REDUCED.names == (
        "lc_trunk", "lc_thigh", "lc_shank", "lc_foot", "m_trunk", "m_thigh", "m_shank", "m_foot",
    )  # fmt: skip
    np.testing.assert_allclose(
        REDUCED.standard(REDUCED.nominal), np.asarray(floating_standard_parameters(ROBOT)), atol=1e-15
    )


def test_a_thigh_is_a_body_on_its_axis() -> None:
    """Of the left one, whose axis starts at the origin of its frame: parallel axes by hand."""
    thigh = next(i for i, joint in enumerate(ROBOT.joints) if joint.link.name == "l_thigh")
    block = REDUCED.standard(OTHER).reshape(-1, 10)[1 + thigh]
    lc, m = OTHER[1], OTHER[5]
    inertia = np.array(ROBOT.joints[thigh].link.inertia_about_center_of_mass)

    np.testing.assert_allclose(block[:4], [m, m * lc, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(block[[4, 7, 9]], np.diag(inertia) + m * lc**2 * np.array([0.0, 1.0, 1.0]), atol=1e-15)


def test_derivatives_are_those_of_complex_steps() -> None:
    """Polynomials of complex numbers: their imaginary parts are derivatives to rounding."""
    step = 1e-30
    for i, each in enumerate(np.eye(8)):
        moved = OTHER + 1j * step * each
        np.testing.assert_allclose(
            REDUCED.jacobian(OTHER)[:, i], (REDUCED.terms @ _coefficients(moved)).imag / step, atol=1e-12
        )
        back, ahead = (REDUCED.jacobian(OTHER + sign * 1e-5 * each) for sign in (-1.0, 1.0))
        np.testing.assert_allclose(REDUCED.hessian(OTHER)[:, i], (ahead - back) / 2e-5, atol=1e-8)  # quadratic at most


def _coefficients(phi: np.ndarray) -> np.ndarray:
    lc, m = np.split(phi, 2)
    return np.concatenate([[1.0], m, m * lc, m * lc**2])


def test_the_mass_row_weighs_the_robot() -> None:
    weighed = REDUCED.standard(OTHER)[::10].sum()
    assert REDUCED.mass_row @ OTHER + REDUCED.held_mass == pytest.approx(weighed, abs=1e-12)


def test_parameters_tell_what_they_were_made_of() -> None:
    np.testing.assert_allclose(REDUCED.of_parameters(REDUCED.standard(OTHER)), OTHER, atol=1e-12)
    np.testing.assert_allclose(REDUCED.of(ROBOT), REDUCED.nominal)


def test_parameters_of_another_make_are_refused() -> None:
    parameters = REDUCED.standard(OTHER).reshape(-1, 10)
    aside, unlike = parameters.copy(), parameters.copy()
    aside[0, 2] += 1e-3  # the right foot's m cy
    unlike[0, :4] *= 1.01
    with pytest.raises(RobotError, match=r"centre of mass of link 'r_foot' is 0\.667 mm off its axis"):
        REDUCED.of_parameters(aside.ravel())
    with pytest.raises(RobotError, match=r"links of kind 'foot' are not alike: r_foot 0\.03 m 1\.515 kg"):
        REDUCED.of_parameters(unlike.ravel())


def test_without_rotary_inertia_every_link_is_a_point() -> None:
    points = ReducedParameters(ROBOT, rotary="none").standard(OTHER).reshape(-1, 10)
    for m, _, my, mz, ixx, *_ in points:
        assert ixx == pytest.approx((my**2 + mz**2) / m, abs=1e-15)


def test_what_cad_says_of_rotary_inertia_may_be_doubted_moment_by_moment() -> None:
    point, body = (ReducedParameters(ROBOT, rotary=each).standard(OTHER) for each in ("none", "cad"))
    doubted = REDUCED.rotary_terms.sum(axis=1)
    moved = np.flatnonzero(doubted)

    assert REDUCED.rotary_names[:4] == ("trunk.Ixx", "trunk.Iyy", "trunk.Izz", "r_thigh.Ixx")
    assert len(moved) == len(REDUCED.rotary_names) == 21
    np.testing.assert_allclose(doubted[moved], (body - point)[moved], atol=1e-15)
    covariance = REDUCED.rotary_covariance(0.1)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0
    assert covariance[0, 0] > covariance[0, 1] > covariance[0, -1] > 0.0  # itself, its kind, another kind


def test_bounds_hold_the_nominal_and_no_mass_beyond_a_link() -> None:
    low, high = REDUCED.bounds.T
    assert (low < REDUCED.nominal).all()
    assert (REDUCED.nominal < high).all()
    np.testing.assert_allclose(high[:3], [0.4, 0.3, 0.3])


def test_robots_of_which_too_little_is_known_are_refused() -> None:
    with pytest.raises(RobotError, match=r"has no \[\[link_kinds\]\]"):
        ReducedParameters(load_robot("cobot6"))
    with pytest.raises(RobotError, match="floating_base = true"):
        ReducedParameters(replace(ROBOT, base_link=None))
    with pytest.raises(RobotError, match="link 'r_foot' of 'gorobot2' has no mass"):
        ReducedParameters(replace(ROBOT, base_link=Link("r_foot")))


def estimate() -> ZmpEstimate:
    """The robot file's own values; the last one has no error bar, which JSON has no number for."""
    covariance = np.diag([1e-4] * 7 + [np.inf])
    return ZmpEstimate(
        robot=biped(),
        method="ours",
        names=REDUCED.names,
        values=REDUCED.nominal,
        covariance=covariance,
        standard_parameters=REDUCED.standard(REDUCED.nominal),
        parameter_verdicts=judge_reduced(REDUCED, REDUCED.nominal, covariance),
        verdict=Verdict("stance", "poor fit", "made up"),
        total_mass=26.8,
        samples=1900,
        iterations=2,
        converged=True,
        trace=((0.5, 1e-3, 1.0), (1e-5, 1e-6, 0.5)),
        nuisance_names=("r_foot.front_left.gain",),
        nuisance_values=(0.004,),
        nuisance_sigma=(0.002,),
        notes=("a note",),
    )


def test_an_estimate_comes_back_whole(tmp_path: Path) -> None:
    saved = estimate()

    loaded = load_stance_estimate(saved.save(tmp_path / "estimate.json"))

    for field in dataclasses.fields(saved):
        before, after = getattr(saved, field.name), getattr(loaded, field.name)
        if isinstance(before, np.ndarray):
            assert np.array_equal(before, after), field.name
        else:
            assert before == after, field.name
    stance = simulated_stance(duration=8.0)
    assert loaded.distance(stance) == saved.distance(stance)


@pytest.mark.parametrize(
    ("reason", "word"),
    [("2.10 mm off, above 10%", "poor fit"), ("1.10 mm off, but it does not tell m_foot", "poorly excited")],
)
def test_an_estimate_with_the_words_of_the_release_before_is_read(tmp_path: Path, reason: str, word: str) -> None:
    path = tmp_path / "estimate.json"
    values = json.loads(estimate().save(path).read_text())
    del values["digest"], values["digests"]
    values["verdict"] |= {"word": "weak", "reason": reason}
    values["parameter_verdicts"][0]["word"] = "weak"
    values["parameter_verdicts"][-1]["word"] = "refused"
    path.write_text(sealed_json(values))

    loaded = load_stance_estimate(path)

    assert (loaded.verdict.word, loaded.verdict.reason) == (word, reason)
    assert [verdict.word for verdict in loaded.parameter_verdicts][:: len(loaded.names) - 1] == [
        "poorly excited",
        "refused",
    ]
    again = load_stance_estimate(loaded.save(path))
    assert again.parameter_verdicts == loaded.parameter_verdicts
    assert again.verdict == loaded.verdict


def test_what_is_no_estimate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "estimate.json"
    with pytest.raises(FileError, match=r"estimate\.json cannot be read"):
        load_stance_estimate(path)
    path.write_text("{")
    with pytest.raises(FileError, match="is no JSON"):
        load_stance_estimate(path)
    values = json.loads(estimate().save(path).read_text())
    del values["digest"], values["digests"]
    for broken, message in (
        ({"format": "jointbench model"}, "is no estimate of a stance"),
        ({"version": 9}, "version 9; this release reads 1, 2"),
        ({"values": [1.0]}, "damaged: TypeError values and covariance are not of its 8 names"),
        ({"values": ["a"] * 8}, "damaged: ValueError could not convert string to float"),
    ):
        path.write_text(sealed_json(values | broken))
        with pytest.raises(FileError, match=message):
            load_stance_estimate(path)
    path.write_text(sealed_json({key: value for key, value in values.items() if key != "trace"}))
    with pytest.raises(FileError, match="damaged: KeyError 'trace'"):
        load_stance_estimate(path)
