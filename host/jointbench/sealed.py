"""JSON files that show when they were edited: their last entry is a digest of all the text before it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

_SEAL = re.compile(r',\n "(?P<name>[^"\n]*)": "(?P<digest>[^"\n]*)"\n}\s*\Z')
_LENGTH = 16  # hexadecimal digits of the digest of one entry


def sealed_json(values: Mapping[str, Any]) -> str:
    """Return values as JSON with the digest of each, and of the whole text in the last line.

    Args:
        values: plain data, with names other than "digests" and "digest".
    """
    digests = {name: _digest(value) for name, value in values.items()}
    text = json.dumps({**values, "digests": digests}, indent=1, ensure_ascii=False)
    body = text.removesuffix("\n}")
    return f'{body},\n "digest": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def is_sealed(text: str) -> bool:
    """Whether a text ends as `sealed_json` ends one, changed or not."""
    seal = _SEAL.search(text)
    return seal is not None and ("digest" in seal["name"] or len(seal["digest"]) == hashlib.sha256().digest_size * 2)


def what_changed(text: str, values: Mapping[str, Any]) -> str:
    """Say what of a sealed text was changed after it was written, "" where nothing was.

    Args:
        text: of the file.
        values: that it holds.
    """
    seal = _SEAL.search(text)
    body = text[: seal.start()] if seal else text
    if seal and (seal["name"], seal["digest"]) == ("digest", hashlib.sha256(body.encode()).hexdigest()):
        return ""
    digests = values.get("digests")
    known: dict[str, Any] = digests if isinstance(digests, dict) else {}
    names = dict.fromkeys([*known, *(name for name in values if name not in ("digests", "digest"))])
    changed = [name for name in names if name not in values or known.get(name) != _digest(values[name])]
    which = f"in {', '.join(changed)}" if changed else "in its text, though in none of its values"
    return f"was changed after it was written, {which}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:_LENGTH]
