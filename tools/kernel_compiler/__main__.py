"""Write the firmware's Thumb kernels, or check that they are what their sources say."""

from __future__ import annotations

import argparse
import sys

from tools.kernel_compiler.errors import NotAKernel
from tools.kernel_compiler.firmware_files import FILES


def main(arguments: list[str] | None = None) -> int:
    """Return 0, 1 when a checked file is stale, 2 when a source is no kernel."""
    options = argparse.ArgumentParser(prog="python -m tools.kernel_compiler", description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing, and fail when a file is stale")
    check = options.parse_args(arguments).check
    stale = 0
    for each in FILES:
        try:
            if not each.is_stale():
                continue
            stale += 1
            if check:
                print(f"{each.path.name} is stale: type python -m tools.kernel_compiler")
            else:
                each.path.write_text(each.text(), encoding="utf-8")
                print(f"{each.path.name} written")
        except NotAKernel as error:
            print(f"{each.source}.py: {error}", file=sys.stderr)
            return 2
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
