"""Workspaces: which limits they make, what these say, and the files that they are read from."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import IDENTITY, Array
from jointbench.errors import ExcitationError, InfeasibleExcitation, JointbenchError
from jointbench.excitation import RestToRestFourier
from jointbench.excitation.limits.certificate import certify, motion_at
from jointbench.excitation.limits.motion_limits import Motion
from jointbench.excitation.limits.scaling import scale_into_limits
from jointbench.excitation.limits.space_limits import CollisionLimit
from jointbench.excitation.limits.workspace import (
    DEFAULT_CLEARANCE,
    Workspace,
    WorkspacePoint,
    not_checked,
    read_workspace,
)
from jointbench.model import Frame, Robot, forward_kinematics

INFINITE = float("inf")


def at(q: Array) -> Motion:
    still = np.zeros((1, len(q)))
    return q[None], still, still, still


def test_pairs_are_those_that_no_joint_connects(cobot: Robot) -> None:
    *_, limit = Workspace().limits(cobot)
    links = ["base", "shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "flange_and_tool"]
    expected = {f"capsules {a!r} and {b!r}" for i, a in enumerate(links) for b in links[i + 2 :]}
    assert set(limit.names) == expected
    assert len(limit.names) == 15


def test_capsules_of_one_link_and_of_what_is_fixed_to_it_are_no_pairs(cobot: Robot) -> None:
    """Nor those of a neighbour and something fixed to the link: its capsule names the joint that moves it."""
    plate = dataclasses.replace(cobot.capsules[3], link="plate")
    robot = dataclasses.replace(cobot, capsules=(*cobot.capsules, plate, plate))
    *_, limit = Workspace().limits(robot)
    touched = {name for name in limit.names if "'plate'" in name}
    others = ("base", "shoulder", "wrist_2", "flange_and_tool")  # as for the forearm that carries it
    assert touched == {f"capsules {other!r} and 'plate'{number}" for other in others for number in ("", " (2)")}


def test_excepted_pairs_may_touch_in_either_order(cobot: Robot) -> None:
    everything = Workspace(0.0, clearance=0.02).limits(cobot)
    excepted = (("forearm", "base"), ("wrist_1", "flange_and_tool"), ("table", "shoulder"))
    table, pairs = Workspace(0.0, clearance=0.02, excepted=excepted).limits(cobot)
    assert set(everything[1].names) - set(pairs.names) == {
        "capsules 'base' and 'forearm'", "capsules 'wrist_1' and 'flange_and_tool'",
    }  # fmt: skip
    assert set(everything[0].names) - set(table.names) == {"table under 'shoulder'", "table under 'shoulder' (2)"}


def test_home_is_free_on_a_table_and_in_a_box(cobot: Robot) -> None:
    box = WorkspacePoint("flange_and_tool", (0.0, 0.0, 0.08), (-0.6, -0.6, 0.1), (0.6, 0.6, 0.9))
    limits = Workspace(0.0, (box,), 0.02).limits(cobot)
    assert [len(limit.names) for limit in limits] == [6, 13, 15]
    for limit in limits:
        usage = limit.usage(at(np.array(cobot.home)))
        assert usage.max() < 1.0
        assert all(limit.distance(i, value) > 0.0 for i, value in enumerate(usage[0]))


def test_a_table_is_under_the_lowest_end_of_each_capsule(cobot: Robot) -> None:
    (table, _) = Workspace(0.1, (WorkspacePoint("wrist_2"),)).limits(cobot)
    q = np.array(cobot.home) + 0.4
    rotations, origins = forward_kinematics(cobot, q[None])
    room = [table.distance(i, usage) for i, usage in enumerate(table.usage(at(q))[0])]
    lowest = dict.fromkeys((capsule.link for capsule in cobot.capsules[1:]), INFINITE)
    for name, left in zip(table.names, room, strict=True):
        for link in lowest:
            lowest[link] = min(lowest[link], left) if f"under {link!r}" in name else lowest[link]
    for capsule in cobot.capsules[1:]:
        ends = origins[0, capsule.joint] + np.array([capsule.start, capsule.end]) @ rotations[0, capsule.joint].T
        assert lowest[capsule.link] == pytest.approx(ends[:, 2].min() - capsule.radius - 0.1)
    assert room[table.names.index("table under point 'wrist_2'")] == pytest.approx(origins[0, 4, 2] - 0.1)


def test_points_may_sit_on_frames_that_are_fixed(cobot: Robot) -> None:
    """A frame a quarter turn about the link's z: its x is the link's y."""
    quarter = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    robot = dataclasses.replace(cobot, frames=(Frame("probe", 5, quarter, (0.0, 0.0, 0.05)),))
    limits = [
        Workspace(points=(WorkspacePoint(link, offset, highest=(1.0, 1.0, 1.0)),)).limits(robot)[0]
        for link, offset in (("probe", (0.1, 0.2, 0.3)), ("flange_and_tool", (-0.2, 0.1, 0.35)))
    ]
    q = np.array(robot.home) + np.linspace(-0.5, 0.5, 6)
    np.testing.assert_allclose(limits[0].usage(at(q)), limits[1].usage(at(q)), atol=1e-12)  # ten products


def test_what_is_said_is_true(cobot: Robot) -> None:
    box = WorkspacePoint("flange_and_tool", highest=(0.5, INFINITE, INFINITE))
    faces, table, pairs = Workspace(0.05, (box,), 0.02).limits(cobot)
    q = np.array(cobot.home)
    _, origins = forward_kinematics(cobot, q[None])
    assert faces.describe(0, 1.1) == (
        f"highest x of point 'flange_and_tool': it reaches x = {0.5 + 0.1 * (0.5 - origins[0, 5, 0]):.6g} m, "
        f"at most 0.5 m is allowed"
    )
    assert table.describe(0, 1.0).startswith(
        "table under 'shoulder': it reaches z = 0.05 m, at least 0.05 m is allowed"
    )
    index = pairs.names.index("capsules 'base' and 'forearm'")  # radii 60 and 45 mm
    assert pairs.describe(index, 1.0).endswith("come within 0.02 m of each other, 0.02 m must be left between them")
    assert pairs.describe(index, 1.25).startswith("capsules 'base' and 'forearm' overlap by ")
    gap = 0.125 / 0.5 - 0.105
    assert pairs.describe(index, 0.5).startswith(f"capsules 'base' and 'forearm' come within {gap:.6g} m of each other")


@pytest.mark.parametrize(
    ("workspace", "scalar", "room"),
    [
        # Home is upright: the flange's frame at 0.7524 m; 0.1 m and nothing beyond it.
        (Workspace(points=(WorkspacePoint("flange_and_tool", lowest=(-INFINITE, -INFINITE, 0.8524)),)), 0, -0.1),
        (Workspace(points=(WorkspacePoint("flange_and_tool", lowest=(-INFINITE, -INFINITE, 0.7524)),)), 0, 0.0),
        (Workspace(table_height=0.0673), 0, -0.01),  # the shoulder's capsule: 122.3 mm high, 65 mm of radius
    ],
)
def test_a_home_beyond_a_limit_uses_more_than_all_of_it(
    workspace: Workspace, scalar: int, room: float, cobot: Robot
) -> None:
    limit = workspace.limits(cobot)[0]
    usage = limit.usage(at(np.array(cobot.home)))[0, scalar]
    assert usage >= 1.0 - 1e-12  # on the face, to rounding
    assert limit.distance(scalar, usage) == pytest.approx(room, abs=1e-12)
    (slopes, *_) = limit.gradient(at(np.array(cobot.home)), np.array([scalar]))
    assert np.isfinite(slopes).all()


def test_capsules_that_touch_at_home_are_named_and_by_how_much(cobot: Robot) -> None:
    # From the forearm's end: 123.3 - 23 mm up its z, and 107.1 - 50 mm out to where the wrist's capsule begins.
    gap = np.hypot(100.3, 57.1) * 1e-3 - 0.045 - 0.04
    with pytest.raises(InfeasibleExcitation) as caught:
        Workspace(clearance=0.05).limits(cobot)
    text = str(caught.value)
    assert f"capsules 'forearm' and 'wrist_2' come within {gap:.6g} m of each other, 0.05 m must be left" in text
    assert text.endswith(
        "Too near are 'forearm' and 'wrist_2'; 'base' and 'upper_arm'; 'wrist_1' and 'flange_and_tool'"
    )
    excepted = (("base", "upper_arm"), ("forearm", "wrist_2"), ("wrist_1", "flange_and_tool"))
    *_, limit = Workspace(clearance=0.05, excepted=excepted).limits(cobot)
    assert limit.usage(at(np.array(cobot.home))).max() < 1.0


def test_a_motion_that_is_scaled_into_a_workspace_stays_there(cobot: Robot) -> None:
    """Sampled apart from the limits: both ends of every capsule above the table, and twenty balls along each axis."""
    workspace = Workspace(0.0, (WorkspacePoint("flange_and_tool", lowest=(-0.4, -0.4, 0.2)),), 0.03)
    limits, home, basis = workspace.limits(cobot), np.array(cobot.home), RestToRestFourier(5, 10.0)
    wide = np.random.default_rng(0).normal(size=(6, basis.size))
    assert not certify(limits, basis, home, wide).feasible
    weights = scale_into_limits(limits, basis, home, wide)
    assert certify(limits, basis, home, weights).usage.max() > 0.99

    rotations, origins = forward_kinematics(cobot, motion_at(basis, home, weights, np.linspace(0.0, 10.0, 2001))[0])
    shares = np.linspace(0.0, 1.0, 20)[:, None]
    axes = [np.array(each.start) + shares * (np.array(each.end) - each.start) for each in cobot.capsules]
    placed = [axes[0][None]] + [
        origins[:, None, i] + axes[i + 1] @ np.swapaxes(rotations[:, i], 1, 2) for i in range(6)
    ]
    assert np.all(origins[:, 5].min(axis=0) >= [-0.4, -0.4, 0.2])
    for capsule, balls in zip(cobot.capsules[1:], placed[1:], strict=True):
        assert balls[..., 2].min() >= capsule.radius
    for outer in range(7):
        for inner in range(outer - 1):
            apart = np.linalg.norm(placed[inner][:, :, None] - placed[outer][:, None], axis=-1).min()
            assert apart >= cobot.capsules[inner].radius + cobot.capsules[outer].radius + 0.03


def test_a_home_that_touches_is_named(cobot: Robot) -> None:
    basis = RestToRestFourier(3, 10.0)
    with pytest.raises(InfeasibleExcitation, match=r"'shoulder': it reaches z = 0\.0573 m, at least 0\.06 m is allow"):
        scale_into_limits(Workspace(0.06).limits(cobot), basis, np.array(cobot.home), np.ones((6, basis.size)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clearance": -0.01}, "clearance = -0.01 m must be a number of metres, 0 or more"),
        ({"clearance": float("nan")}, "clearance = nan m must be"),
        ({"table_height": INFINITE}, "table_height = inf m must be a finite number, or None"),
        ({"excepted": (("forearm", "bass"),)}, "robot 'cobot6' has no capsule on 'bass'; there are 'base', 'shoulder'"),
        ({"points": (WorkspacePoint("hand"),)}, "point on 'hand': robot 'cobot6' has no frame 'hand'; there are shoul"),
    ],
)
def test_what_a_workspace_cannot_be(settings: dict[str, Any], message: str, cobot: Robot) -> None:
    with pytest.raises(ExcitationError) as caught:
        Workspace(**settings).limits(cobot)
    assert message in str(caught.value)


def test_what_nothing_could_keep_is_refused(cobot: Robot) -> None:
    bare = dataclasses.replace(cobot, capsules=(), frames=(Frame("foot", -1, IDENTITY, (0.0, 0.0, 0.0)),))
    assert Workspace().limits(bare) == ()
    for workspace, message in (
        (Workspace(clearance=0.02), "has no capsules, so a clearance of 0.02 m between its links cannot be kept"),
        (Workspace(table_height=0.0), "has no capsules, and the workspace no points, to be kept above the table at 0"),
        (Workspace(points=(WorkspacePoint("foot"),)), "point on 'foot': that is the base of robot 'cobot6'"),
    ):
        with pytest.raises(ExcitationError, match=message):
            workspace.limits(bare)


FILE = """
version = 1
table_mm = -5
clearance_mm = 20
[[points]]
link = "flange_and_tool"
offset_mm = [0, 0, 80]
lowest_mm = { x = -500, z = 100 }
highest_mm = { x = 500 }
[[points]]
link = "wrist_1"
[[excepted]]
links = ["wrist_1", "flange_and_tool"]
"""


def load(tmp_path: Path, text: str) -> Workspace:
    path = tmp_path / "cell.toml"
    path.write_text(text, encoding="utf-8")
    return read_workspace(path)


def test_a_file_in_millimetres_is_a_workspace_in_metres(tmp_path: Path, cobot: Robot) -> None:
    workspace = load(tmp_path, FILE)
    assert workspace == Workspace(
        table_height=-0.005,
        points=(
            WorkspacePoint("flange_and_tool", (0.0, 0.0, 0.08), (-0.5, -INFINITE, 0.1), (0.5, INFINITE, INFINITE)),
            WorkspacePoint("wrist_1"),
        ),
        clearance=0.02,
        excepted=(("wrist_1", "flange_and_tool"),),
    )
    faces, table, pairs = workspace.limits(cobot)
    assert (len(faces.names), len(table.names), len(pairs.names)) == (3, 14, 14)
    assert isinstance(pairs, CollisionLimit)
    assert load(tmp_path, "version = 1") == Workspace()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("version = 1", "version = 2", "cell.toml: version = 2 is not known; this release reads version 1"),
        ("table_mm = -5", "tabel_mm = -5", "cell.toml: unknown key 'tabel_mm'; did you mean 'table_mm'?"),
        ("table_mm = -5", "table_mm = inf", "cell.toml: table_mm = inf must be a finite number"),
        ("clearance_mm = 20", "clearance_mm = -20", "cell.toml: clearance = -0.02 m must be a number of metres"),
        ("offset_mm = [0, 0, 80]", "offset_mm = [0, 80]", "points[0]: offset_mm = [0, 80] must be a list of 3"),
        ("z = 100", "w = 100", "cell.toml: points[0], lowest_mm: unknown key 'w'"),
        ("x = -500", "x = 600", "cell.toml: point on 'flange_and_tool': its box goes from x = 0.6 m to 0.5 m"),
        ('["wrist_1", "flange_and_tool"]', '["wrist_1"]', "excepted[0]: links = ['wrist_1'] must be two names"),
        ("version = 1", "version = ", "cell.toml is not TOML"),
    ],
)
def test_errors_of_the_file(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in FILE
    with pytest.raises(ExcitationError) as caught:
        load(tmp_path, FILE.replace(before, after))
    assert message in str(caught.value)
    assert isinstance(caught.value, JointbenchError)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ExcitationError, match="cannot be read: "):
        read_workspace(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"offset": (0.0, 0.1)}, r"offset \(0.0, 0.1\) m must be three finite numbers"),
        ({"offset": (0.0, 0.1, float("nan"))}, r"must be three finite numbers"),
        ({"lowest": (0.0,)}, r"lowest \(0.0,\) m must be three numbers, x, y and z"),
        ({"highest": (1.0, 1.0, 1.0, 1.0)}, r"highest .* m must be three numbers, x, y and z"),
        ({"lowest": (0.0, 0.0, float("nan"))}, r"the lowest corner must be below the highest"),
    ],
)
def test_a_point_that_is_none_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ExcitationError, match=rf"point on 'flange_and_tool': .*{message}"):
        WorkspacePoint("flange_and_tool", **values)


def test_a_robot_that_stands_has_a_floor_at_its_base(cobot: Robot, tmp_path: Path) -> None:
    floor, _ = Workspace().limits(cobot)
    table, _ = Workspace(table_height=0.0).limits(cobot)
    assert floor.names == table.names
    assert Workspace().height(cobot) == 0.0
    assert not_checked(cobot, Workspace().limits(cobot)) == ""
    without = load(tmp_path, "version = 1\nfloor = false")
    assert without.height(cobot) is None
    assert not_checked(cobot, without.limits(cobot)) == "table NOT checked"
    assert not_checked(cobot, ()) == "self-collision and table NOT checked"


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 9.8), (9.8, 0.0, 0.0), (0.0, 0.0, 0.0)])
def test_one_that_hangs_has_none(cobot: Robot, gravity: tuple[float, float, float]) -> None:
    hanging = dataclasses.replace(cobot, gravity=gravity)
    assert Workspace().height(hanging) is None
    (limit,) = Workspace().limits(hanging)
    assert isinstance(limit, CollisionLimit)


def test_nor_has_one_that_is_below_its_base_at_home(cobot: Robot) -> None:
    """As on a column."""
    low = dataclasses.replace(cobot, home=(0.0, 0.6, 0.0, -1.5, 0.0, 0.0))
    assert Workspace().height(low) is None


def test_capsules_are_kept_apart_where_nobody_says_how_far(cobot: Robot) -> None:
    *_, limit = Workspace().limits(cobot)
    assert isinstance(limit, CollisionLimit)
    assert limit.clearance == DEFAULT_CLEARANCE == 0.02
