"""The current command to an external drive, once a tick, over UART or CAN.

    byte      0      1        2      3, 4                        5
    UART    0xC3   flags  sequence  current, int16 in mA, LSB first  CRC-8 of bytes 0 to 4
    CAN            flags  sequence  current, int16 in mA, LSB first  (data of a standard frame, id 0x180 + node)

flags: bit 0 drive enabled; 0 with current 0 means off. sequence counts frames modulo 256. CRC-8: polynomial 0x07, start
0, not reflected ("CRC-8/SMBUS": "123456789" gives 0xF4). The drive must go off by itself when no whole frame came for
10 ms: a cut line must stop the motor.
"""

import micropython
from micropython import const

START = const(0xC3)
SIZE = const(6)
DATA = const(1)  # the bytes a CAN frame carries begin here
DATA_SIZE = const(4)
CAN_ID = const(0x180)


@micropython.viper
def fill(_frame, current_mA: int, flags: int):
    """Write the next frame over the one before."""
    frame = ptr8(_frame)
    frame[0] = START
    frame[1] = flags
    frame[2] = frame[2] + 1
    frame[3] = current_mA
    frame[4] = current_mA >> 8
    crc = 0
    k = 0
    while k < 5:
        crc ^= frame[k]
        bit = 0
        while bit < 8:
            crc = crc << 1
            if crc & 0x100:
                crc ^= 0x107
            bit += 1
        k += 1
    frame[5] = crc
