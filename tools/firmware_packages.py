"""The firmware as packages for `mip`, MicroPython's installer: firmware/package.json, and thumb.json for some boards.

`python -m tools.firmware_packages` compares them with the files that are there; with --write it writes them anew.
"""

import json
import sys
from pathlib import Path

from jointbench.flash.image import build_image

ROOT = Path(__file__).resolve().parents[1]
WRITE = "--write"
_COMMAND = f"`python -m tools.firmware_packages {WRITE}`"
_INLINE_ASSEMBLER = "_thumb.py"


def packages(firmware: Path) -> dict[str, str]:
    """Return the text of each package by its file's name: where files go on the board, and where they are taken from.

    Boards whose core has no Thumb-2 cannot compile the inline assembler, so it is a package of its own.

    Args:
        firmware: folder of the firmware's sources.
    """
    folders = {"boards": "boards", "drivers": "boards/drivers", "jointboard": "jointboard"}
    urls = [
        [f"{target}/{path.name}", f"{source}/{path.name}"]
        for target, source in folders.items()
        for path in sorted((firmware / source).iterdir())
        if path.suffix in (".py", ".bin")
    ]
    assembler = [pair for pair in urls if pair[0].endswith(_INLINE_ASSEMBLER)]
    version = build_image("unix", firmware=firmware).firmware
    return {
        "package.json": _package([pair for pair in urls if pair not in assembler], version),
        "thumb.json": _package(assembler, version),
    }


def _package(urls: list[list[str]], version: str) -> str:
    pairs = ",\n".join(f"  {json.dumps(pair)}" for pair in urls)
    return f'{{"version": "{version}", "deps": [], "urls": [\n{pairs}\n]}}\n'


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Return 0 when packages and files agree, 1 when they differ, 2 for wrong use."""
    if arguments not in ([], [WRITE]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = 0
    for name, text in packages(root / "firmware").items():
        path = root / "firmware" / name
        if arguments == [WRITE]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"firmware/{name} does not list the files that are there: {_COMMAND}", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
