"""Random programs of the kernel language: every operation and statement, on numbers from all over 32 bits."""

from __future__ import annotations

import random

CELLS = 24  # 32-bit words that a program works on, by its first argument; the second points to their second half
EXTREMES = (
    0, 1, -1, 2, 255, 256, 4095, 4096, 32767, 32768, -32768, -32769, 65535, 65536, 0x1FFF, 0x00FF00FF, 0x0F0F0F0F,
    (1 << 30) - 1, 1 << 30, -(1 << 30), (1 << 31) - 1, -(1 << 31), -(1 << 31) + 1, 0x12345678, -0x789ABCDE,
)  # fmt: skip
_LOCALS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m")
_HALF = CELLS // 2


def number(rng: random.Random) -> int:
    """A 32-bit integer, often one at an edge."""
    return rng.choice(EXTREMES) if rng.random() < 0.6 else rng.randrange(-(1 << 31), 1 << 31)


def kernel_source(name: str, rng: random.Random) -> str:
    """A kernel with every local assigned, statements at random, and the sum of its locals as result."""
    lines = ["@micropython.viper", f"def {name}(cells: ptr32, half: ptr16, byte: ptr8, n: int) -> int:"]
    lines += [f"    {each} = {_operand(rng)}" for each in _LOCALS]
    lines += ["    p = ptr32(half)", f"    near = {_near(rng)}", "    turns = 0"]
    for _ in range(rng.randint(3, 14)):
        lines += _statement(rng, 1)
    if rng.random() < 0.3:
        lines += ["    if a == b:", "        return c"]
    lines.append(f"    return {' + '.join(_LOCALS)} + turns")
    return "\n".join(lines) + "\n"


def _statement(rng: random.Random, depth: int) -> list[str]:
    pad = "    " * depth
    kind = rng.random()
    if depth < 4 and kind < 0.25:
        lines = [f"{pad}if {_condition(rng)}:", *_statement(rng, depth + 1), *_statement(rng, depth + 1)]
        if rng.random() < 0.3:
            lines += [f"{pad}elif {_condition(rng)}:", *_statement(rng, depth + 1)]
        if rng.random() < 0.6:
            lines += [f"{pad}else:", *_statement(rng, depth + 1)]
        return lines
    if depth == 1 and kind < 0.33:
        body = [*_statement(rng, 2), *_statement(rng, 2)]
        return [
            f"{pad}turns = {rng.randint(0, 3)}",
            f"{pad}while turns and ({_condition(rng)}):",
            *body,
            f"{pad}    turns -= 1",
        ]
    if kind < 0.40:
        name, high = rng.choice(_LOCALS), (1 << rng.choice((1, 7, 15, 16, 20))) - 1
        low = rng.choice((-1 - high, -1 - high, 0, -high))
        if rng.random() < 0.3:  # the same in one look, or nearly
            bits = high.bit_length() + rng.choice((0, 1, 1, 1))
            return [f"{pad}if ({name} + {high + 1}) >> {bits}:", f"{pad}    {name} = {high} ^ ({name} >> 31)"]
        return [
            f"{pad}if {name} > {high}:",
            f"{pad}    {name} = {high}",
            f"{pad}if {name} < {low}:",
            f"{pad}    {name} = {low}",
        ]
    if kind < 0.43:
        return [f"{pad}near = {_near(rng)}"]
    if kind < 0.60:
        return [f"{pad}{_place(rng)} = {_expression(rng, 2)}"]
    if kind < 0.75:
        op = rng.choice(("+=", "-=", "*=", "&=", "|=", "^="))
        return [f"{pad}{rng.choice((*_LOCALS, _place(rng)))} {op} {_expression(rng, 1)}"]
    return [f"{pad}{rng.choice(_LOCALS)} = {_expression(rng, 3)}"]


def _near(rng: random.Random) -> str:
    """A pointer to half of the cells."""
    return rng.choice(("p", f"ptr32(int(cells) + {4 * rng.randrange(_HALF)})"))


def _place(rng: random.Random) -> str:
    pointer, size = rng.choice(
        (("cells", CELLS), ("p", _HALF), ("half", 2 * _HALF), ("byte", 2 * CELLS), ("near", _HALF))
    )
    if rng.random() < 0.7:
        return f"{pointer}[{rng.randrange(size)}]"
    mask = 7 if size < 32 else 15
    index = f"{rng.choice(_LOCALS)} & {mask}"
    return f"{pointer}[{index}]" if rng.random() < 0.5 else f"{pointer}[({index}) + {rng.randrange(size - mask)}]"


def _operand(rng: random.Random) -> str:
    return rng.choice((f"{_literal(rng)}", "n", f"cells[{rng.randrange(CELLS)}]"))


def _literal(rng: random.Random) -> int:
    """A constant as viper takes it: one that fits MicroPython's small integers."""
    return max(1 - (1 << 30), min(number(rng), (1 << 30) - 1))


def _expression(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.15:
        return rng.choice((rng.choice(_LOCALS), rng.choice(_LOCALS), _place(rng), f"({_literal(rng)})", "n"))
    a, b = _expression(rng, depth - 1), _expression(rng, depth - 1)
    if not any(each.isalpha() for each in a):
        a = rng.choice(_LOCALS)  # two constants would be folded to one that need not fit viper's integers
    if kind < 0.30:
        return f"(({a}) {rng.choice(('<<', '>>'))} {rng.randrange(32)})"
    if kind < 0.36:
        return f"(({a}) {rng.choice(('<<', '>>'))} (({b}) & 31))"
    if kind < 0.44:  # operands of a division are not negative, and what divides is not zero
        return f"((({a}) & 0x3FFFFFFF) {rng.choice(('//', '%'))} ((({b}) & {rng.choice((0xFF, 0x1FFFFFFF))}) + 1))"
    if kind < 0.48:
        power = 1 << rng.choice((7, 8, 15))
        return f"(((({a}) + {power}) & {2 * power - 1}) - {power})"
    if kind < 0.54:
        return f"((({a}) >> {rng.randrange(20)}) & {(1 << rng.randint(1, 12)) - 1})"
    if kind < 0.58:
        return f"(0 - ({a}))"
    return f"({a} {rng.choice(('+', '-', '*', '+', '-', '&', '|', '^'))} {b})"


def _condition(rng: random.Random) -> str:
    def one() -> str:
        if rng.random() < 0.2:
            return f"{rng.choice(_LOCALS)} & {rng.choice((1, 32, 0x7E0, 0x12345))}"
        right = rng.choice(("0", f"{_literal(rng)}", rng.choice(_LOCALS), _expression(rng, 1)))
        return f"{_expression(rng, 1)} {rng.choice(('==', '!=', '<', '<=', '>', '>='))} {right}"

    kind = rng.random()
    if kind < 0.7:
        return one()
    return f"{one()} {'and' if kind < 0.85 else 'or'} {one()}"
