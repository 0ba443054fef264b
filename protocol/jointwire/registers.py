"""The register table: every number a board lets the host read or set. All values are 32-bit signed on the wire."""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jointwire.channels import ALL_CHANNELS, HIGHEST_DIVIDER, JOINT_BOARD_CHANNELS, JOINT_CHANNELS, ChannelKind

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


def _fact(id: int, name: str, unit: str, scale: float, default: int, doc: str) -> Register:
    return Register(id, name, unit, scale, INT32_MIN, INT32_MAX, default, "ro", doc)


def _calibration(id: int, name: str, default: int, doc: str) -> Register:
    return Register(id, name, "count", 1, -(2**30), 2**30, default, "persist", doc)


def _every(id: int, kind: ChannelKind) -> Register:
    name, default = kind.name.lower(), HIGHEST_DIVIDER if kind in _SLOW else 0
    doc = f"e: {name.replace('_', ' ')} is sampled at each tick that 2^e divides"
    return Register(id, f"stream.every_{name}", "", 1, 0, HIGHEST_DIVIDER, default, "rw-disarmed", doc, "exponent")


def _section(id: int, number: int) -> tuple[Register, ...]:
    """Coefficients of a second-order section of the filter on motor current and joint torque: at first y = x."""

    def coefficient(place: int, name: str, bound: int, default: int = 0) -> Register:
        doc = f"section {number} of the filter on current and torque, Q27"
        full = f"filter.{number}.{name}"
        return Register(id + place, full, "", 2**-27, -bound, bound, default, "rw-disarmed", doc)

    numerator = (coefficient(0, "b0", 2**29, 2**27), coefficient(1, "b1", 2**29), coefficient(2, "b2", 2**29))
    return (*numerator, coefficient(3, "a1", 2**28 - 1), coefficient(4, "a2", 2**27))


_SLOW = (ChannelKind.BUS_VOLTAGE, ChannelKind.TEMPERATURE)


REGISTERS: tuple[Register, ...] = (
    _fact(0, "board.node", "", 1, 1, "this board's node number on its bus"),
    _fact(1, "board.tick_period", "s", 1e-6, 1000, "sampling and control period"),
    _fact(2, "adc.oversamples", "", 1, 16, "ADC samples summed into one decimated count"),
    _fact(3, "adc.window", "s", 1e-6, 1000, "span of those samples; it ends at the tick"),
    _fact(4, "current.scale", "A", 1e-9, 305176, "motor current of one decimated count"),
    _calibration(5, "current.zero", 0, "decimated, centred count at no current, as calibrated"),
    _fact(6, "torque.scale", "N·m", 1e-6, 1000, "joint torque of one decimated count"),
    _calibration(7, "torque.zero", 0, "decimated, centred count at no torque, as calibrated"),
    _fact(8, "encoder.motor_counts", "count/turn", 1, 4096, "motor encoder counts in a turn of the motor"),
    _fact(9, "encoder.link_counts", "count/turn", 1, 524288, "link encoder counts in a turn of the joint"),
    _calibration(10, "encoder.link_zero", 0, "link encoder count at the joint's zero, as calibrated"),
    _fact(11, "drive.ratio", "", 1e-3, 101000, "motor turns for one turn of the joint"),
    _fact(12, "knots.ticks", "tick", 1, 32, "ticks from one trajectory knot to the next"),
    Register(
        13,
        "board.channels",
        "",
        1,
        INT32_MIN,
        INT32_MAX,
        JOINT_BOARD_CHANNELS,
        "ro",
        "bit mask of the channels it has",
        "mask",
    ),
    Register(14, "board.shared_line", "", 1, INT32_MIN, INT32_MAX, 0, "ro", "1: on a line with other boards", "flag"),
    _fact(15, "voltage.scale", "V", 1e-6, 1000, "supply of one count"),
    Register(
        16,
        "adc.cic_order",
        "",
        1,
        1,
        2,
        1,
        "rw-disarmed",
        "of the decimator: 1 the sum of a tick's samples, 2 a triangle over two ticks'",
    ),
    Register(
        17,
        "velocity.source",
        "",
        1,
        0,
        1,
        0,
        "rw-disarmed",
        "0 tracking observer, 1 M/T counting (needs encoder.capture_clock)",
    ),
    Register(18, "velocity.alpha", "", 2**-8, 1, 256, 128, "rw-disarmed", "observer's gain on position, Q8"),
    Register(19, "velocity.beta", "", 2**-12, 1, 1023, 512, "rw-disarmed", "observer's gain on velocity, Q12"),
    Register(
        20,
        "servo.ki",
        "A/(count·tick)",
        1e-3 / 65536,
        0,
        32767,
        0,
        "rw-disarmed",
        "integral gain, mA per count and tick, Q16",
    ),
    _fact(21, "temperature.scale", "K", 1e-6, 10000, "temperature of one count"),
    _calibration(22, "temperature.zero", -27315, "count at 0 K"),
    _fact(23, "force.scale", "N", 1e-6, 10000, "force of one count of a foot's corners"),
    Register(24, "servo.kp", "A/count", 1e-3 / 256, 0, 32767, 0, "rw-disarmed", "position gain, mA per count, Q8"),
    Register(
        25, "servo.kd", "A/(count/tick)", 1e-3 / 16, 0, 32767, 0, "rw-disarmed", "velocity gain, mA per count/tick, Q4"
    ),
    Register(
        26,
        "servo.velocity_feedforward",
        "A/(count/tick)",
        1e-3 / 16,
        0,
        32767,
        0,
        "rw-disarmed",
        "current per planned velocity, mA per count/tick, Q4",
    ),
    _calibration(27, "force.zero_1", 0, "count at no force, front left"),
    _calibration(28, "force.zero_2", 0, "count at no force, front right"),
    _calibration(29, "force.zero_3", 0, "count at no force, rear right"),
    _calibration(30, "force.zero_4", 0, "count at no force, rear left"),
    _fact(31, "encoder.capture_clock", "Hz", 1, 0, "clock that times the motor encoder's edges; 0: none does"),
    Register(32, "limit.current", "A", 1e-3, 0, 32000, 1000, "rw-disarmed", "trip and clamp of the motor current"),
    Register(33, "limit.position_min", "count", 1, -(2**30), 2**30, -65536, "rw-disarmed", "motor counts"),
    Register(34, "limit.position_max", "count", 1, -(2**30), 2**30, 65536, "rw-disarmed", "motor counts"),
    Register(35, "limit.velocity", "count/tick", 1 / 256, 0, 2**20, 25600, "rw-disarmed", "motor counts per tick, Q8"),
    Register(36, "limit.following", "count", 1, 0, 65535, 4096, "rw-disarmed", "largest |reference - position|"),
    Register(
        37,
        "limit.link_timeout",
        "s",
        1e-3,
        50,
        2000,
        500,
        "rw-disarmed",
        "the motor is switched off this long after the last valid frame",
    ),
    _fact(38, "hard.current", "A", 1e-3, 32000, "no limit of a current may be set above it"),
    _fact(39, "hard.velocity", "count/tick", 1 / 256, 2**20, "no limit of a velocity may be set above it, Q8"),
    Register(
        40,
        "stream.channels",
        "",
        1,
        1,
        ALL_CHANNELS,
        JOINT_CHANNELS,
        "rw-disarmed",
        "bit mask of the channels in a sample; only those of board.channels",
        "mask",
    ),
    Register(41, "stream.block", "tick", 1, 1, 64, 64, "rw-disarmed", "ticks in a DATA frame, or as many as fit one"),
    Register(
        42, "stream.always", "", 1, 0, 1, 0, "rw", "1: stream in every state, 0: only while armed or running", "flag"
    ),
    *(_every(43 + kind, kind) for kind in ChannelKind),
    Register(
        51,
        "servo.friction",
        "A",
        1e-3,
        0,
        32000,
        0,
        "rw-disarmed",
        "current against friction, with the sign of the planned velocity",
    ),
    Register(
        52,
        "servo.friction_band",
        "count/tick",
        1 / 256,
        1,
        2**20,
        256,
        "rw-disarmed",
        "planned velocity from which all of servo.friction is given, Q8; below it a part in proportion",
    ),
    Register(
        53,
        "limit.continuous_current",
        "A",
        1e-3,
        0,
        32000,
        32000,
        "rw-disarmed",
        "trip of the root mean square of the motor current",
    ),
    Register(
        54,
        "limit.thermal_time",
        "s",
        1e-3,
        100,
        60000,
        10000,
        "rw-disarmed",
        "time constant of that mean, the winding's",
    ),
    Register(
        55,
        "limit.jump",
        "count/tick",
        1,
        1,
        32767,
        32767,
        "rw-disarmed",
        "largest move of the motor encoder in a tick; never more than hard.velocity",
    ),
    Register(
        56,
        "limit.stuck_current",
        "A",
        1e-3,
        1,
        32000,
        32000,
        "rw-disarmed",
        "command, or limit.current where that is less, at which the motor encoder must move",
    ),
    Register(
        57,
        "limit.stuck_time",
        "s",
        1e-3,
        10,
        2000,
        200,
        "rw-disarmed",
        "longest time at that command in which the motor encoder moves by less than two counts",
    ),
    Register(58, "limit.supply_min", "V", 1e-3, 0, 100000, 0, "rw-disarmed", "lowest supply, where it is measured"),
    Register(
        59, "limit.supply_max", "V", 1e-3, 0, 100000, 100000, "rw-disarmed", "highest supply, where it is measured"
    ),
    Register(
        60,
        "limit.temperature",
        "K",
        1e-2,
        20000,
        50000,
        37315,
        "rw-disarmed",
        "highest motor temperature, where it is measured",
    ),
    Register(61, "limit.missed_ticks", "tick", 1, 0, 1000, 20, "rw-disarmed", "most ticks missed in a row"),
    _fact(62, "hard.missed_ticks", "tick", 1, 1000, "limit.missed_ticks may not be set above it"),
    Register(
        63,
        "limit.twist",
        "count",
        1,
        0,
        2**24,
        0,
        "rw-disarmed",
        "motor counts by which motor and link encoder may disagree, 0: any; only where there is a link encoder",
    ),
    *_section(64, 1),
    *_section(69, 2),
    Register(
        74,
        "limit.deceleration",
        "count/tick²",
        1 / 256,
        1,
        2**20,
        64,
        "rw-disarmed",
        "by which HALT slows the reference down, Q8",
    ),
)

BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}
REGISTER_COUNT = 1 + max(register.id for register in REGISTERS)


def config_crc(values: Mapping[str, int], trajectory: int = 0) -> int:
    """CRC-32 of raw register values by name, as ARM carries it: int32 by id, 0 where no register is.

    Args:
        values: raw, of every register.
        trajectory: `trajectory_crc` of what is loaded, from which the CRC goes on; 0 where nothing is.
    """
    table = [0] * REGISTER_COUNT
    for register in REGISTERS:
        table[register.id] = values[register.name]
    return zlib.crc32(struct.pack(f"<{REGISTER_COUNT}i", *table), trajectory)


def trajectory_crc(count: int, repeats: int, crc32: int) -> int:
    """CRC-32 of what a LOAD said: which trajectory, and how often."""
    return zlib.crc32(struct.pack("<HHI", count, repeats, crc32))
