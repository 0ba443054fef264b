"""Instructions -> halfwords, their text in the architecture's syntax, and MicroPython's name for them where it has one.

Source: ARMv7-M Architecture Reference Manual, A5 and A7.7. Short encodings set the flags, wide ones leave them alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.kernel_compiler.errors import OutOfReach
from tools.kernel_compiler.machine import LR, SP, Ins, Reg, modified_immediate

_NAMES = {LR: "lr", SP: "sp"}
_ALU = {"and": 0, "orr": 2, "eor": 4, "add": 8, "sub": 13, "rsb": 14}
_ASIDE = {"tst": 0, "cmn": 8, "cmp": 13}  # the result is dropped, the flags are kept
_SHIFT = {"lsl": 0, "lsr": 1, "asr": 2}
_WIDE_MEMORY = {"ldr": 0xF8D0, "ldrh": 0xF8B0, "ldrb": 0xF890, "str": 0xF8C0, "strh": 0xF8A0, "strb": 0xF880}
_INDEXED = {"ldr": 0xF850, "ldrh": 0xF830, "ldrb": 0xF810, "str": 0xF840, "strh": 0xF820, "strb": 0xF800}
_SHORT_MEMORY = {
    "str": (0x6000, 4), "strb": (0x7000, 1), "strh": (0x8000, 2),
    "ldr": (0x6800, 4), "ldrb": (0x7800, 1), "ldrh": (0x8800, 2),
}  # fmt: skip
_SHORT_LOGIC = {"and": (0x4000, "and_"), "eor": (0x4040, "eor"), "orr": (0x4300, "orr")}
_SHORT_ASIDE = {"tst": 0x4200, "cmp": 0x4280, "cmn": 0x42C0}


@dataclass(frozen=True)
class Code:
    """An encoded instruction.

    Attributes:
        halfwords: as they stand in memory.
        text: in unified assembler syntax.
        named: as MicroPython's inline assembler spells it, None when it cannot.
    """

    halfwords: tuple[int, ...]
    text: str
    named: str | None = None


def encode(ins: Ins, place: Mapping[Reg, int]) -> list[Code]:
    """An instruction with machine registers for its own; two codes for a constant that takes two."""
    d, u = [place[each] for each in ins.d], [place[each] for each in ins.u]
    match ins.op:
        case "entry" | "return":
            return []
        case "mov":
            return [_copy(d[0], u[0])]
        case "const":
            return _constant(d[0], ins.imm or 0, ins.keeps_flags)
        case "add" | "sub" | "rsb" | "and" | "orr" | "eor":
            return [_operation(ins, d[0], u)]
        case "cmp" | "cmn" | "tst":
            return [_aside(ins, u)]
        case "lsl" | "asr":
            return [_shift(ins, d[0], u)]
        case "get_slot" | "put_slot":
            return [_slot(ins.op, (d or u)[0], ins.imm or 0)]
        case "ldrd" | "strd":
            return [_double(ins.op, d or u[1:], u[0], ins.imm or 0)]
        case _ if ins.op in _WIDE_MEMORY:
            return [_memory(ins, d[0] if d else u[-1], u)]
        case _:
            return [_arithmetic(ins, d[0], u)]


def name(register: int) -> str:
    """A machine register in assembler."""
    return _NAMES.get(register, f"r{register}")


def _low(*registers: int) -> bool:
    return all(each < 8 for each in registers)


def _copy(d: int, m: int) -> Code:
    return Code((0x4600 | (d & 8) << 4 | m << 3 | d & 7,), f"mov {name(d)}, {name(m)}", f"mov({name(d)}, {name(m)})")


def _immediate(twelve: int) -> tuple[int, int]:
    """Twelve bits as the two halfwords of a wide instruction have them."""
    return (twelve >> 11 & 1) << 10, (twelve >> 8 & 7) << 12 | twelve & 0xFF


def _constant(d: int, number: int, keeps_flags: bool) -> list[Code]:
    number &= 0xFFFFFFFF
    if number < 256 and _low(d) and not keeps_flags:
        return [Code((0x2000 | d << 8 | number,), f"movs {name(d)}, #{number}", f"mov({name(d)}, {number})")]
    twelve, inverted = modified_immediate(number), modified_immediate(~number)
    if twelve is not None:
        high, low = _immediate(twelve)
        return [Code((0xF04F | high, low | d << 8), f"mov.w {name(d)}, #{number}")]
    if inverted is not None:
        high, low = _immediate(inverted)
        return [Code((0xF06F | high, low | d << 8), f"mvn.w {name(d)}, #{~number & 0xFFFFFFFF}")]
    codes = [_half(d, number & 0xFFFF, "movw", 0xF240)]
    if number >> 16:
        codes.append(_half(d, number >> 16, "movt", 0xF2C0))
    return codes


def _half(d: int, number: int, op: str, opcode: int) -> Code:
    high, low = _immediate(number & 0xFFF)
    return Code(
        (opcode | high | number >> 12, low | d << 8), f"{op} {name(d)}, #{number}", f"{op}({name(d)}, {number})"
    )


def _shifted(ins: Ins) -> tuple[int, str]:
    """Bits and text of a shift of the last register."""
    if ins.shift is None or ins.shift[1] == 0:
        return 0, ""
    kind, amount = ins.shift
    return (amount >> 2) << 12 | (amount & 3) << 6 | _SHIFT[kind] << 4, f", {kind} #{amount}"


def _operation(ins: Ins, d: int, u: Sequence[int]) -> Code:
    short = None if ins.keeps_flags else _short_operation(ins, d, u)
    if short is not None:
        return short
    s, suffix = (0x10, "s.w") if ins.sets_flags else (0, ".w")
    first = f"{name(d)}, {name(u[0])}, "
    if ins.imm is None:
        bits, text = _shifted(ins)
        opcode = 0xEA00 | _ALU[ins.op] << 5 | s | u[0]
        return Code((opcode, bits | d << 8 | u[1]), f"{ins.op}{suffix} {first}{name(u[1])}{text}")
    number = ins.imm & 0xFFFFFFFF
    twelve = modified_immediate(number)
    if twelve is not None:
        high, low = _immediate(twelve)
        return Code((0xF000 | _ALU[ins.op] << 5 | s | u[0] | high, low | d << 8), f"{ins.op}{suffix} {first}#{number}")
    if number >= 4096 or ins.op not in ("add", "sub") or s:
        raise OutOfReach(f"{ins.op} of {number}")
    high, low = _immediate(number)
    opcode = 0xF200 if ins.op == "add" else 0xF2A0
    return Code((opcode | u[0] | high, low | d << 8), f"{ins.op}w {first}#{number}")


def _short_operation(ins: Ins, d: int, u: Sequence[int]) -> Code | None:
    if not _low(d, *u) or ins.shift is not None:
        return None
    regs = ", ".join(map(name, (d, *u)))
    if ins.op in ("add", "sub"):
        other = ins.op == "sub"
        if ins.imm is None:
            opcode = 0x1800 | other << 9 | u[1] << 6 | u[0] << 3 | d
            return Code((opcode,), f"{ins.op}s {regs}", f"{ins.op}({regs})")
        if 0 <= ins.imm < 8:
            opcode = 0x1C00 | other << 9 | ins.imm << 6 | u[0] << 3 | d
            return Code((opcode,), f"{ins.op}s {regs}, #{ins.imm}", f"{ins.op}({regs}, {ins.imm})")
        if 0 <= ins.imm < 256 and u[0] == d:
            opcode = 0x3000 | other << 11 | d << 8 | ins.imm
            return Code((opcode,), f"{ins.op}s {name(d)}, #{ins.imm}", f"{ins.op}({name(d)}, {ins.imm})")
    elif ins.op == "rsb" and ins.imm == 0:
        return Code((0x4240 | u[0] << 3 | d,), f"negs {regs}", f"neg({regs})")
    elif ins.op in _SHORT_LOGIC and ins.imm is None and d in u:
        opcode, named = _SHORT_LOGIC[ins.op]
        other = u[1] if u[0] == d else u[0]
        pair = f"{name(d)}, {name(other)}"
        return Code((opcode | other << 3 | d,), f"{ins.op}s {pair}", f"{named}({pair})")
    return None


def _aside(ins: Ins, u: Sequence[int]) -> Code:
    opcode = _ASIDE[ins.op] << 5 | 0x10 | u[0]
    if ins.imm is not None:
        if ins.op == "cmp" and _low(u[0]) and ins.imm < 256:
            text = f"{name(u[0])}, "
            return Code((0x2800 | u[0] << 8 | ins.imm,), f"cmp {text}#{ins.imm}", f"cmp({text}{ins.imm})")
        twelve = modified_immediate(ins.imm)
        if twelve is None:
            raise OutOfReach(f"{ins.op} with {ins.imm}")
        high, low = _immediate(twelve)
        return Code((0xF000 | opcode | high, 0xF00 | low), f"{ins.op}.w {name(u[0])}, #{ins.imm}")
    regs = ", ".join(map(name, u))
    if _low(*u) and ins.shift is None:
        return Code((_SHORT_ASIDE[ins.op] | u[1] << 3 | u[0],), f"{ins.op} {regs}", f"{ins.op}({regs})")
    bits, text = _shifted(ins)
    return Code((0xEA00 | opcode, bits | 0xF00 | u[1]), f"{ins.op}.w {regs}{text}")


def _shift(ins: Ins, d: int, u: Sequence[int]) -> Code:
    s, suffix = (0x10, "s.w") if ins.sets_flags else (0, ".w")
    if ins.imm is None:
        opcode = 0xFA00 | _SHIFT[ins.op] << 5 | s | u[0]
        return Code((opcode, 0xF000 | d << 8 | u[1]), f"{ins.op}{suffix} {name(d)}, {name(u[0])}, {name(u[1])}")
    pair = f"{name(d)}, {name(u[0])}, "
    if _low(d, u[0]) and not ins.keeps_flags:
        opcode = _SHIFT[ins.op] << 11 | ins.imm << 6 | u[0] << 3 | d
        return Code((opcode,), f"{ins.op}s {pair}#{ins.imm}", f"{ins.op}({pair}{ins.imm})")
    bits = (ins.imm >> 2) << 12 | (ins.imm & 3) << 6 | _SHIFT[ins.op] << 4
    return Code((0xEA4F | s, bits | d << 8 | u[0]), f"{ins.op}{suffix} {pair}#{ins.imm}")


def _memory(ins: Ins, t: int, u: Sequence[int]) -> Code:
    if ins.imm is None:
        amount = ins.shift[1] if ins.shift else 0
        text = f"{ins.op}.w {name(t)}, [{name(u[0])}, {name(u[1])}{f', lsl #{amount}' if amount else ''}]"
        return Code((_INDEXED[ins.op] | u[0], t << 12 | amount << 4 | u[1]), text)
    opcode, width = _SHORT_MEMORY[ins.op]
    place = f"[{name(u[0])}, "
    if _low(t, u[0]) and ins.imm % width == 0 and ins.imm < 32 * width:
        halfword = opcode | ins.imm // width << 6 | u[0] << 3 | t
        return Code((halfword,), f"{ins.op} {name(t)}, {place}#{ins.imm}]", f"{ins.op}({name(t)}, {place}{ins.imm}])")
    return Code((_WIDE_MEMORY[ins.op] | u[0], t << 12 | ins.imm), f"{ins.op}.w {name(t)}, {place}#{ins.imm}]")


def _slot(op: str, t: int, slot: int) -> Code:
    store = op == "put_slot"
    text = f"{'str' if store else 'ldr'}{'' if _low(t) else '.w'} {name(t)}, [sp, #{4 * slot}]"
    if _low(t):
        return Code(((0x9000 if store else 0x9800) | t << 8 | slot,), text)
    return Code(((0xF8C0 if store else 0xF8D0) | SP, t << 12 | 4 * slot), text)


def _double(op: str, pair: Sequence[int], base: int, offset: int) -> Code:
    text = f"{op} {name(pair[0])}, {name(pair[1])}, [{name(base)}, #{offset}]"
    return Code(((0xE9D0 if op == "ldrd" else 0xE9C0) | base, pair[0] << 12 | pair[1] << 8 | offset >> 2), text)


def _arithmetic(ins: Ins, d: int, u: Sequence[int]) -> Code:
    regs = ", ".join(map(name, (d, *u)))
    if ins.op == "mul":
        if _low(d, *u) and d in u and not ins.keeps_flags:
            other = u[1] if u[0] == d else u[0]
            text = f"{name(d)}, {name(other)}"
            return Code((0x4340 | other << 3 | d,), f"muls {text}", f"mul({text})")
        return Code((0xFB00 | u[0], 0xF000 | d << 8 | u[1]), f"mul.w {regs}")
    if ins.op in ("mla", "mls"):
        return Code((0xFB00 | u[0], u[2] << 12 | d << 8 | (0x10 if ins.op == "mls" else 0) | u[1]), f"{ins.op} {regs}")
    if ins.op == "udiv":
        return Code((0xFBB0 | u[0], 0xF0F0 | d << 8 | u[1]), f"udiv {regs}", f"udiv({regs})")
    bits = (ins.imm or 0) & 0xFF
    if ins.op in ("ubfx", "sbfx"):
        lowest = (ins.imm or 0) >> 8
        place = (lowest >> 2) << 12 | (lowest & 3) << 6
        opcode = 0xF3C0 if ins.op == "ubfx" else 0xF340
        return Code((opcode | u[0], place | d << 8 | bits - 1), f"{ins.op} {regs}, #{lowest}, #{bits}")
    if ins.op == "ssat":
        return Code((0xF300 | u[0], d << 8 | bits - 1), f"ssat {name(d)}, #{bits}, {name(u[0])}")
    if ins.op == "usat":
        return Code((0xF380 | u[0], d << 8 | bits), f"usat {name(d)}, #{bits}, {name(u[0])}")
    raise OutOfReach(f"instruction {ins.op}")
