"""Check the whole tree: ruff, who imports whom, pyright beside the tests, with --slow every one.

Further arguments go to pytest.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Tests of one file stay in one process, so that a bench started for a file is started once. Two workers at most: every
# bench test starts processes of its own. Files in the order of conftest.py: the longest are not those with the most
# tests.
PARALLEL = ["-n", "auto", "--maxprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder"]

SLOW = "--slow"

# Of the suite, on the bench that pyproject.toml names: a run of everything that left one of these tests out has failed.
REQUIRED = ["--require", "functional,deterministic"]

PYTHON = [sys.executable, "-P", "-m"]
# Byte code is kept whatever the shell says: compiling what they import takes each of the tests' processes seconds.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
# It takes what the tests leave of the processor, and the rest when they have ended: their answer comes first.
BESIDE = {"pyright": ["nice", "-n", "19", *PYTHON, "basedpyright"]}


def checks(arguments: list[str]) -> dict[str, list[str]]:
    """Return the command behind each check, in the order they run: the quick ones first."""
    return {
        "ruff": [*PYTHON, "ruff", "check"],
        "imports": [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"],
        "warm-up": [*PYTHON, "tools.warm_up"],
        "pytest": [*PYTHON, "pytest", *PARALLEL, *chosen(arguments)],
    }


def chosen(arguments: list[str]) -> list[str]:
    """Return the arguments for pytest: slow tests are left out unless --slow asks for them, or -m for some.

    >>> chosen(["host"]), chosen(["--slow", "host"]), chosen(["-m", "slow"])
    (['-m', 'not slow', 'host'], ['host'], ['-m', 'slow'])
    >>> chosen(["--slow"])
    ['--require', 'functional,deterministic']
    """
    if not set(arguments) - {SLOW}:
        arguments = [*arguments, *REQUIRED]
    if SLOW in arguments:
        return [argument for argument in arguments if argument != SLOW]
    return arguments if any(argument.startswith("-m") for argument in arguments) else ["-m", "not slow", *arguments]


def main(arguments: list[str]) -> int:
    """Run the checks up to the first that fails, others beside them; return 0, or 1 when one failed."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        beside = {
            name: subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=said, stderr=said)
            for name, command in BESIDE.items()
        }
        try:
            failed = first_that_fails(checks(arguments))
        finally:
            failed_beside = [name for name, process in beside.items() if process.wait()]
        said.seek(0)
        print(f"== {', '.join(beside)} (beside the tests)\n{said.read()}", end="")
    for name in [failed] if failed else failed_beside:
        print(f"{name} failed" + ("" if name in ("pytest", *beside) else ": no test was run"), file=sys.stderr)
    print(f"   {time.monotonic() - start:.1f} s in all", flush=True)
    return 1 if failed or failed_beside else 0


def first_that_fails(commands: dict[str, list[str]]) -> str | None:
    """Run checks one after the other, and return the name of the first that fails."""
    for name, command in commands.items():
        print(f"== {name}", flush=True)
        start = time.monotonic()
        if subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=False).returncode:
            return name
        if name != "pytest":
            print(f"   {time.monotonic() - start:.1f} s", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
