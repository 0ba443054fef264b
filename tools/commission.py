"""Arms that no file knows, commissioned (`./run commission`) or brought up whole (`./run bring-up`), and judged."""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from scipy.optimize import least_squares

from hil_tests.virtual_bench import BenchError, virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.plant_file import PlantFile
from hil_tests.virtual_bench.plant_variants import plant_of_seed
from jointbench import regressor
from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli import bring_up as bring_up_verb
from jointbench.cli.console import Console, compiling_told, table
from jointbench.cli.main import carry_out
from jointbench.cli.parser import build_parser
from jointbench.errors import JointbenchError
from jointbench.model import Robot, load_robot
from jointbench.model.catalogue import robot_file_text
from tools.demo.playing import BENCHES
from tools.truth import Truth, read_truth

if TYPE_CHECKING:
    from jointbench.bench import Bench
    from jointbench.identification.commission import CommissionedJoint

ROBOTS = ("cobot6",)
BROUGHT_UP = ("cobot6", "rehab_arm", "nursing_arm")
RATIOS = (81.0, 101.0, 121.0, 161.0)
"""Of strain-wave gears of this size; the robot's file says 101 of all joints."""
FRICTION = (0.7, 1.3)
"""Share of the plant file's friction that a joint has."""
MOST_MOVED = 5.0
"""Degrees that a joint may have moved before its fault is named."""
WITHIN = 3.0
LEAST_COVERAGE = 0.9
"""Share of the values that must be within two standard errors, where there are enough of them to tell."""
_ENOUGH = 40

WRONG: Mapping[str, tuple[str, dict[str, float]]] = {
    "reversed encoder": ("encoder_reversed", {}),
    "jammed joint": ("jammed", {}),
    "swapped cables": ("drive_swapped", {"other_node": 0}),
    "slipping coupling": ("link_slips", {"counts": 300}),
    "missing link encoder": ("link_stuck", {}),
    "no current": ("drive_dead", {}),
    "reversed current sensor": ("current_reversed", {}),
    "dead motor encoder": ("encoder_stuck", {}),
    "moves without current": ("push", {"torque_Nm": 60.0}),
}
"""Faults that are put into a sound bench: by the name that commissioning must find, the bench's fault and its value."""


@dataclass(frozen=True)
class Judged:
    """A measured value beside the plant's."""

    joint: str
    name: str
    measured: float
    sigma: float
    truth: float

    @property
    def deviation(self) -> float:
        """(measured - truth) / σ."""
        return (self.measured - self.truth) / self.sigma


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run commission … --plant-seed K`."""
    options = argparse.ArgumentParser(prog="./run commission", description=__doc__)
    options.add_argument("robot", choices=ROBOTS, help="an arm whose boards are emulated")
    options.add_argument("--plant-seed", type=int, required=True, metavar="K", help="draws what the arm really is")
    options.add_argument("--seeds", type=int, default=1, metavar="N", help="plants K, K + 1, … (%(default)s)")
    options.add_argument("--modules", type=int, metavar="N", help="only the first N joints, with their boards")
    options.add_argument("--no-faults", action="store_true", help="leave the wrong benches out")
    options.add_argument("--out", metavar="DIR", help="where everything goes (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def bring_up_parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run bring-up … --plant-seed K`."""
    options = argparse.ArgumentParser(
        prog="./run bring-up",
        description="An emulated arm that no file knows, from wires to a proven model, and judged.",
    )
    options.add_argument("robot", choices=BROUGHT_UP, help="an arm whose boards are emulated")
    options.add_argument("--plant-seed", type=int, required=True, metavar="K", help="draws what the arm really is")
    options.add_argument("--modules", type=int, metavar="N", help="only the first N joints, with their boards")
    options.add_argument("--until", default="10%", metavar="SHARE", help="as of `jointbench bring-up` (%(default)s)")
    options.add_argument("--most", default="300", metavar="S", help="as of `jointbench bring-up` (%(default)s)")
    options.add_argument("--out", metavar="DIR", help="where everything goes; goes on there (runs/ROBOT-plant-K)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Commission and judge; 0, 1 when a value or a fault is not as the plant has it, 2 when it could not be done."""
    errors = (JointbenchError, BenchError)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["bring-up"]:
        given = bring_up_parser().parse_args(words[1:])
        return carry_out("bring-up", given, bring_up, errors, when_stopped=bring_up_verb.WHEN_STOPPED)
    return carry_out("commission", parser().parse_args(words), judge_all, errors, when_stopped="motors are off")


def judge_all(options: argparse.Namespace, console: Console) -> Result:
    """Commission a plant for each seed, then wrong benches, and put what came out beside the truth."""
    with console.working("loading"):
        from jointbench.recording import new_run_path

        out = Path(options.out) if options.out else new_run_path("runs", options.robot, "commission")
    judged: list[Judged] = []
    named: dict[str, Any] = {}
    with compiling_told(console):
        for seed in range(options.plant_seed, options.plant_seed + options.seeds):
            began = time.monotonic()
            own, wrong = _plant(options, seed, out / f"plant-{seed}", console)
            console.say(values_table(own))
            console.say(f"plant {seed}: {time.monotonic() - began:.0f} s\n")
            judged += own
            named |= {f"{seed}: {name}": what for name, what in wrong.items()}
    checks = checks_of(judged, named)
    fields = {"out": out, "values": [vars(each) for each in judged], "wrong_benches": named}
    for check in checks:
        console.say(str(check))
    return Result("commission", options.plant_seed, checks, fields)


def bring_up(options: argparse.Namespace, console: Console) -> Result:
    """Bring an emulated arm up by the verb, which is told nothing of its plant, and put what came out beside that."""
    out = Path(options.out or Path("runs") / f"{options.robot}-plant-{options.plant_seed}")
    product, began = out / "product", time.monotonic()
    bench_file = write_bench(options.robot, options.plant_seed, out)
    with virtual_bench(bench_file, "harmonic", options.plant_seed, out=out / "bench", modules=options.modules) as live:
        truth = read_truth(live)
        words = [str(live), "--until", options.until, "--most", options.most, "--out", str(product), "--yes"]
        given = build_parser().parse_args([bring_up_verb.VERB, *words])
        result = bring_up_verb.run(given, console)
    steps = result.fields["steps"]
    gears = {name: {"values": values} for name, values in steps.get("gears", {"values": {}})["values"].items()}
    judged = judge_fields(steps["commission"]["joints"], truth) + judge_fields(gears, truth)
    if judged:
        console.say(values_table(judged))
    wall, bench_s = time.monotonic() - began, sum(step["bench_s"] for step in steps.values())
    checks = bring_up_checks(judged, max(step["rank"] for step in steps.values()), *played(product))
    for check in checks:
        console.say(str(check))
    console.say(
        f"{options.robot}, plant {options.plant_seed}: {wall:.0f} s by the wall, {bench_s:.0f} s of the bench's time"
    )
    fields = {**result.fields, "wall_s": wall, "bench_s": bench_s, "values": [vars(each) for each in judged]}
    return Result("bring-up", options.plant_seed, checks, fields)


def bring_up_checks(judged: Sequence[Judged], rank: int, trips: Sequence[str], reach: float) -> tuple[Check, ...]:
    """Checks: commissioned values as the plant has them, no trip, no joint beyond its limit, a usable model.

    Args:
        judged: commissioned values.
        rank: of the verdict, 1 to 3.
        trips: runs that a board ended, with their reason.
        reach: farthest position of a joint, over its limit.
    """
    return (
        *checks_of(judged, {}),
        Check("trips", float(len(trips)), "==", 0),
        Check("farthest position over its limit", reach, "<=", 1.0),
        Check("rank of the verdict", float(rank), "<=", 2),
    )


def played(product: Path) -> tuple[list[str], float]:
    """Runs of a folder that a board ended, and how far joints went over their limits, as a share of these."""
    from jointbench.recording import open_run, read_result

    trips: list[str] = []
    reach = 0.0
    for place in sorted(product.rglob("result.json")):
        outcome = str((read_result(place.parent) or {})["outcome"])
        if outcome.startswith("stopped by Board"):
            trips.append(f"{place.parent}: {outcome}")
        if outcome != "finished":
            continue
        run = open_run(place.parent)
        limits = np.array([joint.position_limits for joint in run.robot.independent_joints])
        middle, half = limits.mean(axis=1), 0.5 * np.ptp(limits, axis=1)
        position = run.samples.motor_position if run.samples.link_position is None else run.samples.link_position
        reach = max(reach, float(np.nanmax(np.abs(position - middle) / half)))
    return trips, reach


def judge_fields(joints: Mapping[str, Any], truth: Truth) -> list[Judged]:
    """Put every value of a commissioning's JSON that the plant has, too, beside it."""
    return [
        Judged(joint, name, value["value"], value["sigma"], known[name])
        for joint, fields in joints.items()
        if fields["values"]
        for known in (true_values(truth[joint]),)
        for name, value in fields["values"].items()
        if name in known and value["value"] is not None
    ]


def checks_of(judged: Sequence[Judged], named: Mapping[str, Mapping[str, Any]]) -> tuple[Check, ...]:
    """Checks: each value within 3 σ, 90 % within 2 σ, each wrong bench named within 5°, with its motor off."""
    deviations = np.abs([each.deviation for each in judged])
    checks = [Check("largest deviation from the plant", float(deviations.max(initial=0.0)), "<=", WITHIN, "σ")]
    if len(judged) >= _ENOUGH:
        checks.append(Check("values within 2 σ", float(np.mean(deviations <= 2.0)), ">=", LEAST_COVERAGE))
    for name, what in named.items():
        checks.append(Check(f"{name} is named", float(what["fault"] == what["wanted"]), "==", 1))
        checks.append(Check(f"{name} moved", float(what["moved_deg"]), "<=", MOST_MOVED, "°"))
        checks.append(Check(f"{name} motors left on", float(what["driving"]), "==", 0))
    return tuple(checks)


def _plant(
    options: argparse.Namespace, seed: int, out: Path, console: Console
) -> tuple[list[Judged], dict[str, dict[str, Any]]]:
    from jointbench.bench import open_bench
    from jointbench.identification.commission import commission

    bench_file = write_bench(options.robot, seed, out)
    wrong: dict[str, dict[str, Any]] = {}
    with virtual_bench(bench_file, "harmonic", seed, out=out / "bench", modules=options.modules) as live:
        truth = read_truth(live)

        def told(joint: CommissionedJoint, step: str) -> None:
            console.say(f"  {step} {joint.name}: {joint.fault or 'done'} {joint.evidence}".rstrip())

        with open_bench(live) as bench:
            bench.connect()
            bench.configure()
            joints = commission(bench, out / "runs", told=told)
        rng = np.random.default_rng(seed)
        for name in () if options.no_faults else _possible(options.modules):
            with open_bench(live) as bench:
                bench.connect()
                bench.configure()
                wrong[name] = _wrong_bench(bench, name, rng, out)
            console.say(f"  {name}: {wrong[name]['fault']}, {wrong[name]['evidence']}")
    if faults := [f"{joint.name}: {joint.fault or joint.evidence}" for joint in joints if joint.evidence]:
        raise BenchError(f"plant {seed} has sound joints, and commissioning says {'; '.join(faults)}")
    return judge(joints, truth), wrong


def _possible(modules: int | None) -> list[str]:
    """Names of the faults that a bench of so many joints can have: two cables must be there to be swapped."""
    return [name for name in WRONG if modules != 1 or name != "swapped cables"]


def _wrong_bench(bench: Bench, name: str, rng: np.random.Generator, out: Path) -> dict[str, Any]:
    """Break one joint of a bench and push it."""
    from hil_tests.link_helpers import inject
    from jointbench.identification.commission import commission

    index = int(rng.integers(len(bench.boards)))
    fault, value = WRONG[name]
    if "other_node" in value:
        value = {"other_node": bench.boards[(index + 1) % len(bench.boards)].node}
    inject(bench, fault, bench.boards[index].node, **value)
    joint_name = bench.robot.joint_names[index]
    (joint,) = commission(bench, out / "wrong" / name.replace(" ", "-"), [joint_name], only_wiring=True)
    return {
        "joint": joint.name,
        "wanted": name,
        "fault": joint.fault,
        "evidence": joint.evidence,
        "moved_deg": float(np.degrees(joint.moved)),
        "driving": sum(board.is_driving for board in bench.boards),
    }


def write_bench(robot: str, seed: int, out: Path) -> Path:
    """Write a plant of this seed and its bench file; the robot's file stays as it is, and knows nothing of it."""
    rng = np.random.default_rng(seed)
    bench = tomllib.loads((BENCHES / f"{robot}.toml").read_text(encoding="utf-8"))
    plant = tomllib.loads((BENCHES / bench["plant"]).read_text(encoding="utf-8"))
    plant["steps_per_tick"] = max(
        3, plant["steps_per_tick"]
    )  # a small ratio reflects less of the rotor, which friction then stops the sooner
    for joint, drive in zip(plant["joints"], load_robot(bench["robot"]).drives, strict=True):
        if drive.kind == "harmonic":
            joint["ratio"] = float(rng.choice(RATIOS) * rng.choice([-1.0, 1.0]))
        share = float(rng.uniform(*FRICTION))
        for key in ("coulomb_Nm", "viscous_Nms_rad", "stribeck_Nm"):
            if key in joint:
                joint[key] = share * float(joint[key])
    out.mkdir(parents=True, exist_ok=True)
    (out / "plant.toml").write_text(tomli_w.dumps(plant), encoding="utf-8")
    bench_file = out / "bench.toml"
    bench_file.write_text(tomli_w.dumps({**bench, "plant": "plant.toml"}), encoding="utf-8")
    if load_robot(bench["robot"]).compensations:
        own = tomllib.loads(robot_file_text(bench["robot"])[1])
        for joint, angle in zip(own["joints"], np.degrees(balanced_pose(bench_file, seed)).tolist(), strict=True):
            joint["home_deg"] = angle
        (out / "robot.toml").write_text(tomli_w.dumps(own), encoding="utf-8")
        text = tomli_w.dumps({**bench, "plant": "plant.toml", "robot": str((out / "robot.toml").resolve())})
        bench_file.write_text(text, encoding="utf-8")
    return bench_file


def balanced_pose(bench_file: Path, seed: int) -> Array:
    """Return the pose [rad] in which springs and gravity balance: nothing falls there when brakes open.

    Whoever commissions such an arm would put it there by hand.
    """
    file = read_bench_file(bench_file)
    home, plant = np.array(file.robot.home), plant_of_seed(file.plant, file.robot, seed)
    limits = np.array([joint.position_limits for joint in file.robot.independent_joints])
    driven = np.array([not drive.torque_mode for drive in file.robot.drives])

    def load(angles: Array) -> Array:
        pose = home.copy()
        pose[driven] = angles
        return static_load(file.robot, plant, pose)[driven]

    room = np.radians([15.0, -15.0])  # for the motions of a commissioning
    pose = home.copy()
    pose[driven] = least_squares(load, home[driven], bounds=(limits[driven] + room).T).x
    return pose


def static_load(robot: Robot, plant: PlantFile, pose: Array) -> Array:
    """Torque that holds an arm in a pose against gravity and its springs [N·m], shape (n_joints,)."""
    links = np.concatenate([np.array(part.link.standard_parameters) for part in plant.joints])
    gravity = regressor(robot, pose[None], 0.0 * pose[None], 0.0 * pose[None]) @ links
    springs = [
        part.torsion_spring * (angle - part.torsion_zero) + part.sine_spring * np.sin(angle - part.sine_zero)
        for part, angle in zip(plant.joints, pose, strict=True)
    ]
    return gravity + np.array(springs)


def judge(joints: Sequence[CommissionedJoint], truth: Truth) -> list[Judged]:
    """Put every value that the plant has, too, beside it."""
    judged: list[Judged] = []
    for joint in joints:
        own = truth[joint.name]
        known = true_values(own)
        judged += [
            Judged(joint.name, value.name, value.value, value.sigma, known[value.name])
            for value in joint.values
            if value.name in known and value.value is not None
        ]
    return judged


def true_values(truth: Mapping[str, Any]) -> dict[str, float]:
    """True values of a joint: friction as the plant's law looks over the speeds of the strokes.

    Break-away is the most that the law has up to 2 °/s, as the board's sensor reads that current.
    """
    speeds = np.radians(np.linspace(2.0, 16.0, 7))
    columns = np.column_stack([np.ones_like(speeds), speeds])
    coulomb, viscous = np.linalg.lstsq(columns, friction_torque(truth["friction"], speeds), rcond=None)[0].tolist()
    slow = friction_torque(truth["friction"], np.radians(np.linspace(0.05, 2.0, 100)))
    per_current = abs(truth["ratio"] * truth["torque_constant"])
    return {
        "measured/asked current": truth["current_gain"],
        "break-away current": float(slow.max()) * truth["current_gain"] / per_current,
        "ratio": truth["ratio"],
        "stiffness": truth["stiffness"],
        "coulomb": coulomb,
        "viscous": viscous,
    }


def friction_torque(law: Mapping[str, Any], velocity: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, Any]:
    """The plant's friction [N·m] without load at these speeds above 0 [rad/s], of its law "stribeck"."""
    rise = law["stribeck"] * np.exp(-((velocity / law["stribeck_velocity"]) ** 2))
    return (law["coulomb"] + rise) * np.tanh(velocity / law["transition"]) + law["viscous"] * velocity


def values_table(judged: Sequence[Judged]) -> str:
    """Every value beside the plant's."""
    rows = [
        [
            f"{each.joint} {each.name}",
            f"{each.measured:.4g}",
            f"{each.sigma:.2g}",
            f"{each.truth:.4g}",
            f"{each.deviation:+.1f} σ",
        ]
        for each in judged
    ]
    return table(("value", "measured", "σ", "plant", "off"), rows)


if __name__ == "__main__":
    sys.exit(main())
