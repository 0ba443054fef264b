"""Current command as a voltage to a drive with a current loop of its own: by a DAC, or PWM through a low pass.

The middle of the range is no current. What the drive makes of the ends is `full_current_mA`.
"""

from drivers.errors import WiringError


class AnalogCurrent:
    """command(mA) and off().

    Args: write(code) of the DAC or PWM; its largest code; the current at either end of the range.
    """

    def __init__(self, write, largest, full_current_mA):
        if not 100 <= full_current_mA <= 32000:
            raise WiringError("config.json: drive.full_current_mA is %r; 100 to 32000 make sense" % full_current_mA)
        self._write = write
        self._largest = largest
        self._zero = (largest + 1) // 2
        self._full = full_current_mA
        self.off()

    def command(self, current_mA):
        # 32000 mA x 32768 codes still fit a small integer.
        code = self._zero + current_mA * self._zero // self._full
        largest = self._largest
        self._write(0 if code < 0 else largest if code > largest else code)

    def off(self):
        self._write(self._zero)
