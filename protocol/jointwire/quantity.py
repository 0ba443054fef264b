"""An integer of the wire with its meaning: unit, scale and bounds are metadata of the construct, and change no byte."""

from typing import Any

from construct import Subconstruct


class Quantity(Subconstruct):  # pyright: ignore[reportUntypedBaseClass] (construct has no types)
    """A construct of an integer, and what it says.

    Attributes:
        meaning: by name, such as unit and scale.
    """

    def __init__(self, subcon: Any, **meaning: Any) -> None:
        super().__init__(subcon)
        self.meaning = meaning
