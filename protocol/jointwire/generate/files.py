"""The generated files: where each is, what belongs in it, and whether it is stale."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jointwire.generate.board_codec import board_codec
from jointwire.generate.bodies import bodies
from jointwire.generate.client import client
from jointwire.generate.reference import reference
from jointwire.generate.vectors import VECTORS, vectors
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
        """Whether the file is missing or says anything else than the definition."""
        try:
            found = (root / self.path).read_bytes()
            # Two releases of zlib may compress the same text differently.
            return (zlib.decompress(found) if self.compressed else found) != self.text().encode()
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
    Generated(Path("host/jointbench/link/client.py"), client),
    Generated(Path("firmware/jointboard/wire.py"), board_codec),
    Generated(Path("firmware/jointboard/schema.bin"), schema_text, compressed=True),
    Generated(VECTORS, vectors),
    Generated(Path("docs/wire.md"), reference),
)
