"""Drive with a PWM and a direction input (sign and magnitude), its current closed by drivers/current_loop."""

from micropython import const

FULL = const(32767)


class PwmDirection:
    """command(mA) and off().

    Args: a PWM with duty_u16(); the direction pin, 1 for positive current; a CurrentLoop.
    """

    def __init__(self, pwm, direction, loop):
        self._pwm = pwm
        self._direction = direction
        self._loop = loop
        self.off()

    def command(self, current_mA):
        duty = self._loop(current_mA)
        if duty < 0:
            self._direction.value(0)
            duty = 0 - duty
        else:
            self._direction.value(1)
        self._pwm.duty_u16(duty << 1 if duty < FULL else 65535)

    def off(self):
        self._pwm.duty_u16(0)
        self._loop.reset()
