"""External drive that takes its current command over a UART (drivers/command_frame.py).

A frame is 60 bits on the line: at 460800 baud 130 us. The STM32 port waits for them, the others buffer.
"""

from drivers.command_frame import SIZE, fill


class UartDrive:
    """command(mA) and off(). The UART's transmit buffer, where it has one, holds 64 bytes or more."""

    def __init__(self, uart):
        self._uart = uart
        self._frame = bytearray(SIZE)
        self.off()

    def command(self, current_mA):
        fill(self._frame, current_mA, 1)
        self._uart.write(self._frame)

    def off(self):
        fill(self._frame, 0, 0)
        self._uart.write(self._frame)
