"""What the command line imports before it knows what is asked: nothing that takes long."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "numpy",
    "scipy",
    "numba",
    "matplotlib",
    "construct",
    "joblib",
    "fsspec",
    "jinja2",
    "clarabel",
    "pyarrow",
    "shtab",
}
SAYS_ITS_MODULES = """
import json, sys
from jointbench.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps([name for name in sys.modules if "." not in name]))
"""


def imported(folder: Path, *arguments: str) -> set[str]:
    """Packages that are there after a command, in a process of its own."""
    command = [sys.executable, "-c", SAYS_ITS_MODULES, *arguments]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(json.loads(said.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), (), ("list",), ("--json", "-"), ("dance",)])
def test_nothing_heavy_is_imported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert imported(tmp_path, *arguments) & HEAVY == set()


def test_a_verb_that_needs_numpy_is_told_by_this(tmp_path: Path) -> None:
    assert "numpy" in imported(tmp_path, "info", "cobot6")
