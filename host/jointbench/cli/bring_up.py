"""Bring a bench up: commission, identify, validate on new motion, prove, report; resumable at each step, one answer."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from jointbench.checks import Result
from jointbench.cli.bring_up_steps import MODEL, Steps, digest
from jointbench.cli.console import Console, compiling_told
from jointbench.cli.identify import share
from jointbench.errors import JointbenchError
from jointbench.extras import need
from jointbench.files import json_values, text_of, write_file

VERB = "bring-up"
EXAMPLE = "jointbench bring-up bench.toml --until 10%"
WHEN_STOPPED = "motors are off; what was done is kept, and the same command goes on behind it"

PAGE = "report.html"
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


class BringUp(Steps):
    """The steps on one bench in their order, each product a file NAME.json in the folder, and one verdict."""

    def run(self) -> Result:
        """Carry out the steps up to the first that says no, and write the page."""
        steps: Mapping[str, Callable[[], dict[str, Any]]] = {
            "commission": self.commission,
            "gears": self.gears,
            "identify": self.identify,
            "validate": self.validate,
            "prove": self.prove,
        }
        self.console.say(f"bringing up {self.file.name}: {', '.join(steps)}; what each leaves is in {self.folder}")
        self.folder.mkdir(parents=True, exist_ok=True)
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
            if name == "gears":
                return product if product["made"] >= self.products["commission"]["made"] else None
            if any(product["made"] < earlier["made"] for earlier in self.products.values()):
                return None
            if product["model_sha256"] != digest(self.folder / MODEL):
                return None
            if name != "identify":
                return product
            was_enough = product["is_reached"] or self.options.most <= product["most"]
            return product if product["until"] <= self.options.until and was_enough else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

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


def _plain(value: Any) -> Any:
    """Convert NumPy numbers, arrays and paths, which JSON does not know."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
