"""Friction over dates and temperatures: what is a change, what is warmth, and what is noise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification import Model, fit
from jointbench.identification.history import Session, friction_at, history
from jointbench.recording import open_run
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.identification.test_fleet import ARM, NAMES, make_run, true_parameters

TRUTH = true_parameters(1)[0]
JOINTS = ("j1", "j2", "j3")
SPEEDS = np.array([0.5, 0.8, 1.0])


def session(folder: Path, name: str, seed: int, kelvin: float = np.nan, **changed: float) -> Session:
    """A recording of one arm, some of whose friction is what it was times a factor, and the model of it."""
    parameters = TRUTH.copy()
    for parameter, factor in changed.items():
        parameters[NAMES.index(parameter.replace("_", ".", 1))] *= factor
    run = open_run(make_run(folder / name, parameters, seed))
    warm = np.full(run.samples.motor_position.shape, kelvin)
    run = replace(run, samples=replace(run.samples, temperature=warm))
    return Session(name, fit(run, ARM), run)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Session]:
    """Sessions by their arguments: each fit is made once."""
    folder, kept = tmp_path_factory.mktemp("sessions"), dict[Any, Session]()

    def make(name: str, seed: int, kelvin: float = np.nan, **changed: float) -> Session:
        if name not in kept:
            kept[name] = session(folder, name, seed, kelvin, **changed)
        return kept[name]

    return make


@pytest.fixture(scope="module")
def steady(made: Callable[..., Session]) -> list[Session]:
    return [made(f"month{k}", k) for k in range(3)]


def test_friction_at_a_speed_is_coulomb_and_viscous(steady: Sequence[Session]) -> None:
    model: Model = steady[0].model
    friction, sigma = friction_at(model, SPEEDS)
    for j, name in enumerate(model.robot.joint_names):
        by_hand = model.value(f"{name}.coulomb") + SPEEDS[j] * model.value(f"{name}.viscous")
        assert friction[j] == pytest.approx(by_hand, rel=1e-9)
        k, m = model.names.index(f"{name}.coulomb"), model.names.index(f"{name}.viscous")
        mix = np.array([1.0, SPEEDS[j]])
        covariance = model.repeatability[np.ix_([k, m], [k, m])]
        assert sigma[j] == pytest.approx(np.sqrt(mix @ covariance @ mix), rel=1e-9)
    truth = dict(zip(NAMES, TRUTH, strict=True))
    true = np.array([truth[f"{name}.coulomb"] for name in JOINTS])
    true += SPEEDS * [truth[f"{name}.viscous"] for name in JOINTS]
    assert np.all(np.abs(friction - true) < 4.0 * sigma)  # 1 in 16 000 of normal errors


def test_an_arm_that_does_not_change_is_steady(steady: Sequence[Session]) -> None:
    past = history(steady)
    assert [change.word for change in past.changes] == ["steady"] * 3
    assert past.grown == ()
    assert np.isnan([change.per_kelvin for change in past.changes]).all()


def test_friction_that_grew_is_named_by_its_joint(steady: Sequence[Session], made: Callable[..., Session]) -> None:
    rough = made("rough", 9, j2_viscous=1.5, j2_coulomb=1.3)
    past = history([*steady, rough])
    assert [change.word for change in past.changes] == ["steady", "grown", "steady"]
    assert past.grown == ("j2",)
    smooth = history([rough, steady[0]])  # the other way about
    assert [change.word for change in smooth.changes] == ["steady", "fallen", "steady"]


def test_a_change_of_less_than_a_tenth_is_no_alarm(steady: Sequence[Session], made: Callable[..., Session]) -> None:
    past = history([*steady, made("little", 10, j2_viscous=1.04, j2_coulomb=1.04)])
    change = past.changes[1]
    assert change.friction - change.expected > 3.0 * np.hypot(change.sigma, change.expected_sigma)  # it is seen
    assert change.word == "steady"


def test_what_warmth_explains_is_no_change(made: Callable[..., Session]) -> None:
    """Friction that falls by 2 % a kelvin: a cold morning is the law's, twice its friction is not."""
    warm = [300.0, 304.0, 308.0, 302.0, 306.0]
    sessions = [
        made(f"at{kelvin:g}", 20 + k, kelvin, j2_viscous=(factor := 1.0 - 0.02 * (kelvin - 300.0)), j2_coulomb=factor)
        for k, kelvin in enumerate(warm)
    ]
    cold = made("cold", 30, 294.0, j2_viscous=1.12, j2_coulomb=1.12)
    past = history([*sessions, cold])
    change = past.changes[1]
    assert change.word == "steady"
    assert change.expected == pytest.approx(change.friction, abs=4.0 * np.hypot(change.sigma, change.expected_sigma))
    at_300 = past.friction[0, 1]
    assert change.per_kelvin == pytest.approx(-0.02 * at_300, abs=4.0 * change.per_kelvin_sigma)
    assert np.isnan(past.changes[0].per_kelvin)  # the other joint's friction does not go with warmth
    rough = made("rough and cold", 31, 294.0, j2_viscous=1.5, j2_coulomb=1.5)
    assert history([*sessions, rough]).grown == ("j2",)


def test_scatter_beyond_sigma_widens_what_is_expected(steady: Sequence[Session], made: Callable[..., Session]) -> None:
    """A joint whose friction has come and gone before gives no alarm when it comes again."""
    come_and_gone = [
        made("come", 40, j2_viscous=1.3, j2_coulomb=1.3),
        steady[0],
        made("again", 41, j2_viscous=1.3, j2_coulomb=1.3),
    ]
    past = history([*come_and_gone, steady[1], made("third", 42, j2_viscous=1.3, j2_coulomb=1.3)])
    assert past.grown == ()
    assert past.changes[1].expected_sigma > 10.0 * past.changes[1].sigma


def test_sessions_with_dates_are_sorted_by_them(steady: Sequence[Session]) -> None:
    dated = [
        each._replace(
            run=replace(each.run, provenance={**each.run.provenance, "recorded": f"2026-0{9 - k}-01T08:00:00Z"})
        )
        for k, each in enumerate(steady)
        if each.run is not None
    ]
    assert [each.name for each in history(dated).sessions] == ["month2", "month1", "month0"]
    assert [each.name for each in history(steady).sessions] == ["month0", "month1", "month2"]


def test_what_cannot_be_compared_is_refused(steady: Sequence[Session], tmp_path: Path) -> None:
    with pytest.raises(FitError, match="a history needs at least one recording with its model"):
        history([])
    with pytest.raises(FitError, match="month0 and copy are models of one recording; leave one out"):
        history([steady[0], steady[0]._replace(name="copy")])
    with pytest.raises(FitError, match="speed = 0 must be a share of the velocity limit above 0"):
        history(steady, speed=0.0)
    other = fit(synthetic_run(arm(2), motion_seed=1, noise_seed=1), arm(2))
    with pytest.raises(FitError, match="cannot be compared: the joints differ"):
        history([steady[0], Session("other", other, None)])
