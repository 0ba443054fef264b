"""Schemas by hash: fetched once, and never taken for another."""

import json
import zlib
from pathlib import Path

import pytest

from jointbench.link.board import cached_schema
from jointwire import Schema, SchemaError, own_schema


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "jointbench" / "schemas"


@pytest.fixture
def other() -> Schema:
    values = json.loads(own_schema().text)
    values["registers"].pop()
    return Schema.from_text(json.dumps(values))


def never() -> bytes:
    raise AssertionError("the board was asked")


def test_ones_own_is_known_and_kept(cache: Path) -> None:
    own = own_schema()
    assert cached_schema(own.hash, never) == own
    assert (cache / f"{own.hash:08x}.json").read_text(encoding="utf-8") == own.text


def test_another_is_fetched_once(cache: Path, other: Schema) -> None:
    assert cached_schema(other.hash, lambda: zlib.compress(other.text.encode())) == other
    assert cached_schema(other.hash, never) == other
    assert [path.name for path in cache.iterdir()] == [f"{other.hash:08x}.json"]


@pytest.mark.parametrize("damage", ["", "{}", "\udce4", "same length"])
def test_a_damaged_file_is_fetched_anew(cache: Path, other: Schema, damage: str) -> None:
    cache.mkdir(parents=True)
    path = cache / f"{other.hash:08x}.json"
    text = other.text[:-1] + "!" if damage == "same length" else damage
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert cached_schema(other.hash, lambda: zlib.compress(other.text.encode())) == other
    assert path.read_text(encoding="utf-8") == other.text


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path, other: Schema) -> None:
    cache.parent.write_text("a file where the folder would be")
    assert cached_schema(other.hash, lambda: zlib.compress(other.text.encode())) == other


@pytest.mark.parametrize(
    ("sent", "message"),
    [(b"nothing of the kind", "no compressed text"), (zlib.compress(own_schema().text.encode()), "has hash")],
)
def test_what_is_not_the_boards_schema_is_refused(other: Schema, sent: bytes, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        cached_schema(other.hash, lambda: sent)
