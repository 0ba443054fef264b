"""`./run hil`: the same tests on emulated and on real boards: one bench, its report, and a verdict."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.cli.main import carry_out


class SuiteNotRun(Exception):
    """Raised when pytest ended before it had a result: a bench, test or option that is not there."""


RESULT = "result.json"


@dataclass(frozen=True)
class SuiteResult(Result):
    """The result of a run; `file` has it in full, checks and all."""

    file: Path = Path(RESULT)

    def write(self, destination: str, seconds: float) -> None:
        """Copy the file, or print it for "-"; its seconds are those of the run itself."""
        if destination == "-":
            sys.stdout.write(self.file.read_text(encoding="utf-8"))
        else:
            shutil.copyfile(self.file, destination)


ROOT = Path(__file__).resolve().parents[1]
SUITE = "hil_tests/suite"
VERDICTS = {0: True, 1: False, 5: False}  # of pytest's exit codes: all passed, some failed, none ran
WHEN_STOPPED = "pytest has stopped the boards"


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run hil`."""
    options = argparse.ArgumentParser(prog="./run hil", description=__doc__)
    options.add_argument(
        "--bench", default="unix6", metavar="NAME|FILE", help="a bench of hil_tests/benches or a file (%(default)s)"
    )
    options.add_argument("--require", metavar="TIERS", help="fail unless functional,deterministic,… all ran")
    options.add_argument("--port", metavar="PATH", help="serial port of the board, instead of the bench file's")
    options.add_argument("--seed", type=int, default=0, help="same seed, same bytes (%(default)s)")
    options.add_argument("--quick", action="store_true", help="leave out the tests that take long")
    options.add_argument("--campaign", metavar="FILE", help="the JSON of `./run faults`, to be shown in the report")
    options.add_argument(
        "--out", metavar="DIR", help="for report.html, result.json, junit.xml and the logs of failures"
    )
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    options.add_argument(
        "tests", nargs="*", metavar="-- ARGUMENT", help=f"for pytest; tests named here run instead of {SUITE}"
    )
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; 0, 1 when a test fails or none ran, 2 when it could not be run."""
    return carry_out("hil", parser().parse_args(arguments), hil, (SuiteNotRun,), when_stopped=WHEN_STOPPED)


def hil(options: argparse.Namespace, console: Console) -> SuiteResult:
    """Run pytest on one bench, and take over what it has written."""
    out = Path(options.out).absolute() if options.out else new_folder(options)
    (out / RESULT).unlink(missing_ok=True)  # an earlier run's, which is not this one's if pytest ends too soon
    code = run_pytest(pytest_command(options, out), console)
    if code not in VERDICTS or not (out / RESULT).is_file():
        raise SuiteNotRun(f"pytest ended with status {code} before the suite was through; its words are above")
    return SuiteResult("hil", options.seed, refused=not VERDICTS[code], file=out / RESULT)


def pytest_command(options: argparse.Namespace, out: Path) -> list[str]:
    """Return what runs the suite, from the checkout's folder."""
    named = {
        "--bench": bench(options),
        "--bench-seed": options.seed,
        "--bench-out": out,
        "--bench-again": again(options),
    }
    if options.port:
        named["--bench-port"] = port(options)
    if options.require:
        named["--require"] = options.require
    if options.campaign:
        named["--bench-campaign"] = Path(options.campaign).absolute()
    return [
        *(sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider"),
        *("-o", "cpu_budget_s=0"),  # a bench may be as slow as it is
        *(f"{name}={value}" for name, value in named.items()),
        *(["-m", "not slow"] if options.quick else []),
        *([] if names_tests(options.tests) else [SUITE]),
        *options.tests,
    ]


def again(options: argparse.Namespace) -> str:
    """Return what to type to run a test again, with room for its name."""
    at_port = f" --port {shlex.quote(port(options))}" if options.port else ""
    quick = " --quick" if options.quick else ""
    return f"./run hil --bench {{bench}} --seed {{seed}}{at_port}{quick} {{require}} -- {{test}}"


def bench(options: argparse.Namespace) -> str:
    """Return the bench's name, or its file's path for a process that stands elsewhere."""
    is_file = "/" in options.bench or options.bench.endswith(".toml")
    return str(Path(options.bench).absolute()) if is_file else options.bench


def port(options: argparse.Namespace) -> str:
    """Return the port, as a path from anywhere where it is a file's: others are URLs."""
    return str(Path(options.port).absolute()) if Path(options.port).exists() else options.port


def new_folder(options: argparse.Namespace) -> Path:
    """Return a folder for this run among those of all others."""
    return ROOT / "runs" / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-hil-{Path(options.bench).stem}"


def names_tests(arguments: Sequence[str]) -> bool:
    """True if pytest's arguments name tests; otherwise they are options, such as -k and its value."""
    paths = [argument.partition("::")[0] for argument in arguments if not argument.startswith("-")]
    return any(path.endswith(".py") or ("/" in path and (ROOT / path).is_dir()) for path in paths)


def run_pytest(command: Sequence[str], console: Console) -> int:
    """Run pytest to its end, which after Ctrl-C is when it has left its boards with their motors off."""
    with subprocess.Popen(command, cwd=ROOT, stdout=console.stream) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise


if __name__ == "__main__":
    sys.exit(main())
