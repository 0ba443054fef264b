"""How a motion stands on one foot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Support:
    """The room in a sole that a motion in single support keeps to, and how it does.

    Attributes:
        foot: that it stands on.
        margin: what is kept free of the sole, before and behind, and at either side [m].
        zmp_offset: what the real zero-moment point is beside the predicted one, forward and left [m].
        room: that the predicted point leaves inside the margin at its nearest [m]; negative outside.
        distance: of the predicted point from the sole's edge at its nearest [m].
        friction: that the ground must have: largest horizontal force over the vertical one.
        lightest: smallest vertical force over the weight.
    """

    foot: str
    margin: tuple[float, float]
    zmp_offset: tuple[float, float]
    room: float
    distance: float
    friction: float
    lightest: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain numbers, lists and strings, with units in the names."""
        return {
            "foot": self.foot,
            "margin_m": list(self.margin),
            "zmp_offset_m": list(self.zmp_offset),
            "room_m": self.room,
            "distance_m": self.distance,
            "friction": self.friction,
            "lightest": self.lightest,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Support:
        """Make it from what `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError: an entry is missing or damaged.
        """
        margin, offset = ((float(x), float(y)) for x, y in (values["margin_m"], values["zmp_offset_m"]))
        room, distance, friction, lightest = (
            float(values[key]) for key in ("room_m", "distance_m", "friction", "lightest")
        )
        return Support(str(values["foot"]), margin, offset, room, distance, friction, lightest)
