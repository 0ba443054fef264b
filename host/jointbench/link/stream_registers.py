"""What a board is to stream, and how often, as its registers."""

from __future__ import annotations

from typing import cast

from jointbench.errors import BenchFileError
from jointbench.link.client import RegisterName
from jointbench.link.identity import Facts
from jointwire import BRIDGE_CHANNELS, BY_NAME, CHANNEL_BY_NAME, HIGHEST_DIVIDER, JOINT_CHANNELS, ChannelKind

SAMPLE_EVERY = tuple(1 << exponent for exponent in range(HIGHEST_DIVIDER + 1))  # ticks
_UNSTREAMED = 1 << CHANNEL_BY_NAME["motor_velocity"].bit  # with it a block of 64 ticks would not fit a frame
_SLOW = (ChannelKind.BUS_VOLTAGE, ChannelKind.TEMPERATURE)  # they change slowly, and keep their own pace


def stream_registers(facts: Facts, sample_every: int) -> dict[RegisterName, int]:
    """Raw register values for what a board streams: all that it has, in blocks as long as they may be.

    Rates that are as they shall be are left out.

    Args:
        facts: of the board.
        sample_every: ticks from one sample to the next, one of SAMPLE_EVERY.

    Raises:
        BenchFileError: no board can sample that often.
    """
    if sample_every not in SAMPLE_EVERY:
        allowed = ", ".join(map(str, SAMPLE_EVERY))
        raise BenchFileError(f"sample_every = {sample_every}: boards sample each {allowed} ticks")
    kinds = [kind for kind in ChannelKind if kind not in _SLOW]
    channels = facts.registers["board.channels"]
    raw: dict[RegisterName, int] = {
        "stream.channels": channels & (JOINT_CHANNELS | BRIDGE_CHANNELS if facts.has_motor else ~_UNSTREAMED),
        "stream.block": BY_NAME["stream.block"].maximum,
        "stream.always": 0,
    }
    exponent = sample_every.bit_length() - 1
    for kind in kinds:
        name = cast(RegisterName, f"stream.every_{kind.name.lower()}")
        if facts.registers[name] != exponent:
            raw[name] = exponent
    return raw
