"""The firmware as a package for `mip`, MicroPython's installer: firmware/package.json.

`python -m tools.firmware_packages` compares it with the files that are there; with --write it writes it anew.
"""

import json
import sys
from pathlib import Path

from jointbench.bench.flash import build_image

ROOT = Path(__file__).resolve().parents[1]
WRITE = "--write"
_COMMAND = f"`python -m tools.firmware_packages {WRITE}`"
EMULATED = ("mps2.py", "unix.py")  # boards, of which no chip has any use
PACKAGE = Path("firmware/package.json")


def package(firmware: Path) -> str:
    """Return the package's text: where each file goes on the board, and where it is taken from.

    Args:
        firmware: folder of the firmware's sources.
    """
    folders = {"boards": "boards", "drivers": "boards/drivers", "jointboard": "jointboard"}
    urls = [
        [f"{target}/{path.name}", f"{source}/{path.name}"]
        for target, source in folders.items()
        for path in sorted((firmware / source).iterdir())
        if path.suffix in (".py", ".bin") and path.name not in EMULATED
    ]
    version = build_image("unix", firmware=firmware).firmware
    pairs = ",\n".join(f"  {json.dumps(pair)}" for pair in urls)
    return f'{{"version": "{version}", "deps": [], "urls": [\n{pairs}\n]}}\n'


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Return 0 when package and files agree, 1 when they differ, 2 for wrong use."""
    if arguments not in ([], [WRITE]):
        print(__doc__, file=sys.stderr)
        return 2
    path, text = root / PACKAGE, package(root / "firmware")
    if arguments == [WRITE]:
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        print(f"{PACKAGE} does not list the files that are there: {_COMMAND}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
