"""All standard parameters of a biped from the forces under one foot: recovery, error bars, what the data leave open."""

import dataclasses
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError, RobotError
from jointbench.identification.estimators.regularised import RelativeSigma
from jointbench.identification.zero_moment_point.full_estimate import (
    FullStanceEstimate,
    fit_stance_full,
    full_bodies,
    mirror_images,
)
from jointbench.identification.zero_moment_point.reduced_parameters import mean_distance
from jointbench.identification.zero_moment_point.stance import Stance, joined
from jointbench.model import load_robot
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    biped,
    drawn_bodies,
    drawn_nuisance,
    nominal,
    simulated_stance,
)

SENSORS = 4


@lru_cache(maxsize=8)
def truth(seed: int = 1) -> Array:
    return drawn_bodies(biped(), seed)


@lru_cache(maxsize=8)
def stance(motion: int, sensors: int = SENSORS, duration: float = 60.0) -> Stance:
    nuisance = drawn_nuisance(biped(), biped().foot("r_foot"), sensors)
    return simulated_stance(
        parameters=truth(), motion_seed=motion, noise_seed=motion, nuisance=nuisance, duration=duration
    )


@lru_cache(maxsize=2)
def estimate(*, left_is_right: bool = True) -> FullStanceEstimate:
    return fit_stance_full(stance(1), float(truth()[::10].sum()), left_is_right=left_is_right)


def test_the_truth_is_within_the_error_bars() -> None:
    """Of 52 deviations, correlated and partly the prior's, nearly all are below 2; five is one in twenty and more."""
    deviations = estimate().deviations(truth())
    assert (np.abs(deviations) > 2.0).sum() <= 5
    assert np.abs(deviations).max() < 4.0
    assert np.sqrt(np.mean(deviations**2)) < 1.3


def test_a_fresh_motion_is_predicted_as_the_truth_would() -> None:
    """The sensors' errors are the floor, which draws of them vary about twofold; the robot's file is far above it."""
    fresh = stance(2)
    floor, file = mean_distance(fresh, truth()), mean_distance(fresh, nominal(biped()))
    assert file > 5.0 * floor
    assert estimate().distance(fresh) < 2.5 * floor


@pytest.mark.slow
def test_error_bars_cover_the_truth_over_robots_sensors_and_motions() -> None:
    """Ten of each: of some 310 deviations of parameters that the data tell, one in twenty is above 2."""
    told, deviations, shares = list[Array](), list[Array](), list[float]()
    for seed in range(10):
        parameters = drawn_bodies(biped(), seed)
        nuisance = drawn_nuisance(biped(), biped().foot("r_foot"), 100 + seed)
        fitted, fresh = (
            simulated_stance(
                parameters=parameters, motion_seed=motion, noise_seed=motion, nuisance=nuisance, duration=60.0
            )
            for motion in (seed, 500 + seed)
        )
        found = fit_stance_full(fitted, float(parameters[::10].sum()))
        told.append(found.told)
        deviations.append(found.deviations(parameters))
        shares.append(found.distance(fresh) / mean_distance(fresh, parameters))
    clear = np.mean(told, axis=0) > 0.5
    off = np.abs(np.array(deviations)[:, clear])
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.2  # correlated within a fit: some sixty are independent, ±0.1
    assert np.mean(off > 2.0) < 0.1
    assert np.median(shares) < 1.3


def test_gains_come_out_without_the_noise_that_they_share_with_the_forces() -> None:
    """A gain's column holds the measured force: with its noise in it, the common gain came out 2 % too large."""
    found, true = estimate(), drawn_nuisance(biped(), biped().foot("r_foot"), SENSORS)
    gains = [name.endswith(".gain") for name in found.nuisance_names]
    deviations = (found.nuisance - true) / found.nuisance_sigma
    assert np.abs(deviations[gains]).max() < 2.5
    assert abs(found.nuisance[gains].mean() - true[gains].mean()) < 0.01


def test_what_the_motion_does_not_show_is_refused_and_stays_as_the_file_says() -> None:
    """Feet hardly turn and ankles are small: their rotary inertias are the file's, and say so."""
    found = estimate()
    verdicts = {verdict.name: verdict for verdict in found.parameter_verdicts}
    assert verdicts["r_foot.Izz"].word == "refused"
    assert "of what the robot's file says" in verdicts["r_foot.Izz"].reason
    shares = found.told
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    untold = shares < 0.01
    file = found.bodies.group(nominal(biped()))
    assert np.abs(found.values - file)[untold].max() == pytest.approx(
        0.0, abs=0.1 * float(found.prior_sigma[untold].max())
    )
    told = {name for name, verdict in verdicts.items() if verdict.word == "identified"}
    assert {"r_foot.m", "r_shank.mcx", "r_thigh.mcx"} <= told


def test_the_mass_is_the_one_weighed_and_every_link_is_a_body() -> None:
    found = estimate()
    assert found.standard_parameters[::10].sum() == pytest.approx(truth()[::10].sum(), rel=3e-4)
    assert found.verdict.word == "identified"
    assert np.nanmin(found.physical.smallest_eigenvalues) > 0.0


def test_legs_that_differ_are_not_explained_by_legs_alike() -> None:
    """Half a kilogram more on the left shank: a fit that takes left for right predicts worse than one that does not."""
    uneven = truth().copy()
    uneven[100:110] *= 1.25
    mass = float(uneven[::10].sum())
    pair = [simulated_stance(parameters=uneven, motion_seed=k, noise_seed=k, duration=30.0) for k in (1, 2)]
    tied, free = (fit_stance_full(pair[0], mass, left_is_right=each) for each in (True, False))
    assert len(free.names) > len(tied.names)
    assert free.distance(pair[1]) < 0.7 * tied.distance(pair[1])


def test_more_motion_tells_more() -> None:
    both = fit_stance_full(joined([stance(1), stance(2)]), float(truth()[::10].sum()))
    assert np.median(both.sigma / estimate().sigma) < 0.9
    assert both.n_samples == stance(1).n_samples + stance(2).n_samples


def test_a_narrow_prior_holds_the_file() -> None:
    """The control of the prior: told to trust the file to a millionth, the fit stays there."""
    exact = RelativeSigma(mass=1e-6, first_moment=1e-6, inertia=1e-6, drive=1.0)
    found = fit_stance_full(stance(1), float(truth()[::10].sum()), prior=exact)
    file = found.bodies.group(nominal(biped()))
    assert np.abs((found.values - file) / estimate().prior_sigma).max() < 0.01
    assert found.distance(stance(2)) > 2.0 * estimate().distance(stance(2))


def test_what_a_data_sheet_tells_exactly_stays_out() -> None:
    """Cables that do not pull, to anybody's knowledge: σ of 0 is one, too."""
    known = stance(1).data_sheet.copy()
    known[8:14] = 0.0
    found = fit_stance_full(replace(stance(1), data_sheet=known), float(truth()[::10].sum()))
    assert (found.nuisance[8:14] == 0.0).all()
    assert (found.nuisance_sigma[8:14] == 0.0).all()
    assert np.isfinite(found.sigma).all()
    assert (found.sigma < 1.2 * estimate().sigma).all()  # fewer unknowns; residuals that hold the pulls are larger


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(FitError, match="samples are too few for 52 parameters of the links and"):
        fit_stance_full(stance(1, duration=3.0), 26.8)


ROUNDING = 1e-12


def test_the_biped_s_file_is_left_as_right() -> None:
    links = nominal(biped()).reshape(-1, 10)
    images = mirror_images(biped())
    assert sorted(each.link for each in images) == [7, 8, 9, 10, 11, 12]  # all of the swing leg, and not the trunk
    for image in images:
        assert links[image.link] == pytest.approx(image.turn @ links[image.source], abs=ROUNDING)


def test_the_image_of_the_image_is_the_body() -> None:
    for image in mirror_images(biped()):
        assert np.linalg.det(image.turn) != 0.0
        body = np.linalg.solve(image.turn, image.turn @ np.arange(10.0))
        assert body == pytest.approx(np.arange(10.0))
        assert image.turn[0] == pytest.approx(np.eye(10)[0])  # it weighs as much


def test_legs_that_are_no_mirror_images_are_refused_by_the_joint_s_name() -> None:
    robot = biped()
    knee = robot.joint_index("l_knee")
    moved = dataclasses.replace(robot.joints[knee], origin=(0.301, 0.0, 0.0))
    robot = dataclasses.replace(robot, joints=(*robot.joints[:knee], moved, *robot.joints[knee + 1 :]))
    with pytest.raises(RobotError, match="'l_knee' is not the mirror image of that of 'r_knee'"):
        mirror_images(robot)
    assert full_bodies(robot, left_is_right=False).base.rank == full_bodies(biped(), left_is_right=False).base.rank


def test_an_arm_has_no_legs_to_compare() -> None:
    with pytest.raises(RobotError, match="the axis of"):
        mirror_images(load_robot("cobot6"))
    with pytest.raises(RobotError, match="not one chain from foot to foot"):
        mirror_images(load_robot("modular7"))


def test_base_parameters_give_the_forces_of_all_links() -> None:
    """The columns that are left out of ten a link change nothing that the foot feels, with legs alike or not."""
    stance = simulated_stance(duration=2.0)
    same = drawn_bodies(biped(), 3)
    other = same * np.linspace(0.9, 1.1, len(same))
    for left_is_right, parameters in ((True, same), (False, other)):
        bodies = full_bodies(biped(), left_is_right=left_is_right)
        wrench = stance.columns @ parameters
        found = bodies.project(stance.columns) @ bodies.group(parameters)
        assert found == pytest.approx(wrench, abs=1e-9 * np.abs(wrench).max())
        assert bodies.mass_row @ bodies.group(parameters) == pytest.approx(parameters[::10].sum())
