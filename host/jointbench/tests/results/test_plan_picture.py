"""The picture of a plan shows what it says it shows, and nothing in it covers anything else."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from jointbench import extras
from jointbench.dynamics.kinematics import forward_kinematics
from jointbench.errors import FileNotWritten, MissingExtra, ReportError
from jointbench.excitation import Workspace, WorkspacePoint, random_excitation
from jointbench.results.arm_views import SIDE, TOP, ArmPoses, draw_view
from jointbench.results.plan_evidence import PlanEvidence
from jointbench.results.plan_figure import plan_figure
from jointbench.results.plan_picture import plan_picture
from jointbench.results.theme import PALETTE, house_style
from jointbench.robot import load_robot

BOX = WorkspacePoint("flange_and_tool", (0.0, 0.0, 0.08), highest=(0.4, np.inf, np.inf))
CELL = Workspace(table_height=-0.05, points=(BOX,))


def evidence_of(name: str, workspace: Workspace | None = None, family: str = "fourier") -> PlanEvidence:
    robot = load_robot(name)
    plan = random_excitation(robot, seed=4, workspace=workspace, family=family)
    return PlanEvidence.of(robot, plan, workspace=workspace)


@pytest.fixture(scope="module")
def evidence() -> PlanEvidence:
    return evidence_of("cobot6", CELL)


@pytest.fixture(scope="module")
def one_joint() -> PlanEvidence:
    """A plan whose picture is soon drawn."""
    tip = WorkspacePoint("link_1", (0.0, 0.0, 0.1), highest=(0.4, np.inf, np.inf))
    return evidence_of("modular7:1", Workspace(table_height=-0.5, points=(tip,)))


@pytest.fixture(scope="module")
def figure(evidence: PlanEvidence) -> Figure:
    with house_style():
        return plan_figure(evidence)


def test_every_quantity_of_every_joint_is_between_its_limits(evidence: PlanEvidence, figure: Figure) -> None:
    panels = figure.axes[: 4 * 6]
    for (trace, joint), axes in zip(itertools.product(evidence.traces, range(6)), panels, strict=True):
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


def test_capsules_are_outlined_at_their_radius(evidence: PlanEvidence) -> None:
    axes = Figure(figsize=(4.0, 4.0)).add_axes((0.1, 0.1, 0.8, 0.8))
    plan, robot = evidence.excitation, evidence.robot
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


def test_the_views_have_one_scale_both_ways_and_show_all_of_the_arm(evidence: PlanEvidence, figure: Figure) -> None:
    plan = evidence.excitation
    q = plan.evaluate(np.linspace(0.0, plan.duration, 333))[0]
    origins = forward_kinematics(evidence.robot, q)[1].reshape(-1, 3)
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


def test_the_way_of_the_chosen_point_is_the_point_s(evidence: PlanEvidence) -> None:
    plan = evidence.excitation
    q = plan.evaluate(np.linspace(0.0, plan.duration, 7))[0]
    (name, way), *_ = ArmPoses.of(evidence.robot, q, CELL).points
    rotations, origins = forward_kinematics(evidence.robot, q)
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
    with pytest.raises(ReportError, match="must end in"):
        plan_picture(tmp_path / "plan.gif", one_joint)
    with pytest.raises(FileNotWritten, match="name another place"):
        plan_picture(tmp_path / "no" / "such" / "plan.png", one_joint)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install"):
        plan_picture(tmp_path / "plan.png", one_joint)
