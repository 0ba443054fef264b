"""Joint board on an RP2040 or RP2350 (Raspberry Pi Pico, Pico 2 and the like); MicroPython 1.25 or newer.

ADC by DMA, motor encoder by PIO with edge times, drive by PWM: the processor only reads what they left in memory, about
0.1 ms a tick. Wiring and an example of config.json: docs/boards.md. Not yet run on hardware.
"""

import machine
from machine import PWM, UART, WDT, Pin

from drivers import rp2_chip
from drivers.absolute_encoder import absolute_encoder
from drivers.configuration import choice, item, whole
from drivers.joint import Joint
from drivers.rp2_adc import RoundRobinAdc

WATCHDOG_ON = 1 << 30
CAUSES = {machine.PWRON_RESET: 1, machine.WDT_RESET: 3}


class Board(Joint):
    """The chip as a joint's Hal (boards/__init__.py says what each part means)."""

    kind = "rp2"
    longest_watchdog_ms = 8388

    def __init__(self):
        super().__init__(Pin, WDT)  # ENABLE low
        config = self.config
        self.uid = machine.unique_id()[:12]
        self.reset_cause = CAUSES.get(machine.reset_cause(), 0)
        self.clock_Hz = machine.freq()
        self._adc = RoundRobinAdc(item(config, "analog"), self.period_us)
        self.adc = (self._adc.rate_Hz, 12, 3300)
        motor_encoder = self._make_motor_encoder()
        line = self._make_line()
        sync = config["pins"].get("sync")
        sync_pin = None if sync is None else Pin(sync, Pin.IN, Pin.PULL_DOWN)
        self.begin(line, motor_encoder, absolute_encoder(config, "link_encoder"), sync_pin, hard=True)
        self.complete(self._make_drive)

    def measure(self, inputs):
        self._adc.measure(inputs)

    def calm(self, dog_class):
        machine.mem32[rp2_chip.WATCHDOG + rp2_chip.CLEAR] = WATCHDOG_ON

    def _make_motor_encoder(self):
        config = self.config
        if choice(config, "motor_encoder.kind", ("quadrature", "as5047p", "as5600")) != "quadrature":
            from drivers.turns import Turns

            self.encoder_source = 3  # software
            return Turns(absolute_encoder(config, "motor_encoder"))
        from drivers.rp2_quadrature import Quadrature

        self.encoder_source = 2  # PIO
        pio = whole(config, "motor_encoder.pio", 0, 2, 0)
        encoder = Quadrature(item(config, "motor_encoder", "a"), pio, self.inputs)
        self.facts["encoder.capture_clock"] = encoder.clock_Hz
        return encoder

    def _make_line(self):
        if choice(self.config, "line.kind", ("uart", "usb")) == "usb":
            from drivers.usb_line import UsbLine

            return UsbLine()
        from drivers.uart_line import BUFFER, UartLine

        baud = whole(self.config, "line.baud", 57600, 3000000, 921600)
        return UartLine(self._make_uart("line", baud, BUFFER), baud, self.period_us)

    def _make_uart(self, name, baud, buffer):
        tx, rx = (Pin(item(self.config, name, pin)) for pin in ("tx", "rx"))
        return UART(item(self.config, name, "uart"), baudrate=baud, tx=tx, rx=rx, txbuf=buffer, rxbuf=buffer)

    def _make_drive(self, zero):
        config = self.config
        kind = choice(config, "drive.kind", ("pwm_direction", "half_bridges", "analog", "uart"))
        frequency = whole(config, "drive.frequency_Hz", 5000, 100000, 20000)
        if kind == "uart":
            from drivers.uart_drive import UartDrive

            return UartDrive(self._make_uart("drive", whole(config, "drive.baud", 57600, 3000000, 460800), 256))
        if kind == "analog":
            from drivers.analog_current import AnalogCurrent

            pwm = PWM(Pin(item(config, "drive", "pwm")), freq=frequency, duty_u16=32768)
            return AnalogCurrent(pwm.duty_u16, 65535, item(config, "drive", "full_current_mA"))
        from drivers.current_loop import CurrentLoop

        scale = self.facts.get("current.scale", 305176)
        loop = CurrentLoop(config, self.inputs, self.period_us, scale, zero)
        if kind == "half_bridges":
            from drivers.rp2_half_bridges import HalfBridges

            dead_ns = whole(config, "drive.dead_time_ns", 50, 5000)
            return HalfBridges(item(config, "drive", "high"), frequency, dead_ns, loop)
        from drivers.pwm_direction import PwmDirection

        pwm = PWM(Pin(item(config, "drive", "pwm")), freq=frequency, duty_u16=0)
        return PwmDirection(pwm, Pin(item(config, "drive", "direction"), Pin.OUT, value=0), loop)
