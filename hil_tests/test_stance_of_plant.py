"""What a stance makes of the plant on its foot: theory with the true parameters, but for what the nuisance explains."""

from functools import lru_cache

import numpy as np
import pytest

from hil_tests.test_plant_feet import LINKS, ROBOT, TOTAL_MASS, TRUTH, Playing
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.standing_plant import StandingPlant
from jointbench.dynamics import floating_standard_parameters
from jointbench.excitation import plan_single_support
from jointbench.identification.zero_moment_point import stance_of_run
from jointbench.recording import Run
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    EVERY,
    PERIOD_S,
    Sway,
    readings,
    simulated_run,
)

SECONDS = 20.0
WEIGHT_N = 9.81 * TOTAL_MASS
pytestmark = pytest.mark.slow  # 20 s of plant take 7 s or more


@lru_cache(maxsize=1)
def played() -> Playing:
    """A planned motion on gears that bend and a floor that gives, sensors without errors."""
    motion = plan_single_support(ROBOT, duration=SECONDS, seed=3)
    q, _, _ = motion.evaluate(TICK * np.arange(round(SECONDS / TICK), dtype=np.float64))
    return Playing(StandingPlant(ROBOT, TRUTH, "harmonic"), q)


def recorded(noise: float) -> Run:
    """What boards send of each eighth tick."""
    sent = slice(EVERY - 1, None, EVERY)
    position, force = played().position[sent], played().force[sent]
    time = PERIOD_S * np.arange(len(position), dtype=np.float64)
    support, swing = (readings(force[:, foot], np.zeros(8), foot, noise) for foot in (0, 1))
    motion = Sway(time, position, np.zeros_like(position), np.zeros_like(position))
    return simulated_run(ROBOT, motion, support, swing, counts=TRUTH.sensors.link_encoder_counts)


def test_the_true_parameters_explain_the_plant_but_for_give_and_delay() -> None:
    known = [link.standard_parameters for link in LINKS]
    true = np.concatenate([each for each in known if each is not None])
    stance = stance_of_run(recorded(noise=0.5), TOTAL_MASS)
    values = stance.columns @ true
    pulls = np.concatenate([np.zeros(8), *(foot.cable_pull for foot in TRUTH.feet), np.zeros(2)])
    error = stance.measured - values[:, :2] / values[:, 2:] - stance.nuisance_columns @ pulls
    # The base rocks, and forces are means over the tick that positions end: some tenths of a millimetre.
    assert 1e3 * np.hypot(*error.T).mean() < 0.4
    moving = stance.nuisance_columns[:, :, -2:].reshape(-1, 2)
    (give, delay), *_ = np.linalg.lstsq(moving * [1e-6, 1e-3], error.ravel())
    left = error - (moving @ [1e-6 * give, 1e-3 * delay]).reshape(error.shape)
    # Of the sensors' noise of 0.5 N, 2 of 62 Hz pass, 0.07 mm of it; a third more for encoders and an uneven give.
    assert 1e3 * np.hypot(*left.T).mean() < 0.1
    # A corner sinks by 20 µm under a quarter of the weight. Contacts here are springs between accelerations, so what
    # they give to a motion depends on the mass that they meet.
    assert 0.5 < give / (20.0 / (WEIGHT_N / 4.0)) < 2.0
    # Half a tick of the forces' mean, a step of the plant's integration at most; noise makes 0.1 ms of doubt.
    assert 0.3 < delay < 1.2
    assert stance.vertical_force.mean() == pytest.approx(WEIGHT_N, rel=0.01)  # the cables lift 1.3 N


def test_the_robot_file_does_not_explain_it() -> None:
    """Its centres of mass are off by centimetres."""
    nominal = floating_standard_parameters(ROBOT)
    assert nominal is not None
    stance = stance_of_run(recorded(noise=0.5), TOTAL_MASS)
    values = stance.columns @ nominal
    assert 1e3 * np.hypot(*(stance.measured - values[:, :2] / values[:, 2:]).T).mean() > 20.0
