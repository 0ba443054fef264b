"""The sampled channels: which integers a DATA block packs for each tick, in the order of their bits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Channel:
    """One integer of a sample: `bit` in the channel mask, struct code `format`, SI unit after scaling.

    How a raw value becomes SI is said by the board's registers (registers.py); the host scales once, on reading.
    """

    bit: int
    name: str
    format: str
    unit: str
    doc: str


CHANNELS: tuple[Channel, ...] = (
    Channel(0, "motor_current", "h", "A", "decimated and filtered ADC counts, centred"),
    Channel(1, "motor_position", "i", "rad", "unwrapped motor encoder counts from the joint's zero"),
    Channel(2, "link_position", "i", "rad", "link encoder counts from the joint's zero"),
    Channel(3, "joint_torque", "h", "N·m", "decimated ADC counts of the link-side torque sensor, centred"),
    Channel(4, "current_command", "h", "A", "current asked of the drive, in mA"),
)

ALL_CHANNELS = sum(1 << channel.bit for channel in CHANNELS)
