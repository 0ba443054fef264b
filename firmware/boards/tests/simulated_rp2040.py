"""An RP2040 without one: runs the rp2 drivers, from their own source files, on rp2040py's registers, PIO, DMA and ADC.

The drivers are imported by CPython. What MicroPython's `rp2`, `machine` and `uctypes` do in C stands here as writes to
the simulated chip's registers; the PIO assembler is MicroPython's own rp2.py. viper functions run as plain Python on
pointers that reach the chip's bus. Not simulated: the time that Python takes, and analogue behaviour.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import struct
import sys
import tarfile
import types
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rp2040py.rp2040 import RP2040
from rp2040py.simulator import Simulator

BOARDS = Path(__file__).resolve().parents[1]
SOURCE = "micropython_*.orig.tar.*"  # MicroPython as released; set-up part "qemu" keeps it
CLOCK_HZ = 125_000_000
HEAP = 0x20010000

# Register addresses of the RP2040's data sheet.
PIO_STEP, FIFO = 0x100000, 0x10
PIO0, CTRL, FLEVEL, INSTRUCTIONS, MACHINE0 = 0x50200000, 0x00, 0x0C, 0x48, 0xC8
CLKDIV, EXECCTRL, SHIFTCTRL, INSTR, PINCTRL = 0x00, 0x04, 0x08, 0x10, 0x14
DMA, CHANNEL, READ, WRITE, COUNT, CONTROL_TRIGGER, CONTROL = 0x50000000, 0x40, 0x00, 0x04, 0x08, 0x0C, 0x10
WATCHDOG = 0x40058000
IO_BANK0, PADS_BANK0, RESETS = 0x40014000, 0x4001C000, 0x4000C000
PIO_FUNCTION, SIO_FUNCTION = 6, 5


def assembler_source(cache: Path) -> str | None:
    """MicroPython's rp2.py out of the source that set-up has fetched, None where that is not there."""
    for path in cache.glob(SOURCE):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.endswith("/ports/rp2/modules/rp2.py"):
                    file = archive.extractfile(member)
                    return file.read().decode() if file else None
    return None


class Chip:
    """The simulated chip and its time, in cycles of the system clock."""

    def __init__(self) -> None:
        self.simulator = Simulator()
        self.mcu: RP2040 = self.simulator.rp2040
        self._heap = HEAP
        self._dmas = 0
        self._claimed: list[tuple[bytearray, int]] = []
        self.converted: list[tuple[int, int]] = []  # ADC input and value of every conversion so far
        self.values: dict[int, int] = {}  # what the ADC reads at its inputs, 12-bit
        self.mcu.adc.on_adc_read = self._convert
        self.outside: dict[int, int] = {}  # levels of lines that something outside the chip holds
        self.heartbeats: dict[int, int] = {}  # pins by the address of their kicks
        self.log: list[tuple[Any, ...]] = []  # what outputs were set to, in order
        self.interrupts: dict[int, Any] = {}  # handlers by pin
        self.micros = 0

    def read(self, address: int) -> int:
        """A word on the bus."""
        return self.mcu.read_uint32(address)

    def write(self, address: int, value: int) -> None:
        """Write a word on the bus."""
        if address in self.heartbeats:  # ENABLE, which a program in another PIO holds up
            self.log.append((self.heartbeats[address], int(value > 0)))
            return
        self.mcu.write_uint32(address, value & 0xFFFFFFFF)

    def address_of(self, block: object) -> int:
        """Where a block of the driver's memory lies in the chip's; it is 0 there and stays the driver's for good."""
        if isinstance(block, Registers):
            return block.address
        if isinstance(block, memoryview):  # of a whole buffer
            block = block.obj
        assert isinstance(block, bytearray | array)
        for known, address in self._claimed:
            if known is block:
                return address
        self._heap = (self._heap + 3) & ~3
        address = self._heap + 4  # not aligned to more than a word, as a heap's blocks are not
        self._heap = address + len(block)
        self._claimed.append((block, address))
        return address

    def pins(self, *levels: tuple[int, int]) -> None:
        """Drive pins from outside."""
        for pin, level in levels:
            self.mcu.gpio[pin].set_input_value(bool(level))

    def run(self, cycles: int) -> None:
        """Let the PIO, DMA and ADC work."""
        pio, clock, nanos = self.mcu.pio[0], self.mcu.clock, 1e9 / CLOCK_HZ
        if pio.stopped:
            while cycles:
                step = min(cycles, 64)
                clock.tick(step * nanos)
                cycles -= step
        for _ in range(cycles):
            clock.tick(nanos)
            pio.advance(1)

    def ticks_us(self) -> int:
        """MicroPython's counter; looking at it takes 10 us."""
        self.run(10 * CLOCK_HZ // 1_000_000)
        self.micros += 10
        return self.micros & 0x3FFFFFFF

    def claim_dma(self) -> int:
        """The next free channel."""
        self._dmas += 1
        return self._dmas - 1

    def _convert(self, selected: int) -> None:
        """Round robin as the data sheet has it: rp2040py 0.3.6 masks the next input's number wrongly."""
        adc = self.mcu.adc
        inputs = [k for k in range(5) if adc.cs >> 16 + k & 1] or [selected]
        channel = min((k for k in inputs if self.converted and k > self.converted[-1][0]), default=inputs[0])
        # Unless told otherwise a value of its own for each conversion, so that every mix-up shows: input, then a count.
        value = self.values.get(channel, channel << 10 | len(self.converted) & 0x3FF)
        self.converted.append((channel, value))
        adc.channel_values[adc.current_channel] = value
        adc.sample_alarm.schedule(1000 * adc.sample_time)


class Registers:
    """A block of registers as an object with an address."""

    def __init__(self, address: int) -> None:
        self.address = address


def pointer(chip: Chip, width: int) -> type:
    """viper's ptr16 or ptr32: of an address on the chip's bus, or of a block of the driver's."""
    form = {1: "<B", 2: "<H", 4: "<i"}[width]  # as viper loads them: halfwords without a sign, words with

    class Pointer:
        def __init__(self, target: Any) -> None:
            block = isinstance(target, (bytes, bytearray, memoryview, array))
            self._memory = memoryview(target).cast("B") if block else None
            self._at = 0 if block else int(target)

        def __getitem__(self, index: int) -> int:
            at = self._at + width * index
            if self._memory is not None:
                return struct.unpack_from(form, self._memory, at)[0]
            word = chip.read(at & ~3) >> (8 * (at & 3))
            return struct.unpack(form, (word & (1 << 8 * width) - 1).to_bytes(width, "little"))[0]

        def __setitem__(self, index: int, value: int) -> None:
            at = self._at + width * index
            value &= (1 << 8 * width) - 1
            if self._memory is not None:
                self._memory[at : at + width] = value.to_bytes(width, "little")
            elif width == 4:
                chip.write(at, value)
            else:
                chip.mcu.write_uint16(at, value)

    return Pointer


def _rp2_in_c(chip: Chip) -> types.ModuleType:
    """`_rp2`: what MicroPython's rp2.py imports from C, as far as the drivers use it."""
    module = types.ModuleType("_rp2")

    class PIO:
        SHIFT_LEFT, SHIFT_RIGHT = 0, 1
        JOIN_NONE, JOIN_TX, JOIN_RX = 0, 1, 2
        OUT_LOW = 2

    class StateMachine:
        """Set up as ports/rp2/rp2_pio.c does: the program into memory at 0, its fields into the registers."""

        def __init__(
            self, number: int, program: list[Any], *, in_base: Any = None, freq: int = 0, set_base: Any = None
        ) -> None:
            self._counts = set_base is None
            if set_base is not None:
                chip.heartbeats[PIO0 + PIO_STEP * (number // 4) + FIFO + 4 * (number % 4)] = set_base.number
                return
            assert number == 0
            words, _, _, execctrl, shiftctrl = program[:5]
            assert len(words) == 32, "a shorter program need not stand at address 0"
            chip.write(RESETS, 0)
            for k, word in enumerate(words):
                chip.write(PIO0 + INSTRUCTIONS + 4 * k, word)
            for offset, value in ((CLKDIV, 1 << 16), (EXECCTRL, execctrl), (SHIFTCTRL, shiftctrl)):
                chip.write(PIO0 + MACHINE0 + offset, value)
            chip.write(PIO0 + MACHINE0 + PINCTRL, in_base.number << 15)
            chip.write(PIO0 + CTRL, 1 << 4)  # restart
            chip.write(PIO0 + MACHINE0 + INSTR, 0)  # jump to the program's first instruction

        def exec(self, text: str) -> None:
            chip.write(PIO0 + MACHINE0 + INSTR, sys.modules["rp2"].asm_pio_encode(text, 0))

        def active(self, on: int) -> None:
            if self._counts:
                chip.write(PIO0 + CTRL, on)

    class SimulatedDma:
        def __init__(self) -> None:
            self.channel = chip.claim_dma()
            self.registers = Registers(DMA + CHANNEL * self.channel)

        def pack_ctrl(
            self, *, size: int, inc_read: bool, ring_size: int, ring_sel: bool, treq_sel: int, chain_to: int
        ) -> int:
            fixed = 1 | 1 << 5 | 1 << 21  # enabled, write increments, no interrupt
            chosen = size << 2 | inc_read << 4 | ring_size << 6 | ring_sel << 10 | chain_to << 11 | treq_sel << 15
            return fixed | chosen

        def config(self, *, read: int, write: int, count: int, ctrl: int, trigger: bool) -> None:
            for offset, value in ((READ, read), (WRITE, write), (COUNT, count)):
                chip.write(self.registers.address + offset, value)
            chip.write(self.registers.address + (CONTROL_TRIGGER if trigger else CONTROL), ctrl)

        def active(self, on: int) -> None:
            assert on
            chip.write(self.registers.address + CONTROL_TRIGGER, chip.read(self.registers.address + CONTROL))

    module.PIO, module.StateMachine, module.DMA = PIO, StateMachine, SimulatedDma
    return module


def _machine(chip: Chip) -> types.ModuleType:
    module = types.ModuleType("machine")

    class Pin:
        """A pin as input; what it is set to as an output goes into the chip's log."""

        IN, OUT, PULL_UP, PULL_DOWN, IRQ_RISING = range(5)

        def __init__(self, number: int, mode: int | None = None, pull: int | None = None, value: int | None = None):
            self.number, self.pull = number, pull
            chip.write(IO_BANK0 + 8 * number + 4, SIO_FUNCTION)
            chip.write(PADS_BANK0 + 4 + 4 * number, 1 << 6 | 1 << 3)
            if value is not None:
                self.value(value)

        def value(self, level: int | None = None) -> int | None:
            if level is None:  # what holds the line from outside is stronger than the chip's pulls
                chip.log.append((self.number, "read"))
                return chip.outside.get(self.number, int(self.pull == self.PULL_UP))
            chip.log.append((self.number, level))
            return None

        def irq(self, handler: Any, trigger: int, *, hard: bool) -> None:
            assert hard
            chip.interrupts[self.number] = handler

    class Pwm:
        def __init__(self, pin: Pin, *, freq: int, duty_u16: int, invert: bool = False) -> None:
            self.number = pin.number
            chip.log.append((pin.number, freq, duty_u16, invert))

        def duty_u16(self, duty: int) -> None:
            chip.log.append((self.number, duty))

    class Uart:
        unread = b""

        def __init__(self, number: int, **settings: Any) -> None:
            chip.log.append(("uart", number, settings["baudrate"]))

        def any(self) -> int:
            return len(self.unread)

        def read(self, count: int) -> bytes:
            data, self.unread = self.unread[:count], self.unread[count:]
            return data

        def flush(self) -> None:
            chip.log.append(("flushed",))

    class Dog:
        def __init__(self, *, timeout: int) -> None:
            chip.write(WATCHDOG, 1 << 30)

        def feed(self) -> None:
            pass

    class Memory:
        def __getitem__(self, address: int) -> int:
            return chip.read(address)

        def __setitem__(self, address: int, value: int) -> None:
            chip.write(address, value)

    content = {"Pin": Pin, "PWM": Pwm, "UART": Uart, "WDT": Dog, "mem32": Memory(), "PWRON_RESET": 1, "WDT_RESET": 3}
    content |= {"SPI": None, "I2C": None, "ADC": lambda pin: pin}
    content |= {"freq": lambda: CLOCK_HZ, "unique_id": lambda: b"abcdefgh", "reset_cause": lambda: 3}
    module.__dict__.update(content)
    return module


def _importer(chip: Chip) -> Callable[[str], Any]:
    """Import a driver by its name, or the board's file as "board", with the chip's time for theirs."""
    clock = types.ModuleType("time")
    clock.__dict__.update(
        ticks_us=chip.ticks_us, ticks_diff=lambda a, b: a - b, ticks_add=lambda a, b: a + b, sleep_us=lambda us: None
    )

    def load(name: str) -> Any:
        time, sys.modules["time"] = sys.modules["time"], clock
        try:
            if name != "board":
                return importlib.import_module(f"drivers.{name}")
            spec = importlib.util.spec_from_file_location("board", BOARDS / "rp2.py")
            assert spec
            assert spec.loader
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        finally:
            sys.modules["time"] = time

    return load


@contextmanager
def drivers_on_chip(assembler: str) -> Iterator[tuple[Chip, Any]]:
    """The chip, and a function that imports a driver onto it by name."""
    chip = Chip()
    micropython = types.ModuleType("micropython")
    micropython.const = micropython.viper = lambda same: same
    uctypes = types.ModuleType("uctypes")
    uctypes.addressof = chip.address_of
    rp2 = types.ModuleType("rp2")
    before = dict(sys.modules)
    sys.modules.update(micropython=micropython, uctypes=uctypes, machine=_machine(chip), _rp2=_rp2_in_c(chip), rp2=rp2)
    builtins.ptr8, builtins.ptr16, builtins.ptr32 = (pointer(chip, width) for width in (1, 2, 4))
    sys.implementation._machine = "Raspberry Pi Pico with RP2040"
    paths = [str(BOARDS), str(BOARDS.parent)]  # drivers, and jointboard
    sys.path[:0] = paths
    os.dupterm = lambda uart: chip.log.append(("console", type(uart).__name__))
    try:
        exec(compile(assembler, "rp2.py", "exec"), rp2.__dict__)
        yield chip, _importer(chip)
    finally:
        for path in paths:
            sys.path.remove(path)
        del builtins.ptr8, builtins.ptr16, builtins.ptr32, sys.implementation._machine, os.dupterm
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)
