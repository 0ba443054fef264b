"""Joint board on an STM32 (Pyboard, Nucleo and the like, with pyb); MicroPython 1.25 or newer.

Motor encoder by a timer's encoder mode, ADC paced by a timer, drive by PWM, DAC, UART or CAN. Wiring and an example of
config.json: docs/boards.md. Not yet run on hardware.
"""

import machine
import pyb
from machine import UART, WDT
from pyb import Pin, Timer

from drivers.absolute_encoder import MOTOR_KINDS, absolute_encoder
from drivers.analog import check_window
from drivers.configuration import choice, item, whole
from drivers.errors import WiringError
from drivers.joint import Joint
from drivers.stm32_adc import SAMPLES, TimedAdc
from drivers.stm32_heartbeat import Heartbeat
from drivers.uart_line import BUFFER, UartLine

IDR, BSRR = 0x10, 0x18  # registers of a GPIO port, alike in all STM32 that MicroPython knows but the F1
CAUSES = {
    machine.PWRON_RESET: 1,
    machine.HARD_RESET: 2,
    machine.WDT_RESET: 3,
    machine.DEEPSLEEP_RESET: 4,
    machine.SOFT_RESET: 5,
}


class Board(Joint):
    """The chip as a joint's Hal (boards/__init__.py says what each part means)."""

    kind = "stm32"
    longest_watchdog_ms = 26000  # of an IWDG with the slowest clock of the family

    def __init__(self):
        super().__init__(Pin, WDT)  # ENABLE low
        config = self.config
        self.uid = machine.unique_id()[:12]
        self.reset_cause = CAUSES.get(machine.reset_cause(), 0)
        self.clock_Hz = pyb.freq()[0]
        sync = config["pins"].get("sync")
        sync_pin = None if sync is None else Pin(sync, Pin.IN, Pin.PULL_DOWN)
        if "foot" in config:
            self.begin_at_a_foot(self._make_line(), registers, sync_pin, hard=True)
            return
        rate = whole(config, "analog_rate_Hz", 50000, 200000, 80000)
        self._adc = TimedAdc(item(config, "analog"), rate, whole(config, "analog_timer", 1, 17, 6))
        self.adc = (rate, 12, 3300)
        motor_encoder = self._make_motor_encoder()
        line = self._make_line()
        self.add_sensors(registers)
        self.watch_pins()
        if "heartbeat" in config:
            self._enable = self._make_heartbeat(motor_encoder)
        self.lead_us = self.time_measuring()
        self.facts["adc.window"] = SAMPLES * 1000000 // rate
        self.begin(line, motor_encoder, absolute_encoder(config, "link_encoder"), sync_pin, hard=True)
        self.complete(self._make_drive)

    def _make_line(self):
        config = self.config
        if config["line"].get("de") is not None:
            raise WiringError("config.json: line.de: only the RP2 boards can let go of an RS-485 line in time")
        baud = whole(config, "line.baud", 57600, 3000000, 921600)
        uart = UART(item(config, "line", "uart"), baudrate=baud, rxbuf=BUFFER, timeout=0)
        return UartLine(uart, baud, self.period_us, False, whole(config, "line.patience_us", 50, 600, 300))

    def _make_motor_encoder(self):
        config = self.config
        if choice(config, "motor_encoder.kind", MOTOR_KINDS) != "quadrature":
            from drivers.turns import Turns

            self.encoder_source = 3  # software
            return Turns(absolute_encoder(config, "motor_encoder"))
        self.encoder_source = 1  # timer
        timer = Timer(whole(config, "motor_encoder.timer", 1, 8), prescaler=0, period=0xFFFF)
        for channel, name in ((1, "a"), (2, "b")):
            timer.channel(channel, Timer.ENC_AB, pin=Pin(item(config, "motor_encoder", name)))
        counter = TimerCounter(timer)
        if "index" in config["motor_encoder"]:
            from drivers.index_pulse import IndexPulse

            pin = Pin(item(config, "motor_encoder", "index"), Pin.IN, Pin.PULL_UP)
            counter.watch_index(pin, IndexPulse(config, self.facts.get("encoder.motor_counts", 4096)))
        return counter

    def _make_heartbeat(self, motor_encoder):
        config = self.config
        if config.get("charge_pump"):
            raise WiringError("config.json: charge_pump and heartbeat: ENABLE can be one of them")
        number, channel = whole(config, "heartbeat.timer", 2, 5), whole(config, "heartbeat.channel", 1, 4)
        others = [config.get("analog_timer", 6), config["drive"].get("timer")]
        if isinstance(motor_encoder, TimerCounter):
            others.append(config["motor_encoder"]["timer"])
        if number in others:
            raise WiringError("config.json: heartbeat.timer is %d, which ADC, encoder or drive has already" % number)
        function = whole(config, "heartbeat.function", 0, 15)
        return Heartbeat(config["pins"]["enable"], number, channel, function, self.period_us)

    def _make_drive(self, zero):
        config = self.config
        kind = choice(config, "drive.kind", ("pwm_direction", "half_bridges", "analog", "uart", "can"))
        if "break" in config["drive"] and kind != "half_bridges":
            raise WiringError("config.json: drive.break is of half_bridges, drive.kind is %s" % kind)
        if kind == "uart":
            from drivers.uart_drive import UartDrive

            baud = whole(config, "drive.baud", 57600, 3000000, 460800)
            return UartDrive(UART(item(config, "drive", "uart"), baudrate=baud))
        if kind == "can":
            from drivers.stm32_can_drive import CanDrive

            can = pyb.CAN(whole(config, "drive.can", 1, 3, 1), pyb.CAN.NORMAL)
            can.init(pyb.CAN.NORMAL, baudrate=1000000, auto_restart=True)
            return CanDrive(can, self.node)
        if kind == "analog":
            from drivers.analog_current import AnalogCurrent

            dac = pyb.DAC(whole(config, "drive.dac", 1, 2, 1), bits=12)
            return AnalogCurrent(dac.write, 4095, item(config, "drive", "full_current_mA"))
        from drivers.current_loop import CurrentLoop

        loop = CurrentLoop(config, self.inputs, self.period_us, self.facts.get("current.scale", 305176), zero)
        frequency = whole(config, "drive.frequency_Hz", 5000, 100000, 20000)
        check_window(frequency, SAMPLES, self.adc[0])
        timer = whole(config, "drive.timer", 1, 17)
        if kind == "half_bridges":
            from drivers.stm32_half_bridges import HalfBridges

            high, low = item(config, "drive", "high"), item(config, "drive", "low")
            dead_ns = whole(config, "drive.dead_time_ns", 50, 5000)
            bridges = HalfBridges(timer, high, low, whole(config, "drive.function", 0, 15, 1), frequency, dead_ns, loop)
            if "break" in config["drive"]:
                self._break_by(bridges, choice(config, "drive.break", ("stop", "fault")))
            return bridges
        from drivers.pwm_direction import PwmDirection

        channel = Timer(timer, freq=frequency).channel(
            whole(config, "drive.channel", 1, 4), Timer.PWM, pin=Pin(item(config, "drive", "pwm")), pulse_width=0
        )
        return PwmDirection(
            TimerPwm(channel, Timer(timer).period()), Pin(item(config, "drive", "direction"), Pin.OUT, value=0), loop
        )

    def _break_by(self, bridges, name):
        """The pin stop or fault is the timer's break input, too."""
        function = whole(self.config, "drive.break_function", 0, 15)
        pull = Pin.PULL_UP if name == "fault" else Pin.PULL_DOWN
        bridges.break_at(item(self.config, "pins", name), function, pull, 2 if name == "fault" else 1)
        if self.safety:
            self.safety.latched = bridges.read_break


class TimerCounter:
    """A timer in encoder mode as the Hal's 16-bit count."""

    _pulse = None

    def __init__(self, timer):
        self._timer = timer

    def read(self):
        if self._pulse and self._pulse.is_off():
            self._pulse.complain()
        return self._timer.counter() & 0xFFFF

    def watch_index(self, pin, pulse):
        """Have each index pulse judged (index_pulse.py), us after it: below 100 000 counts a second no count."""
        self._pulse = pulse
        pin.irq(self._judge, pin.IRQ_RISING, hard=True)

    def _judge(self, _pin):
        if self._pulse:
            self._pulse.judge(self._timer.counter() & 0xFFFF)


class TimerPwm:
    """A timer's channel with the method of machine.PWM that drives use."""

    def __init__(self, channel, period):
        self._channel = channel
        self._scale = period + 1

    def duty_u16(self, duty):
        # 14 bits of duty: the product fits a small int.
        self._channel.pulse_width((duty >> 2) * self._scale >> 14 if duty < 65535 else self._scale)


def registers(pin, _name):
    """Addresses and bits that set, clear and read a pin: BSRR twice, IDR."""
    bit = 1 << pin.pin()
    return pin.gpio() + BSRR, bit, pin.gpio() + BSRR, bit << 16, pin.gpio() + IDR, bit
