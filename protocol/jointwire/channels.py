"""The sampled channels: which integers a DATA block packs for each tick, in the order of their bits."""

from dataclasses import dataclass
from enum import IntEnum


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

CHANNELS: tuple[Channel, ...] = (
    Channel(0, "motor_current", _K.MOTOR_CURRENT, "h", "A", "decimated and filtered ADC counts, centred",
            "current.scale", "current.zero"),
    Channel(1, "motor_position", _K.MOTOR_ENCODER, "i", "rad", "unwrapped motor encoder counts from the joint's zero"),
    Channel(2, "link_position", _K.LINK_ENCODER, "i", "rad", "link encoder counts from the joint's zero"),
    Channel(3, "joint_torque", _K.TORQUE_SENSOR, "h", "N·m", "decimated ADC counts of the torque sensor, centred",
            "torque.scale", "torque.zero"),
    Channel(4, "current_command", _K.COMMAND, "h", "A", "current asked of the drive, in mA"),
    Channel(5, "bus_voltage", _K.BUS_VOLTAGE, "h", "V", "supply of the drive", "voltage.scale"),
    Channel(6, "temperature", _K.TEMPERATURE, "h", "K", "of the motor", "temperature.scale", "temperature.zero"),
    Channel(7, "foot_force_1", _K.FOOT_FORCE, "h", "N", "front left corner", "force.scale", "force.zero_1"),
    Channel(8, "foot_force_2", _K.FOOT_FORCE, "h", "N", "front right corner", "force.scale", "force.zero_2"),
    Channel(9, "foot_force_3", _K.FOOT_FORCE, "h", "N", "rear right corner", "force.scale", "force.zero_3"),
    Channel(10, "foot_force_4", _K.FOOT_FORCE, "h", "N", "rear left corner", "force.scale", "force.zero_4"),
    Channel(11, "motor_velocity", _K.MOTOR_ENCODER, "i", "rad/s", "as the board estimates it, counts/tick Q8"),
    Channel(12, "bridge_torque", _K.TORQUE_SENSOR, "h", "N·m", "counts of a torque sensor's own converter, unfiltered",
            "torque.scale", "torque.zero"),
    Channel(13, "torque_age", _K.TORQUE_SENSOR, "h", "tick", "ticks for which bridge_torque has been held, 0: new"),
    Channel(14, "force_age", _K.FOOT_FORCE, "h", "tick", "ticks for which the foot's forces have been held, 0: new"),
)  # fmt: skip

CHANNEL_BY_NAME: dict[str, Channel] = {channel.name: channel for channel in CHANNELS}
ALL_CHANNELS = sum(1 << channel.bit for channel in CHANNELS)
JOINT_CHANNELS = 0x7F  # those a joint's board streams unless told otherwise
BRIDGE_CHANNELS = 0x3000  # in place of joint_torque where the torque sensor has a converter with a clock of its own
JOINT_BOARD_CHANNELS = 0x87F  # those it has: motor_velocity, too, which would not fit a block of 64 ticks
HIGHEST_DIVIDER = 6  # 2^6 ticks: the longest block holds one sample at least


def divider(dividers: int, kind: ChannelKind) -> int:
    """Ticks from one sample of this kind to the next, from a DATA head's `dividers`."""
    return 1 << (dividers >> 4 * kind & 0xF)
