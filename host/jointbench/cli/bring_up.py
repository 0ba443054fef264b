"""Bring a bench up: commission, identify, validate on new motion, prove, report; resumable at each step, one answer."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.checks import Result
from jointbench.cli.commission import (
    joint_fields,
    news_of,
    reachable_limits,
    say_faults,
    values_table,
    write_ratios,
    write_robot,
)
from jointbench.cli.console import Console, compiling_told
from jointbench.cli.identify import outcome_text, piece_line, precision_fields, share
from jointbench.cli.run import progress_line
from jointbench.errors import FileError, FitError, JointbenchError, RunError
from jointbench.extras import need
from jointbench.files import json_values, text_of, write_file

if TYPE_CHECKING:
    from jointbench.bench import Bench, BenchFile
    from jointbench.excitation import Excitation
    from jointbench.identification import CommissionedJoint, Model
    from jointbench.identification.sequential_design import Precision
    from jointbench.recording import Run

VERB = "bring-up"
EXAMPLE = "jointbench bring-up bench.toml --until 10%"
WHEN_STOPPED = "motors are off; what was done is kept, and the same command goes on behind it"

PIECE = 10.016
"""Seconds of each piece of motion that is identified by, and of the motion that the model is validated on."""
PROOF = 20.0
"""Seconds of the motion that the model is proven on."""
ROBOT, MODEL, PAGE = "robot.toml", "model.json", "report.html"
_PROOF_SEED = 1000  # far from those of the pieces
_WORDS = {1: "usable", 2: "usable with care", 3: "not usable"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """BENCH, how precisely, how long at most, and where everything goes."""
    parser.add_argument("bench", metavar="BENCH", help="a bench .toml: where each joint's board is")
    parser.add_argument(
        "--until", type=share, default=0.1, metavar="SHARE",
        help="relative σ of each base parameter, such as 10%% or 0.1 (10%%)",
    )  # fmt: skip
    parser.add_argument(
        "--most", type=float, default=300.0, metavar="S", help="seconds of motion to identify by at most (%(default)g)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all motions (0)")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="of all products; a step whose product is there is not repeated (runs/NAME-bring-up)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="write measured gear ratios onto the boards (drive.ratio) without asking"
    )


def run(options: argparse.Namespace, console: Console) -> Result:
    """Does what is not done yet, step by step; exit code 1 when the one verdict is "not usable"."""
    with console.working("loading"):
        from jointbench.bench import read_bench_file

        need("report", "a report", "matplotlib", "jinja2")  # before the arm moves
    file = read_bench_file(options.bench)
    with compiling_told(console):
        return BringUp(file, options, console).run()


class BringUp:
    """The steps on one bench; the product of each is a file NAME.json in the folder, beside its runs.

    Attributes:
        folder: of all products.
        products: of the steps that are done, by name, in their order.
    """

    def __init__(self, file: BenchFile, options: argparse.Namespace, console: Console) -> None:
        self.file, self.options, self.console = file, options, console
        self.folder = Path(options.out or Path("runs") / f"{file.name}-bring-up")
        self.products: dict[str, dict[str, Any]] = {}

    def run(self) -> Result:
        """Carry out the steps up to the first that says no, and write the page."""
        steps: Mapping[str, Callable[[], dict[str, Any]]] = {
            "commission": self._commission,
            "identify": self._identify,
            "validate": self._validate,
            "prove": self._prove,
        }
        self.console.say(f"bringing up {self.file.name}: {', '.join(steps)}; what each leaves is in {self.folder}")
        for name, step in steps.items():
            kept = self.kept(name)
            if kept is not None:
                self.console.say(f"resumed: {name} of {kept['made']} kept: {kept['word']}")
                self.products[name] = kept
                continue
            self.console.say(f"== {name}")
            began = time.monotonic()
            try:
                product = step()
            except JointbenchError:
                self.console.say(f"NO  {name} stopped, motors are off; what was done is kept in {self.folder}")
                raise
            made = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            product = {"step": name, "made": made, "seconds": round(time.monotonic() - began, 1), **product}
            text = json.dumps(product, indent=1, ensure_ascii=False, default=_plain)
            self.products[name] = json.loads(text)
            write_file(self.folder / f"{name}.json", text + "\n")
            self.console.say(f"{name}: {product['word']} ({product['reason']})")
            if product["rank"] == 3:
                break
        return self._result()

    def kept(self, name: str) -> dict[str, Any] | None:
        """Product of a step that need not be repeated, None where there is none, or what it was made of changed."""
        try:
            product = json_values(text_of(self.folder / f"{name}.json"))
            if product["rank"] == 3:
                return None
            if name == "commission":
                return product if product["bench"] == self.file.name else None
            if any(product["made"] < earlier["made"] for earlier in self.products.values()):
                return None
            if product["model_sha256"] != _digest(self.folder / MODEL):
                return None
            if name != "identify":
                return product
            was_enough = product["is_reached"] or self.options.most <= product["most"]
            return product if product["until"] <= self.options.until and was_enough else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

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
        """Reference of the robot with the values that were commissioned."""
        own = self.products["commission"]["robot"]
        return self.file.robot if own is None else str(own)

    def _commission(self) -> dict[str, Any]:
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
            "word": "faulty" if faults else "sound",
            "rank": 3 if faults else 1,
            "reason": "; ".join(faults) or reason,
            "bench": self.file.name,
            "bench_s": elapsed,
            "boards": uids,
            "robot": None if faults or not news else write_robot(self.file.robot, news, self.folder / ROBOT, limits),
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

    def _identify(self) -> dict[str, Any]:
        from jointbench.cli.fit import fit_fields
        from jointbench.identification.sequential_design import identify_until
        from jointbench.recording import open_run

        until, most = self.options.until, self.options.most
        earlier: list[Run] = []
        while (path := self._whole(f"identify/piece-{len(earlier) + 1:02d}")) is not None:
            earlier.append(open_run(path))
        earlier = earlier[: max(1, int(most / PIECE + 1e-9))]
        if earlier:
            self.console.say(f"resumed: {len(earlier)} piece{'s' * (len(earlier) > 1)} of motion kept")
        if self.robot != self.file.robot:
            write_ratios(self.file, self.robot, self.folder / "boards", self.console, yes=self.options.yes)

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
            "model_sha256": _digest(self.folder / MODEL),
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

    def _validate(self) -> dict[str, Any]:
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
            "model_sha256": _digest(self.folder / MODEL),
            "run": str(path),
            "report": str(report),
            "validation": validation_fields(validation),
        }

    def _prove(self) -> dict[str, Any]:
        from jointbench.cli.prove import proof_fields, proof_text, stiffness_of
        from jointbench.identification.prove import draw_motion, prove
        from jointbench.recording import open_run
        from jointbench.results import write_proof

        model, out = self.model, self._free("proof")
        with self.console.working("drawing a motion"):
            motion = draw_motion(model, PROOF, self.options.seed + _PROOF_SEED)
        about = {"model_sha256": _digest(self.folder / MODEL), "out": str(out)}
        with self._bench(self.robot) as bench:
            began = bench.clock.now_us()
            try:
                proof = prove(
                    model, bench, motion, out, stiffness=stiffness_of(open_run(self.products["identify"]["runs"][0])),
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

    @property
    def command(self) -> str:
        """What to type to get here again."""
        options = self.options
        words = ["jointbench", VERB, options.bench, "--until", f"{100.0 * options.until:g}%", "--most", options.most]
        return shlex.join(map(str, [*words, "--seed", options.seed, "--out", self.folder]))

    def _result(self) -> Result:
        from jointbench.results import write_bring_up

        rank = max(product["rank"] for product in self.products.values())
        as_bad = [product for product in self.products.values() if product["rank"] == rank]
        worst = as_bad[0 if rank > 1 else -1]  # where nothing is wrong, the proof says most
        why = f"{worst['step']}: {worst['reason']}"
        page = write_bring_up(
            self.folder / PAGE, self.file.name, _WORDS[rank], rank, why, self.products,
            commands=(self.command,),
        )  # fmt: skip
        for product in self.products.values():
            self.console.say(f"  {product['step']}: {product['word']}")
        self.console.say(f"verdict: {_WORDS[rank]} ({why})")
        if rank == 3:
            self.console.say(f"motors are off; once that is mended, the same command goes on with {worst['step']}")
        self.console.say(f"report: {page}")
        self.console.say(f"next: {self._next(worst, rank)}")
        fields = {"out": self.folder, "report": page, "verdict": _WORDS[rank], "steps": self.products}
        return Result(VERB, self.options.seed, fields=fields, refused=rank == 3)

    def _next(self, worst: Mapping[str, Any], rank: int) -> str:
        """The command that makes sense now."""
        bench, model = shlex.quote(str(self.options.bench)), shlex.quote(str(self.folder / MODEL))
        if rank < 3:
            return f"jointbench export {model} --out arm.urdf"
        if worst["step"] == "commission":
            return f"jointbench check {bench}"
        if worst["step"] == "prove":
            return f"jointbench prove {model} {bench} --controls"
        return f"jointbench doctor {shlex.quote(str(self.products['identify']['runs'][-1]))}"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _uids(bench: Bench) -> dict[str, str]:
    """UID of each board, those at joints and at feet."""
    return {board.joint: identity.uid for board, identity in zip(bench.all_boards, bench.identities, strict=True)}


def _plain(value: Any) -> Any:
    """Convert NumPy numbers, arrays and paths, which JSON does not know."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
