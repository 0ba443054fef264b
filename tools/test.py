"""Check the whole tree: that no test file is missing, ruff, pyright, then the tests, with --slow every one.

Further arguments go to pytest.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Tests of one file stay in one process, so that a bench started for a file is started once. Three workers at most:
# every bench test starts processes of its own. Files in the order of conftest.py: the longest are not those with the
# most tests.
PARALLEL = ["-n", "auto", "--maxprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder"]

SLOW = "--slow"

# Of the suite, on the bench that pyproject.toml names: a run of everything that left one of these tests out has failed.
REQUIRED = ["--require", "functional,deterministic"]


def checks(arguments: list[str]) -> dict[str, list[str]]:
    """Return the command behind each check, in the order they run: the quick ones first."""
    python = [sys.executable, "-P", "-m"]
    return {
        "test files": [*python, "tools.listed_tests"],
        "ruff": [*python, "ruff", "check"],
        "pyright": [*python, "basedpyright"],
        "pytest": [*python, "pytest", *PARALLEL, *chosen(arguments)],
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
    """Run the checks up to the first that fails; return 0, or 1 when one failed."""
    for name, command in checks(arguments).items():
        print(f"== {name}", flush=True)
        start = time.monotonic()
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code:
            if name != "pytest":
                print(f"{name} failed: no test was run", file=sys.stderr)
            return 1
        if name != "pytest":
            print(f"   {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
