"""Two loads, or two stores, of neighbouring words become one instruction (ldrd, strd); both words are aligned."""

from __future__ import annotations

from tools.kernel_compiler.machine import Ins, Program, Reg

_AHEAD = 10  # instructions to look ahead: farther, and the early value occupies a register for long
_REACH = 1020
_WIDTHS = {"ldr": 4, "ldrh": 2, "ldrb": 1, "ldrd": 8, "str": 4, "strh": 2, "strb": 1, "strd": 8}


def pair(program: Program) -> None:
    """Pair what can be paired, in place; registers are still assigned once each."""
    for part in program.parts:
        index = 0
        while index < len(part.code):
            first = part.code[index]
            if first.op == "ldr" and _plain(first):
                _pair_loads(part.code, index)
            elif first.op == "str" and _plain(first) and _pair_stores(part.code, index):
                continue
            index += 1


def _plain(ins: Ins) -> bool:
    return ins.imm is not None and ins.imm % 4 == 0 and ins.imm <= _REACH


def _neighbour(first: Ins, other: Ins) -> bool:
    if other.op != first.op or not _plain(other) or other.u[0] is not first.u[0]:
        return False
    return abs((other.imm or 0) - (first.imm or 0)) == 4


def _pair_loads(code: list[Ins], index: int) -> None:
    """Take the neighbour of the load at `index` up to it."""
    first = code[index]
    for at in range(index + 1, min(index + 1 + _AHEAD, len(code))):
        other = code[at]
        if _neighbour(first, other):
            low, high = (first, other) if (first.imm or 0) < (other.imm or 0) else (other, first)
            if low.d[0] is not high.d[0]:
                code[index] = Ins("ldrd", [low.d[0], high.d[0]], [first.u[0]], low.imm, keeps_flags=first.keeps_flags)
                del code[at]
            return
        if other.op.startswith("str") and not _apart(other, first.u[0], (first.imm or 0) - 4, 12):
            return


def _pair_stores(code: list[Ins], index: int) -> bool:
    """Take the store at `index` down to its neighbour."""
    first = code[index]
    for at in range(index + 1, min(index + 1 + _AHEAD, len(code))):
        other = code[at]
        if _neighbour(first, other):
            low, high = (first, other) if (first.imm or 0) < (other.imm or 0) else (other, first)
            stored = [first.u[0], low.u[1], high.u[1]]
            code[at] = Ins("strd", [], stored, low.imm, keeps_flags=other.keeps_flags)
            del code[index]
            return True
        if other.op in _WIDTHS and not _apart(other, first.u[0], first.imm or 0, 4):
            return False
    return False


def _apart(ins: Ins, base: Reg, offset: int, width: int) -> bool:
    """Does a load or store surely touch none of these bytes?"""
    if ins.u[0] is not base or ins.imm is None:
        return False
    return ins.imm + _WIDTHS[ins.op] <= offset or offset + width <= ins.imm
