"""`./run docs`: build the documentation's site, every warning an error; --pictures draws its pictures anew first."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tools.docs.pictures import PICTURES, draw

ROOT = Path(__file__).resolve().parents[2]


def parser() -> argparse.ArgumentParser:
    """What `./run docs` takes."""
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
    """Whether nothing but a site is lost with what a folder holds."""
    if not out.exists():
        return True
    return out.is_dir() and (not any(out.iterdir()) or (out / "sitemap.xml").is_file())


def build(out: Path) -> int:
    """Build the site into a folder, which is emptied first; return 0, or mkdocs' exit code."""
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(out.resolve())]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # the theme's own words about its successor
    return subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode
