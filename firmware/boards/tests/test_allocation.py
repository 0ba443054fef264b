"""Nothing of a tick's path allocates: a collection would come at any moment, and take milliseconds."""

from firmware.boards.tests.interpreter import ALLOCATED, run

PROGRAM = """
import sys, struct
class Module:
    pass
sys.modules["time"] = Module()
now = 0
def ticks_us():
    global now
    now += 40
    return now
sys.modules["time"].ticks_us = ticks_us
from drivers.analog_current import AnalogCurrent
from drivers.as5047p import As5047p
from drivers.as5600 import As5600
from drivers.clock import Clock
from drivers.current_loop import CurrentLoop
from drivers.pwm_direction import PwmDirection
from drivers.single_adc import SingleAdc
from drivers.turns import Turns
from drivers.uart_drive import UartDrive
from drivers.uart_line import UartLine
class Hardware:
    # One object for every pin, bus and converter: keeps nothing.
    def value(self, level):
        pass
    def duty_u16(self, duty):
        pass
    def write(self, data, count=0):
        pass
    def any(self):
        return 0
    def read_u16(self):
        return 30000
    def write_readinto(self, sent, into):
        into[0], into[1] = 0x01, 0x80
    def writeto(self, address, data):
        pass
    def readfrom_into(self, address, into):
        into[0], into[1] = 3, 9
    def readfrom_mem_into(self, address, register, into):
        into[0] = 0x20
    def nothing(self, code):
        pass
hardware = Hardware()
inputs = bytearray(116)
view = memoryview(bytearray(64))
clock = Clock(1000)
adc = SingleAdc({"current": hardware, "torque": hardware, "supply": hardware}, 4)
spi = As5047p(hardware, hardware)
i2c = As5600(hardware)
turns = Turns(i2c)
config = {"drive": {"loop": {"resistance_ohm": 0.8, "inductance_mH": 0.9, "supply_V": 24}}}
pwm = PwmDirection(hardware, hardware, CurrentLoop(config, inputs, 1000, 305176, 0))
dac = AnalogCurrent(hardware.nothing, 4095, 5000)
uart = UartDrive(hardware)
line = UartLine(hardware, 921600, 1000)
drives = [pwm, dac, uart]
def tick():
    clock.wait(200)
    adc.measure(inputs)
    spi.read()
    turns.read()
    clock.tick(inputs)
    clock.edge(None)
    line.receive(view, 64)
    for drive in drives:
        drive.command(-32000)
        drive.command(32000)
        drive.off()
    line.send(view, line.room() and 5)
def careless():
    return [1]
answer = [allocated(tick), allocated(careless)]
"""


def test_a_tick_of_the_drivers_allocates_nothing() -> None:
    """500 ticks; a function that does allocate shows that it would be seen."""
    ticks, careless = run(ALLOCATED + PROGRAM)
    assert ticks == 0
    assert careless >= 500 * 8
