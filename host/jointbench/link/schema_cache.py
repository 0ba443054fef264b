"""Schemas of boards, kept by hash: each is fetched from a board once."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

from jointbench.files import write_file
from jointwire import Schema, SchemaError, own_schema


def cached_schema(schema_hash: int, fetch: Callable[[], bytes]) -> Schema:
    """The schema with this hash: this host's own, one kept before, or one fetched from a board now.

    Args:
        schema_hash: CRC-32 of its text.
        fetch: asks the board for its DICT, the text compressed by zlib.

    Raises:
        SchemaError: what was fetched is no schema, or has another hash.
    """
    own = own_schema()
    if own.hash == schema_hash:
        _keep(own)
        return own
    with contextlib.suppress(OSError, UnicodeDecodeError, SchemaError):  # not there, or damaged: fetched anew
        return _checked(_path(schema_hash).read_text(encoding="utf-8"), schema_hash)
    try:
        text = zlib.decompress(fetch()).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise SchemaError(f"the board's DICT is no compressed text ({error}); copy its firmware anew") from error
    schema = _checked(text, schema_hash)
    _keep(schema)
    return schema


def _checked(text: str, schema_hash: int) -> Schema:
    found = zlib.crc32(text.encode())
    if found != schema_hash:
        raise SchemaError(
            f"the board's DICT has hash {found:08x}, its firmware says {schema_hash:08x}; copy its firmware anew"
        )
    return Schema.from_text(text)


def _keep(schema: Schema) -> None:
    path = _path(schema.hash)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == schema.text:
            return
    with contextlib.suppress(OSError):  # without a cache it is fetched again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, schema.text)


def _path(schema_hash: int) -> Path:
    return user_cache_path("jointbench") / "schemas" / f"{schema_hash:08x}.json"
