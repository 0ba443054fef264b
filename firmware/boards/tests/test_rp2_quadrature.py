"""The quadrature counter on a simulated RP2040: its PIO program as MicroPython assembles it, and the DMA behind it."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware.boards.tests.interpreter import run
from firmware.boards.tests.simulated_rp2040 import Chip

ASSEMBLE = """
import sys
class PIO:
    SHIFT_LEFT, JOIN_NONE, JOIN_RX = 0, 0, 2
class C:
    pass
sys.modules["_rp2"] = C()
sys.modules["_rp2"].PIO = PIO
sys.path.insert(0, folder)
import rp2
rp2.PIO = PIO
from drivers.rp2_quadrature_program import CYCLES, program
answer = [list(program[0]), program[3:5], CYCLES]
"""
A = 6
PHASES = ((0, 0), (1, 0), (1, 1), (0, 1))  # A, B of a shaft going forward
CYCLES = 20  # of a turn of the program, as its file says
SETTLE = 2 * CYCLES  # an edge is told within a turn after the turn that saw it


class Shaft:
    """An encoder on the chip's pins, and the counter that the driver makes."""

    def __init__(self, chip: Chip, load: Callable[[str], Any], position: int = 0) -> None:
        self.chip = chip
        self.position = position
        self._show()
        self.inputs = bytearray(116)
        self.driver = load("rp2_quadrature")
        self.counter = self.driver.Quadrature(A, 0, self.inputs)

    def step(self, direction: int, cycles: int) -> None:
        """One edge, and then that many cycles."""
        self.position += direction
        self._show()
        self.chip.run(cycles)

    def read(self) -> int:
        """The count once the last edge has been told."""
        self.chip.run(SETTLE)
        return self.counter.read()

    def edge_time(self) -> int:
        """The newest edge's time, as the last read() left it in the Hal's inputs."""
        return self.chip.read(self.chip.address_of(self.inputs) + 112)

    def _show(self) -> None:
        a, b = PHASES[self.position % 4]
        self.chip.pins((A, a), (A + 1, b))


def test_a_board_assembles_what_is_simulated_here(rp2040: tuple[Chip, Any], assembler: str, tmp_path: Path) -> None:
    """MicroPython's assembler run by MicroPython, against the same run by CPython for the tests below."""
    (tmp_path / "rp2.py").write_text(assembler.replace("from _rp2 import *", "from _rp2 import PIO"), encoding="utf-8")
    words, registers, cycles = run(ASSEMBLE, folder=str(tmp_path))
    simulated = rp2040[1]("rp2_quadrature_program")
    assert words == list(simulated.program[0])
    assert registers == simulated.program[3:5]
    assert len(words) == 32
    assert cycles == CYCLES


@pytest.mark.parametrize("start", range(4))
def test_it_starts_at_zero_wherever_the_shaft_stands(rp2040: tuple[Chip, Any], start: int) -> None:
    shaft = Shaft(*rp2040, position=start)
    assert shaft.read() == 0
    shaft.step(1, 100)
    assert shaft.read() == 1


def test_it_follows_any_motion(rp2040: tuple[Chip, Any]) -> None:
    """Edges to and fro, with any spacing that is longer than a turn of the program."""
    generator = random.Random(1)
    shaft = Shaft(*rp2040)
    for _ in range(40):
        for _ in range(100):
            shaft.step(generator.choice((-1, 1)), generator.randint(CYCLES + 1, 5 * CYCLES))
        assert shaft.read() == shaft.position & 0xFFFF


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("offset", range(0, CYCLES, 3))
def test_it_keeps_up_at_the_highest_rate(rp2040: tuple[Chip, Any], direction: int, offset: int) -> None:
    """An edge each CYCLES, so 6.25 million a second at 125 MHz, from any moment of a turn on."""
    shaft = Shaft(*rp2040)
    shaft.chip.run(5 * CYCLES + offset)
    for _ in range(500):
        shaft.step(direction, CYCLES)
    assert shaft.read() == 500 * direction & 0xFFFF


def test_the_count_passes_its_ends(rp2040: tuple[Chip, Any]) -> None:
    shaft = Shaft(*rp2040)
    shaft.step(-1, 50)
    assert shaft.read() == 0xFFFF
    shaft.step(1, 50)
    shaft.step(1, 50)
    assert shaft.read() == 1


@pytest.mark.parametrize("direction", [1, -1, 0])
def test_a_turn_takes_as_long_whatever_it_finds(rp2040: tuple[Chip, Any], direction: int) -> None:
    """Only so are the turns a clock: times of two edges far apart differ by the cycles in between / CYCLES."""
    shaft = Shaft(*rp2040)
    shaft.step(1, 10 * CYCLES)
    shaft.counter.read()
    first = shaft.edge_time()
    for _ in range(300):
        if direction:
            shaft.step(direction, CYCLES)
        else:
            shaft.chip.run(CYCLES)
    shaft.step(1, 0)
    assert shaft.read() == 2 + 300 * direction & 0xFFFF
    assert shaft.edge_time() - first == 310


def test_edges_carry_their_time(rp2040: tuple[Chip, Any]) -> None:
    generator = random.Random(2)
    shaft = Shaft(*rp2040)
    now, told = 0, []
    for _ in range(200):
        cycles = generator.randint(3 * CYCLES, 500)
        shaft.step(1, cycles)
        shaft.counter.read()
        told.append((now, CYCLES * shaft.edge_time()))
        now += cycles
    late = [time - cycle for cycle, time in told]
    assert max(late) - min(late) < CYCLES  # by how far a turn had come when the edge did
    assert shaft.counter.clock_Hz == 6_250_000


def test_both_pins_at_once_is_a_fault_told_once(rp2040: tuple[Chip, Any]) -> None:
    shaft = Shaft(*rp2040)
    shaft.step(1, 100)
    shaft.position += 1
    shaft.step(1, 100)
    errors = rp2040[1]("errors")
    with pytest.raises(errors.SensorFault, match="A and B changed at once"):
        shaft.read()
    shaft.step(1, 100)
    assert shaft.read() == 2  # it goes on, two short


def test_edges_faster_than_it_can_are_not_lost_in_silence(rp2040: tuple[Chip, Any]) -> None:
    shaft = Shaft(*rp2040)
    for _ in range(50):
        shaft.step(1, CYCLES // 2 + 1)
    with pytest.raises(rp2040[1]("errors").SensorFault):
        shaft.read()


def test_the_dma_channels_take_turns_for_ever(rp2040: tuple[Chip, Any]) -> None:
    """With few transfers for each, so that they change over often."""
    rp2040[1]("rp2_ring").TRANSFERS = 6
    shaft = Shaft(*rp2040)
    for k in range(1, 40):
        shaft.step(1, 3 * CYCLES)
        assert shaft.counter.read() == k
