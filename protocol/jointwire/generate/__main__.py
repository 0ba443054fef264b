"""`python -m jointwire.generate` writes every file that is derived from the definition of the wire.

With `--check` it writes nothing, names the files that are not what the definition says, and exits 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jointwire.errors import SchemaError
from jointwire.generate.codecs import COMMAND, ROOT, board_codec, bodies, client
from jointwire.generate.reference import VECTORS, reference, vectors
from jointwire.schema import schema_text


@dataclass(frozen=True)
class Generated:
    """A file of the checkout that is derived from the definition.

    Attributes:
        path: from the root of the checkout.
        text: makes its text.
        compressed: whether the file holds the text compressed by zlib.
    """

    path: Path
    text: Callable[[], str]
    compressed: bool = False

    def is_stale(self, root: Path) -> bool:
        """Return whether the file is missing or says anything else than the definition."""
        try:
            content = (root / self.path).read_bytes()
            # Two releases of zlib may compress the same text differently.
            return (zlib.decompress(content) if self.compressed else content) != self.text().encode()
        except (OSError, zlib.error):
            return True

    def write(self, root: Path) -> None:
        """Write the file anew."""
        content = self.text().encode()
        path = root / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(content, 9) if self.compressed else content)


FILES = (
    Generated(Path("protocol/jointwire/bodies.py"), bodies),
    Generated(Path("host/jointbench/bench/client.py"), client),
    Generated(Path("firmware/jointboard/wire.py"), board_codec),
    Generated(Path("firmware/jointboard/schema.bin"), schema_text, compressed=True),
    Generated(VECTORS, vectors),
    Generated(Path("docs/wire.md"), reference),
)


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
    except SchemaError as error:
        print(f"{root / file.path} cannot be made: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
