"""The sampled channels: which integers a DATA block packs for each tick, in the order of their bits."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from construct import Array, Computed, If, Int16sl, Int32sl, Struct, Subconstruct, this

from jointwire.messages import BODIES, MessageType


class Quantity(Subconstruct):  # pyright: ignore[reportUntypedBaseClass] (construct has no types)
    """A construct of an integer, and what it says.

    Attributes:
        meaning: by name, such as unit and scale.
    """

    def __init__(self, subcon: Any, **meaning: Any) -> None:
        super().__init__(subcon)
        self.meaning = meaning


class ChannelKind(IntEnum):
    """What a channel measures; channels of one kind share a divider (register ``stream.every_<kind>``)."""

    MOTOR_CURRENT = 0
    MOTOR_ENCODER = 1
    LINK_ENCODER = 2
    TORQUE_SENSOR = 3
    COMMAND = 4
    BUS_VOLTAGE = 5
    TEMPERATURE = 6
    FOOT_FORCE = 7


@dataclass(frozen=True)
class Channel:
    """One integer of a sample: `bit` in the channel mask, struct code `format`, SI unit after scaling.

    SI value = (raw - register `zero`) * register `scale`, where they are named; the host scales once, on reading.
    """

    bit: int
    name: str
    kind: ChannelKind
    format: str
    unit: str
    doc: str
    scale: str = ""
    zero: str = ""


_K = ChannelKind

SAMPLE = Struct(
    "motor_current" / Quantity(Int16sl, kind=_K.MOTOR_CURRENT, unit="A", scale="current.scale", zero="current.zero")
    * "decimated and filtered ADC counts, centred",
    "motor_position" / Quantity(Int32sl, kind=_K.MOTOR_ENCODER, unit="rad")
    * "unwrapped motor encoder counts from the joint's zero",
    "link_position" / Quantity(Int32sl, kind=_K.LINK_ENCODER, unit="rad")
    * "link encoder counts from the joint's zero",
    "joint_torque" / Quantity(Int16sl, kind=_K.TORQUE_SENSOR, unit="N·m", scale="torque.scale", zero="torque.zero")
    * "decimated ADC counts of the torque sensor, centred",
    "current_command" / Quantity(Int16sl, kind=_K.COMMAND, unit="A") * "current asked of the drive, in mA",
    "bus_voltage" / Quantity(Int16sl, kind=_K.BUS_VOLTAGE, unit="V", scale="voltage.scale") * "supply of the drive",
    "temperature" / Quantity(Int16sl, kind=_K.TEMPERATURE, unit="K", scale="temperature.scale", zero="temperature.zero")
    * "of the motor",
    "foot_force_1" / Quantity(Int16sl, kind=_K.FOOT_FORCE, unit="N", scale="force.scale", zero="force.zero_1")
    * "front left corner",
    "foot_force_2" / Quantity(Int16sl, kind=_K.FOOT_FORCE, unit="N", scale="force.scale", zero="force.zero_2")
    * "front right corner",
    "foot_force_3" / Quantity(Int16sl, kind=_K.FOOT_FORCE, unit="N", scale="force.scale", zero="force.zero_3")
    * "rear right corner",
    "foot_force_4" / Quantity(Int16sl, kind=_K.FOOT_FORCE, unit="N", scale="force.scale", zero="force.zero_4")
    * "rear left corner",
    "motor_velocity" / Quantity(Int32sl, kind=_K.MOTOR_ENCODER, unit="rad/s")
    * "as the board estimates it, counts/tick Q8",
    "bridge_torque" / Quantity(Int16sl, kind=_K.TORQUE_SENSOR, unit="N·m", scale="torque.scale", zero="torque.zero")
    * "counts of a torque sensor's own converter, unfiltered",
    "torque_age" / Quantity(Int16sl, kind=_K.TORQUE_SENSOR, unit="tick")
    * "ticks for which bridge_torque has been held, 0: new",
    "force_age" / Quantity(Int16sl, kind=_K.FOOT_FORCE, unit="tick")
    * "ticks for which the foot's forces have been held, 0: new",
)  # fmt: skip
"""All that a board may sample at a tick, in the order of the bits of a channel mask."""

CHANNELS: tuple[Channel, ...] = tuple(
    Channel(bit, field.name, format={2: "h", 4: "i"}[field.sizeof()], doc=field.docs, **field.meaning)
    for bit, field in enumerate(SAMPLE.subcons)
)

CHANNEL_BY_NAME: dict[str, Channel] = {channel.name: channel for channel in CHANNELS}
ALL_CHANNELS = sum(1 << channel.bit for channel in CHANNELS)
JOINT_CHANNELS = 0x7F  # those a joint's board streams unless told otherwise
BRIDGE_CHANNELS = 0x3000  # in place of joint_torque where the torque sensor has a converter with a clock of its own
JOINT_BOARD_CHANNELS = 0x87F  # those it has: motor_velocity, too, which would not fit a block of 64 ticks
HIGHEST_DIVIDER = 6  # 2^6 ticks: the longest block holds one sample at least


def divider(dividers: int, kind: ChannelKind) -> int:
    """Ticks from one sample of this kind to the next, from a DATA head's `dividers`."""
    return 1 << (dividers >> 4 * kind & 0xF)


def _is_due(channel: Channel) -> Any:
    """Construct's condition that a block has a channel's value at the tick of one of its samples."""
    return lambda sample: (
        sample._.head.channels >> channel.bit & 1 and sample.tick % divider(sample._.head.dividers, channel.kind) == 0
    )


BLOCK = Struct(
    "head" / BODIES[MessageType.DATA],
    "samples"
    / Array(
        this.head.count,
        Struct(
            "tick" / Computed(lambda sample: (sample._.head.first_tick + sample._._index) & 0xFFFFFFFF),
            *(
                field.name / If(_is_due(channel), field.subcon)
                for channel, field in zip(CHANNELS, SAMPLE.subcons, strict=True)
            ),
        ),
    ),
)
"""The whole body of DATA: its head, then of each tick the channels that are in the mask and due."""
