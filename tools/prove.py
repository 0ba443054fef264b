"""`./run prove`: models of the papers' arms prove themselves on emulated boards, with controls that must fail."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.kinds import PLANT_KINDS, RP2040, UNIX, PlantKind
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, compiling_told, table
from jointbench.cli.main import carry_out
from jointbench.cli.run import WHEN_STOPPED
from tools.demo import __main__ as demo
from tools.demo.playing import BENCHES

if TYPE_CHECKING:
    from jointbench.bench import Bench
    from jointbench.excitation import Excitation
    from jointbench.identification import Model


@dataclass(frozen=True)
class Wanted:
    """By how much feed-forward must divide the tracking error, of all joints and of the worst one."""

    pooled: float
    worst: float


WANTED = {
    "cobot6": Wanted(15.0, 10.0),
    "nursing_arm": Wanted(15.0, 10.0),
    "rehab_arm": Wanted(20.0, 10.0),
    "modular7": Wanted(10.0, 8.0),
    "modules": Wanted(10.0, 8.0),
}
MODULES = "modules"
"""Modules of modular7 put together otherwise than in the paper: their robot's file is what `assemble` makes of them."""

PERIODS = {MODULES: 10.016}
"""Seconds of new motion where they are fewer than 20."""

ON_CHIPS = "cobot6"
CHIPS = {"rp2040": RP2040}
"""Kinds of boards that `--bench` names, and their URL."""

_CHIPS_PERIOD = 9.6
"""Seconds of the fitted and of the new motion; each takes six chips some ten of the wall clock. From six on bands of
the unexpected are made."""


PRESLIDING = Wanted(5.0, 3.0)
"""The same, of any of them, on plants whose friction turns its sign over distance."""


def parser() -> argparse.ArgumentParser:
    """What `./run prove` takes."""
    options = argparse.ArgumentParser(prog="./run prove", description=__doc__)
    options.add_argument("--only", action="append", choices=WANTED, metavar="ROBOT", help="this one; may be repeated")
    options.add_argument(
        "--plant", choices=PLANT_KINDS, default="harmonic",
        help="the emulated joints: harmonic drives, the same with friction that turns its sign over distance, or rigid",
    )  # fmt: skip
    options.add_argument(
        "--bench", choices=CHIPS,
        help=f"{ON_CHIPS} alone, on unix boards and then on six emulated chips, identified and proven on each: the "
        "verdicts must be the same; hours",
    )  # fmt: skip
    options.add_argument("--seed", type=int, default=0, help="same seed, same figures (%(default)s)")
    options.add_argument(
        "--period", type=float, metavar="S", help="seconds of new motion (20; of modules and chips 10)"
    )
    options.add_argument(
        "--models", metavar="DIR", help="where an earlier --out has ROBOT/model.json: no demo is played"
    )
    options.add_argument("--out", metavar="DIR", help="where everything goes (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Prove the models; 0, 1 when one is refused or a figure is not reached, 2 when it could not be done."""
    return carry_out("prove", parser().parse_args(arguments), prove_all, demo.ERRORS, when_stopped=WHEN_STOPPED)


def prove_all(options: argparse.Namespace, console: Console) -> Result:
    """Identify each robot by its demo, prove the model, and put the figures beside those wanted."""
    if options.bench:
        return prove_on_chips(options, console)
    robots = [name for name in WANTED if name in (options.only or WANTED)]
    console.say(f"models of {', '.join(robots)}: identified, then proven, one after the other")
    with console.working("loading"):
        from jointbench.recording import new_run_path

        out = Path(options.out) if options.out else new_run_path("runs", "all", "prove")
    rows: list[list[str]] = []
    checks: list[Check] = []
    fields: dict[str, Any] = {}
    for robot in robots:
        console.say(f"== {robot}")
        began = time.monotonic()
        try:
            period = options.period or PERIODS.get(robot, 20.0)
            if robot == MODULES:
                own = prove_modules(out / robot, console, plant=options.plant, seed=options.seed, period=period)
            else:
                own = _prove(robot, options, out / robot, period, console)
        except demo.ERRORS as error:
            console.say(f"NO  {robot}: {error}")
            fields[robot] = {"proven": False, "error": str(error)}
            checks.append(Check(f"{robot}: proven", 0, ">=", 1))
            rows.append([robot, "–", "–", "–", "stopped"])
            continue
        fields[robot] = own
        wanted = wanted_of(robot, options.plant)
        own_checks = checks_of(robot, own, wanted)
        checks += own_checks
        failed = sum(control["fails"] for control in own["controls"].values())
        rows.append(
            [
                robot,
                f"{own['ratio_pooled']:.1f} (≥ {wanted.pooled:g})",
                f"{own['ratio_worst']:.1f} (≥ {wanted.worst:g})",
                f"{failed} of {len(own['controls'])}",
                "proven" if all(check.ok for check in own_checks) else "NO",
            ]
        )
        console.say(f"{time.monotonic() - began:.0f} s\n")
    console.say(table(("robot", "error ÷, all joints", "worst joint", "controls fail", "verdict"), rows))
    return Result("prove", options.seed, tuple(checks), {"robots": fields, "out": out})


def wanted_of(robot: str, plant: PlantKind) -> Wanted:
    """What is wanted of a robot on a plant of this kind."""
    return PRESLIDING if plant == "presliding" else WANTED[robot]


def checks_of(robot: str, proof: dict[str, Any], wanted: Wanted) -> tuple[Check, ...]:
    """What is wanted of a robot's proof, as `jointbench prove --json` has it."""
    return (
        Check(f"{robot}: proven", int(proof["proven"]), ">=", 1),
        Check(f"{robot}: ratio_pooled", proof["ratio_pooled"], ">=", wanted.pooled),
        Check(f"{robot}: ratio_worst", proof["ratio_worst"], ">=", wanted.worst),
    )


def _prove(robot: str, options: argparse.Namespace, out: Path, period: float, console: Console) -> dict[str, Any]:
    from jointbench.bench import open_bench
    from jointbench.identification import load_model
    from jointbench.identification.prove import draw_motion

    if options.models:
        path = Path(options.models) / robot / "model.json"
    else:
        given = ["--plant", options.plant, "--seed", str(options.seed), "--out", str(out)]
        played = demo.parser().parse_args([robot, *given])
        demo.say(demo.tell(robot, demo.stage_of(played, console)), console)
        path = out / "model.json"
    model = load_model(path)
    if options.plant == "presliding" and model.friction is not None:
        model = _with_memory(model, out / "model_with_memory.json", console)
    motion = draw_motion(model, period, options.seed + 1)
    bench_file = BENCHES / f"{robot}.toml"
    again = f"./run prove --only {robot} --plant {options.plant} --seed {options.seed} --period {period:g}"
    with (
        compiling_told(console),
        virtual_bench(bench_file, options.plant, options.seed, out=out / "proof_bench") as live,
        open_bench(live) as bench,
    ):
        bench.connect()
        bench.configure()
        return _proven(model, bench, motion, out, console, again)


def _with_memory(model: Model, path: Path, console: Console) -> Model:
    """Fit what a demo fitted by laws of speed once more, with memory: no law of speed turns its sign over distance."""
    from jointbench.identification import fit
    from jointbench.identification.validation import fitted_runs

    with compiling_told(console), console.working("fitting friction with memory in place of laws of speed"):
        model = fit([str(run["run"]) for run in fitted_runs(model)])
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    console.say(f"fitted anew, friction with memory in place of laws of speed: {model.verdict}")
    return model


def prove_on_chips(options: argparse.Namespace, console: Console) -> Result:
    """Identify and prove an arm on unix boards, then on emulated chips of the same bench; the verdicts must agree."""
    console.say(f"{ON_CHIPS} identified and proven on {UNIX} boards, then on {CHIPS[options.bench]} boards")
    with console.working("loading"):
        from jointbench.recording import new_run_path

        out = Path(options.out) if options.out else new_run_path("runs", options.bench, "prove")
    proofs: dict[str, dict[str, Any]] = {}
    for board in (UNIX, CHIPS[options.bench]):
        console.say(f"== {board}")
        began = time.monotonic()
        period = options.period or _CHIPS_PERIOD
        try:
            proofs[board] = _prove_on(board, out / board.strip(":"), console, options.plant, options.seed, period)
        except demo.ERRORS as error:
            console.say(f"NO  {board}: {error}")
            refused = {
                "proven": False,
                "against": [str(error)],
                "controls": {},
                "ratio_pooled": 0.0,
                "ratio_worst": 0.0,
            }
            proofs[board] = refused
        console.say(f"{time.monotonic() - began:.0f} s\n")
    rows = [
        [board, f"{proof['ratio_pooled']:.1f}", f"{proof['ratio_worst']:.1f}", _failed(proof), _verdict(proof)]
        for board, proof in proofs.items()
    ]
    console.say(table(("boards", "error ÷, all joints", "worst joint", "controls fail", "verdict"), rows))
    return Result("prove", options.seed, same_verdict(*proofs.values()), {"boards": proofs, "out": out})


def same_verdict(beside: dict[str, Any], proof: dict[str, Any]) -> tuple[Check, ...]:
    """What is wanted of a proof on chips beside that on unix boards, both as `jointbench prove --json` has them."""
    fails = [sorted(name for name, control in each["controls"].items() if control["fails"]) for each in (beside, proof)]
    return (
        Check("verdicts that differ", int(beside["proven"] != proof["proven"]), "==", 0),
        Check("controls that fail on one bench alone", len(set(fails[0]) ^ set(fails[1])), "==", 0),
        Check("proven on chips", int(proof["proven"]), ">=", 1),
    )


def _failed(proof: dict[str, Any]) -> str:
    return f"{sum(control['fails'] for control in proof['controls'].values())} of {len(proof['controls'])}"


def _verdict(proof: dict[str, Any]) -> str:
    return "proven" if proof["proven"] else f"NO: {'; '.join(proof['against'])}"


def _prove_on(board: str, out: Path, console: Console, plant: PlantKind, seed: int, period: float) -> dict[str, Any]:
    """Identify the arm on a bench of such boards by a planned motion, and prove the model there on a new one."""
    from jointbench.bench import open_bench
    from jointbench.cli.run import progress_line
    from jointbench.excitation import plan_excitation
    from jointbench.identification import fit
    from jointbench.identification.prove import draw_motion
    from jointbench.recording import record

    with (
        compiling_told(console),
        virtual_bench(BENCHES / f"{ON_CHIPS}_chips.toml", plant, seed, out=out / "bench", board=board) as live,
        open_bench(live) as bench,
    ):
        with console.working("planning an excitation"):
            motion = plan_excitation(bench.robot, period=period, seed=seed)
        bench.connect()
        bench.configure()
        progress = progress_line(console, "excitation")
        model = fit(record(bench, motion, out / "excitation", repeats=1, progress=progress))
        console.say(f"identified: {model.verdict}")
        model.save(out / "model.json")
        new = draw_motion(model, period, seed + 1)
        again = f"./run prove --bench rp2040 --plant {plant} --seed {seed} --period {period:g}"
        return _proven(model, bench, new, out, console, again)


def prove_modules(
    out: Path, console: Console, *, plant: PlantKind, seed: int, period: float, controls: bool = True
) -> dict[str, Any]:
    """Assemble an arm from what its modules' boards say, identify it by a random motion, and prove the model.

    Args:
        out: a new folder, where everything goes.
        console: says each step.
        plant: physics of the joints.
        seed: of plant and motions.
        period: of both motions [s].
        controls: whether feed-forward that is wrong on purpose is played, too.

    Returns:
        The proof's figures, as `jointbench prove --json` has them.
    """
    from jointbench.bench import open_bench, read_bench_file
    from jointbench.cli.assemble import ask_modules
    from jointbench.excitation import random_excitation
    from jointbench.identification import fit
    from jointbench.identification.prove import draw_motion
    from jointbench.model import assemble, load_robot
    from jointbench.recording import record

    with compiling_told(console), virtual_bench(BENCHES / "modules.toml", plant, seed, out=out / "bench") as live:
        file = read_bench_file(live)
        modules = ask_modules(file)
        robot_file = out / "robot.toml"
        robot_file.write_text(assemble(file.name, modules), encoding="utf-8")
        console.say(f"assembled: {', '.join(f'{module.type} {module.serial}' for module in modules)}")
        assembled = live.with_name("assembled.toml")  # the same boards, moved by that robot's file
        text = live.read_text(encoding="utf-8")
        assembled.write_text(text.replace(str(file.robot), str(robot_file.resolve())), encoding="utf-8")
        with open_bench(assembled) as bench:
            bench.connect()
            bench.configure()
            motion = random_excitation(load_robot(robot_file), period=period, seed=seed + 1)
            model = fit(record(bench, motion, out / "excitation", repeats=2))
            console.say(f"identified: {model.verdict}")
            model.save(out / "model.json")
            new = draw_motion(model, period, seed + 2)
            again = f"./run prove --only {MODULES} --plant {plant} --seed {seed} --period {period:g}"
            return _proven(model, bench, new, out, console, again, controls=controls)


def _proven(
    model: Model, bench: Bench, motion: Excitation, out: Path, console: Console, again: str, *, controls: bool = True
) -> dict[str, Any]:
    """Prove a model on a bench, and write the page; returns the proof's figures."""
    from jointbench.cli.prove import proof_fields, proof_text
    from jointbench.cli.run import progress_line
    from jointbench.identification.prove import prove
    from jointbench.results import write_proof

    proof = prove(
        model, bench, motion, out / "proof", controls=controls, told=console.say,
        stiffness=told_stiffness(model), progress=lambda name: progress_line(console, name),
    )  # fmt: skip
    console.say(proof_text(proof))
    report = write_proof(out / "proof.html", proof, model, motion, commands=(again,))
    console.say(f"report: {report}")
    return {**proof_fields(proof), "report": report}


def told_stiffness(model: Model) -> list[float] | None:
    """Stiffness of each gear [N·m/rad] by the run that a model was fitted to, inf where that run does not tell it.

    None where the run is no longer there, or is without encoders on both sides of the gears or torque sensors.
    """
    from jointbench.cli.prove import stiffness_of
    from jointbench.identification.validation import fitted_runs
    from jointbench.recording import open_run

    paths = [Path(str(run["run"])) for run in fitted_runs(model)]
    return stiffness_of(open_run(paths[0])) if paths and paths[0].is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
