"""Joint board on an ESP32 or ESP32-S3; MicroPython 1.26 or newer (machine.Encoder).

Encoder by the pulse counter, ADC one conversion at a time, drive by PWM (LEDC). No interrupt is hard: SYNC edges are
told some 10 us late, now and then much more. Wiring and an example of config.json: docs/boards.md. Not yet run on
hardware.
"""

import sys

import machine
from machine import ADC, PWM, UART, WDT, Encoder, Pin

from drivers.absolute_encoder import MOTOR_KINDS, absolute_encoder
from drivers.configuration import choice, item, whole
from drivers.errors import WiringError
from drivers.joint import Joint
from drivers.single_adc import SingleAdc
from drivers.uart_line import BUFFER, UartLine


class Board(Joint):
    """The chip as a joint's Hal (boards/__init__.py says what each part means)."""

    kind = "esp32"
    shortest_watchdog_ms = 1000
    longest_watchdog_ms = 3600000

    def __init__(self):
        super().__init__(Pin, WDT)  # ENABLE low
        config = self.config
        self.uid = machine.unique_id()[:12]
        cause = machine.reset_cause()  # this port's numbers are those of RESET_CAUSE_*
        self.reset_cause = cause if 1 <= cause <= 5 else 0
        self.clock_Hz = int(machine.freq())
        sync = config["pins"].get("sync")
        sync_pin = None if sync is None else Pin(sync, Pin.IN, Pin.PULL_DOWN)
        if "foot" in config:
            self.begin_at_a_foot(self._make_line(), registers, sync_pin)
            return
        adcs = {role: ADC(Pin(pin), atten=ADC.ATTN_11DB) for role, pin in item(config, "analog").items()}
        samples = config.get("analog_samples", 1)
        self._adc = SingleAdc(adcs, samples)
        self.adc = (1000000 * samples // self.period_us, 12, 3100)
        motor_encoder = self._make_motor_encoder()
        line = self._make_line()
        self.add_sensors(registers)
        self.watch_pins()
        self.lead_us = self.facts["adc.window"] = self.time_measuring()
        self.begin(line, motor_encoder, absolute_encoder(config, "link_encoder"), sync_pin)
        self.complete(self._make_drive)

    def _make_line(self):
        if self.config["line"].get("de") is not None:
            raise WiringError("config.json: line.de: only the RP2 boards can let go of an RS-485 line in time")
        baud = whole(self.config, "line.baud", 57600, 3000000, 921600)
        return UartLine(self._make_uart("line", baud, BUFFER), baud, self.period_us, wake=UART.IRQ_RX)

    def _make_motor_encoder(self):
        config = self.config
        if choice(config, "motor_encoder.kind", MOTOR_KINDS) != "quadrature":
            from drivers.turns import Turns

            self.encoder_source = 3  # software
            return Turns(absolute_encoder(config, "motor_encoder"))
        if "index" in config["motor_encoder"]:
            raise WiringError("config.json: motor_encoder.index: this port's interrupts are too slow for it")
        self.encoder_source = 1  # a counter of the chip
        a, b = (Pin(item(config, "motor_encoder", name), Pin.IN, Pin.PULL_UP) for name in ("a", "b"))
        filter_ns = whole(config, "motor_encoder.filter_ns", 0, 12000, 100)
        return PulseCounter(Encoder(0, a, b, phases=4, filter_ns=filter_ns))

    def _make_uart(self, name, baud, buffer):
        tx, rx = (Pin(item(self.config, name, pin)) for pin in ("tx", "rx"))
        return UART(item(self.config, name, "uart"), baudrate=baud, tx=tx, rx=rx, txbuf=buffer, rxbuf=buffer)

    def _make_drive(self, zero):
        config = self.config
        kind = choice(config, "drive.kind", ("pwm_direction", "analog", "uart"))  # LEDC has no dead time
        if kind == "uart":
            from drivers.uart_drive import UartDrive

            return UartDrive(self._make_uart("drive", whole(config, "drive.baud", 57600, 3000000, 460800), 256))
        if kind == "analog":
            from machine import DAC

            from drivers.analog_current import AnalogCurrent

            dac = DAC(Pin(item(config, "drive", "dac")))
            return AnalogCurrent(dac.write, 255, item(config, "drive", "full_current_mA"))
        from drivers.current_loop import CurrentLoop
        from drivers.pwm_direction import PwmDirection

        loop = CurrentLoop(config, self.inputs, self.period_us, self.facts.get("current.scale", 305176), zero)
        frequency = whole(config, "drive.frequency_Hz", 5000, 40000, 20000)
        pwm = PWM(Pin(item(config, "drive", "pwm")), freq=frequency, duty_u16=0)
        return PwmDirection(pwm, Pin(item(config, "drive", "direction"), Pin.OUT, value=0), loop)


class PulseCounter:
    """machine.Encoder, which counts without end, as the Hal's 16-bit count."""

    def __init__(self, encoder):
        self._encoder = encoder

    def read(self):
        return self._encoder.value() & 0xFFFF


def registers(_pin, number):
    """Addresses and bits that set, clear and read a pin below 32: OUT_W1TS, OUT_W1TC, IN."""
    if not 0 <= number < 32:
        raise WiringError("config.json: pin %r of an HX711; on this port it must be one of 0 to 31" % number)
    name = sys.implementation._machine
    base = 0x60004000 if "ESP32S3" in name or "ESP32C" in name else 0x3F404000 if "ESP32S2" in name else 0x3FF44000
    bit = 1 << number
    return base + 0x08, bit, base + 0x0C, bit, base + 0x3C, bit
