"""What the demos of the nursing robot judge by: friction of the plant, and one arm beside its mirror image."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from jointbench import Model
from jointbench.arrays import Array
from jointbench.dynamics import base_parameters, inverse_dynamics
from jointbench.excitation import random_excitation
from jointbench.identification.friction import FrictionData, friction_law
from jointbench.robot import load_robot
from tools.demo.friction_experiment import true_friction
from tools.demo.nursing_dual import link_difference, mirrored

SPEEDS = np.radians(np.arange(1.0, 31.5, 0.5))


def test_friction_of_the_plant_is_the_law_of_the_host() -> None:
    """Both write Makkar's law, one by γ1 … γ6, the other by coefficients and then shapes; grease is the plant's."""
    g = [2.4, 90.0, 10.0, 9.2, 60.0, 11.8]
    data = FrictionData(SPEEDS, SPEEDS)
    host = friction_law("makkar").torque(data, np.array([g[0], g[3], g[5], g[1], g[2], g[4]]))
    told = {"law": "makkar", "gammas": g, "grease_drag": 2.9}
    grease = 2.9 * SPEEDS ** (2.0 / 3.0)
    np.testing.assert_allclose(true_friction(told, SPEEDS), host + grease, rtol=1e-12)
    np.testing.assert_allclose(true_friction(told, -SPEEDS), -host - grease, rtol=1e-12)
    plain = true_friction({"law": "coulomb", "coulomb": 3.0, "viscous": 2.0, "transition": 1e-6}, SPEEDS)
    np.testing.assert_allclose(plain, 3.0 + 2.0 * SPEEDS, rtol=1e-12)


@pytest.mark.slow  # base parameters of twelve joints
def test_mirror_images_need_the_same_torque_and_others_do_not() -> None:
    both = load_robot("nursing_dual")
    motion = mirrored(both, random_excitation(load_robot("nursing_arm"), period=5.0, seed=0))
    assert [margins.joint for margins in motion.margins] == list(both.joint_names)
    base = base_parameters(both)
    links = both.standard_parameters
    assert links is not None

    def model(of_links: Array) -> Model:
        values = np.concatenate([of_links, np.zeros(len(base.full_names) - len(of_links))])
        return cast(
            Model,
            SimpleNamespace(
                robot=both,
                base=base,
                parameters=base.group(values),
                predict=lambda q, dq, ddq: inverse_dynamics(both, q, dq, ddq, of_links),
            ),
        )

    assert link_difference(model(links), motion) < 1e-9
    heavier = links.copy()
    heavier[10 * 7] *= 1.1  # mass of the right upper arm
    # A tenth of one of six bodies: percents of the torque.
    assert 1e-3 < link_difference(model(heavier), motion) < 0.2
