"""Identity and facts of a board, from its HELLO_ACK and its registers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from jointwire import BY_NAME, CHANNEL_BY_NAME, CHANNELS, EncoderSource, Feature, ResetCause, schema_hash
from jointwire.bodies import HelloAck

FOOT_CHANNELS = tuple(channel.name for channel in CHANNELS if channel.name.startswith("foot_force_"))


@dataclass(frozen=True)
class Identity:
    """Identity that a board reports when it is greeted, whatever version of the wire it speaks.

    Attributes:
        board: kind of board, such as "unix".
        uid: of the microcontroller, hexadecimal; shorter ones end in zeros.
        firmware_version: "major.minor.patch".
        image_sha256: of the firmware's files, hexadecimal.
        wire: version of the protocol, "major.minor".
        schema_hash: of the wire it was built with.
        features: what it can do beyond sampling and streaming, names of `Feature`.
        reset_cause: why it last started, a name of `ResetCause`.
        clock_Hz: of the processor, 0 where there is none to speak of.
        adc_rate_Hz, adc_bits, adc_reference_mV: of its current sampling.
        encoder_source: what counts the motor encoder's edges, a name of `EncoderSource`.
        motor_counts, link_counts: of the encoders in a turn.
        receive_buffer, transmit_buffer: [bytes].
        max_knots: how many knots of a trajectory it can hold.
        max_block: ticks in a DATA frame at most.
        module_type, module_serial: of the module that the board is built into; "" where it is none, or says nothing.
    """

    board: str
    uid: str
    firmware_version: str
    image_sha256: str
    wire: str
    schema_hash: int
    features: tuple[str, ...]
    reset_cause: str
    clock_Hz: int
    adc_rate_Hz: int
    adc_bits: int
    adc_reference_mV: int
    encoder_source: str
    motor_counts: int
    link_counts: int
    receive_buffer: int
    transmit_buffer: int
    max_knots: int
    max_block: int
    module_type: str
    module_serial: str

    @staticmethod
    def from_hello(body: HelloAck) -> Identity:
        """Read a HELLO_ACK."""
        version = body.firmware_version
        return Identity(
            board=_text(body.board),
            uid=body.uid.hex(),
            firmware_version=f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}",
            image_sha256=body.image_sha256.hex(),
            wire=f"{body.major}.{body.minor}",
            schema_hash=body.schema_hash,
            features=tuple(str(feature.name) for feature in Feature if body.features & feature),
            reset_cause=_name(ResetCause, body.reset_cause),
            clock_Hz=body.clock_Hz,
            adc_rate_Hz=body.adc_rate_Hz,
            adc_bits=body.adc_bits,
            adc_reference_mV=body.adc_reference_mV,
            encoder_source=_name(EncoderSource, body.encoder_source),
            motor_counts=body.motor_counts,
            link_counts=body.link_counts,
            receive_buffer=body.receive_buffer,
            transmit_buffer=body.transmit_buffer,
            max_knots=body.max_knots,
            max_block=body.max_block,
            module_type=_text(body.module_type),
            module_serial=_text(body.module_serial),
        )

    @property
    def has_our_schema(self) -> bool:
        """True if it was built from this host's definition of the wire; the hash covers the version, too."""
        return self.schema_hash == schema_hash()

    @property
    def refused_image(self) -> str:
        """A sentence on an image that its loader has refused for its signature, empty where there is none."""
        if Feature.IMAGE_REFUSED.name not in self.features:
            return ""
        return (
            "its loader refused an image for its signature and runs the one before; flash it with its key (--key FILE)"
        )


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("ascii", "replace")


def _name(members: type[IntEnum], value: int) -> str:
    return members(value).name if value in list(members) else f"{value}"


@dataclass(frozen=True)
class Facts:
    """A board's registers, raw, with the numbers derived from them that a host needs in SI."""

    registers: dict[str, int]

    def si(self, name: str) -> float:
        """Value of a register in its unit."""
        return self.registers[name] * BY_NAME[name].scale

    def has(self, channel: str) -> bool:
        """Return whether the board samples this channel."""
        return bool(self.registers["board.channels"] >> CHANNEL_BY_NAME[channel].bit & 1)

    @property
    def has_motor(self) -> bool:
        """True if the board drives a motor; one that does not, such as a passive joint's, only measures."""
        return self.has("motor_current")

    @property
    def position_channel(self) -> str:
        """The channel that says where the joint is: of its motor, and without one of the encoder on the joint."""
        return "motor_position" if self.has_motor else "link_position"

    @property
    def position_counts(self) -> float:
        """Counts of that channel in a turn of the motor, and without one in a turn of the joint."""
        return self.si(f"encoder.{self.position_channel.removesuffix('_position')}_counts")

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
