"""Signed images: HMAC-SHA-256 of a slot's manifest, by a key that the board's loader has (docs/signing.md).

A key is written to a board and never read back: it is in no backup, report or message, and its file is not asked for.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jointbench.errors import FlashError

KEY = "image.key"
SIGNATURES = "manifest.hmac"
NEW_SIGNATURES = "manifest.new"  # until it is renamed
_DIGITS = 64
_OTHERS = 0o077  # in a file's mode
_HOW = 'make one: python -c "import secrets; print(secrets.token_hex(32))"'


@dataclass(frozen=True)
class Key:
    """What images are signed with. It shows itself nowhere."""

    _bytes: bytes = field(repr=False)

    def signature(self, manifest: bytes) -> str:
        """HMAC-SHA-256 of a manifest's bytes, hexadecimal."""
        return hmac.new(self._bytes, manifest, hashlib.sha256).hexdigest()

    def signed(self, manifest: bytes, signatures: bytes | None) -> bool:
        """Whether one of the signatures in a manifest.hmac is this key's."""
        wanted = self.signature(manifest).encode()
        return any([hmac.compare_digest(each, wanted) for each in (signatures or b"").split()])

    @property
    def file(self) -> bytes:
        """Content of the board's image.key: the key and a check, as half of one is none."""
        return (self._bytes.hex() + hashlib.sha256(self._bytes).hexdigest()[:8]).encode() + b"\n"


@dataclass(frozen=True)
class Keys:
    """The keys of a flash.

    Attributes:
        present: that the board has; None: it has none, or none is given.
        new: that the board shall have from now on; None: it keeps what it has.
    """

    present: Key | None = None
    new: Key | None = None

    @property
    def all(self) -> Sequence[Key]:
        """By each of which an image is signed: while the key changes, it is good before and after."""
        return [key for key in (self.present, self.new) if key]

    def signatures(self, manifest: bytes) -> bytes:
        """Content of a manifest.hmac."""
        return "".join(f"{key.signature(manifest)}\n" for key in self.all).encode()


NO_KEYS = Keys()


def read_key(path: Path) -> Key:
    """The key in a file of the host: 64 hexadecimal digits that nobody else may read.

    Raises:
        FlashError: the file cannot be read, holds no key, or others may read it. What it holds is not said.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text("ascii").strip()
    except OSError as error:
        raise FlashError(f"key {path} cannot be read: {error.strerror}; {_HOW}") from error
    except ValueError:
        text, mode = "", 0
    if len(text) != _DIGITS or not set(text) <= set(string.hexdigits):
        raise FlashError(f"key {path} has {len(text)} characters; it must be {_DIGITS} hexadecimal digits. {_HOW}")
    if os.name == "posix" and mode & _OTHERS:
        raise FlashError(f"key {path} can be read by others (mode {mode & 0o777:o}); chmod 600 {path}")
    return Key(bytes.fromhex(text))
