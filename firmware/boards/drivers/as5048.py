"""AS5048A magnetic encoder on SPI: 14 bits a turn, frames as an AS5047P's, 10 MHz at most.

It tells of its magnet by bits of DIAG + AGC at 0x3FFD, and has no correction for the time that it takes, 100 us: at
1000 rpm the angle lags by 0.6 degrees. Select stays high for 350 ns between two frames, which an interpreter takes
anyway. Source: ams AS5048A/AS5048B data sheet, "SPI Interface" and the register table. MISO needs a pull-up: a cut line
then reads as an error, not as angle 0.
"""

from drivers.as5047p import BAUD, FASTEST_BAUD, PHASE, POLARITY, As5047p

__all__ = ("BAUD", "FASTEST_BAUD", "PHASE", "POLARITY", "As5048")


class As5048(As5047p):
    """The absolute angle as counts 0 … COUNTS - 1; arguments and errors are those of an As5047p."""

    NAME = "AS5048"
    DIAGNOSTICS = b"\x7f\xfd"  # 0x3FFD
    FLAGS = (
        (0x100, True, "not ready (no sensor on the line?)"),  # OCF: offset compensation has finished
        (0x200, False, "angle overflow"),  # COF
        (0x400, False, "magnet too strong or too near"),  # COMP low
        (0x800, False, "magnet too weak, too far or missing"),  # COMP high
    )
