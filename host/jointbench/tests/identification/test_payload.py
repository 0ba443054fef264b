"""Payloads of simulated arms: the truth, its bound, coverage of error bars, and what cannot be told."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, FitError
from jointbench.identification import KnownPayload, Payload, PayloadBody, identify_payload
from jointbench.identification.payload import FRICTION
from jointbench.identification.payload_body import QUANTITIES, WIDTH, PayloadFrame
from jointbench.model import (
    Frame,
    Robot,
    base_parameters,
    load_robot,
    model_columns,
    on_free_base,
    regressor,
    with_passive,
    with_payload,
)
from jointbench.recording import Run
from jointbench.signals import moving_mask
from jointbench.tests.identification.synthetic import (
    COUNTS_PER_JOINT_TURN,
    CURRENT_NOISE_A,
    PERIOD_S,
    arm,
    excitation,
    synthetic_run,
    truth,
)

MASS, CENTER = 2.0, (0.03, -0.02, 0.12)
INERTIA = ((0.020, 0.001, 0.0), (0.001, 0.015, 0.0), (0.0, 0.0, 0.010))
TILT = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
ARM = dataclasses.replace(arm(3), frames=(Frame("tool", 2, TILT, (0.05, -0.1, 0.2)),))
TRUTH = np.array([MASS, *CENTER, *np.array(INERTIA)[np.triu_indices(3)]])


def loaded_parameters(robot: Robot, mass: float = MASS, inertia_scale: float = 1.0) -> Array:
    inertia = tuple(tuple(inertia_scale * value for value in row) for row in INERTIA)
    heavier = with_payload(robot, "payload", "tool", mass, CENTER, inertia)  # pyright: ignore[reportArgumentType]
    assert heavier.standard_parameters is not None
    return np.concatenate([heavier.standard_parameters, truth(robot)[WIDTH * robot.n_links :]])


def recordings(
    seed: int, parameters: Array | None = None, noise: float = CURRENT_NOISE_A, robot: Robot = ARM
) -> tuple[Run, Run]:
    """A run without and a run with the payload, of different motions."""
    loaded = loaded_parameters(robot) if parameters is None else parameters
    counts = COUNTS_PER_JOINT_TURN if noise else None
    before = synthetic_run(robot, motion_seed=1, noise_seed=2 * seed, noise=noise, counts_per_turn=counts)
    after = synthetic_run(
        robot,
        motion_seed=2,
        noise_seed=2 * seed + 1,
        noise=noise,
        counts_per_turn=counts,
        full_parameters=loaded,
    )
    return before, dataclasses.replace(after, sha256="1" * 64)


@cache
def identified(seed: int, **how: float | bool) -> Payload:
    return identify_payload(*recordings(seed), on="tool", **how)  # pyright: ignore[reportArgumentType]


def words(payload: Payload) -> dict[str, str]:
    return {verdict.name: verdict.word for verdict in payload.body.verdicts}


def test_a_payload_in_a_tilted_frame_comes_out_without_noise():
    body = identify_payload(*recordings(0, noise=0.0), on="tool").body
    # What is left are the filters' ends and ramps: 1e-4 of the torque, of which the inertia has a hundredth.
    assert body.mass == pytest.approx(MASS, rel=2e-3)
    assert body.center_of_mass == pytest.approx(CENTER, abs=2e-4)
    assert body.inertia == pytest.approx(np.array(INERTIA), abs=4e-4)


def bound(robot: Robot) -> Array:
    """Cramér-Rao bound of the payload's standard parameters, from every tick at which a joint moves."""
    base, frame = base_parameters(robot), PayloadFrame.of(robot, "tool")
    friction = [k for k, name in enumerate(base.leading_names) if name.rpartition(".")[2] in FRICTION]
    per_current = np.array([drive.torque_per_current for drive in robot.drives])
    width = base.rank + WIDTH + len(friction)
    information = np.zeros((width, width))
    for loaded, seed in ((0.0, 1), (1.0, 2)):
        plan = excitation(robot, seed)
        ticks = PERIOD_S * np.arange(round(plan.duration / PERIOD_S))
        q, dq, ddq = plan.evaluate(ticks)
        columns = base.project(model_columns(robot, q, dq, ddq)[0]).reshape(*q.shape, -1)
        body = (regressor(robot, q, dq, ddq) @ frame.added(robot, np.eye(WIDTH))).reshape(*q.shape, -1)
        rows = np.concatenate([columns, loaded * body, loaded * columns[:, :, friction]], axis=2)
        settings = identified(1).settings[int(loaded)]
        assert settings.velocity_threshold is not None
        assert settings.rest_guard is not None
        used = moving_mask(dq, np.array(settings.velocity_threshold), round(settings.rest_guard / PERIOD_S))
        whitened = (rows / (CURRENT_NOISE_A * per_current)[:, None])[used]
        information += 2.0 * whitened.T @ whitened  # each motion is played twice
    scale = np.sqrt(np.diag(information))
    sigma = np.sqrt(np.diag(np.linalg.inv(information / np.outer(scale, scale)))) / scale
    return sigma[base.rank : base.rank + WIDTH]


def test_error_bars_are_next_to_the_bound():
    stated = np.sqrt(np.diag(identified(1).body.covariance))
    least = bound(ARM)
    # The bound counts white noise before the filters; they and averages of two periods lose a little, and one
    # draw's σ are themselves known to a tenth.
    assert np.all(stated > 0.8 * least), stated / least
    assert np.all(stated < 1.5 * least), stated / least


@pytest.mark.parametrize("draws", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_two_sigma_contain_the_truth(draws: int):
    errors = []
    for seed in range(draws):
        payload = identified(seed)
        errors.append((payload.body.values - TRUTH) / payload.body.sigma)
    outside = np.mean(np.abs(errors) > 2.0)
    # 5 % of Gaussian errors. The ten of one draw count as three; three σ of a binomial share.
    assert outside < 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / (3 * draws))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=3.0 / np.sqrt(2 * 3 * draws))


def test_a_payload_of_two_kilograms_is_identified_in_all_that_it_is():
    payload = identified(1)
    assert payload.verdict.word == "identified"
    assert payload.side == "motor"
    assert words(payload) == dict.fromkeys(QUANTITIES, "identified")
    assert payload.friction_changes == ()
    assert payload.torque.shape == (3,)
    assert payload.torque[1] > 2.0  # a weight of 20 N, 0.1 m and more from joint 2 on its way


def test_a_known_mass_is_taken_out_and_narrows_the_rest():
    free, given = identified(1), identified(1, mass=MASS)
    assert given.body.mass == MASS
    assert given.body.sigma[0] == 0.0
    assert "mass" not in words(given)
    assert given.verdict.word == "identified"
    assert np.all(given.body.sigma[1:4] <= 1.001 * free.body.sigma[1:4])
    assert np.all(np.abs(given.body.values[1:] - TRUTH[1:]) < 4.0 * given.body.sigma[1:])
    assert given.mass_verdict is not None
    assert given.mass_verdict.word == "identified"
    assert free.mass_verdict is None
    for mass, word in ((1.2 * MASS, "poor fit"), (2.0 * MASS, "refused")):
        wrong = identified(1, mass=mass)
        assert wrong.verdict.word == word
        assert f"{mass:g} kg were given, the recordings say " in wrong.verdict.reason
        assert wrong.free_mass == (free.body.estimate[0], free.body.sigma[0])


def test_friction_that_has_changed_does_not_pass_for_a_payload():
    warmer = loaded_parameters(ARM)
    names = base_parameters(ARM).full_names
    for joint in ARM.joint_names:
        warmer[names.index(f"{joint}.coulomb")] *= 0.8
        warmer[names.index(f"{joint}.offset")] += 0.3
    runs = recordings(3, warmer)
    own = identify_payload(*runs, on="tool")
    assert np.all(np.abs(own.body.values - TRUTH) < 4.0 * own.body.sigma)
    changed = {change.name: change for change in own.friction_changes}
    assert set(changed) >= {f"{joint}.{term}" for joint in ARM.joint_names for term in ("coulomb", "offset")}
    assert changed["j2.offset"].value == pytest.approx(0.3, abs=4.0 * changed["j2.offset"].sigma)
    same = identify_payload(*runs, on="tool", same_friction=True)
    # What friction leaves over is no noise, and makes the error bars of the mass wide.
    assert same.body.sigma[0] > 10.0 * own.body.sigma[0]


def test_a_small_payload_is_a_body_all_the_same():
    payload = identify_payload(*recordings(4, loaded_parameters(ARM, 0.1, 0.001)), on="tool")
    body = payload.body
    assert body.physical is not None
    assert not body.physical.unchanged  # the plain estimate has an inertia that no body has
    moments = np.linalg.eigvalsh(body.inertia)
    assert moments[0] > 0.0
    assert moments[2] < moments[0] + moments[1]
    told = words(payload)
    assert (told["mass"], told["Izz"]) == ("identified", "refused")
    assert payload.verdict.word == "identified"  # most payloads are too small for their inertia to be seen


def test_runs_that_were_exchanged_give_a_negative_mass():
    before, after = recordings(5)
    payload = identify_payload(after, before, on="tool")
    assert payload.verdict.word == "refused"
    assert "is negative; were the two recordings exchanged?" in payload.body.verdicts[0].reason
    assert set(words(payload).values()) == {"refused"}


def test_nothing_attached_is_nothing_with_its_largest_mass():
    payload = identify_payload(*recordings(6, truth(ARM)), on="tool")
    verdict = payload.body.verdicts[0]
    assert verdict.word == "refused"
    assert "kg was attached" in verdict.reason
    assert payload.verdict.is_refused


def test_an_upright_joint_alone_sees_the_inertia_about_its_axis_and_nothing_else():
    one = dataclasses.replace(arm(1), frames=(Frame("tool", 0, TILT, (0.0, 0.0, 0.0)),))
    payload = identify_payload(*recordings(7, robot=one), on="tool")
    assert payload.verdict.word == "not observable"
    assert set(words(payload).values()) == {"not observable"}
    assert np.all(np.isinf(payload.body.sigma))


def test_torque_sensors_at_the_joints_see_a_payload_as_well():
    runs = []
    for run in recordings(8):
        samples = dataclasses.replace(run.samples, joint_torque=run.samples.motor_torque, motor_torque=None)
        runs.append(dataclasses.replace(run, samples=samples))
    before, after = runs
    payload = identify_payload(before, after, on="tool", settings={"torque": "joint"})
    assert payload.side == "joint"
    assert "torque sensors' gains" in payload.condition
    # These sensors felt the rotors, too, of which a sensor's model knows nothing: they stay in the links.
    assert abs(payload.body.mass - MASS) < 5.0 * payload.body.sigma[0]


def test_what_cannot_be_asked_is_refused_with_the_reason():
    before, after = recordings(9)
    with pytest.raises(FitError, match="both recordings are synthetic; give one without the payload, and one with it"):
        identify_payload(before, before)
    with pytest.raises(FileError, match="no frame 'hand'; there are "):
        identify_payload(before, after, on="hand")
    with pytest.raises(FitError, match="a payload of -1 kg is not possible"):
        identify_payload(before, after, mass=-1.0)
    neglected = with_passive(ARM, "j3", neglected=True)
    with pytest.raises(FitError, match=r"link 'forearm' .* is neglected in the robot's file"):
        PayloadFrame.of(neglected)
    walker = load_robot("gorobot2")
    assert walker.base_link is not None
    with pytest.raises(FitError, match="is the base's; name one of a link that moves"):
        PayloadFrame.of(walker, walker.base_link.name)
    assert PayloadFrame.of(on_free_base(walker)).joint == walker.n_links + 5


def test_what_is_known_of_a_payload_must_be_possible():
    whole = KnownPayload.of(MASS, CENTER, INERTIA)
    assert whole.known.all()
    assert whole.parameters[4] == pytest.approx(INERTIA[0][0] + MASS * (CENTER[1] ** 2 + CENTER[2] ** 2))
    assert KnownPayload.of(MASS, CENTER).known.sum() == 4
    with pytest.raises(FitError, match="centre of mass is given without its mass"):
        KnownPayload.of(center_of_mass=CENTER)
    with pytest.raises(FitError, match="inertia is given without its mass and centre of mass"):
        KnownPayload.of(MASS, inertia=INERTIA)
    with pytest.raises(FitError, match="inertia is not possible"):
        KnownPayload.of(MASS, CENTER, ((1.0, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))


def test_error_bars_of_centre_and_inertia_follow_those_of_the_standard_parameters():
    frame, none = PayloadFrame.of(ARM, "tool"), KnownPayload.of()
    exact = KnownPayload.of(MASS, CENTER, INERTIA).parameters
    root = 1e-4 * np.random.default_rng(1).standard_normal((WIDTH, WIDTH))
    body = PayloadBody.of(ARM, frame, none, exact, root @ root.T)
    assert body.values == pytest.approx(TRUTH, abs=1e-6)
    draws = exact + np.random.default_rng(2).standard_normal((4000, WIDTH)) @ root.T
    centers = draws[:, 1:4] / draws[:, :1]
    squares = np.sum(draws[:, 1:4] * centers, axis=1)
    # Ixx and Ixy about the centre, draw by draw; 4000 of them tell a deviation to 1.1 %, three times that.
    drawn = [*centers.T, draws[:, 4] - squares + draws[:, 1] * centers[:, 0], draws[:, 5] + draws[:, 1] * centers[:, 1]]
    assert np.std(drawn, axis=1) == pytest.approx(body.sigma[1:6], rel=0.035)
