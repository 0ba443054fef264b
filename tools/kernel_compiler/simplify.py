"""What a value is worth as soon as it is built: constants folded, powers of two shifted, neutral operands dropped."""

from __future__ import annotations

from typing import Protocol

from tools.kernel_compiler.graph import WORD, Value, signed

_COMMUTE = {"add", "mul", "and", "or", "xor"}


class Maker(Protocol):
    """What makes values where code is being built."""

    def const(self, number: int) -> Value:
        """A constant."""
        ...

    def value(self, op: str, args: list[Value], number: int = 0, width: int = 4) -> Value:
        """The value of an operation, simplified."""
        ...


def fold(op: str, a: int, b: int) -> int | None:
    """Result of an operation on two constants; None when it is left to the board (a division by zero)."""
    match op:
        case "add":
            return signed(a + b)
        case "sub":
            return signed(a - b)
        case "mul":
            return signed(a * b)
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl":
            return signed(a << b) if 0 <= b < 32 else None
        case "asr":
            return a >> b if 0 <= b < 32 else None
        case "div":
            return a // b if a >= 0 and b > 0 else None
        case _:
            return None


def simplified(value: Value, make: Maker) -> Value | None:
    """A value that is as good and cheaper, None when there is none."""
    if len(value.args) != 2 or value.op not in _COMMUTE | {"sub", "shl", "asr", "div"}:
        return None
    a, b = value.args
    if a.is_const() and b.is_const():
        number = fold(value.op, a.number, b.number)
        return None if number is None else make.const(number)
    if a.is_const() and value.op in _COMMUTE:
        return make.value(value.op, [b, a])
    return _with_constant(value.op, a, b.number, make) if b.is_const() else None


def _with_constant(op: str, a: Value, number: int, make: Maker) -> Value | None:
    if number == 0 and op in ("add", "sub", "or", "xor", "shl", "asr"):
        return a
    if number == 0 and op in ("mul", "and"):
        return make.const(0)
    if op == "mul" and number > 0 and number & (number - 1) == 0:
        return make.value("shl", [a, make.const(number.bit_length() - 1)])
    if op == "div" and number > 0 and number & (number - 1) == 0:  # operands are not negative
        return make.value("asr", [a, make.const(number.bit_length() - 1)])
    if op == "and" and number == -1:
        return a
    if op == "sub":
        half = _sign_extended(a, number)
        if half is not None:
            bits = make.const(32 - number.bit_length())
            return make.value("asr", [make.value("shl", [half, bits]), bits])
        return make.value("add", [a, make.const(-number)])
    if op == "add" and a.op == "add" and a.args[1].is_const():
        return make.value("add", [a.args[0], make.const(a.args[1].number + number)])
    if op in ("shl", "asr") and a.op == op and a.args[1].is_const() and a.args[1].number + number < 32:
        return make.value(op, [a.args[0], make.const(a.args[1].number + number)])
    return None


def _sign_extended(a: Value, number: int) -> Value | None:
    """The x of ((x + 2^n) & (2^(n+1) - 1)) - 2^n: the way to extend a sign when shifts are all there is."""
    if number <= 0 or number & (number - 1) or a.op != "and" or not a.args[1].is_const((2 * number - 1) & WORD):
        return None
    inner = a.args[0]
    return inner.args[0] if inner.op == "add" and inner.args[1].is_const(number) else None
