"""The pictures of the documentation, each drawn by the code whose result it shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.image import imread

ROOT = Path(__file__).resolve().parents[2]

_DRAWN_BY = {
    "torques.png": ("tools.demo cobot6 --out {folder}/demo", "demo/torques.png"),
    "biped.png": ("tools.demo gorobot2 --out {folder}/demo", "demo/stance.png"),
    "filters.png": ("tools.filter_bench.picture {folder}/filters.png", "filters.png"),
}
"""By name: the module and its arguments, and what it calls the picture."""

PICTURES = tuple(_DRAWN_BY)

SAME = 0.01
"""Mean difference of two pictures' pixels, of their range: fonts may be hinted otherwise elsewhere."""


def draw(name: str, path: Path) -> Path:
    """Draw a picture anew, whatever that takes: a demo, a measurement.

    Args:
        name: one of `PICTURES`.
        path: where to.
    """
    command, picture = _DRAWN_BY[name]
    with tempfile.TemporaryDirectory(prefix="jointbench-picture-") as folder:
        module, *arguments = command.format(folder=folder).split()
        subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return Path(shutil.copyfile(Path(folder) / picture, path))


def picture_difference(one: Path, other: Path) -> float:
    """Return the mean difference of two pictures' pixels, of their range: 1 where their sizes differ."""
    a, b = imread(one), imread(other)
    return 1.0 if a.shape != b.shape else float(np.mean(np.abs(a - b)))
