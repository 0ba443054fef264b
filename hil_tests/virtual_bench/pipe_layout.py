"""What an emulated board and the bench say to each other over two pipes: one message in, one message out per tick."""

import numpy as np

from hil_tests.virtual_bench.plant import OVERSAMPLES

# Bench to board, little-endian; `received` bytes from the serial line follow.
TICK_IN = np.dtype(
    [
        ("tick", "<i4"),
        ("time_us", "<i4"),
        ("received", "<i4"),
        ("flags", "<i4"),
        ("motor_count", "<i4"),
        ("link_count", "<i4"),
        ("supply_mV", "<i4"),
        ("reserved", "<i4"),
        ("adc", "<u2", (2, OVERSAMPLES)),
    ]
)
# Board to bench: four i32; `sent` bytes for the serial line follow.
TICK_OUT_SIZE = 16  # tick, enable, current command [mA], sent
MAX_SERIAL = 512  # bytes a tick and direction: what a USB-CDC or fast UART carries in a millisecond
# A board introduces itself once with the layout it speaks: 'JB', version 1.
MAGIC = 0x4A420001
GREETING = (MAGIC, TICK_IN.itemsize, 0, 0)
