"""`python -m tools.docs.block PAGE LANGUAGE [N]`: print a block of a language, the first or Nth."""

import sys
from pathlib import Path

from tools.docs.commands import blocks_of


def main(page: str, language: str, which: str = "1") -> int:
    """Print the block; exit code 1 when the page has no such one."""
    blocks = [block for block in blocks_of(Path(page)) if block.language == language]
    if not 1 <= int(which) <= len(blocks):
        print(f"{page} has {len(blocks)} blocks of {language!r}, and no number {which}", file=sys.stderr)
        return 1
    print(blocks[int(which) - 1].text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
