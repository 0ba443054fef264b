"""`python -m jointwire.generate` writes every file that is derived from the definition of the wire.

With `--check` it writes nothing, names the files that are not what the definition says, and exits 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jointwire.errors import WireError
from jointwire.generate.files import FILES, Generated
from jointwire.generate.spelling import COMMAND, ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the stale files, or with --check name them (exit 1)."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the checkout (default: the one this program is in)")
    options = parser.parse_args(arguments)
    return max(_bring_up_to_date(file, options.root, options.check) for file in FILES)


def _bring_up_to_date(file: Generated, root: Path, check: bool) -> int:
    """Exit status for one file."""
    try:
        if not file.is_stale(root):
            return 0
        if not check:
            file.write(root)
            return 0
        print(f"{root / file.path} is not what the wire's definition says; run: {COMMAND}", file=sys.stderr)
    except WireError as error:
        print(f"{root / file.path} cannot be made: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
