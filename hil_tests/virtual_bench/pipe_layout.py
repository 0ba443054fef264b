"""What an emulated board and the bench say to each other over two pipes: one message in, one message out per tick."""

from typing import NamedTuple

import numpy as np

from hil_tests.virtual_bench.plant import OVERSAMPLES

# Bench to board, little-endian, once for each of the board's motors; what `received` of the first counts, bytes from
# the serial line, follows. Times are the board's own [µs, modulo 2^32]; sensors give raw counts, which the motor's
# facts scale.
TICK_IN = np.dtype(
    [
        ("tick", "<i4"),
        ("time_us", "<i4"),
        ("sync_edges", "<i4"),  # on the SYNC line since boot
        ("sync_us", "<i4"),  # time of the last one
        ("motor_count", "<i4"),
        ("link_count", "<i4"),
        ("bus_voltage", "<i4"),
        ("temperature", "<i4"),
        ("adc", "<u2", (2, OVERSAMPLES)),  # motor current, then joint torque
        ("foot_force", "<i4", 4),
        ("motor_edge", "<u4"),  # time of the motor encoder's newest edge, counts of the capture clock
        ("pins", "<i4"),  # that keep the motor off: 1 stop, 2 fault, 4 limit_low, 8 limit_high
        ("received", "<i4"),
        ("now_us", "<i4"),  # when the received bytes are served
    ]
)
# Board to bench, once for each motor: four i32; as many bytes for the serial line as `sent` of the first says follow.
TICK_OUT_SIZE = 16  # tick, enable, current command [mA], sent
MAX_SERIAL = 512  # bytes a tick and direction: what a USB-CDC or fast UART carries in a millisecond
# A board introduces itself once with the layout it speaks: 'JB', version 4.
MAGIC = 0x4A420004
FULL_DUTY = 32768
_POWERS = frozenset((0, 1, 3))  # off, power, power and the brake opened


class Answer(NamedTuple):
    """What a board says to a tick: of each motor its power and the current it asks for [mA], and bytes.

    Power is 1, and 2 more while its brake is told to open.

    A chip's power stage gives its motor a voltage: it asks for a part of the supply's, in units of 1 / FULL_DUTY.
    """

    enable: tuple[int, ...]
    command: tuple[int, ...]
    sent: bytes


def greeting(motors: int) -> tuple[int, int]:
    """First words of a board that speaks this layout: which it is, and bytes of a tick's inputs."""
    return MAGIC, motors * TICK_IN.itemsize


def read_outputs(words: tuple[int, ...], tick: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Enables, commands [mA] and the number of bytes sent, from what a board's motors answer to `tick`.

    Raises:
        ValueError: it answers another tick, or what cannot be; the text says what.
    """
    if len(words) == 4:  # mostly, and quicker
        told, on, asked, sent = words
        if told == tick and on in _POWERS and 0 <= sent <= MAX_SERIAL:
            return (on,), (asked,), sent
    ticks, enable, command, sent = words[::4], words[1::4], words[2::4], words[3]
    if {tick} != set(ticks) or not _POWERS.issuperset(enable) or not 0 <= sent <= MAX_SERIAL:
        said = "; ".join(f"tick {t}, enable {e}, command {c}" for t, e, c in zip(ticks, enable, command, strict=True))
        raise ValueError(
            f"answered tick {tick} with [{said}, {sent} bytes]; enable must be 0, 1 or 3 and at most {MAX_SERIAL} "
            "bytes fit a tick"
        )
    return enable, command, sent
