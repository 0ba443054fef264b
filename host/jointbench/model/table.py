"""Tables of TOML and elements of XML, read strictly: errors name what is wrong, and its place."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast
from xml.etree import ElementTree

from jointbench.arrays import Vector3
from jointbench.errors import FileError
from jointbench.files import number, regular_file, text_of, toml_values

NAMES = "a name is 1 to 64 letters, digits and any of _ . - (and not dots alone)"
_NAME = re.compile(r"(?!\.+$)[\w.-]{1,64}")

_MOST_BYTES = 16 << 20  # what is read takes some ten times as much memory; a humanoid's file has about 0.1 MiB


def is_name(text: str) -> bool:
    """Test that a text can name a robot, a joint or a link: it becomes a part of files' and parameters' names."""
    return _NAME.fullmatch(text) is not None


class Table:
    """One table of a robot file; `where` names it in errors, such as "arm.toml: joint 'j3'"."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        """Wrap parsed TOML; nothing is checked until it is read."""
        self._values = values
        self._allowed: list[str] = []
        self.where = where

    def has(self, key: str) -> bool:
        """Tell whether the table has this key, and count the key as allowed."""
        self._allowed.append(key)
        return key in self._values

    def fault(self, message: str) -> NoReturn:
        """Raise a FileError that names this table."""
        raise FileError(f"{self.where}: {message}")

    def text(self, key: str, default: str | None = None, allowed: tuple[str, ...] = ()) -> str:
        """Read a string, one of `allowed` where given."""
        value = self._value(key, default)
        if not isinstance(value, str):
            self.fault(f"{key} = {value!r} must be a string")
        if allowed and value not in allowed:
            self.fault(f"{key} = {value!r} must be one of {', '.join(map(repr, allowed))}")
        return value

    def name(self, key: str, default: str | None = None) -> str:
        """Read a string that names something, such as a joint."""
        value = self.text(key, default)
        if not is_name(value):
            self.fault(f"{key} = {value!r} is no name; {NAMES}")
        return value

    def line(self, key: str, default: str | None = None) -> str:
        """Read a string that is a line of words."""
        value = self.text(key, default)
        if not value.strip() or not value.isprintable():
            self.fault(f"{key} = {value!r} says nothing; write at least one letter, in one line")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            self.fault(f"{key} = {value!r} must be true or false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Read a finite number."""
        return self._number(key, self._value(key, default))

    def positive(self, key: str, default: float | None = None) -> float:
        """Read a number above zero."""
        value = self.number(key, default)
        if value <= 0.0:
            self.fault(f"{key} = {value:g} must be above 0")
        return value

    def positive_or_none(self, key: str) -> float | None:
        """Read a number above zero, or None where the key is absent."""
        return self.positive(key) if self.has(key) else None

    def magnitude(self, key: str, default: float | None = None) -> float:
        """Read a number that is not below zero."""
        value = self.number(key, default)
        if value < 0.0:
            self.fault(f"{key} = {value:g} must not be below 0")
        return value

    def magnitude_or_none(self, key: str) -> float | None:
        """Read a number that is not below zero, or None where the key is absent."""
        return self.magnitude(key) if self.has(key) else None

    def whole(self, key: str, lowest: int, highest: int | None = None, *, default: int | None = None) -> int:
        """Read a whole number from `lowest` to `highest`, where there is a highest."""
        return self.whole_of(key, self.number(key, default), lowest, highest)

    def whole_of(self, key: str, value: float, lowest: int, highest: int | None = None) -> int:
        """Check that a number read from `key` is a whole one from `lowest` to `highest`."""
        if value != int(value) or value < lowest or (highest is not None and value > highest):
            allowed = f"of at least {lowest}" if highest is None else f"from {lowest} to {highest}"
            self.fault(f"{key} = {value:g} must be a whole number {allowed}")
        return int(value)

    def version(self, known: int) -> None:
        """Refuse a file of another version of its form than the one that this release reads."""
        version = self.number("version")
        if version != known:
            self.fault(f"version = {version:g} is not known; this release reads version {known}")

    def numbers(self, key: str, length: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Read a list of exactly `length` finite numbers."""
        return self._row(key, self._value(key, default), length)

    def matrix(self, key: str, rows: int, columns: int, meaning: str) -> tuple[tuple[float, ...], ...]:
        """Read a matrix as a list of `rows` rows of `columns` numbers; `meaning` says what a row is."""
        value = self._value(key, None)
        if not isinstance(value, list) or len(cast(list[Any], value)) != rows:
            self.fault(f"{key} = {value!r} must be a list of {rows} rows: {meaning}")
        return tuple(self._row(key, row, columns) for row in cast(list[Any], value))

    def wholes(self, key: str) -> tuple[int, ...]:
        """Read a list of whole numbers that are not negative."""
        value = self._value(key, None)
        if not isinstance(value, list) or not all(type(item) is int and item >= 0 for item in cast(list[Any], value)):
            self.fault(f"{key} = {value!r} must be a list of whole numbers from 0 on")
        return tuple(cast(list[int], value))

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of strings."""
        value = self._value(key, None)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast(list[Any], value)):
            self.fault(f"{key} = {value!r} must be a list of strings")
        return tuple(cast(list[str], value))

    def table(self, key: str, where: str | None = None) -> Table:
        """Read a table inside this one."""
        value = self._value(key, None)
        if not isinstance(value, dict):
            self.fault(f"{key} = {value!r} must be a table, written [{key}] or {{ ... }}")
        return Table(cast(dict[str, Any], value), where or f"{self.where}, {key}")

    def values(self, key: str) -> dict[str, Any]:
        """Return a table as it is written, for another reader to judge."""
        self.table(key)
        return cast(dict[str, Any], self._values[key])

    def tables(self, key: str) -> tuple[Table, ...]:
        """Read a list of tables, written [[key]]; absent means none."""
        value = self._value(key, [])
        items = cast(list[Any], value) if isinstance(value, list) else []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in items):
            self.fault(f"{key} must be a list of tables, each written [[{key}]]")
        return tuple(Table(item, f"{self.where}: {key}[{index}]") for index, item in enumerate(items))

    def check_unique(self, kind: str, names: Sequence[str]) -> None:
        """Refuse a name that several things of a kind have."""
        for name in names:
            if names.count(name) > 1:
                self.fault(f"{kind} {name!r} is named {names.count(name)} times; names must differ")

    def is_list(self, key: str) -> bool:
        """Return whether an entry is a list, where a single value may stand, too."""
        return isinstance(self._values.get(key), list)

    def finish(self) -> None:
        """Refuse the keys that nothing has read: a misspelt key must not be a silent default."""
        for key in self._values:
            if key not in self._allowed:
                matches = difflib.get_close_matches(key, self._allowed, n=1)
                hint = f"did you mean {matches[0]!r}? " if matches else ""
                self.fault(f"unknown key {key!r}; {hint}allowed here: {', '.join(dict.fromkeys(self._allowed))}")

    def _value(self, key: str, default: Any) -> Any:
        if self.has(key):
            return self._values[key]
        if default is None:
            unread_keys = [name for name in self._values if name not in self._allowed]
            prefixes = [name for name in unread_keys if key.startswith(name)]
            matches = prefixes or difflib.get_close_matches(key, unread_keys, n=1, cutoff=0.8)
            self.fault(
                f"{key!r} is missing; {f'is {matches[0]!r} meant for it?' if matches else 'add it to this table'}"
            )
        return default

    def _number(self, key: str, value: Any) -> float:
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:  # a whole number may be of any length
            number = math.inf
        if not math.isfinite(number):
            self.fault(f"{key} = {value!r} must be a finite number")
        return number

    def _row(self, key: str, value: Any, length: int) -> tuple[float, ...]:
        items = tuple(cast(list[Any], value)) if isinstance(value, (list, tuple)) else ()
        if len(items) != length or not isinstance(value, (list, tuple)):
            self.fault(f"{key} = {value!r} must be a list of {length} numbers")
        return tuple(self._number(key, item) for item in items)


def read_table(path: Path, file_kind: str) -> Table:
    """Read a TOML file, "robot" or whatever else it is called in errors.

    Raises:
        FileError: it cannot be read, or is not TOML.
    """
    try:
        values = toml_values(text_of(path))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(f"{file_kind} file {path} cannot be read: {why}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"{file_kind} file {path} is not TOML: {error}") from error
    return Table(values, path.name)


class Element:
    """One element of a robot file in XML; `where` names it in errors, such as "arm.urdf: joint 'j3'"."""

    def __init__(self, element: ElementTree.Element, where: str) -> None:
        """Wrap a parsed element; nothing is checked until it is read."""
        self._element = element
        self.where = where

    @property
    def tag(self) -> str:
        """Name of the element."""
        return self._element.tag

    def fault(self, message: str) -> NoReturn:
        """Raise a FileError that names this element."""
        raise FileError(f"{self.where}: {message}")

    def children(self, tag: str) -> Iterator[Element]:
        """Elements of this name inside it; named ones are named in errors."""
        for child in self._element.findall(tag):
            name = child.get("name")
            yield Element(
                child, f"{self.where}{':' if tag in ('link', 'joint') else ','} {tag}{f' {name!r}' * bool(name)}"
            )

    def child(self, tag: str) -> Element | None:
        """The element of this name inside it, None where there is none; there may be one at most."""
        elements = list(self.children(tag))
        if len(elements) > 1:
            self.fault(f"has {len(elements)} elements <{tag}>; one at most is allowed")
        return elements[0] if elements else None

    def needed(self, tag: str) -> Element:
        """The element of this name inside it."""
        element = self.child(tag)
        if element is None:
            self.fault(f"has no element <{tag}>; add one")
        return element

    def has(self, attribute: str) -> bool:
        """Tell whether it has this attribute."""
        return attribute in self._element.attrib

    def text(self, attribute: str) -> str:
        """Read an attribute that must not be empty."""
        value = self._element.get(attribute, "").strip()
        if not value:
            self.fault(f"attribute {attribute!r} is missing or empty")
        return value

    def name(self, attribute: str = "name") -> str:
        """Read an attribute that names something, such as a joint."""
        value = self.text(attribute)
        if not is_name(value):
            self.fault(f"{attribute} = {value!r} is no name; {NAMES}")
        return value

    def number(self, attribute: str, default: float | None = None) -> float:
        """Read a finite number."""
        if default is not None and not self.has(attribute):
            return default
        return self._numbers(attribute, self.text(attribute), 1)[0]

    def positive(self, attribute: str) -> float:
        """Read a number above zero."""
        value = self.number(attribute)
        if value <= 0.0:
            self.fault(f"{attribute} = {value:g} must be above 0")
        return value

    def vector(self, attribute: str, default: Vector3) -> Vector3:
        """Read three finite numbers."""
        return cast(Vector3, self._numbers(attribute, self.text(attribute), 3)) if self.has(attribute) else default

    def _numbers(self, attribute: str, text: str, length: int) -> tuple[float, ...]:
        try:
            values = tuple(number(text_number) for text_number in text.split())
        except ValueError:
            values = ()
        if len(values) != length or not all(map(math.isfinite, values)):
            self.fault(
                f"{attribute} = {text!r} must be {'a finite number' if length == 1 else f'{length} finite numbers'}"
            )
        return values


def read_xml(path: Path) -> Element:
    """Read an XML file that anybody may have written: no document type, and so no entities but the five of XML.

    Raises:
        FileError: it cannot be read, is not XML, is longer than 16 MiB, or has a document type.
    """
    try:
        with regular_file(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise FileError(
                f"robot file {path} is longer than {_MOST_BYTES >> 20} MiB; keep meshes and the like in other files"
            )
        return Element(ElementTree.fromstring(content, ElementTree.XMLParser(target=_Builder(path.name))), path.name)
    except OSError as error:
        raise FileError(f"robot file {path} cannot be read: {error}") from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"robot file {path} is not XML: {error}") from error


class _Builder(ElementTree.TreeBuilder):
    """Tree builder that refuses a document type unread: it could define entities, or name other files."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise FileError(f"{self._where}: <!DOCTYPE {name}> is not allowed in a robot file; remove it")
