"""A robot of several cobot6 arms on one base, with its plant and bench: as many joints, and boards, as a load takes."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from tools.load.variation import COBOT6, HIL_TESTS

_APART_MM = 1500
_PLANT = HIL_TESTS / "virtual_bench" / "plants" / "cobot6.toml"


def write_arms(folder: Path, arms: int) -> Path:
    """Write robot, plant and bench file of so many arms side by side, and return the bench file.

    Joints are j1 … j6 of the first arm, j7 … j12 of the second, and so on; each has a board with the same number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    robot = (resources.files("jointbench.robot") / "library" / "cobot6.toml").read_text(encoding="utf-8")
    robot = robot.partition("\n[[capsules]]")[0]  # arms that far apart do not meet
    plant, bench = _PLANT.read_text(encoding="utf-8"), COBOT6.read_text(encoding="utf-8")
    (folder / "robot.toml").write_text(_repeated(robot, "[[joints]]", arms), encoding="utf-8")
    (folder / "plant.toml").write_text(_repeated(plant, "[[joints]]", arms), encoding="utf-8")
    bench = bench.replace('robot = "cobot6"', 'robot = "robot.toml"')
    bench = re.sub(r'^plant = ".*"$', 'plant = "plant.toml"', bench, flags=re.MULTILINE)
    path = folder / "bench.toml"
    path.write_text(_repeated(bench, "[[board]]", arms), encoding="utf-8")
    return path


def _repeated(text: str, table: str, arms: int) -> str:
    """A file's head once, and its tables as often as there are arms, numbered on."""
    head, first, rest = text.partition(table)
    per_arm = text.count(table)
    return head + "\n".join(_numbered_on(first + rest, arm, per_arm) for arm in range(arms))


def _numbered_on(text: str, arm: int, per_arm: int) -> str:
    def number(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) + arm * per_arm}{match[3]}"

    text = re.sub(r'(?m)^((?:name|joint) = "j)(\d+)(")', number, text)
    text = re.sub(r"(?m)^(node = )(\d+)()", number, text)
    text = re.sub(r'(?m)^(name = ")(?!j\d+")(\w+)(")', rf"\g<1>\g<2>_{arm + 1}\g<3>", text)
    return text.replace("a_mm = 0\n", f'a_mm = {arm * _APART_MM}\nparent = "base"\n', 1)
