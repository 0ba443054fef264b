"""`./run docs`: build the documentation's site, every warning an error; --pictures draws its pictures anew first."""

from __future__ import annotations

import argparse
import os
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
    "filters.png": ("tools.bench.filter_picture {folder}/filters.png", "filters.png"),
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


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run docs`."""
    options = argparse.ArgumentParser(prog="./run docs", description=__doc__)
    options.add_argument(
        "--out",
        type=Path,
        default=ROOT / ".cache" / "site",
        metavar="DIR",
        help="new, empty, or an earlier site, which is emptied first (.cache/site)",
    )
    options.add_argument(
        "--pictures",
        nargs="*",
        choices=PICTURES,
        metavar="NAME",
        help=f"draw these anew, or all: {', '.join(PICTURES)}",
    )
    return options


def main(arguments: list[str] | None = None) -> int:
    """Build the site; 0, 2 where its folder is another's, or what mkdocs says."""
    options = parser().parse_args(arguments)
    if not may_be_emptied(options.out):
        print(f"error: {options.out} holds files and is no site; give a new or empty folder", file=sys.stderr)
        return 2
    if options.pictures is not None:
        for name in options.pictures or PICTURES:
            print(f"drawing docs/{name}", flush=True)
            draw(name, ROOT / "docs" / name)
    code = build(options.out)
    if code == 0:
        print(f"site: {options.out / 'index.html'}")
    return code


def may_be_emptied(out: Path) -> bool:
    """True if a folder holds nothing but a site."""
    if not out.exists():
        return True
    return out.is_dir() and (not any(out.iterdir()) or (out / "sitemap.xml").is_file())


def build(out: Path) -> int:
    """Build the site into a folder, which is emptied first; return 0, or mkdocs' exit code."""
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(out.resolve())]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # the theme's own words about its successor
    return subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
