"""Every inertia that no body can have is said at loading, by the name of the link that the file gives it to."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jointbench.robot import Link, load_robot
from jointbench.robot.joint import as_matrix
from jointbench.tests.robot.test_free_base import BODY, FLOATING, PLACE, WHOLE, inertial, load, urdf


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("link", ["w", "x", "y", "z"])
def test_every_impossible_link_is_named_even_one_that_is_a_part(tmp_path: Path, link: str, floating_base: bool) -> None:
    """Although with what is fixed to it the body as a whole may be possible."""
    path = tmp_path / "arm.urdf"
    path.write_text(urdf(**{link: inertial(0.05)}), encoding="utf-8")
    faults = [text for text in load_robot(path, floating_base=floating_base).warnings if "link" in text]
    assert faults == [
        f"link {link!r} of 'arm': principal inertias 0.02, 0.025, 0.05 kg·m² break the triangle inequality: "
        f"the largest must be less than the sum of the others"
    ]


BAD = BODY.replace("xx = 0.01", "xx = 0.05")


def test_a_robot_file_names_them_too(tmp_path: Path) -> None:
    part = f'[[fixed]]\nname = "box"\nparent = "b"\n{PLACE}[fixed.link]\n'
    payload = '[[payloads]]\nname = "ball"\non = "a"\nmass_kg = 3\ncenter_of_mass_mm = [0, 0, 0]\n'

    def named(text: str) -> list[str]:
        return [each.split("'")[1] for each in load(tmp_path, text).warnings]

    assert named(WHOLE + part + BAD) == ["box"]
    assert named(WHOLE.replace(BODY, BAD) + part + BODY) == ["a", "b"]
    assert named(WHOLE.replace(BODY, BAD, 1) + payload) == ["a"]
    assert named(FLOATING.replace("'trunk'\n" + BODY, "'trunk'\n" + BAD)) == ["trunk"]


def test_a_fault_is_a_pseudo_inertia_that_is_not_positive() -> None:
    """The (4, 4) matrix of zeroth, first and second moments is positive definite exactly where no fault is found.

    Source: Wensing, Kim & Slotine, IEEE Robotics and Automation Letters 3(1), 2018.
    """
    rng, found = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(500):
        axes = Rotation.random(rng=rng).as_matrix()
        inertia = as_matrix(axes @ np.diag(rng.uniform(-0.1, 1.5, 3)) @ axes.T)
        x, y, z = rng.normal(size=3).tolist()
        link = Link("body", float(rng.uniform(-0.5, 3.0)), (x, y, z), inertia)
        parameters = link.standard_parameters
        assert parameters is not None
        about_origin = parameters[[[4, 5, 6], [5, 7, 8], [6, 8, 9]]]
        second = 0.5 * np.trace(about_origin) * np.eye(3) - about_origin
        pseudo = np.block([[second, parameters[1:4, None]], [parameters[None, 1:4], parameters[None, :1]]])
        possible = bool(np.linalg.eigvalsh(pseudo)[0] > 0.0)
        assert (link.physical_fault is None) == possible
        found[possible] += 1
    assert min(found.values()) > 50  # both cases were seen
