"""For tests, on MicroPython: a port's `machine` and `pyb` as objects that take what the board files give them.

What they are given is kept in `log`; sensors answer as at rest. They stand for no hardware: a test with them shows that
a board's parts fit together, and nothing about pins.
"""

import struct
import sys
from array import array
from uctypes import addressof

log = []
low = set()  # names of input pins that something outside holds low
main_output = array("I", [0] * 32)  # an advanced timer's registers
CR2, BDTR = 1, 17


class Module:
    pass


def module(name, **content):
    made = Module()
    for key, value in content.items():
        setattr(made, key, value)
    sys.modules[name] = made


class Pin:
    IN, OUT, ALT, PULL_UP, PULL_DOWN, IRQ_RISING = range(6)

    def __init__(self, name, mode=None, pull=None, value=None, alt=None):
        self.name = name
        if value is not None:
            self.value(value)
        if alt is not None:
            log.append((name, "alt", alt, int(pull == self.PULL_DOWN), main_output[BDTR], main_output[CR2]))

    def value(self, level=None):
        if level is None:
            return 0 if self.name in low else 1
        log.append((self.name, level))

    def irq(self, handler, trigger, **how):
        log.append(("irq", self.name))


class UART:
    IRQ_RX = 1

    def __init__(self, number, baudrate, tx=None, rx=None, txbuf=0, rxbuf=0, timeout=0):
        log.append(("uart", number, baudrate))

    def any(self):
        return 0

    def write(self, data, count=None):
        return count or len(data)

    def flush(self):
        log.append("flushed")

    def irq(self, handler, trigger):
        log.append(("uart irq", handler, trigger))


class WDT:
    def __init__(self, timeout):
        log.append(("watchdog", timeout))

    def feed(self):
        pass


class PWM:
    def __init__(self, pin, freq, duty_u16):
        self.name = pin.name
        log.append((pin.name, freq, duty_u16))

    def duty_u16(self, duty):
        log.append((self.name, duty))


class SPI:
    """An AS5047P at angle 1234, ready."""

    def __init__(self, number, baudrate, polarity, phase, sck=None, mosi=None, miso=None):
        self.next = 0
        log.append(("spi", number, baudrate, polarity, phase))

    def write_readinto(self, request, into):
        into[0], into[1] = self.next >> 8, self.next & 255
        answer = {0xFFFF: 1234, 0xFFFC: 0x180}.get(request[0] << 8 | request[1], 0)
        self.next = answer | (0x8000 if bin(answer).count("1") & 1 else 0)


class I2C:
    """An AS5600 at angle 1234, with its magnet."""

    def __init__(self, number, freq, scl=None, sda=None):
        log.append(("i2c", number, freq))

    def writeto(self, address, data):
        pass

    def readfrom_into(self, address, into):
        into[0], into[1] = 1234 >> 8, 1234 & 255

    def readfrom_mem_into(self, address, register, into):
        into[0] = 0x20


class ADC:
    ATTN_11DB = 3
    reading_us = 333  # on an ESP32, at the slow end of what users measured (docs/boards.md)

    def __init__(self, pin, atten=None):
        pass

    def read_u16(self):
        clock.now += ADC.reading_us
        return 2050 << 4

    def read(self):
        return 2050

    @staticmethod
    def read_timed_multi(adcs, blocks, timer):
        for block in blocks:
            for k in range(16):
                block[k] = 2050
        return True


class Encoder:
    def __init__(self, number, a, b, phases, filter_ns):
        log.append(("encoder", phases, filter_ns))

    def value(self):
        return -3


class DAC:
    def __init__(self, where, bits=8):
        log.append(("dac", bits))

    def write(self, code):
        log.append(("dac", code))


class Timer:
    ENC_AB, PWM, CENTER, OC_FORCED_INACTIVE = range(4)

    def __init__(self, number, **settings):
        self.number = number

    def init(self, **settings):
        log.append(("timer", self.number, settings.get("deadtime")))
        if "prescaler" in settings:
            one_pulse.begin(settings["prescaler"] + 1, settings["period"])
        main_output[BDTR] = 0  # config_deadtime() of the port's timer.c: neither OSSI nor OSSR

    def source_freq(self):
        return 168000000

    def period(self):
        return 4199

    def counter(self):
        return 65533

    def channel(self, number, mode, pin=None, pulse_width=None):
        if mode == self.OC_FORCED_INACTIVE:
            one_pulse.force_low(number)
            log.append(("one pulse", self.number, number))
        if mode == self.PWM and self.number == 1:  # as the port does: idle levels of 1, main output on
            main_output[CR2] |= 0x300 << 2 * (number - 1)
            main_output[BDTR] |= 0x8000
        return Channel(self.number, number)


class Channel:
    def __init__(self, *name):
        self.name = name

    def pulse_width(self, width):
        log.append((self.name, width))


class CAN:
    NORMAL = 0

    def __init__(self, number, mode):
        pass

    def init(self, mode, baudrate, auto_restart):
        log.append(("can", baudrate))

    def send(self, data, id):
        log.append((id, bytes(data)))


class OnePulse:
    """A general-purpose timer's registers, counting by the reference manual (RM0390, 17.3.10 and OCxM): one channel."""

    CR1, CCMR1, CNT, PSC, ARR, CCR1 = 0, 6, 9, 10, 11, 13

    def __init__(self):
        self.registers = array("I", [0] * 32)
        self.channel = 1

    def begin(self, divider, period):
        self.registers[self.PSC], self.registers[self.ARR] = divider - 1, period

    def force_low(self, channel):
        """What the port's channel() does: OCxM forced inactive, the counter free."""
        self.channel = channel
        self.registers[self.CCMR1 + (channel - 1) // 2] |= 4 << self._shift()
        self.registers[self.CR1] |= 1

    def _shift(self):
        return 4 + 8 * ((self.channel - 1) % 2)

    def level(self):
        mode = self.registers[self.CCMR1 + (self.channel - 1) // 2] >> self._shift() & 7
        count, compare = self.registers[self.CNT], self.registers[self.CCR1 + self.channel - 1]
        return {4: 0, 7: int(count >= compare)}.get(mode, 0)

    def pass_us(self, us):
        """Time goes on: levels of each microsecond."""
        levels = []
        for _ in range(us):
            levels.append(self.level())
            if not self.registers[self.CR1] & 1:
                continue
            if self.registers[self.CNT] == self.registers[self.ARR]:
                self.registers[self.CNT] = 0
                if self.registers[self.CR1] & 8:  # OPM: the update event ends it
                    self.registers[self.CR1] &= 0xFFFFFFFE
            else:
                self.registers[self.CNT] += 1
        return levels


class Clock:
    """A microsecond counter that goes on by 20 with each look at it."""

    now = 0

    def ticks_us(self):
        self.now += 20
        return self.now


clock = Clock()
module("os", dupterm=lambda stream: log.append("console"), dupterm_notify="notify")
module("time", ticks_us=lambda: clock.ticks_us(), ticks_diff=lambda a, b: a - b)
one_pulse = OnePulse()
TIMERS = {"TIM%d" % k: addressof(one_pulse.registers) for k in range(2, 6)}
module("stm", **TIMERS, TIM1=addressof(main_output), TIM8=addressof(main_output), TIM_BDTR=0x44, TIM_CR2=0x04)
causes = {"PWRON_RESET": 1, "HARD_RESET": 2, "WDT_RESET": 3, "DEEPSLEEP_RESET": 4, "SOFT_RESET": 0}
parts = {"Pin": Pin, "UART": UART, "WDT": WDT, "PWM": PWM, "SPI": SPI, "I2C": I2C, "ADC": ADC, "DAC": DAC}
facts = {"unique_id": lambda: b"abcdefgh", "reset_cause": lambda: 1, "freq": lambda: 1}
module("machine", Encoder=Encoder, **facts, **causes, **parts)
module("pyb", Pin=Pin, Timer=Timer, ADC=ADC, DAC=DAC, CAN=CAN, freq=lambda: (168000000,))


def outputs(board, enable, current_mA):
    """What the tick would have computed."""
    struct.pack_into("<3i", board.outputs, 0, 0, enable, current_mA)


def tell(event):
    """As JSON may carry it."""
    if not isinstance(event, tuple):
        return event
    return [part if isinstance(part, (int, str)) else str(part) for part in event]
