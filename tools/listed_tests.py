"""The list of test files: with it a deleted file fails a check, and does not merely leave fewer tests to pass.

`python -m tools.listed_tests` compares the list with the files that are there; with --write it writes the list anew.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = Path("tools/listed_tests.txt")
WRITE = "--write"
_COMMAND = f"`python -m tools.listed_tests {WRITE}`"


def files_of_tests(root: Path) -> list[str]:
    """Return the test files in the folders that pytest looks into, by their paths from `root`."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    folders: list[str] = settings["tool"]["pytest"]["ini_options"]["testpaths"]
    return sorted(path.relative_to(root).as_posix() for name in folders for path in (root / name).rglob("test_*.py"))


def faults(root: Path) -> list[str]:
    """Say what differs between the list and the files, and what to do about it; nothing where they agree."""
    path = root / LIST
    listed = path.read_text(encoding="utf-8").split() if path.exists() else []
    there = files_of_tests(root)
    gone = [name for name in listed if name not in there]
    new = [name for name in there if name not in listed]
    said: list[str] = []
    if gone:
        said.append(f"test files are gone: {', '.join(gone)}. Put them back, or let the list say so too: {_COMMAND}")
    if new:
        said.append(f"test files are not listed: {', '.join(new)}. List them: {_COMMAND}")
    return said


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Return 0 when list and files agree, 1 when they differ, 2 for wrong use."""
    if arguments == [WRITE]:
        (root / LIST).write_text("".join(f"{name}\n" for name in files_of_tests(root)), encoding="utf-8")
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    said = faults(root)
    for sentence in said:
        print(f"{LIST}: {sentence}", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
