"""What a plan on one foot says it will tell is what its motion tells, and the picture shows it."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from jointbench import extras
from jointbench.cli.plan import plan_text
from jointbench.drawing import PALETTE, house_style
from jointbench.errors import FileNotWritten, MissingExtra
from jointbench.excitation import (
    Excitation,
    Workspace,
    WorkspacePoint,
    motion_at,
    plan_single_support,
    random_excitation,
    support_workspace,
    torque_limit,
    usable_limits,
)
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.model import Robot, drive_parameter_names, inverse_dynamics, load_robot, zero_moment_point
from jointbench.model.kinematics import forward_kinematics
from jointbench.results.arm_views import SIDE, TOP, ArmPoses, draw_view
from jointbench.results.plan_evidence import NOISE, PlanEvidence, Trace, plain, plan_traces
from jointbench.results.plan_figure import plan_figure
from jointbench.results.reports import plan_picture

ROBOT = load_robot("gorobot2")


@pytest.fixture(scope="module")
def on_one_foot() -> PlanEvidence:
    return PlanEvidence.of(ROBOT, plan_single_support(ROBOT, 9.6, 4), workspace=support_workspace(ROBOT, "r_foot"))


def test_the_least_sigma_is_that_of_the_linear_problem(on_one_foot: PlanEvidence) -> None:
    """From the regressor's columns instead of differences, and the mass as a measurement without noise."""
    support = on_one_foot.support
    assert support is not None
    assert ROBOT.base_link is not None
    assert ROBOT.standard_parameters is not None
    motion = on_one_foot.excitation.evaluate(np.arange(0.0, 9.6, 0.05))
    links = zero_moment_point(ROBOT, *motion, ROBOT.standard_parameters, -0.06)
    mass, center = ROBOT.base_link.mass or 0.0, np.array(ROBOT.base_link.center_of_mass)
    force = links.vertical_force + mass * 9.81
    points = (links.points * links.vertical_force[:, None] + mass * 9.81 * center[:2]) / force[:, None]
    np.testing.assert_allclose(points - [0.02, 0.0], support.balance.points, atol=1e-12)
    foot = np.zeros((len(points), 3, 10))
    foot[:, 0, 1], foot[:, 1, 2], foot[:, 2, 0] = 9.81, 9.81, 9.81
    columns = np.concatenate([foot, links.wrench_columns], axis=2)
    by_pi = (columns[:, :2] - points[:, :, None] * columns[:, 2:]) / force[:, None, None]
    reduced = ReducedParameters(ROBOT)
    slopes = (by_pi @ reduced.jacobian(reduced.nominal)).reshape(-1, 8) / NOISE
    known = np.vstack([slopes, 1e6 * reduced.mass_row])  # to a milligram

    sigma = np.sqrt(np.diag(np.linalg.inv(known.T @ known)))

    np.testing.assert_allclose(support.sigma, sigma, rtol=1e-3)  # differences and the milligram
    assert support.names == reduced.names


@pytest.mark.slow  # twelve joints take seconds to draw
def test_the_picture_shows_the_sole_and_what_it_tells(on_one_foot: PlanEvidence) -> None:
    support = on_one_foot.support
    assert support is not None
    with house_style():
        figure = plan_figure(on_one_foot)
        figure.canvas.draw()
        boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        upwards = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across < 2.0 or upwards < 2.0, (one, other)  # a box is a pixel or two larger than its ink
    sole, told = figure.axes[-4:-2]
    path = next(line for line in sole.lines if line.get_color() == PALETTE.measured)
    np.testing.assert_allclose(np.column_stack([path.get_ydata(), path.get_xdata()]), 1e3 * support.balance.points)
    left, right = sole.get_xlim()
    assert left > right  # what is left of the robot is left in the picture
    widths = [patch.get_width() for patch in told.patches]  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(widths, 100.0 * support.relative_sigma)


def test_a_plan_of_an_arm_has_none() -> None:
    robot = load_robot("rehab_arm")
    assert PlanEvidence.of(robot, random_excitation(robot)).support is None


@pytest.fixture(scope="module")
def evidence() -> PlanEvidence:
    robot, workspace = load_robot("cobot6"), Workspace(table_height=-0.05)
    plan = random_excitation(robot, seed=4, workspace=workspace)
    return PlanEvidence.of(robot, plan, workspace=workspace)


def named(traces: Sequence[Trace], name: str) -> Trace:
    return next(trace for trace in traces if trace.name == name)


def test_a_feasible_plan_says_so_and_what_is_tightest(evidence: PlanEvidence) -> None:
    assert evidence.certificate.feasible
    assert evidence.answer.startswith("feasible at every time, between samples too")
    assert evidence.certificate.worst in evidence.answer
    assert 0.0 <= evidence.smallest_margin == pytest.approx(min(evidence.certificate.margins.values()))
    assert any(name.startswith("table under") for name in evidence.certificate.margins)


def test_of_a_passive_joint_no_torque_is_said() -> None:
    robot = load_robot("rehab_arm")

    evidence = PlanEvidence.of(robot, random_excitation(robot))

    torque = named(evidence.traces, "torque")
    assert [torque.says(joint) for joint in range(5)] == [True, True, True, True, False]
    assert np.isnan(torque.peak[4])
    assert all(named(evidence.traces, "position").says(joint) for joint in range(5))
    assert np.ptp(named(evidence.traces, "position").values[:, 4]) == 0.0
    assert [line.split()[-1] for line in plan_text(evidence).splitlines() if line.startswith("  j5")] == ["0", "–"]


def test_a_plan_that_is_too_large_is_named_with_its_limit(evidence: PlanEvidence) -> None:
    plan = evidence.excitation
    large = dataclasses.replace(plan, weights=plan.weights * (1.01 / evidence.certificate.usage.max()))
    judged = PlanEvidence.of(evidence.robot, large, workspace=evidence.workspace)
    assert not judged.certificate.feasible
    assert judged.smallest_margin < 0.0
    assert judged.answer == f"not feasible: {'; '.join(judged.certificate.violations)}"
    assert "is allowed" in judged.answer


def test_spectra_have_the_condition_numbers(evidence: PlanEvidence) -> None:
    raw, scaled = evidence.singular_values
    # As accurate as the smallest singular value of a matrix of this condition.
    assert raw[0] / raw[-1] == pytest.approx(evidence.excitation.condition_number, rel=1e-9)
    assert scaled[0] / scaled[-1] == pytest.approx(evidence.scaled_condition_number, rel=1e-9)


def test_traces_are_the_motion_in_a_person_s_units(evidence: PlanEvidence) -> None:
    plan, robot = evidence.excitation, evidence.robot
    q, dq, ddq = plan.evaluate(evidence.time)
    for name, values in (("position", q), ("velocity", dq), ("acceleration", ddq)):
        trace = named(evidence.traces, name)
        np.testing.assert_allclose(trace.values, np.rad2deg(values), rtol=0.0, atol=1e-9)
        assert not trace.either_way.any()
    assert named(evidence.traces, "position").limits == pytest.approx(np.rad2deg(robot.position_limits))
    visited = [margins.position_coverage for margins in plan.margins]
    assert named(evidence.traces, "position").share == pytest.approx(visited)
    left = [1.0 - margins.velocity for margins in plan.margins]
    assert named(evidence.traces, "velocity").share == pytest.approx(left)


def test_torque_is_what_the_inertias_ask_for(evidence: PlanEvidence) -> None:
    robot, torque = evidence.robot, named(evidence.traces, "torque")
    q, dq, ddq = evidence.excitation.evaluate(evidence.time)
    assert all(drive.rotor_inertia is None for drive in robot.drives)
    assert robot.standard_parameters is not None
    # Rounding of 1 / allowed and back.
    expected = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    np.testing.assert_allclose(torque.values, expected, rtol=0.0, atol=1e-10)
    assert torque.unit == "N·m"


def test_coulomb_s_friction_comes_on_top_to_both_sides(evidence: PlanEvidence) -> None:
    plan, robot = evidence.excitation, evidence.robot
    motion = motion_at(plan.basis, plan.home, plan.weights, evidence.time)
    friction = np.array([2.5 if name.endswith("coulomb") else 0.0 for name in drive_parameter_names(robot)])
    limit = torque_limit(robot, drive_parameters=friction)
    assert limit is not None
    torque, plain = named(plan_traces(robot, motion, [limit]), "torque"), named(evidence.traces, "torque")
    assert torque.either_way == pytest.approx(np.full(6, 2.5))
    assert torque.highest == pytest.approx(plain.highest + 2.5)
    assert torque.peak == pytest.approx(plain.peak + 2.5)


def test_jerk_is_there_where_a_joint_has_a_limit_of_it(evidence: PlanEvidence) -> None:
    assert [trace.name for trace in evidence.traces] == ["position", "velocity", "acceleration", "torque"]
    robot = evidence.robot
    first = dataclasses.replace(robot.joints[0], jerk_limit=20.0)
    limited = dataclasses.replace(robot, joints=(first, *robot.joints[1:]))
    judged = PlanEvidence.of(limited, evidence.excitation)
    jerk = named(judged.traces, "jerk")
    plan = evidence.excitation
    dddq = motion_at(plan.basis, plan.home, plan.weights, judged.time)[3]
    np.testing.assert_allclose(jerk.values, np.rad2deg(dddq), rtol=0.0, atol=1e-9)
    assert jerk.limits[:, 1] == pytest.approx([np.rad2deg(20.0), *itertools.repeat(np.inf, 5)])


def test_a_joint_that_slides_is_in_millimetres_and_newtons() -> None:
    robot, plan = sliding()
    traces = PlanEvidence.of(robot, plan).traces
    position, torque = named(traces, "position"), named(traces, "torque")
    q, _, _ = plan.evaluate(np.array([3.0]))
    k = int(np.searchsorted(PlanEvidence.of(robot, plan).time, 3.0))
    assert position.values[k, 0] == pytest.approx(1e3 * q[0, 0], rel=1e-3)
    assert position.values[k, 1] == pytest.approx(np.rad2deg(q[0, 1]), rel=1e-3)
    assert position.unit == "mm or °"
    assert torque.units[:2] == ("N", "N·m")


def test_without_inertias_there_is_no_torque() -> None:
    robot = load_robot("cobot6")
    bare = [dataclasses.replace(joint, link=dataclasses.replace(joint.link, mass=None)) for joint in robot.joints]
    unknown = dataclasses.replace(robot, joints=tuple(bare))
    assert len(usable_limits(unknown)) == 3
    traces = PlanEvidence.of(unknown, random_excitation(unknown, seed=1)).traces
    assert [trace.name for trace in traces] == ["position", "velocity", "acceleration"]


@pytest.mark.parametrize(
    ("value", "shown"), [(515.66, "515.7"), (10343.2, "10343"), (-150.0, "−150"), (0.00312, "0.00312"), (0.0, "0")]
)
def test_numbers_have_no_power_of_ten_where_they_are_large(value: float, shown: str) -> None:
    assert plain(value) == shown


def sliding() -> tuple[Robot, Excitation]:
    """cobot6 on a slide that carries its weight, and a motion of it."""
    robot = load_robot("cobot6")
    slide = dataclasses.replace(
        robot.joints[0],
        kind="prismatic",
        position_limits=(-0.5, 0.5),
        velocity_limit=0.5,
        acceleration_limit=1.0,
        torque_limit=1000.0,
    )
    strong = dataclasses.replace(robot.drives[0], current_limit=100.0)
    slid = dataclasses.replace(robot, joints=(slide, *robot.joints[1:]), drives=(strong, *robot.drives[1:]))
    return slid, random_excitation(slid, seed=2)


BOX = WorkspacePoint("flange_and_tool", (0.0, 0.0, 0.08), highest=(0.4, np.inf, np.inf))
CELL = Workspace(table_height=-0.05, points=(BOX,))


def evidence_of(name: str, workspace: Workspace | None = None, family: str = "fourier") -> PlanEvidence:
    robot = load_robot(name)
    plan = random_excitation(robot, seed=4, workspace=workspace, family=family)
    return PlanEvidence.of(robot, plan, workspace=workspace)


@pytest.fixture(scope="module")
def drawn_plan() -> PlanEvidence:
    return evidence_of("cobot6", CELL)


@pytest.fixture(scope="module")
def one_joint() -> PlanEvidence:
    """A plan whose picture is soon drawn."""
    tip = WorkspacePoint("link_1", (0.0, 0.0, 0.1), highest=(0.4, np.inf, np.inf))
    return evidence_of("modular7:1", Workspace(table_height=-0.5, points=(tip,)))


@pytest.fixture(scope="module")
def figure(drawn_plan: PlanEvidence) -> Figure:
    with house_style():
        return plan_figure(drawn_plan)


def test_every_quantity_of_every_joint_is_between_its_limits(drawn_plan: PlanEvidence, figure: Figure) -> None:
    panels = figure.axes[: 4 * 6]
    for (trace, joint), axes in zip(itertools.product(drawn_plan.traces, range(6)), panels, strict=True):
        curve = next(line for line in axes.lines if line.get_color() == PALETTE.measured)
        assert np.asarray(curve.get_ydata()).max() == pytest.approx(trace.values[:, joint].max())
        assert np.asarray(curve.get_ydata()).min() == pytest.approx(trace.values[:, joint].min())
        limits = [np.asarray(line.get_ydata())[0] for line in axes.lines if line.get_color() == PALETTE.limit]
        assert limits == pytest.approx(trace.limits[joint].tolist())
        assert axes.get_ylim()[0] < limits[0] < limits[1] < axes.get_ylim()[1]


def test_no_words_lie_upon_each_other(figure: Figure) -> None:
    no_words_may_overlap(figure)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("modular7", "ramped_fourier"),
        pytest.param("gorobot2", "point_to_point", marks=pytest.mark.slow),  # twelve joints take two seconds
    ],
)
def test_no_words_of_many_joints_lie_upon_each_other(name: str, family: str) -> None:
    judged = evidence_of(name, family=family)
    if name == "modular7":
        # A fifth column, the most there is, with and without limits.
        first = dataclasses.replace(judged.robot.joints[0], jerk_limit=200.0)
        robot = dataclasses.replace(judged.robot, joints=(first, *judged.robot.joints[1:]))
        judged = PlanEvidence.of(robot, judged.excitation)
    with house_style():
        no_words_may_overlap(plan_figure(judged))


def no_words_may_overlap(figure: Figure) -> None:
    """Every word and number stands clear of the others, and within the figure."""
    figure.draw_without_rendering()  # puts each where it will be drawn
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    assert len(boxes) > 50
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        upwards = min(first.y1, second.y1) - max(first.y0, second.y0)
        # A box is a pixel or two larger than its ink.
        assert across < 2.0 or upwards < 2.0, (one, other)
    width, height = figure.get_size_inches() * figure.dpi
    for text, box in boxes:
        assert -1.0 < box.x0 < box.x1 < width + 1.0, text
        assert -1.0 < box.y0 < box.y1 < height + 1.0, text


def test_words_upon_each_other_are_found() -> None:
    figure = Figure()
    for k in range(51):
        figure.text(0.1 + 0.5 * (k % 2), 0.01 + 0.019 * k, "word", fontsize=4)
    no_words_may_overlap(figure)
    figure.text(0.11, 0.011, "word", fontsize=4)
    with pytest.raises(AssertionError, match="word"):
        no_words_may_overlap(figure)


def shown_texts(figure: Figure) -> list[Text]:
    """All words and numbers of a figure that are seen."""
    texts: list[Text] = [*figure.texts]
    for axes in figure.axes:
        legend = axes.get_legend()
        texts += [*axes.texts, *(legend.get_texts() if legend else ()), axes.xaxis.label, axes.yaxis.label]
        texts += [child for child in axes.get_children() if isinstance(child, Text)]  # its titles
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return list({id(text): text for text in texts if text.get_visible() and text.get_text().strip()}.values())


def test_capsules_are_outlined_at_their_radius(drawn_plan: PlanEvidence) -> None:
    axes = Figure(figsize=(4.0, 4.0)).add_axes((0.1, 0.1, 0.8, 0.8))
    plan, robot = drawn_plan.excitation, drawn_plan.robot
    poses = ArmPoses.of(robot, plan.evaluate(np.array([0.0, 3.0]))[0], CELL)
    draw_view(axes, poses, TOP)
    outlines = [path.vertices for path in axes.collections[2].get_paths()]
    rotations, origins = forward_kinematics(robot, plan.home[None])
    for capsule, outline in zip(robot.capsules, outlines, strict=True):
        frame = (
            (np.eye(3), np.zeros(3)) if capsule.joint < 0 else (rotations[0, capsule.joint], origins[0, capsule.joint])
        )
        ends = np.array([frame[1] + frame[0] @ end for end in (capsule.start, capsule.end)])[:, :2]
        away = [distance(np.asarray(point), *ends) for point in np.asarray(outline)]
        assert away == pytest.approx([capsule.radius] * len(away))


def test_an_arm_that_stays_on_the_line_it_is_seen_along_has_room_around_it() -> None:
    axes = Figure(figsize=(4.0, 4.0)).add_axes((0.1, 0.1, 0.8, 0.8))
    robot = load_robot("modular7:1")
    draw_view(axes, ArmPoses.of(robot, np.array([[0.0], [1.0]])), TOP)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    assert left < -0.05
    assert right > 0.05
    assert low < -0.05
    assert high > 0.05


def distance(point: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
    """Of a point from a segment."""
    along = end - start
    share = np.clip((point - start) @ along / max(along @ along, 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(point - start - share * along))


def test_the_views_have_one_scale_both_ways_and_show_all_of_the_arm(drawn_plan: PlanEvidence, figure: Figure) -> None:
    plan = drawn_plan.excitation
    q = plan.evaluate(np.linspace(0.0, plan.duration, 333))[0]
    origins = forward_kinematics(drawn_plan.robot, q)[1].reshape(-1, 3)
    width, height = figure.get_size_inches()
    for axes, view in zip(figure.axes[-2:], (SIDE, TOP), strict=True):
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        box = axes.get_position()
        assert (right - left) / (box.width * width) == pytest.approx((high - low) / (box.height * height))
        shown = origins[:, list(view)]
        assert ((shown > [left, low]) & (shown < [right, high])).all()


def test_table_and_box_are_drawn_where_they_are_seen(figure: Figure) -> None:
    side, top = figure.axes[-2:]
    level = [line for line in side.lines if line.get_color() == PALETTE.limit and line.get_linestyle() == "-"]
    assert [np.asarray(line.get_ydata())[0] for line in level] == [-0.05]
    for axes in (side, top):
        dashed = [line for line in axes.lines if line.get_color() == PALETTE.limit and line.get_linestyle() == "--"]
        assert [np.asarray(line.get_xdata())[0] for line in dashed] == [0.4]
    assert "table" in [text.get_text() for text in side.texts]
    assert not top.texts


def test_the_way_of_the_chosen_point_is_the_point_s(drawn_plan: PlanEvidence) -> None:
    plan = drawn_plan.excitation
    q = plan.evaluate(np.linspace(0.0, plan.duration, 7))[0]
    (name, way), *_ = ArmPoses.of(drawn_plan.robot, q, CELL).points
    rotations, origins = forward_kinematics(drawn_plan.robot, q)
    assert name == "flange_and_tool"
    assert way == pytest.approx(origins[:, 5] + rotations[:, 5] @ [0.0, 0.0, 0.08])


def test_an_infeasible_plan_is_red_on_top(one_joint: PlanEvidence) -> None:
    plan = one_joint.excitation
    large = dataclasses.replace(plan, weights=3.0 * plan.weights)
    with house_style():
        figure = plan_figure(PlanEvidence.of(one_joint.robot, large, workspace=one_joint.workspace))
    answer = next(text for text in figure.texts if text.get_text().startswith("not feasible"))
    assert answer.get_color() == "#b00020"


def test_what_is_not_watched_is_said_on_top() -> None:
    with house_style():
        figure = plan_figure(evidence_of("modular7:1"))
    assert "no capsules: self-collision and table NOT checked" in [text.get_text() for text in figure.texts]


def test_the_last_link_is_drawn_as_far_as_it_is_known() -> None:
    """Without a capsule or a frame on it: to its centre of mass."""
    robot = load_robot("modular7:2")
    poses = ArmPoses.of(robot, np.array([robot.home]))
    start, tip = poses.sticks[0, -1]
    center = np.array(robot.joints[-1].link.center_of_mass)
    assert np.linalg.norm(tip - start) == pytest.approx(np.linalg.norm(center))
    assert np.linalg.norm(center) > 0.01


@pytest.mark.parametrize(("ending", "begins"), [(".PNG", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_each_format_is_what_its_name_says(tmp_path: Path, one_joint: PlanEvidence, ending: str, begins: bytes) -> None:
    assert plan_picture(tmp_path / f"a{ending}", one_joint).read_bytes().startswith(begins)


def test_the_same_plan_gives_the_same_file(tmp_path: Path, one_joint: PlanEvidence) -> None:
    first, second = (plan_picture(tmp_path / f"{name}.svg", one_joint).read_bytes() for name in "ab")
    assert first == second


def test_what_cannot_be_drawn_says_so(tmp_path: Path, one_joint: PlanEvidence, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotWritten, match="must end in"):
        plan_picture(tmp_path / "plan.gif", one_joint)
    with pytest.raises(FileNotWritten, match="name another place"):
        plan_picture(tmp_path / "no" / "such" / "plan.png", one_joint)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install"):
        plan_picture(tmp_path / "plan.png", one_joint)
