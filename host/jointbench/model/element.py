"""An XML element that is read strictly: what is missing, mistyped or forbidden is named with its place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, cast
from xml.etree import ElementTree

from jointbench.arrays import Vector3
from jointbench.errors import RobotFileError
from jointbench.foreign import number, regular_file
from jointbench.model.table import NAMES, is_name

_MOST_BYTES = 16 << 20  # what is read takes some ten times as much memory; a humanoid's file has about 0.1 MiB


class Element:
    """One element of a robot file in XML; `where` names it in errors, such as "arm.urdf: joint 'j3'"."""

    def __init__(self, element: ElementTree.Element, where: str) -> None:
        """Wrap a parsed element; nothing is checked until it is read."""
        self._element = element
        self.where = where

    @property
    def tag(self) -> str:
        """Its name."""
        return self._element.tag

    def fault(self, message: str) -> NoReturn:
        """Raise a RobotFileError that names this element."""
        raise RobotFileError(f"{self.where}: {message}")

    def children(self, tag: str) -> Iterator[Element]:
        """Elements of this name inside it; named ones are named in errors."""
        for child in self._element.findall(tag):
            name = child.get("name")
            yield Element(
                child, f"{self.where}{':' if tag in ('link', 'joint') else ','} {tag}{f' {name!r}' * bool(name)}"
            )

    def child(self, tag: str) -> Element | None:
        """The element of this name inside it, None where there is none; there may be one at most."""
        found = list(self.children(tag))
        if len(found) > 1:
            self.fault(f"has {len(found)} elements <{tag}>; one at most is allowed")
        return found[0] if found else None

    def needed(self, tag: str) -> Element:
        """The element of this name inside it."""
        found = self.child(tag)
        if found is None:
            self.fault(f"has no element <{tag}>; add one")
        return found

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
            values = tuple(number(word) for word in text.split())
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
        RobotFileError: it cannot be read, is not XML, is longer than 16 MiB, or has a document type.
    """
    try:
        with regular_file(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise RobotFileError(
                f"robot file {path} is longer than {_MOST_BYTES >> 20} MiB; keep meshes and the like in other files"
            )
        return Element(ElementTree.fromstring(content, ElementTree.XMLParser(target=_Builder(path.name))), path.name)
    except OSError as error:
        raise RobotFileError(f"robot file {path} cannot be read: {error}") from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        if isinstance(error, RobotFileError):
            raise
        raise RobotFileError(f"robot file {path} is not XML: {error}") from error


class _Builder(ElementTree.TreeBuilder):
    """Refuses a document type before anything in it is read: it could define entities, or name other files."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise RobotFileError(f"{self._where}: <!DOCTYPE {name}> is not allowed in a robot file; remove it")
