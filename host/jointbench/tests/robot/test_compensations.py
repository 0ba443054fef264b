"""Compensations: what robot files and users can say, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import BadCompensation, RobotFileError, UnknownJoint
from jointbench.robot import Compensation, load_robot, sine_spring, spring, with_compensations
from jointbench.robot.compensation import KINDS

ARM = load_robot("cobot6")
FILE = (Path(__file__).parents[2] / "robot/library/cobot6.toml").read_text(encoding="utf-8")


def with_table(tmp_path: Path, table: str) -> Path:
    path = tmp_path / "arm.toml"
    path.write_text(f"{FILE}\n[[compensations]]\n{table}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_says_what_python_says(kind: str, tmp_path: Path) -> None:
    robot = load_robot(with_table(tmp_path, f'name = "balancer"\nkind = "{kind}"\njoint = "j2"'))
    assert robot == with_compensations(ARM, KINDS[kind]("balancer", "j2"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('name = "s"\nkind = "rubber"\njoint = "j2"', "kind = 'rubber' must be one of 'spring', 'sine_spring'"),
        ('name = "s"\nkind = "spring"\njoint = "elbow"', "compensation 's': no joint 'elbow'; the joints are j1, j2"),
        ('name = "s"\nkind = "spring"\njoint = "j2"\nk = 3', "compensation 's': unknown key 'k'"),
        ('name = "j3"\nkind = "spring"\njoint = "j2"', "'j3' of robot 'cobot6' has the name of a joint"),
    ],
)
def test_slips_in_a_file_are_named(table: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RobotFileError, match=said):
        load_robot(with_table(tmp_path, table))


def test_names_must_tell_them_apart() -> None:
    twice = with_compensations(ARM, spring("s", "j1"))
    with pytest.raises(BadCompensation, match="has the name of"):
        with_compensations(twice, sine_spring("s", "j2"))
    with pytest.raises(UnknownJoint, match="no joint 'j9'"):
        with_compensations(ARM, spring("s", "j9"))

    def nothing(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        return q[:, :, None]

    for name, joints, parameters, said in (
        (" ", ("j1",), ("k",), "has no name"),
        ("s", (), ("k",), "one joint or more"),
        ("s", ("j1", "j1"), ("k",), "each named once"),
        ("s", ("j1",), (), "one parameter or more"),
        ("s", ("j1",), ("coulomb",), "would be taken for one of a link or drive"),
        ("s", ("j1",), ("mcx",), "would be taken for one of a link or drive"),
    ):
        with pytest.raises(BadCompensation, match=said):
            Compensation(name, joints, parameters, nothing)


def test_springs_pull_back_to_where_they_are_at_rest() -> None:
    """k (q - q0) and k sin(q - q0) by their two parameters."""
    q, rest, k = np.linspace(-3.0, 3.0, 7)[:, None], 0.4, 5.0
    linear = spring("s", "j1").columns(q, q, q) @ [k, -k * rest]
    np.testing.assert_allclose(linear, k * (q - rest), rtol=0.0, atol=1e-14)
    turning = sine_spring("s", "j1").columns(q, q, q) @ [k * np.cos(rest), -k * np.sin(rest)]
    np.testing.assert_allclose(turning, k * np.sin(q - rest), rtol=0.0, atol=1e-14)
