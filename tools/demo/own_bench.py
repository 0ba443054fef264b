"""The usual way on a person's own bench, whatever robot it is of: plan, play, fit, judge on other motion."""

from __future__ import annotations

from pathlib import Path

from jointbench import Excitation, Robot
from jointbench.cli.console import Console
from jointbench.excitation import plan_excitation, random_excitation
from jointbench.identification import fit, validate
from jointbench.link.bench_file import read_bench_file
from jointbench.robot import load_robot
from tools.demo.judging import say_judgement, write_files
from tools.demo.playing import Played, play_on
from tools.demo.story import Stage, Story

PERIOD = 20.0
REPEATS = 2


def tell(stage: Stage, bench_file: Path) -> Story:
    """Go the usual way on the boards of a bench file."""
    robot = load_robot(read_bench_file(bench_file).robot)  # a slip in the file is told before the planning
    motions = plan(robot, stage.seed, stage.console)
    played = Played(play_on(stage, bench_file, motions), {})
    fit_run, verification_run = (played.runs[name] for name in motions)
    with stage.console.working("fitting and judging"):
        model = fit(fit_run)
        judged = validate(model, verification_run)
    say_judgement(stage, model, judged)
    fields = {
        **played.fields,
        "planned_condition_number": motions["excitation"][0].condition_number,
        **write_files(stage, model, fit_run, judged, verification_run),
    }
    refused = judged.verdict.word == "refused" or not played.is_valid
    return Story(f"{robot.name} on {bench_file}", (), (played.lost_check,), fields, refused, verdict=judged.verdict)


def plan(robot: Robot, seed: int, console: Console) -> dict[str, tuple[Excitation, int]]:
    """The best motion to fit on, and another to verify on, each with how often it is played."""
    console.say(f"planning an excitation (Fourier series, 5 harmonics, {PERIOD:g} s)")
    with console.working("planning"):
        excitation = plan_excitation(
            robot,
            period=PERIOD,
            seed=seed,
            progress=lambda start, step, cond: console.progress(
                f"start {start + 1}, step {step}: condition {cond:.1f}"
            ),
        )
    console.say(f"  condition number {excitation.condition_number:.1f}")
    verification = random_excitation(robot, period=PERIOD, seed=seed + 1)
    return {"excitation": (excitation, REPEATS), "verification": (verification, 1)}
