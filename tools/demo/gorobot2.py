"""System C: a biped on one foot identifies its masses and their centres by that foot's four forces alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil_tests.link_helpers import inject
from hil_tests.virtual_bench import virtual_bench
from jointbench import Excitation
from jointbench.arrays import Array
from jointbench.bench import Bench, Progress, open_bench
from jointbench.checks import Check
from jointbench.cli.stance import (
    HELD,
    LABELS,
    PRINTED,
    distances_of,
    drawn,
    estimates_of,
    file_name,
    paper_estimate,
    parameter_table,
    predictions_of,
    spreads_of,
    stances_of,
    torques_of,
)
from jointbench.errors import FootOffGround, JointbenchError, RobotFell, StuckFootSensor, WrongTotalMass
from jointbench.excitation import plan_single_support
from jointbench.identification.zero_moment_point import (
    ReducedParameters,
    Stance,
    ZmpEstimate,
    stance_of_run,
    theoretical_point,
)
from jointbench.identification.zero_moment_point.published_methods import FIRST_ALPHA, PRINTED_ALPHA
from jointbench.identification.zero_moment_point.stance import Calibration
from jointbench.model import CORNERS, Robot, load_robot
from jointbench.recording import Run, record
from jointbench.results import stance_picture
from tools.demo.playing import BENCHES, in_worker, play_on_two, two_workers
from tools.demo.story import PaperLine, Stage, Story
from tools.truth import Truth

TRUNK, SUPPORT_FOOT_NODE = 6, 13
"""Nodes of the boards that a fault strikes."""

SHOVE_N, SHOVED_AFTER = 60.0, 3.0
"""How hard, and how long after the motion's start [s]."""

WRONG_SHARE = 0.9
"""Of the robot's mass that is told instead of it."""


@dataclass(frozen=True)
class Refusal:
    """A fault, the name that it was given, and the message.

    Attributes:
        what: was brought about.
        named: the class of the error that came of it, "nothing" where none came.
        wanted: the one it should be.
        words: the message.
    """

    what: str
    named: str
    wanted: str
    words: str

    @property
    def ok(self) -> bool:
        """True if the fault was named as what it is."""
        return self.named == self.wanted


def refusals(stage: Stage, bench_file: Path, motion: Excitation, good: Run, total_mass: float) -> tuple[Refusal, ...]:
    """Break a foot's sensor, weigh wrongly, shove the robot over, and try to go on with it lying there.

    Args:
        stage: where and how.
        bench_file: of the emulated boards.
        motion: what is played meanwhile.
        good: a recording without a fault, for what only the host is told wrongly.
        total_mass: of the robot [kg].
    """
    found = [
        _refusal("total mass told 10 % too low", WrongTotalMass, lambda: stance_of_run(good, WRONG_SHARE * total_mass))
    ]
    with virtual_bench(bench_file, stage.plant, stage.seed, out=stage.out / "faults", board=stage.board) as live:
        with open_bench(live) as bench:
            _ready(bench)
            inject(bench, "foot_force_1_stuck", SUPPORT_FOOT_NODE)
            found.append(
                _refusal(
                    "sensor of the front left corner stuck",
                    StuckFootSensor,
                    lambda: stance_of_run(_play(bench, motion, stage, "stuck"), total_mass),
                )
            )
        with open_bench(live) as bench:
            _ready(bench)
            shove = _Shove(bench)
            found.append(_refusal("robot shoved over", RobotFell, lambda: _play(bench, motion, stage, "shoved", shove)))
        with open_bench(live) as bench:
            _ready(bench)
            found.append(_refusal("foot off the ground", FootOffGround, lambda: _play(bench, motion, stage, "lying")))
    return tuple(found)


def _ready(bench: Bench) -> None:
    bench.connect()
    bench.clear()
    bench.configure()


@dataclass
class _Shove:
    """Pushes at the trunk, once the robot has moved for a while."""

    bench: Bench
    done: bool = False

    def __call__(self, progress: Progress) -> None:
        if not self.done and progress.elapsed >= SHOVED_AFTER:
            self.done = True
            inject(self.bench, "shove", TRUNK, force_N=SHOVE_N)


def _play(
    bench: Bench, motion: Excitation, stage: Stage, name: str, progress: Callable[[Progress], None] | None = None
) -> Run:
    return record(bench, motion, stage.out / name, 1, progress, seed=stage.seed)


def _refusal(what: str, wanted: type[JointbenchError], attempt: Callable[[], object]) -> Refusal:
    try:
        attempt()
    except JointbenchError as error:
        return Refusal(what, type(error).__name__, wanted.__name__, str(error))
    return Refusal(what, "nothing", wanted.__name__, "")


PAPER = "C · Wu & Gao, Journal of Harbin Institute of Technology 53(7):20, 2021"
ASSUMED = (
    "Geometry and parameters of the robot stand in the paper's tables 1 and 2, whose cells our copy lacks; drives, "
    "limits and sensors are not in its text. Trunk, thighs, shanks and feet of the robot's file are off from the "
    "plant's by amounts that were chosen so that the file errs by about as much as the paper's drawing, 33.8 mm; each "
    "seed draws masses, centres, inertias, friction and cables about that.",
    "As in the paper the hips do not turn about the trunk's upright, and what stands for each link's rotary inertia is "
    "left out of its ZMP (eq. 8).",
    "Foot sensors: gains 1 ± 0.015, zeros known to 0.3 N, noise of 0.5 N a sample; a cable pulls at each foot. Soles "
    "give way, gears bend, currents' gains with the torque constants are 1 ± 0.05, and joint friction has Coulomb, "
    "viscous, Stribeck's and load's parts, of which the method by joint torques knows the first two. Three things that "
    "no fit knows: cells differ by 0.2 to 0.6 N between rising and falling force, zeros go by 0.2 N (one sigma) as the "
    "boards grow warm, and the swing foot's cable pulls harder the farther it is; sources in the plant's file.",
    "The paper's method is its own: e as a sum in m and kg, Newton's step where H is positive definite and -α G where "
    "it is not, α one constant, each run by itself, then mean and standard deviation of the five. In which units its e "
    "is, by which the size of α goes, it does not print. Its σ is the printed one, of single runs.",
    "The robot is weighed without an error. Ours takes the file's masses for known to 30 %, its centres to 30 % of the "
    "links' lengths and its inertias to 10 %; with hips that stand still the motion tells thighs, shanks and feet "
    "apart by little more than that.",
    "Distances are from the measured point without the constant errors that the plant's sensors and cables have, which "
    "nobody at the bench could know; what is not constant is left in. As calibrated: from the sensors as they came, "
    "which is how the paper measures; the errors of gains and zeros count in it for every method, the plant's own "
    "parameters included, and a method that takes them for masses is rewarded. Corrected: by what ours found on the "
    "five runs.",
    "Ours to the plant's own parameters is a ratio of distances of 0.1 to 0.3 mm, by sensors whose errors of gains and "
    "zeros are 0.7 to 1.3 mm as calibrated. In two of five seeds it misses its limit, by 0.02 and 0.04 mm (0.16 to "
    "0.11 mm, 0.30 to 0.20 mm); by the sensors as ours corrected them it is 0.52 to 0.92 in all five.",
    "On the paper's robot the way by the ZMP errs less than that by joint torques; here the other way round. Its joint "
    "torques come from currents through gears whose friction our plant has in four parts and the paper's robot in an "
    "unknown form.",
)

BENCH = BENCHES / "gorobot2.toml"
RUNS, DURATION = 5, 95.008
"""As printed; a whole number of knots of 32 ms makes up the rest."""

FAULT_DURATION = 12.8
"""Of the motion during which something is broken on purpose [s]."""

MOST_OF_PAPER, MOST_OF_FLOOR, LEAST_COVERED, LEAST_BETTER, MOST_OF_ITERATIONS = 0.5, 1.3, 7, 7, 0.2
PRINTED_STEP, PRINTED_ITERATIONS = 1e-4, 121
COVERED = 2.0
"""Standard deviations within which an estimate covers the truth."""

BOARDS = 14
SUPPORT_FOOT, TRUE, WHOLE_GRADIENT = "r_foot", "true", "paper_alpha_1"
KNOWN, UNCORRECTED, CORRECTED = "sensors_known", "sensors_uncorrected", "sensors_corrected_by_ours"
"""What stands between the forces and the measured point."""


def tell(stage: Stage) -> Story:
    """Plan, play on two benches side by side, estimate three ways, judge on a fresh run; then break things."""
    robot = load_robot("gorobot2")
    with two_workers() as workers:
        stage.console.say(f"planning {RUNS + 1} random motions of {DURATION:g} s on one foot")
        played = play_on_two(stage, workers, BENCH, plans(robot, stage.seed))
        *runs, fresh_run = played.runs.values()
        mass, true = played.truth["base"]["total_mass"], true_parameters(robot, played.truth)
        broken = workers.submit(broken_on_purpose, in_worker(stage), runs[0], mass)
        with stage.console.working("reading the runs"):
            _, (*stances, fresh) = stances_of([*runs, fresh_run], mass, SUPPORT_FOOT, stage.console.say)
        with stage.console.working("estimating by joint torques, the paper's way and ours"):
            reduced = ReducedParameters(robot)
            torques = torques_of(runs)
            estimates = estimates_of(torques, stances, reduced, mass)
            spread = spreads_of(torques, stances, reduced, mass, ("torque", "ours"))
            whole = paper_estimate(stances, robot, mass, FIRST_ALPHA)
        ours, paper = estimates["ours"], estimates["paper"]
        spread["paper"] = paper.sigma
        stage.console.say()
        stage.console.say(told_table(estimates))
        predictions = predictions_of(fresh, {WHOLE_GRADIENT: whole, **estimates})
        predictions[TRUE] = theoretical_point(fresh, true)
        distances = {
            KNOWN: distances_of(predictions, Calibration(fresh)(true_nuisance(fresh, played.truth))[0][:, :2]),
            UNCORRECTED: distances_of(predictions, fresh.measured),
            CORRECTED: distances_of(predictions, ours.corrected(fresh)),
        }
        stage.console.say("a wrong weight, a stuck sensor, a shove and a fall, to see each refused by name")
        with stage.console.working("breaking things"):
            named = broken.result()
    true_values = reduced.of_parameters(true)
    for each in named:
        stage.console.say(f"  {each.what}: {each.words}")
    truth = dict(zip(reduced.names, true_values.tolist(), strict=True))
    with stage.console.working("drawing"):
        picture = stance_picture(stage.out / "stance.png", fresh, *drawn(fresh, estimates, truth))
    lines = (
        *distance_lines(distances),
        *coverage_lines(estimates, true_values),
        *spread_lines(reduced, spread),
        *solver_lines(paper, whole, ours),
        boards_line(runs[0]),
        *refusal_lines(named),
    )
    fields: dict[str, Any] = {
        **played.fields,
        "total_mass_kg": mass,
        "mean_distance_m": distances,
        "parameters": {TRUE: truth}
        | {way: dict(zip(reduced.names, each.values.tolist(), strict=True)) for way, each in estimates.items()},
        "sigma": dict(zip(reduced.names, ours.sigma.tolist(), strict=True)),
        "spread": {way: dict(zip(reduced.names, each.tolist(), strict=True)) for way, each in spread.items()},
        "covered": {way: int(covered(each, true_values).sum()) for way, each in estimates.items()},
        "iterations": {way: estimates[way].iterations for way in ("paper", "ours")},
        "refusals": {each.what: each.words for each in named},
        "estimates": {way: str(each.save(stage.out / file_name(way))) for way, each in estimates.items()},
        "picture": picture,
    }
    refused = ours.verdict.is_refused or not played.is_valid
    return Story(PAPER, lines, (played.lost_check,), fields, refused, ASSUMED, ours.verdict)


def told_table(estimates: Mapping[str, ZmpEstimate]) -> str:
    """Parameters by the paper's method and by ours; the picture has all three, too wide for a terminal."""
    return parameter_table({way: estimates[way] for way in ("paper", "ours")})


def plans(robot: Robot, seed: int) -> dict[str, Callable[[], Excitation]]:
    """Plans of random motions on one foot: five to fit, and a fresh one to judge on."""
    names = [*(f"run-{number}" for number in range(1, RUNS + 1)), "fresh"]
    return {
        name: partial(plan_single_support, robot, DURATION, seed=len(names) * seed + index, hips_turn=False)
        for index, name in enumerate(names)
    }


def broken_on_purpose(stage: Stage, good: Run, mass: float) -> tuple[Refusal, ...]:
    """Refusals of faults made on purpose; a good recording is given a wrong mass."""
    motion = plan_single_support(load_robot("gorobot2"), FAULT_DURATION, seed=stage.seed, hips_turn=False)
    return refusals(stage, BENCH, motion, good, mass)


def true_parameters(robot: Robot, truth: Truth) -> Array:
    """Standard parameters of the plant's links, the support foot's first."""
    return np.concatenate([truth[name]["standard_parameters"] for name in ("base", *robot.joint_names)])


def true_nuisance(stance: Stance, truth: Truth) -> Array:
    """The plant's errors of sensors and cables, in the order of `nuisance_names`; 0 for those it does not have."""
    known: dict[str, float] = {}
    for foot in stance.robot.feet:
        for i, corner in enumerate(CORNERS):
            name = f"{foot.name}.{corner.replace(' ', '_')}"
            known[f"{name}.gain"] = truth[foot.name]["gain"][i] - 1.0
            known[f"{name}.zero"] = truth[foot.name]["zero_error"][i]
        known |= {f"{foot.name}.pull_{axis}": truth[foot.name]["cable_pull"][i] for i, axis in enumerate("xyz")}
    return np.array([known.get(name, 0.0) for name in stance.nuisance_names])


def distance_lines(distances: Mapping[str, Mapping[str, float]]) -> tuple[PaperLine, ...]:
    """Mean distances on the fresh run, beside the printed ones, and what they are to each other."""
    labels = LABELS | {TRUE: "the plant's own parameters", WHOLE_GRADIENT: "paper's method with α = 1"}
    labels["paper"] = "paper's method (α = 0.02)"
    known, calibrated, corrected = (distances[kind] for kind in (KNOWN, UNCORRECTED, CORRECTED))

    def ratio(quantity: str, of: str, to: str, printed: str = "–", check: tuple[str, float] | None = None) -> PaperLine:
        value, raw, ours = (each[of] / each[to] for each in (known, calibrated, corrected))
        words = f"{value:.3f}; as calibrated {raw:.2f}, corrected {ours:.2f}"
        return PaperLine(quantity, printed, words, Check(check[0], value, "<=", check[1]) if check else None)

    direction = "as in the paper" if known["paper"] < known["torque"] else "the other way round than in the paper"
    return (
        *(
            PaperLine(
                f"theoretical to measured ZMP on a fresh run, {labels[way]}",
                f"{1e3 * PRINTED[way]:.1f} mm" if way in PRINTED else "–",
                f"{1e3 * value:.2f} mm; as calibrated {1e3 * calibrated[way]:.2f}, corrected "
                f"{1e3 * corrected[way]:.2f}",
            )
            for way, value in known.items()
        ),
        ratio(
            f"paper's method to joint torques: {direction}", "paper", "torque",
            f"{PRINTED['paper'] / PRINTED['torque']:.2f}",
        ),
        ratio("ours to joint torques", "ours", "torque"),
        ratio("ours to the paper's method", "ours", "paper", check=("ours_to_paper", MOST_OF_PAPER)),
        ratio("ours to the plant's own parameters", "ours", TRUE, check=("ours_to_sensor_floor", MOST_OF_FLOOR)),
        ratio("the plant's own parameters to the paper's method: the bound of ours", TRUE, "paper"),
    )  # fmt: skip


def covered(estimate: ZmpEstimate, true_values: Array) -> NDArray[np.bool_]:
    """Which parameters are told and within two of their own σ of the truth; one that is refused tells nothing."""
    told = np.array([not verdict.is_refused for verdict in estimate.parameter_verdicts])
    with np.errstate(invalid="ignore"):
        near = np.abs(estimate.values - true_values) <= COVERED * estimate.sigma
    return told & np.isfinite(estimate.sigma) & near


def coverage_lines(estimates: Mapping[str, ZmpEstimate], true_values: Array) -> tuple[PaperLine, ...]:
    """Lines on the parameters that each method has within two of its own σ, and on their errors."""
    lines: list[PaperLine] = []
    for way, estimate in estimates.items():
        inside = covered(estimate, true_values)
        off = np.abs(estimate.values - true_values) / np.maximum(estimate.sigma, 1e-300)
        each = ", ".join(
            f"{name} {verdict.word if verdict.is_refused else f'{sigmas:.1f}'}"
            for name, verdict, sigmas in zip(estimate.names, estimate.parameter_verdicts, off, strict=True)
        )
        label = "paper's method" if way == "paper" else LABELS[way]
        held_to = Check("covered_by_ours", int(inside.sum()), ">=", LEAST_COVERED, "parameters")
        lines.append(
            PaperLine(
                f"parameters within 2 σ of the plant's, {label} (off by σ)",
                "–",
                f"{int(inside.sum())} of {len(inside)}: {each}",
                held_to if way == "ours" else None,
            )
        )
    return tuple(lines)


def spread_lines(reduced: ReducedParameters, spreads: Mapping[str, Array]) -> tuple[PaperLine, ...]:
    """Lines on the parameters of which the single runs agree better than those of the joint-torque method."""
    better = {way: int(np.sum(spreads[way] < spreads["torque"])) for way in ("paper", HELD, "ours")}
    of = f"of {len(reduced.names)}"
    return (
        PaperLine(
            f"parameters on which {RUNS} runs agree better than by joint torques, paper's method",
            "7 of 8",
            f"{better['paper']} {of}",
        ),
        PaperLine(
            "the same, ours with rotary inertias as in the drawing",
            "–",
            f"{better[HELD]} {of}",
            Check("spread_smaller", better[HELD], ">=", LEAST_BETTER, "parameters"),
        ),
        PaperLine(
            "the same where ours doubts the drawing's rotary inertias in each run", "–", f"{better['ours']} {of}"
        ),
    )


def solver_lines(paper: ZmpEstimate, whole: ZmpEstimate, ours: ZmpEstimate) -> tuple[PaperLine, ...]:
    """Lines on the results of the solvers, from the same start."""

    def ended(estimate: ZmpEstimate) -> str:
        step, how = estimate.trace[-1][0], "converged" if estimate.converged else "not converged"
        return f"{estimate.iterations}, {how}, last step {step:.2g}"

    share = ours.iterations / paper.iterations
    return (
        PaperLine(
            f"iterations of the paper's solver, α = {PRINTED_ALPHA:g}, the longest of {RUNS} runs",
            f"{PRINTED_ITERATIONS}, last step <= {PRINTED_STEP:g}",
            ended(paper),
        ),
        PaperLine(f"the same, α = {FIRST_ALPHA:g}", "does not converge", ended(whole)),
        PaperLine(
            "iterations of ours, all runs at once, and their share of the paper's",
            "–",
            f"{ours.iterations}, {share:.3f}",
            Check("iterations_to_papers", share, "<=", MOST_OF_ITERATIONS),
        ),
    )


def refusal_lines(named: Sequence[Refusal]) -> tuple[PaperLine, ...]:
    """Lines on the faults made on purpose, and the names they were given."""
    return tuple(
        PaperLine(each.what, "–", f"refused: {each.named}", Check(f"named_{each.wanted}", int(each.ok), "==", 1))
        for each in named
    )


def boards_line(run: Run) -> PaperLine:
    """Line on the number of boards that streamed in a run."""
    boards = 0 if run.ledger is None else len(run.ledger.boards)
    return PaperLine("boards that stream", "–", f"{boards}", Check("boards", boards, "==", BOARDS))
