"""Who a board is, as its HELLO_ACK and its registers say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jointwire import BY_NAME


@dataclass(frozen=True)
class Identity:
    """What a board says of itself when it is greeted.

    Attributes:
        uid: of the microcontroller, hexadecimal.
        firmware_version: "major.minor.patch".
        image_sha256: of the firmware's files, hexadecimal.
        schema_hash: of the wire it was built with.
        reset_cause: number of the port's own list.
        max_knots: how many knots of a trajectory it can hold.
    """

    uid: str
    firmware_version: str
    image_sha256: str
    schema_hash: int
    reset_cause: int
    max_knots: int

    @staticmethod
    def from_hello(body: Any) -> Identity:
        """Read a HELLO_ACK."""
        version = body.firmware_version
        return Identity(
            uid=bytes(body.uid).hex(),
            firmware_version=f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}",
            image_sha256=bytes(body.image_sha256).hex(),
            schema_hash=body.schema_hash,
            reset_cause=body.reset_cause,
            max_knots=body.max_knots,
        )


@dataclass(frozen=True)
class Facts:
    """A board's registers, raw, with the numbers derived from them that a host needs in SI."""

    registers: dict[str, int]

    def si(self, name: str) -> float:
        """Value of a register in its unit."""
        return self.registers[name] * BY_NAME[name].scale

    @property
    def tick_period(self) -> float:
        """[s]."""
        return self.si("board.tick_period")

    @property
    def ratio(self) -> float:
        """Motor turns for one turn of the joint."""
        return self.si("drive.ratio")

    @property
    def motor_counts(self) -> float:
        """Motor encoder counts in a turn of the motor."""
        return self.si("encoder.motor_counts")

    @property
    def knot_ticks(self) -> int:
        """Ticks from one knot to the next."""
        return self.registers["knots.ticks"]
