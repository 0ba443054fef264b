"""System C: a biped on one foot tells its masses and their centres by that foot's four forces alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jointbench import Excitation
from jointbench.cli.result import Check
from jointbench.cli.stance import (
    distances_of,
    drawn,
    estimates_of,
    file_name,
    predictions_of,
    spreads_of,
    stances_of,
    torques_of,
)
from jointbench.cli.stance_tables import HELD, LABELS, PRINTED, parameter_table
from jointbench.excitation import plan_single_support
from jointbench.identification.zero_moment_point import ReducedParameters, Stance, ZmpEstimate, theoretical_point
from jointbench.identification.zero_moment_point.calibration import Calibration
from jointbench.recording import Run
from jointbench.report import stance_picture
from jointbench.robot import CORNERS, Array, Robot, load_robot
from tools.demo.foot_faults import Refusal, refusals
from tools.demo.playing import BENCHES
from tools.demo.story import PaperLine, Stage, Story
from tools.demo.two_benches import in_worker, play_on_two, two_workers
from tools.truth import Truth

PAPER = "C · Wu & Gao, Journal of Harbin Institute of Technology 53(7):20, 2021"
ASSUMED = (
    "Geometry and parameters of the robot stand in the paper's tables 1 and 2, whose cells our copy lacks; drives, "
    "limits and sensors are not in its text. Trunk, thighs, shanks and feet of the robot's file are off from the "
    "plant's by amounts that were chosen so that the file errs by about as much as the paper's drawing, 33.8 mm.",
    "Foot sensors: gains 1 ± 0.015, zeros known to 0.3 N, noise of 0.5 N a sample; a cable pulls at each foot. Soles "
    "give way, gears bend, currents' gains with the torque constants are 1 ± 0.05, and joint friction has Coulomb, "
    "viscous, Stribeck's and load's parts, of which the method by joint torques knows the first two.",
    "The paper found its constant step, α = 0.02, by lowering it from run to run until three runs came to the same "
    "result. Here α falls geometrically within one run, and would be at 0.02 where the paper's search ended, in "
    "iteration 121.",
    "The robot is weighed without an error.",
    "Distances are from the measured point with gains, zeros and pulls as ours found them on the five runs, the same "
    "for every method; the fresh run corrects nothing. Uncorrected: from the sensors as they came, of which most is "
    "what the sensors are off by, so that a method which fits the sensors' errors into the masses is rewarded. Known:"
    " without the errors that the plant's sensors have, which nobody at the bench could know: a constant zero, for "
    "one, looks like a mass.",
)

BENCH = BENCHES / "gorobot2.toml"
RUNS, DURATION = 5, 95.008
"""As printed; a whole number of knots of 32 ms makes up the rest."""

FAULT_DURATION = 12.8
"""Of the motion during which something is broken on purpose [s]."""

MOST_OF_TORQUE, MOST_OF_FLOOR, MOST_SIGMAS, LEAST_BETTER, MOST_OF_ITERATIONS = 0.35, 1.3, 2.0, 7, 0.2
PRINTED_ALPHA, PRINTED_STEP, PRINTED_ITERATIONS = 0.02, 1e-4, 121
BOARDS = 14
SUPPORT_FOOT, TRUE = "r_foot", "true"
CORRECTED, UNCORRECTED, KNOWN = "sensors_corrected_by_ours", "sensors_uncorrected", "sensors_known"
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
        ours, paper = estimates["ours"], estimates["paper"]
        stage.console.say()
        stage.console.say(told_table(estimates))
        predictions = predictions_of(fresh, estimates) | {TRUE: theoretical_point(fresh, true)}
        distances = {
            CORRECTED: distances_of(predictions, ours.corrected(fresh)),
            UNCORRECTED: distances_of(predictions, fresh.measured),
            KNOWN: distances_of(predictions, Calibration(fresh)(true_nuisance(fresh, played.truth))[0][:, :2]),
        }
        stage.console.say("a wrong weight, a stuck sensor, a shove and a fall, to see each refused by name")
        with stage.console.working("breaking things"):
            named = broken.result()
    true_values = reduced.of_parameters(true)
    off = np.abs(ours.values - true_values) / ours.sigma
    for each in named:
        stage.console.say(f"  {each.what}: {each.words}")
    truth = dict(zip(reduced.names, true_values.tolist(), strict=True))
    with stage.console.working("drawing"):
        picture = stance_picture(stage.out / "stance.png", fresh, *drawn(fresh, estimates, truth))
    boards = boards_of(runs[0])
    lines = (
        *distance_lines(distances),
        off_line(reduced, off),
        *spread_lines(reduced, spread),
        *solver_lines(paper, ours),
        PaperLine("boards that stream", "–", f"{boards}", Check("boards", boards, "==", BOARDS)),
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
        "iterations": {way: estimates[way].iterations for way in ("paper", "ours")},
        "refusals": {each.what: each.words for each in named},
        "estimates": {way: str(each.save(stage.out / file_name(way))) for way, each in estimates.items()},
        "picture": picture,
    }
    refused = ours.verdict.word == "refused" or not played.is_valid
    return Story(PAPER, lines, (played.lost_check,), fields, refused, ASSUMED, ours.verdict)


def told_table(estimates: Mapping[str, ZmpEstimate]) -> str:
    """Parameters by the paper's method and by ours; the picture has all three, too wide for a terminal."""
    return parameter_table({way: estimates[way] for way in ("paper", "ours")})


def plans(robot: Robot, seed: int) -> dict[str, Callable[[], Excitation]]:
    """Of random motions on one foot: five to fit, and a fresh one to judge on."""
    names = [*(f"run-{number}" for number in range(1, RUNS + 1)), "fresh"]
    return {
        name: partial(plan_single_support, robot, DURATION, seed=len(names) * seed + index)
        for index, name in enumerate(names)
    }


def broken_on_purpose(stage: Stage, good: Run, mass: float) -> tuple[Refusal, ...]:
    """How what is broken was named; a good recording is told a wrong mass."""
    motion = plan_single_support(load_robot("gorobot2"), FAULT_DURATION, seed=stage.seed)
    return refusals(stage, BENCH, motion, good, mass)


def true_parameters(robot: Robot, truth: Truth) -> Array:
    """Standard parameters of the plant's links, the support foot's first."""
    return np.concatenate([truth[name]["standard_parameters"] for name in ("base", *robot.joint_names)])


def true_nuisance(stance: Stance, truth: Truth) -> Array:
    """What the plant knows of its sensors and cables, in the order of `nuisance_names`; 0 for what it does not tell."""
    known: dict[str, float] = {}
    for foot in stance.robot.feet:
        for i, corner in enumerate(CORNERS):
            name = f"{foot.name}.{corner.replace(' ', '_')}"
            known[f"{name}.gain"] = truth[foot.name]["gain"][i] - 1.0
            known[f"{name}.zero"] = truth[foot.name]["zero_error"][i]
        known |= {f"{foot.name}.pull_{axis}": truth[foot.name]["cable_pull"][i] for i, axis in enumerate("xyz")}
    return np.array([known.get(name, 0.0) for name in stance.nuisance_names])


def distance_lines(distances: Mapping[str, Mapping[str, float]]) -> tuple[PaperLine, ...]:
    """Mean distances on the fresh run, beside the printed ones."""
    labels = LABELS | {TRUE: "the plant's own parameters"}
    corrected, uncorrected, known = (distances[kind] for kind in (CORRECTED, UNCORRECTED, KNOWN))

    def ratio(quantity: str, paper: str, to: str, check: str, limit: float) -> PaperLine:
        value, raw, told = (each["ours"] / each[to] for each in (corrected, uncorrected, known))
        words = f"{value:.3f}; uncorrected {raw:.2f}, known {told:.2f}"
        return PaperLine(quantity, paper, words, Check(check, value, "<=", limit))

    printed = f"{PRINTED['paper'] / PRINTED['torque']:.2f}"
    return (
        *(
            PaperLine(
                f"theoretical to measured ZMP on a fresh run, {labels[way]}",
                f"{1e3 * PRINTED[way]:.1f} mm" if way in PRINTED else "–",
                f"{1e3 * value:.2f} mm; uncorrected {1e3 * uncorrected[way]:.2f}, known {1e3 * known[way]:.2f}",
            )
            for way, value in corrected.items()
        ),
        ratio("a ZMP method's to joint torques'", printed, "torque", "ours_to_torque_method", MOST_OF_TORQUE),
        ratio("ours to the plant's own", "–", TRUE, "ours_to_sensor_floor", MOST_OF_FLOOR),
    )


def off_line(reduced: ReducedParameters, off: Array) -> PaperLine:
    """How far each parameter is from the truth, in its own sigmas."""
    words = ", ".join(f"{name} {each:.1f}" for name, each in zip(reduced.names, off, strict=True))
    return PaperLine(
        "parameters off the plant's, in their own σ",
        "–",
        words,
        Check("largest_deviation", float(off.max()), "<=", MOST_SIGMAS, "σ"),
    )


def spread_lines(reduced: ReducedParameters, spreads: Mapping[str, Array]) -> tuple[PaperLine, ...]:
    """Of how many parameters the single runs agree better than those of the joint-torque method."""
    better, alone = (int(np.sum(spreads[way] < spreads["torque"])) for way in (HELD, "ours"))
    of = f"of {len(reduced.names)}"
    return (
        PaperLine(
            f"parameters on which {RUNS} runs agree better than by joint torques, rotary inertias as in the drawing",
            "7 of 8",
            f"{better} {of}",
            Check("spread_smaller", better, ">=", LEAST_BETTER, "parameters"),
        ),
        PaperLine("the same where ours doubts the drawing's rotary inertias in each run", "–", f"{alone} {of}"),
    )


def solver_lines(paper: ZmpEstimate, ours: ZmpEstimate) -> tuple[PaperLine, ...]:
    """Both solvers, from the same start."""
    (_, _, first), (step, _, last) = paper.trace[0], paper.trace[-1]
    share = ours.iterations / paper.iterations
    return (
        PaperLine(
            "step that ends the paper's solver",
            f"<= {PRINTED_STEP:g}",
            f"{step:.2g}",
            Check("paper_last_step", step, "<=", PRINTED_STEP),
        ),
        PaperLine(
            "its α, from the first step to the last",
            f"1 … {PRINTED_ALPHA:g}",
            f"{first:g} … {last:.3f}; {PRINTED_ALPHA:g} would be reached at step {PRINTED_ITERATIONS}",
        ),
        PaperLine(
            "iterations",
            f"{PRINTED_ITERATIONS}",
            f"{paper.iterations}; ours {ours.iterations}",
            Check("iterations_to_papers", share, "<=", MOST_OF_ITERATIONS),
        ),
    )


def refusal_lines(named: Sequence[Refusal]) -> tuple[PaperLine, ...]:
    """What was broken, and how it was called."""
    return tuple(
        PaperLine(each.what, "–", f"refused: {each.named}", Check(f"named_{each.wanted}", int(each.ok), "==", 1))
        for each in named
    )


def boards_of(run: Run) -> int:
    """How many boards streamed in a run."""
    return 0 if run.ledger is None else len(run.ledger.boards)
