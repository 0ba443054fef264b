"""What an emulated board and the bench say to each other over two pipes: one message in, one message out per tick."""

import numpy as np

from hil_tests.virtual_bench.plant import OVERSAMPLES

# Bench to board, little-endian; `received` bytes from the serial line follow. Times are the board's own [µs, modulo
# 2^32]; sensors give raw counts, which the board's facts scale.
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
        ("received", "<i4"),
        ("now_us", "<i4"),  # when the received bytes are served
    ]
)
# Board to bench: four i32; `sent` bytes for the serial line follow.
TICK_OUT_SIZE = 16  # tick, enable, current command [mA], sent
MAX_SERIAL = 512  # bytes a tick and direction: what a USB-CDC or fast UART carries in a millisecond
# A board introduces itself once with the layout it speaks: 'JB', version 3.
MAGIC = 0x4A420003
GREETING = (MAGIC, TICK_IN.itemsize, 0, 0)
