"""The register table: every number a board lets the host read or set. All values are 32-bit signed on the wire."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from construct import Int32sl, Struct

from jointwire.channels import (
    ALL_CHANNELS,
    HIGHEST_DIVIDER,
    JOINT_BOARD_CHANNELS,
    JOINT_CHANNELS,
    ChannelKind,
    Quantity,
)
from jointwire.messages import BODIES, MessageType

Access = Literal["ro", "rw", "rw-disarmed", "persist"]
Type = Literal["number", "flag", "mask", "exponent"]
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Register:
    """One number of a board: SI value = raw * scale, raw within [minimum, maximum].

    "ro" registers are facts of the board (its wiring and sensors); "rw-disarmed" ones are refused while the motor can
    move, and so are "persist" ones, its calibration, which SAVE keeps over a reset.
    """

    id: int
    name: str
    unit: str
    scale: float
    minimum: int
    maximum: int
    default: int
    access: Access
    doc: str
    type: Type = "number"


def _fact(unit: str, scale: float, default: int, type: Type = "number") -> Quantity:
    return _setting(unit, scale, INT32_MIN, INT32_MAX, default, type, "ro")


def _calibration(default: int) -> Quantity:
    return _setting("count", 1, -(2**30), 2**30, default, access="persist")


def _setting(
    unit: str, scale: float, minimum: int, maximum: int, default: int, type: Type = "number",
    access: Access = "rw-disarmed",
) -> Quantity:  # fmt: skip
    return Quantity(
        Int32sl, unit=unit, scale=scale, minimum=minimum, maximum=maximum, default=default, access=access, type=type
    )


def _every(kind: ChannelKind) -> Any:
    name, default = kind.name.lower(), HIGHEST_DIVIDER if kind in _SLOW else 0
    doc = f"e: {name.replace('_', ' ')} is sampled at each tick that 2^e divides"
    return f"stream.every_{name}" / _setting("", 1, 0, HIGHEST_DIVIDER, default, "exponent") * doc


def _section(number: int) -> list[Any]:
    """Coefficients of a second-order section of the filter on motor current and joint torque: at first y = x."""
    bounds = {"b0": 2**29, "b1": 2**29, "b2": 2**29, "a1": 2**28 - 1, "a2": 2**27}
    doc = f"section {number} of the filter on current and torque, Q27"
    return [
        f"filter.{number}.{name}" / _setting("", 2**-27, -bound, bound, 2**27 if name == "b0" else 0) * doc
        for name, bound in bounds.items()
    ]


_SLOW = (ChannelKind.BUS_VOLTAGE, ChannelKind.TEMPERATURE)


REGISTER_FILE = Struct(
    "board.node" / _fact("", 1, 1) * "this board's node number on its bus",
    "board.tick_period" / _fact("s", 1e-6, 1000) * "sampling and control period",
    "adc.oversamples" / _fact("", 1, 16) * "ADC samples summed into one decimated count",
    "adc.window" / _fact("s", 1e-6, 1000) * "span of those samples; it ends at the tick",
    "current.scale" / _fact("A", 1e-9, 305176) * "motor current of one decimated count",
    "current.zero" / _calibration(0) * "decimated, centred count at no current, as calibrated",
    "torque.scale" / _fact("N·m", 1e-6, 1000) * "joint torque of one decimated count",
    "torque.zero" / _calibration(0) * "decimated, centred count at no torque, as calibrated",
    "encoder.motor_counts" / _fact("count/turn", 1, 4096) * "motor encoder counts in a turn of the motor",
    "encoder.link_counts" / _fact("count/turn", 1, 524288) * "link encoder counts in a turn of the joint",
    "encoder.link_zero" / _calibration(0) * "link encoder count at the joint's zero, as calibrated",
    "drive.ratio" / _fact("", 1e-3, 101000) * "motor turns for one turn of the joint",
    "knots.ticks" / _fact("tick", 1, 32) * "ticks from one trajectory knot to the next",
    "board.channels" / _fact("", 1, JOINT_BOARD_CHANNELS, "mask") * "bit mask of the channels it has",
    "board.shared_line" / _fact("", 1, 0, "flag") * "1: on a line with other boards",
    "voltage.scale" / _fact("V", 1e-6, 1000) * "supply of one count",
    "adc.cic_order" / _setting("", 1, 1, 2, 1)
    * "of the decimator: 1 the sum of a tick's samples, 2 a triangle over two ticks'",
    "velocity.source" / _setting("", 1, 0, 1, 0) * "0 tracking observer, 1 M/T counting (needs encoder.capture_clock)",
    "velocity.alpha" / _setting("", 2**-8, 1, 256, 128) * "observer's gain on position, Q8",
    "velocity.beta" / _setting("", 2**-12, 1, 1023, 512) * "observer's gain on velocity, Q12",
    "servo.ki" / _setting("A/(count·tick)", 1e-3 / 65536, 0, 32767, 0) * "integral gain, mA per count and tick, Q16",
    "temperature.scale" / _fact("K", 1e-6, 10000) * "temperature of one count",
    "temperature.zero" / _calibration(-27315) * "count at 0 K",
    "force.scale" / _fact("N", 1e-6, 10000) * "force of one count of a foot's corners",
    "servo.kp" / _setting("A/count", 1e-3 / 256, 0, 32767, 0) * "position gain, mA per count, Q8",
    "servo.kd" / _setting("A/(count/tick)", 1e-3 / 16, 0, 32767, 0) * "velocity gain, mA per count/tick, Q4",
    "servo.velocity_feedforward" / _setting("A/(count/tick)", 1e-3 / 16, 0, 32767, 0)
    * "current per planned velocity, mA per count/tick, Q4",
    "force.zero_1" / _calibration(0) * "count at no force, front left",
    "force.zero_2" / _calibration(0) * "count at no force, front right",
    "force.zero_3" / _calibration(0) * "count at no force, rear right",
    "force.zero_4" / _calibration(0) * "count at no force, rear left",
    "encoder.capture_clock" / _fact("Hz", 1, 0) * "clock that times the motor encoder's edges; 0: none does",
    "limit.current" / _setting("A", 1e-3, 0, 32000, 1000) * "trip and clamp of the motor current",
    "limit.position_min" / _setting("count", 1, -(2**30), 2**30, -65536) * "motor counts",
    "limit.position_max" / _setting("count", 1, -(2**30), 2**30, 65536) * "motor counts",
    "limit.velocity" / _setting("count/tick", 1 / 256, 0, 2**20, 25600) * "motor counts per tick, Q8",
    "limit.following" / _setting("count", 1, 0, 65535, 4096) * "largest |reference - position|",
    "limit.link_timeout" / _setting("s", 1e-3, 50, 2000, 500)
    * "the motor is switched off this long after the last valid frame",
    "hard.current" / _fact("A", 1e-3, 32000) * "no limit of a current may be set above it",
    "hard.velocity" / _fact("count/tick", 1 / 256, 2**20) * "no limit of a velocity may be set above it, Q8",
    "stream.channels" / _setting("", 1, 1, ALL_CHANNELS, JOINT_CHANNELS, "mask")
    * "bit mask of the channels in a sample; only those of board.channels",
    "stream.block" / _setting("tick", 1, 1, 64, 64) * "ticks in a DATA frame, or as many as fit one",
    "stream.always" / _setting("", 1, 0, 1, 0, "flag", access="rw")
    * "1: stream in every state, 0: only while armed or running",
    *map(_every, ChannelKind),
    "servo.friction" / _setting("A", 1e-3, 0, 32000, 0)
    * "current against friction, with the sign of the planned velocity",
    "servo.friction_band" / _setting("count/tick", 1 / 256, 1, 2**20, 256)
    * "planned velocity from which all of servo.friction is given, Q8; below it a part in proportion",
    "limit.continuous_current" / _setting("A", 1e-3, 0, 32000, 32000)
    * "trip of the root mean square of the motor current",
    "limit.thermal_time" / _setting("s", 1e-3, 100, 60000, 10000) * "time constant of that mean, the winding's",
    "limit.jump" / _setting("count/tick", 1, 1, 32767, 32767)
    * "largest move of the motor encoder in a tick; never more than hard.velocity",
    "limit.stuck_current" / _setting("A", 1e-3, 1, 32000, 32000)
    * "command, or limit.current where that is less, at which the motor encoder must move",
    "limit.stuck_time" / _setting("s", 1e-3, 10, 2000, 200)
    * "longest time at that command in which the motor encoder moves by less than two counts",
    "limit.supply_min" / _setting("V", 1e-3, 0, 100000, 0) * "lowest supply, where it is measured",
    "limit.supply_max" / _setting("V", 1e-3, 0, 100000, 100000) * "highest supply, where it is measured",
    "limit.temperature" / _setting("K", 1e-2, 20000, 50000, 37315) * "highest motor temperature, where it is measured",
    "limit.missed_ticks" / _setting("tick", 1, 0, 1000, 20) * "most ticks missed in a row",
    "hard.missed_ticks" / _fact("tick", 1, 1000) * "limit.missed_ticks may not be set above it",
    "limit.twist" / _setting("count", 1, 0, 2**24, 0)
    * "motor counts by which motor and link encoder may disagree, 0: any; only where there is a link encoder",
    *_section(1),
    *_section(2),
    "limit.deceleration" / _setting("count/tick²", 1 / 256, 1, 2**20, 64)
    * "by which HALT slows the reference down, Q8",
    "brake.engage_time" / _fact("s", 1e-3, 0)
    * "the motor holds so long until its brake has engaged; 0: it has none",
    "brake.release_time" / _fact("s", 1e-3, 0) * "no motion begins until the brake has been opened for so long",
    "limit.feedforward" / _setting("A", 1e-3, 0, 32000, 0)
    * "largest |feed-forward current| of a knot; 0: no feed-forward",
    "limit.unexpected" / _setting("A", 1e-3, 0, 32000, 0)
    * "largest current, behind a low-pass, that the servo adds to a motion's feed-forward; 0: any",
    "limit.float" / _setting("A", 1e-3, 0, 32000, 0)
    * "largest current by which a floating motor is compensated; 0: it does not float",
    "float.timeout" / _setting("s", 1e-3, 20, 2000, 100)
    * "a floating motor is brought to rest and switched off this long after the last COMPENSATE",
    "float.velocity" / _setting("count/tick", 1 / 256, 0, 2**20, 0)
    * "speed of a floating motor that the servo's damping holds it back from exceeding, Q8",
    "float.wall" / _setting("count", 1, 0, 65535, 0)
    * "distance from a limit of position at which the servo begins to push a floating motor back",
    "float.dead_band" / _setting("count/tick", 1 / 256, 0, 2**20, 256)
    * "velocity up to which the friction of a floating motor is not compensated, Q8",
    "float.hold" / _setting("count", 1, 0, 65535, 0)
    * "distance by which a floating motor may be pushed within float.dead_band before its servo yields",
    "float.inertia" / _setting("A/(count/tick)", 1e-3 / 16, 0, 32767, 0)
    * "current of a floating motor per velocity less its mean over 16 ticks, mA per count/tick, Q4",
)  # fmt: skip
"""Raw values of all registers, one after the other by their ids."""

REGISTERS: tuple[Register, ...] = tuple(
    Register(id, field.name, doc=field.docs, **field.meaning) for id, field in enumerate(REGISTER_FILE.subcons)
)
BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}
REGISTER_COUNT = len(REGISTERS)


def config_crc(values: Mapping[str, int], trajectory: int = 0) -> int:
    """CRC-32 of raw register values by name, as ARM carries it: REGISTER_FILE of them.

    Args:
        values: raw, of every register.
        trajectory: `trajectory_crc` of what is loaded, from which the CRC goes on; 0 where nothing is.
    """
    return zlib.crc32(REGISTER_FILE.build(values), trajectory)


def trajectory_crc(count: int, repeats: int, crc32: int) -> int:
    """CRC-32 of what a LOAD said: which trajectory, and how often."""
    return zlib.crc32(BODIES[MessageType.LOAD].build({"count": count, "repeats": repeats, "crc32": crc32}))
