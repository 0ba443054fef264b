"""Damage through what reads it: frames through both halves of the wire, files through all that reads files.

No frame may be accepted; nothing may crash, hang, take memory without end, or write a file elsewhere; no edit of what
was recorded, fitted or planned may go unnoticed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hil_tests.virtual_bench.emulated_board import find_interpreter
from hil_tests.virtual_bench.errors import BenchError
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.main import carry_out
from tools.fuzz.decoders import KINDS, VERDICTS, DecoderProcess, Finding, HostAnswer, judge_board, judge_host
from tools.fuzz.edits import fuzz_edits
from tools.fuzz.files import fuzz_files
from tools.fuzz.frames import Batch, DecoderFailed, FuzzError, make_batch, read_case

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent
BATCH = 1000  # mutants in one recording
MOST_FAILURES = 20  # a decoder that fails in so many batches is understood
HEAP = "192k"  # what the smallest supported board has
_REPORT_S = 15.0


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run fuzz`."""
    options = argparse.ArgumentParser(prog="./run fuzz", description=__doc__)
    options.add_argument(
        "what",
        choices=("wire", "files", "edits"),
        help="wire: the frames between host and boards; files: all that users give; edits: of runs, models and plans",
    )
    options.add_argument("--frames", type=_count, default=1_000_000, metavar="N", help="wire: mutants (%(default)s)")
    options.add_argument("--cases", type=_count, metavar="N", help="files: mutants (100000); edits: how many (500)")
    options.add_argument("--seed", type=int, default=0, help="same seed, same bytes (%(default)s)")
    options.add_argument("--case", metavar="FILE", help="run only this batch, saved by an earlier run that failed")
    options.add_argument("--out", metavar="DIR", default="runs/fuzz", help="where failing batches go (%(default)s)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Fuzz; 0, 1 when anything was found, 2 when it could not be done."""
    options = parser().parse_args(arguments)
    options.cases = options.cases or {"files": 100_000, "edits": 500}.get(options.what)
    return carry_out("fuzz", options, _CAMPAIGNS[options.what], (FuzzError, BenchError))


@dataclass
class Findings:
    """Input of the decoders, and their faults."""

    batches: int = 0
    frames: int = 0  # as they were sent
    mutants: Counter[str] = field(default_factory=Counter[str])
    wrong: Counter[str] = field(default_factory=Counter[str])
    disagreements: int = 0
    cases: list[Path] = field(default_factory=list[Path])

    @property
    def n_mutants(self) -> int:
        """All mutants so far."""
        return self.mutants.total()

    def add(self, batch: Batch, findings: list[Finding]) -> None:
        """Count a batch."""
        self.batches += 1
        self.frames += batch.truth.frames_received + 1
        self.mutants += batch.mutations
        self.wrong += Counter(f"{finding.decoder} {finding.kind}" for finding in findings)
        host, board = ({f.text for f in findings if f.decoder == name and f.kind in VERDICTS} for name in _DECODERS)
        self.disagreements += len(host ^ board)


_DECODERS = ("host", "board")


def fuzz(options: argparse.Namespace, console: Console) -> Result:
    """Batch after batch through both decoders, each in a process of its own."""
    batches = iter([read_case(Path(options.case))]) if options.case else _batches(options.seed, options.frames)
    findings = Findings()
    began = reported = time.monotonic()
    with Pair() as pair:
        for batch, found in pair.run(batches):
            findings.add(batch, found)
            if found:
                _report(batch, found, findings, options, console)
                if len(findings.cases) >= MOST_FAILURES:
                    break
            if time.monotonic() - reported > _REPORT_S:
                reported = time.monotonic()
                console.say(f"{findings.n_mutants} mutants, {reported - began:.0f} s, wrong: {findings.wrong.total()}")
    seconds = time.monotonic() - began
    checks = make_checks(findings, 1 if options.case else options.frames)
    rows = [[name.replace("_", " "), str(count)] for name, count in sorted(findings.mutants.items())]
    console.say(table(("mutation", "mutants"), [*rows, ["all", str(findings.n_mutants)]]))
    whole = f"{findings.n_mutants} mutants and {findings.frames} whole frames between them"
    console.say(f"{whole}, {findings.batches} recordings, {seconds:.0f} s")
    for check in checks:
        console.say(str(check))
    fields = {
        "mutants": findings.n_mutants,
        "frames": findings.frames,
        "recordings": findings.batches,
        "mutations": dict(sorted(findings.mutants.items())),
        "mutants_per_s": round(findings.n_mutants / seconds),
        "wrong": dict(findings.wrong),
        "cases": findings.cases,
    }
    return Result("fuzz wire", None if options.case else options.seed, checks, fields)


class Pair:
    """Both decoders, given each batch at the same time; one that fails is started again."""

    def __init__(self, firmware: Path = ROOT / "firmware") -> None:
        """Start them; the board's is that of this firmware."""
        self._interpreter, self._firmware = find_interpreter(), firmware
        self._host, self._board = self._start("host"), self._start("board")

    def run(self, batches: Iterator[Batch]) -> Iterator[tuple[Batch, list[Finding]]]:
        """Each batch with what was found wrong; the next one is made while the decoders are at work."""
        batch = next(batches, None)
        while batch:
            found = self._give(batch)
            following = next(batches, None)
            yield batch, found + self._judge(batch, {finding.decoder for finding in found})
            batch = following

    def _give(self, batch: Batch) -> list[Finding]:
        found: list[Finding] = []
        for name in _DECODERS:
            with self._watched(name, found):
                self._decoder(name).give(batch)
        return found

    def _judge(self, batch: Batch, failed: set[str]) -> list[Finding]:
        found: list[Finding] = []
        if "host" not in failed:
            with self._watched("host", found):
                found += judge_host(batch, HostAnswer.read(self._host.answer()))
        if "board" not in failed:
            with self._watched("board", found):
                found += judge_board(batch, self._board.answer())
        return found

    @contextlib.contextmanager
    def _watched(self, name: str, found: list[Finding]) -> Iterator[None]:
        try:
            yield
        except DecoderFailed as failure:
            found.append(Finding("hang" if failure.hangs else "crash", name, str(failure)))
            self._decoder(name).close()
            if name == "host":
                self._host = self._start(name)
            else:
                self._board = self._start(name)

    def _decoder(self, name: str) -> DecoderProcess:
        return self._host if name == "host" else self._board

    def _start(self, name: str) -> DecoderProcess:
        if name == "host":
            return DecoderProcess(name, [sys.executable, "-P", "-m", "tools.fuzz.decoders"], ROOT)
        program = PROGRAMS / "board_program.py"
        command = [self._interpreter, "-X", f"heapsize={HEAP}", program, self._firmware]
        return DecoderProcess(name, command, ROOT)

    def __enter__(self) -> Pair:
        """Return the pair."""
        return self

    def __exit__(self, *error: object) -> None:
        """End both programs."""
        self._host.close()
        self._board.close()


def make_checks(findings: Findings, wanted: int) -> tuple[Check, ...]:
    """Checks against the limits, of either decoder."""
    wrong = findings.wrong

    def of(kind: str) -> int:
        return sum(wrong[f"{name} {kind}"] for name in _DECODERS)

    counted = tuple(Check(name, of(kind), "==", 0) for kind, name in KINDS.items())
    return (
        Check("mutants", findings.n_mutants, ">=", wanted),
        Check("crashes", of("crash"), "==", 0),
        Check("hangs", of("hang"), "==", 0),
        *counted,
        Check("disagreements", findings.disagreements, "==", 0),
    )


def _batches(seed: int, frames: int) -> Iterator[Batch]:
    number = 0
    while frames > 0:
        batch = make_batch(seed, number, min(BATCH, frames))
        frames -= batch.mutations.total()
        number += 1
        yield batch


def _report(
    batch: Batch, found: list[Finding], findings: Findings, options: argparse.Namespace, console: Console
) -> None:
    """Save a failing batch, and say what failed and how to run it again."""
    console.say(f"{batch.name}:")
    for finding in found[:5]:
        console.say(f"  {finding.decoder}: {finding.text}")
    if len(found) > 5:
        console.say(f"  and {len(found) - 5} more")
    path = Path(options.case or Path(options.out) / f"{batch.name.replace(' ', '-')}.json")
    if not options.case:
        batch.save(path)
    findings.cases.append(path)
    console.say(f"  to run it again: ./run fuzz wire --case {path}")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


_CAMPAIGNS = {"wire": fuzz, "files": fuzz_files, "edits": fuzz_edits}


if __name__ == "__main__":
    sys.exit(main())
