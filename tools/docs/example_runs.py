"""`python -m tools.docs.example_runs ROBOT RUN [RUN ...]`: logs of `example_log`, imported.

--fit adds models, and in the last run the last link holds --payload KG.

Each has a motion of its own. They are what a page's reader has recorded before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import jointbench as jb
from jointbench.recording import propose_mapping
from tools.docs.example_log import write_log


def main(arguments: list[str] | None = None) -> int:
    """Make the runs."""
    options = argparse.ArgumentParser(prog="python -m tools.docs.example_runs", description=__doc__)
    options.add_argument("robot")
    options.add_argument("runs", nargs="+", type=Path)
    options.add_argument("--fit", action="store_true", help="put a model.json into each")
    options.add_argument("--payload", type=float, default=0.0, metavar="KG", help="in the last RUN")
    given = options.parse_args(arguments)
    for seed, path in enumerate(given.runs, start=1):
        run = imported(given.robot, path, seed, given.payload if path == given.runs[-1] else 0.0)
        if given.fit:
            jb.fit(run).save(path / "model.json")
    return 0


def imported(robot: str, path: Path, seed: int, payload: float = 0.0) -> jb.Run:
    """A run of a random motion of a library robot, in a new directory."""
    with tempfile.TemporaryDirectory(prefix="jointbench-example-") as name:
        folder = Path(name)
        log, mapping = folder / "log.csv", folder / "mapping.toml"
        write_log(log, jb.load_robot(robot), seed, payload)
        mapping.write_text(propose_mapping(robot, [log], folder).text, encoding="utf-8")
        return jb.import_csv(mapping, path)


if __name__ == "__main__":
    sys.exit(main())
