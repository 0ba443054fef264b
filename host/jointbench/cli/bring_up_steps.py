"""Steps of bringing a bench up: each moves the bench, or reads what it left when it was stopped, and judges it."""

from __future__ import annotations

import argparse
import hashlib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.cli.commission import (
    joint_fields,
    news_of,
    reachable_limits,
    say_faults,
    values_table,
    write_ratios,
    write_robot,
)
from jointbench.cli.console import Console
from jointbench.cli.identify import outcome_text, piece_line, precision_fields
from jointbench.cli.run import progress_line
from jointbench.errors import FileError, FitError, RunError
from jointbench.files import json_values, text_of

if TYPE_CHECKING:
    from jointbench.bench import Bench, BenchFile
    from jointbench.excitation import Excitation
    from jointbench.identification import CommissionedJoint, Model
    from jointbench.identification.sequential_design import Precision
    from jointbench.recording import Run

PIECE = 10.016
"""Seconds of each piece of motion that is identified by, and of the motion that the model is validated on."""
PROOF = 20.0
"""Seconds of the motion that the model is proven on."""
FIRST, ROBOT, MODEL = "commissioned.toml", "robot.toml", "model.json"
_GEARS_SEED, _PROOF_SEED = 500, 1000  # far from those of the pieces


class Steps:
    """Common state of the steps: the bench, the folder of their products, and the products up to now.

    Attributes:
        folder: of all products.
        products: of the steps that are done, by name, in their order.
    """

    def __init__(self, file: BenchFile, options: argparse.Namespace, console: Console) -> None:
        self.file: BenchFile = file
        self.options: argparse.Namespace = options
        self.console: Console = console
        self.folder: Path = Path(options.out or Path("runs") / f"{file.name}-bring-up")
        self.products: dict[str, dict[str, Any]] = {}

    @property
    def command(self) -> str:
        """The command that resumes here."""
        options = self.options
        words = ["jointbench", "bring-up", options.bench, "--until", f"{100.0 * options.until:g}%"]
        return shlex.join(map(str, [*words, "--most", options.most, "--seed", options.seed, "--out", self.folder]))

    @contextmanager
    def _bench(self, robot: str | Path | None = None) -> Iterator[Bench]:
        """The bench, connected and configured, with the robot that commissioning made of it, or another."""
        from jointbench.bench import open_bench

        with open_bench(self.file.path, robot=robot) as bench:
            bench.connect()
            bench.configure()
            self._check_boards(_uids(bench))
            yield bench

    def _check_boards(self, uids: Mapping[str, str]) -> None:
        """Refuse boards that are not those which were commissioned.

        Raises:
            FileError: names the joint, and what to do.
        """
        before = self.products.get("commission", {}).get("boards", {})
        for joint, uid in uids.items():
            if before and before.get(joint) != uid:
                raise FileError(
                    f"the board of {joint} is {uid}, and {self.folder} was made with {before.get(joint)}; name another "
                    "folder by --out to bring this bench up, or put that board back"
                )

    @property
    def robot(self) -> str:
        """Reference of the robot with the values that were measured up to now."""
        measured = [product["robot"] for product in self.products.values() if product.get("robot")]
        return str(measured[-1]) if measured else self.file.robot

    def commission(self) -> dict[str, Any]:
        """Find wiring, ratio and friction of each joint, one motor at a time, and write the robot's file with them."""
        from jointbench.identification import commission

        def told(joint: CommissionedJoint, step: str) -> None:
            self.console.say(f"  {joint.name}: {f'NO  {joint.fault}: {joint.evidence}' if joint.fault else step}")

        progress = progress_line(self.console, "moving")
        with self._bench() as bench:
            began = bench.clock.now_us()
            uids = _uids(bench)
            if faulty := self._faulty_before():
                commission(bench, self.folder / "commission", faulty, again=True, told=told, progress=progress)
            joints = commission(bench, self.folder / "commission", told=told, progress=progress)
            elapsed, robot = 1e-6 * (bench.clock.now_us() - began), bench.robot
        self.console.say(values_table(joints))
        say_faults(joints, self.console)
        faults = [f"{joint.name}: {joint.fault}, {joint.evidence}" for joint in joints if joint.fault]
        left_out = [joint.name for joint in joints if joint.evidence and not joint.fault]
        news = news_of(joints)
        count = sum(value.value is not None for joint in joints for value in joint.values)
        reason = (
            f"{count} values measured, of which the robot's file lacks or contradicts {sum(map(len, news.values()))}"
        )
        if left_out:
            reason += f"; not commissioned: {', '.join(left_out)}"
        if limits := reachable_limits(robot, news):
            lowered = ", ".join(f"{name} {limit:g} N·m" for name, limit in limits.items())
            reason += f"; torque limits lowered to what the motors reach by these ratios: {lowered}"
        return {
            "word": "faulty" if faults else "sound" if count else "not measured",
            "rank": 3 if faults else 1,
            "reason": "; ".join(faults) or reason,
            "bench": self.file.name,
            "bench_s": elapsed,
            "boards": uids,
            "robot": None if faults or not news else write_robot(self.file.robot, news, self.folder / FIRST, limits),
            "news": news,
            "joints": {joint.name: joint_fields(joint) for joint in joints},
        }

    def _faulty_before(self) -> list[str]:
        """Joints that had a fault when this folder's commissioning ended: they are moved again, after the repair."""
        try:
            joints = json_values(text_of(self.folder / "commission.json"))["joints"]
            return [name for name, joint in joints.items() if joint["fault"]]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def gears(self) -> dict[str, Any]:
        """Measure ratio and stiffness of each gear by one wide motion, where the torque that twists it is sensed.

        A wave of some degrees leaves a ratio as uncertain as gravity twists the gear meanwhile: over the joint's whole
        way that error is many times the twist itself.
        """
        from jointbench.excitation import random_excitation
        from jointbench.identification.commission_readings import read_gear
        from jointbench.model import load_robot
        from jointbench.recording import open_run

        robot, elapsed, values = load_robot(self.robot), 0.0, dict[str, dict[str, Any]]()
        about = {"word": "as commissioned", "rank": 1, "reason": "no gear has encoders on both sides and torque sensor"}
        if not self._senses_gears():
            return {**about, "bench_s": 0.0, "robot": None, "values": values}
        path = self._whole("gears")
        if path is None:
            self._tell_boards()
            with self._bench(self.robot) as bench:
                began = bench.clock.now_us()
                path = self.record(bench, random_excitation(bench.robot, period=PIECE, seed=_GEARS_SEED), "gears").path
                elapsed = 1e-6 * (bench.clock.now_us() - began)
        run = open_run(path)
        news: dict[str, dict[str, float]] = {}
        for name, drive in zip(robot.joint_names, robot.drives, strict=True):
            gear = read_gear(run, name)
            if gear is None:
                continue
            (ratio, sigma), (stiffness, stiffness_sigma) = gear
            self._check_ratio(name, ratio)
            values[name] = {
                "ratio": {"value": ratio, "sigma": sigma, "unit": "", "file": drive.ratio},
                "stiffness": {"value": stiffness, "sigma": stiffness_sigma, "unit": "N·m/rad", "file": drive.stiffness},
            }
            news[name] = {"ratio": float(f"{ratio:.7g}")}
            self.console.say(f"  {name}: ratio {ratio:.7g} ± {sigma:.2g}, stiffness {stiffness:.4g} N·m/rad")
        return {
            **about,
            **({"word": "measured", "reason": f"ratio and stiffness of {', '.join(values)}"} if values else {}),
            "bench_s": elapsed,
            "run": str(path),
            "robot": write_robot(self.robot, news, self.folder / ROBOT, reachable_limits(robot, news))
            if news
            else None,
            "values": values,
        }

    def _senses_gears(self) -> bool:
        """Whether boards have encoders on both sides of gears and torque sensors, by what was recorded already."""
        from jointbench.recording import open_run

        first = next((run for joint in self.products["commission"]["joints"].values() for run in joint["runs"]), None)
        samples = None if first is None else open_run(first).samples
        return samples is not None and samples.link_position is not None and samples.joint_torque is not None

    def _check_ratio(self, name: str, ratio: float) -> None:
        """Refuse a ratio that contradicts the one which was commissioned.

        Raises:
            FitError: names the joint and both.
        """
        first = self.products["commission"]["joints"][name]["values"].get("ratio", {})
        if first.get("value") is not None and abs(ratio - first["value"]) > 5.0 * first["sigma"]:
            raise FitError(
                f"the gear of {name} has the ratio {ratio:.6g} over a wide motion, and {first['value']:.6g} ± "
                f"{first['sigma']:.2g} over a narrow one; look for a coupling that slips, then commission it anew in "
                "another folder (--out)"
            )

    def _tell_boards(self) -> None:
        """Write measured ratios onto the boards; nobody is asked again about their later decimals."""
        if self.robot == self.file.robot:
            return
        first = self.products["commission"]["robot"] or self.file.robot
        yes = self.options.yes or self.robot != first
        write_ratios(self.file, self.robot, (self.file.robot, first), self.folder / "boards", self.console, yes=yes)

    def identify(self) -> dict[str, Any]:
        """Plan, play and fit pieces until each parameter is as precise as asked; pieces that are there count."""
        from jointbench.cli.fit import fit_fields
        from jointbench.identification.sequential_design import identify_until
        from jointbench.model import load_robot, robot_digests
        from jointbench.recording import open_run

        until, most = self.options.until, self.options.most
        earlier: list[Run] = []
        drives = robot_digests(load_robot(self.robot))["drives"]
        while (path := self._whole(f"identify/piece-{len(earlier) + 1:02d}")) is not None:
            piece = open_run(path)
            if robot_digests(piece.robot)["drives"] != drives:  # it was played with other ratios
                break
            earlier.append(piece)
        earlier = earlier[: max(1, int(most / PIECE + 1e-9))]
        if earlier:
            self.console.say(f"resumed: {len(earlier)} piece{'s' * (len(earlier) > 1)} of motion kept")
        self._tell_boards()

        def told(pieces: int, precision: Precision) -> None:
            self.console.say(piece_line(pieces, pieces * PIECE, precision))

        with self._bench(self.robot) as bench:
            began = bench.clock.now_us()

            def play(excitation: Excitation, number: int) -> Run:
                return self.record(bench, excitation, f"identify/piece-{number + 1:02d}")

            identification = identify_until(
                bench.robot, play, until, most=most, piece=PIECE, seed=self.options.seed, progress=told, earlier=earlier
            )
            elapsed = 1e-6 * (bench.clock.now_us() - began)
        model, precision = identification.model, identification.precision
        model.save(self.folder / MODEL)
        self.console.say(outcome_text(precision, identification.motion))
        known, out = int(precision.is_known.sum()), int(precision.is_out_of_reach.sum())
        reason = f"{known} of {len(precision.names)} parameters known to {100 * until:g} %"
        reason += f" by {identification.motion:.0f} s of motion"
        if out:
            reason += f", {out} out of reach in {most:g} s"
        rank = max(model.verdict.rank, 1 if precision.is_reached else 2)
        if model.verdict.rank > 1:
            reason += f"; {model.verdict.reason}"
        return {
            "word": model.verdict.word,
            "rank": rank,
            "reason": reason,
            "bench_s": elapsed,
            "motion_s": identification.motion,
            "until": until,
            "most": most,
            "is_reached": precision.is_reached,
            "runs": [str(each.path) for each in identification.runs],
            "model": str(self.folder / MODEL),
            "model_sha256": digest(self.folder / MODEL),
            "precision": precision_fields(precision),
            "fit": fit_fields(model),
        }

    def _whole(self, name: str) -> Path | None:
        """The newest run of a name that was played to its end, None where there is none."""
        from jointbench.recording import read_result

        runs = [path for path in self._attempts(name) if path.is_dir()]
        for path in reversed(runs):
            try:
                result = read_result(path)
            except RunError:
                continue
            if result is not None and result["outcome"] == "finished":
                return path
        return None

    def _attempts(self, name: str) -> Iterator[Path]:
        """Folders of a name up to the first that is free: NAME, NAME-again-2, …"""
        number, path = 1, self.folder / name
        while path.exists():
            yield path
            number += 1
            path = self.folder / f"{name}-again-{number}"
        yield path

    def _free(self, name: str) -> Path:
        return list(self._attempts(name))[-1]

    def record(self, bench: Bench, excitation: Excitation, name: str) -> Run:
        """Play a motion once, as the run of this name or, where that was stopped, beside it."""
        from jointbench.recording import record

        return record(
            bench, excitation, self._free(name), 1, progress_line(self.console, Path(name).name), seed=excitation.seed
        )

    @property
    def model(self) -> Model:
        """The identified model."""
        from jointbench.identification import load_model

        return load_model(self.folder / MODEL)

    def validate(self) -> dict[str, Any]:
        """Predict the torque of a random motion that the model was not fitted to."""
        from jointbench.cli.validate import say, validation_fields
        from jointbench.excitation import random_excitation
        from jointbench.identification import validate
        from jointbench.identification.validation import check_held_out
        from jointbench.recording import open_run
        from jointbench.results import Evidence, write_report

        model, elapsed = self.model, 0.0
        path = self._whole("verification")
        if path is None:
            with self._bench(self.robot) as bench:
                began = bench.clock.now_us()
                seed = self.options.seed + len(self.products["identify"]["runs"]) + 1
                path = self.record(bench, random_excitation(bench.robot, period=PIECE, seed=seed), "verification").path
                elapsed = 1e-6 * (bench.clock.now_us() - began)
        check = open_run(path)
        check_held_out(model, check, None, MODEL)
        validation = validate(model, check)
        say(Evidence(model, check, validation, check, None), self.console)
        fitted = open_run(self.products["identify"]["runs"][0])
        with self.console.working("drawing the model's report"):
            report = write_report(self.folder / "model.html", model, fitted, validation, check)
        return {
            "word": validation.verdict.word,
            "rank": validation.verdict.rank,
            "reason": validation.verdict.reason,
            "bench_s": elapsed,
            "model_sha256": digest(self.folder / MODEL),
            "run": str(path),
            "report": str(report),
            "validation": validation_fields(validation),
        }

    def prove(self) -> dict[str, Any]:
        """Play another motion without and with the model's feed-forward."""
        from jointbench.cli.prove import proof_fields, proof_text, stiffness_of
        from jointbench.identification.prove import draw_motion, prove
        from jointbench.recording import open_run
        from jointbench.results import write_proof

        model, out = self.model, self._free("proof")
        with self.console.working("drawing a motion"):
            motion = draw_motion(model, PROOF, self.options.seed + _PROOF_SEED)
        about = {"model_sha256": digest(self.folder / MODEL), "out": str(out)}
        stiffness = stiffness_of(open_run(self.products["identify"]["runs"][0]))
        with self._bench(self.robot) as bench:
            began = bench.clock.now_us()
            try:
                proof = prove(
                    model, bench, motion, out, stiffness=stiffness,
                    told=self.console.say, progress=lambda name: progress_line(self.console, name),
                )  # fmt: skip
            except FitError as error:
                elapsed = 1e-6 * (bench.clock.now_us() - began)
                return {"word": "refused", "rank": 3, "reason": str(error), "bench_s": elapsed, **about}
            elapsed = 1e-6 * (bench.clock.now_us() - began)
        self.console.say(proof_text(proof))
        with self.console.working("drawing the proof's report"):
            report = write_proof(self.folder / "proof.html", proof, model, motion, commands=(self.command,))
        held = f"feedback supplies at most {100.0 * float(proof.share[proof.modelled].max()):.1f} % of a joint's torque"
        return {
            "word": "proven" if proof.is_proven else "refused",
            "rank": 1 if proof.is_proven else 3,
            "reason": "; ".join(proof.against) or f"{held}, the tracking error is divided by {proof.pooled_ratio:.3g}",
            "bench_s": elapsed,
            **about,
            "report": str(report),
            "proof": proof_fields(proof),
        }


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _uids(bench: Bench) -> dict[str, str]:
    """UID of each board, those at joints and at feet."""
    return {board.joint: identity.uid for board, identity in zip(bench.all_boards, bench.identities, strict=True)}
