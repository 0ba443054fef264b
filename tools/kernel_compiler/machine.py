"""Thumb-2 instructions over registers: first any number of them (Reg), in the end r0..r12 and lr."""

from __future__ import annotations

from dataclasses import dataclass, field

LR = 14
SP = 13


@dataclass(eq=False)
class Reg:
    """A register of the unlimited kind; `spilled` ones stand for a slot on the stack for one instruction."""

    number: int
    short: bool = False  # made for a single instruction: never worth a stack slot


@dataclass(eq=False)
class Ins:
    """One instruction.

    Attributes:
        op: its name in the architecture's manual, without suffixes; const: any 32-bit constant.
        d: registers written.
        u: registers read; of an operation with two operands where the second is `imm`, only the first.
        imm: constant operand, offset, or number of bits; None where a register stands instead.
        shift: of the last register operand: (name, number).
        sets_flags: it is the comparison of the branch after it as well.
        keeps_flags: it stands between a comparison and its branch.
    """

    op: str
    d: list[Reg] = field(default_factory=list[Reg])
    u: list[Reg] = field(default_factory=list[Reg])
    imm: int | None = None
    shift: tuple[str, int] | None = None
    sets_flags: bool = False
    keeps_flags: bool = False


@dataclass(eq=False, repr=False)
class Part:
    """A block of instructions, and how it ends.

    Attributes:
        condition: of the branch to targets[0], else targets[1]; None: on to targets[0], or back to the caller.
        tested: register that the branch compares with zero itself (cbz), when no instruction has set flags.
    """

    number: int
    code: list[Ins] = field(default_factory=list[Ins])
    condition: str | None = None
    targets: list[Part] = field(default_factory=list["Part"])
    tested: Reg | None = None


@dataclass(eq=False, repr=False)
class Program:
    """A kernel as instructions.

    Attributes:
        fixed: register that a Reg must be in, as arguments and the result must.
        slots: words of stack that spilled registers take.
    """

    name: str
    parts: list[Part] = field(default_factory=list[Part])
    fixed: dict[Reg, int] = field(default_factory=dict[Reg, int])
    slots: int = 0
    n_registers: int = 0

    def reg(self, short: bool = False) -> Reg:
        """A new register."""
        self.n_registers += 1
        return Reg(self.n_registers, short)


def modified_immediate(number: int) -> int | None:
    """The twelve bits that stand for a 32-bit constant in Thumb-2's data processing, None when there are none."""
    number &= 0xFFFFFFFF
    byte = number & 0xFF
    if number == byte:
        return byte
    if number == byte * 0x00010001:
        return 0x100 | byte
    if number == (number >> 8 & 0xFF) * 0x01000100:
        return 0x200 | (number >> 8 & 0xFF)
    if number == byte * 0x01010101:
        return 0x300 | byte
    for rotation in range(8, 32):
        rolled = (number << rotation | number >> (32 - rotation)) & 0xFFFFFFFF
        if 0x80 <= rolled <= 0xFF:
            return rotation << 7 | (rolled & 0x7F)
    return None
