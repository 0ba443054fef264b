"""A kernel in plain Python: what the language means, statement by statement, with integers that wrap at 32 bits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tools.kernel_compiler.errors import NotAKernel
from tools.kernel_compiler.graph import WORD, signed
from tools.kernel_compiler.source import POINTERS, Kernel, pointer_cast

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


class _Returned(Exception):
    """Ends the walk with the kernel's result."""


def evaluate(kernel: Kernel, memory: bytearray, base: int, arguments: Sequence[int]) -> int:
    """Result of a kernel, which reads and writes `memory` as what lies from address `base` on.

    Raises:
        IndexError: the kernel leaves the memory.
        NotAKernel: it uses what the language does not have.
    """
    walk = _Walk(kernel, memory, base, arguments)
    try:
        walk.run(kernel.body)
    except _Returned as returned:
        return int(returned.args[0])
    return 0


class _Walk:
    def __init__(self, kernel: Kernel, memory: bytearray, base: int, arguments: Sequence[int]) -> None:
        self.constants, self.memory, self.base = kernel.constants, memory, base
        self.types = dict(kernel.arguments)
        self.locals = {name: signed(value) for (name, _), value in zip(kernel.arguments, arguments, strict=True)}

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            match node:
                case ast.Assign(targets=[target], value=value):
                    if isinstance(target, ast.Name):
                        known = self.types.get(value.id, "int") if isinstance(value, ast.Name) else "int"
                        self.types[target.id] = pointer_cast(value) or known
                    self.store(target, self.value(value))
                case ast.AugAssign(target=target, op=op, value=value):
                    self.store(target, signed(_OPERATIONS[type(op)](self.value(target), self.value(value))))
                case ast.If(test=test, body=body, orelse=orelse):
                    self.run(body if self.holds(test) else orelse)
                case ast.While(test=test, body=body):
                    while self.holds(test):
                        self.run(body)
                case ast.Return(value=value):
                    raise _Returned(0 if value is None else self.value(value))
                case ast.Pass():
                    pass
                case _:
                    raise NotAKernel(node, ast.unparse(node), "assignments, if, while, return")

    def holds(self, node: ast.expr) -> bool:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self.holds(each) for each in values)
            case ast.BoolOp(values=values):
                return any(self.holds(each) for each in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.holds(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _COMPARISONS[type(op)](self.value(left), self.value(right))
            case _:
                return self.value(node) != 0

    def value(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(value)):
                return signed(int(value))
            case ast.Name(id=name):
                return self.locals[name] if name in self.locals else signed(self.constants[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return signed(-self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return signed(_OPERATIONS[type(op)](self.value(left), self.value(right)))
            case ast.Call(args=[argument]):
                return self.value(argument)
            case ast.Subscript():
                at, width = self.place(node)
                return int.from_bytes(self.memory[at : at + width], "little", signed=width == 4)
            case _:
                raise NotAKernel(node, ast.unparse(node), "an expression of the kernel language")

    def store(self, target: ast.expr, value: int) -> None:
        if isinstance(target, ast.Name):
            self.locals[target.id] = value
        elif isinstance(target, ast.Subscript):
            at, width = self.place(target)
            self.memory[at : at + width] = (value & (WORD >> 32 - 8 * width)).to_bytes(width, "little")

    def place(self, node: ast.Subscript) -> tuple[int, int]:
        kind = self.types.get(node.value.id) if isinstance(node.value, ast.Name) else pointer_cast(node.value)
        if kind is None:
            raise NotAKernel(node, ast.unparse(node), "an index into a pointer")
        width = POINTERS[kind]
        at = (self.value(node.value) + width * self.value(node.slice) & WORD) - self.base
        if not 0 <= at <= len(self.memory) - width:
            raise IndexError(f"line {node.lineno}: {ast.unparse(node)} is byte {at} of {len(self.memory)}")
        return at, width
