"""Kinds of links: links that are alike, each with its centre of mass on an axis of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array, Vector3
from jointbench.errors import BadLinkKind


@dataclass(frozen=True)
class LinkAxis:
    """The line on which a link's centre of mass lies, from the joint at its start to its end.

    Attributes:
        link: its name.
        start, end: in the link's frame [m].
    """

    link: str
    start: Vector3
    end: Vector3

    def __post_init__(self) -> None:
        """Refuse an axis without a direction.

        Raises:
            BadLinkKind: it starts where it ends.
        """
        if self.length == 0.0:
            raise BadLinkKind(f"the axis of link {self.link!r} starts where it ends; give two places on it")

    @cached_property
    def length(self) -> float:
        """[m]."""
        return float(np.linalg.norm(np.subtract(self.end, self.start)))

    @cached_property
    def direction(self) -> Array:
        """From start to end, of length 1, shape (3,)."""
        return np.subtract(self.end, self.start) / self.length

    def along(self, point: Vector3) -> float:
        """How far along the axis a place of the link's frame is [m], from its start."""
        return float(np.subtract(point, self.start) @ self.direction)


@dataclass(frozen=True)
class LinkKind:
    """Links of one mass, whose centres of mass are equally far along their axes, as a left and a right thigh are.

    Attributes:
        name: of the kind.
        links: their axes, at least one, of one length.
    """

    name: str
    links: tuple[LinkAxis, ...]

    def __post_init__(self) -> None:
        """Refuse what is no kind.

        Raises:
            BadLinkKind: it has no links, or their axes have different lengths.
        """
        if not self.links:
            raise BadLinkKind(f"link kind {self.name!r} has no links; name at least one")
        for axis in self.links:
            if not np.isclose(axis.length, self.length, rtol=1e-6, atol=0.0):
                raise BadLinkKind(
                    f"link kind {self.name!r}: the axis of {axis.link!r} is {1e3 * axis.length:g} mm long, that of "
                    f"{self.links[0].link!r} {1e3 * self.length:g} mm; links of one kind are alike"
                )

    @property
    def length(self) -> float:
        """Of the axes [m]."""
        return self.links[0].length
