"""A kernel as portable C: the same statements in the same order, for a compiler that does its own work on them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tools.kernel_compiler.errors import NotAKernel
from tools.kernel_compiler.source import Kernel, constant, local_types, pointer_cast

FLAGS = (
    "-O2",
    "-mcpu=cortex-m3",
    "-mthumb",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffreestanding",
    "-nostdlib",
    "-std=c11",
)
"""Besides optimisation and core: integers wrap, and pointers of all types may meet, as the language has it."""

_TYPES = {"ptr32": "int32_t *", "ptr16": "uint16_t *", "ptr8": "uint8_t *", "int": "int32_t "}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.FloorDiv: "/", ast.Mod: "%",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def c_source(kernel: Kernel) -> str:
    """A C file with one function, named as the kernel.

    Raises:
        NotAKernel: the kernel uses what the language does not have.
    """
    arguments = ", ".join(f"{_TYPES[kind]}{name}" for name, kind in kernel.arguments)
    known = dict(kernel.arguments)
    types = local_types(kernel)
    lines = [f"    {_TYPES[kind]}{name};" for name, kind in types.items() if name not in known]
    body = [f"    {line}" for line in _Writer(kernel, types).statements(kernel.body)]
    head = f"#include <stdint.h>\n\nint32_t {kernel.name}({arguments}) {{\n"
    return head + "\n".join([*lines, *body, "    return 0;", "}"]) + "\n"


class _Writer:
    def __init__(self, kernel: Kernel, types: dict[str, str]) -> None:
        self.constants, self.types = kernel.constants, types

    def statements(self, nodes: Sequence[ast.stmt]) -> Iterator[str]:
        for node in nodes:
            match node:
                case ast.Assign(targets=[target], value=value):
                    yield f"{self.expression(target)} = {self.expression(value)};"
                case ast.AugAssign(target=target, op=op, value=value):
                    yield f"{self.expression(target)} {_OPERATORS[type(op)]}= {self.expression(value)};"
                case ast.If(test=test, body=body, orelse=orelse):
                    yield from self.block(f"if ({self.expression(test)}) {{", body)
                    if orelse:
                        yield from self.block("} else {", orelse)
                    yield "}"
                case ast.While(test=test, body=body):
                    yield from self.block(f"while ({self.expression(test)}) {{", body)
                    yield "}"
                case ast.Return(value=value):
                    yield f"return {'0' if value is None else self.expression(value)};"
                case ast.Pass():
                    pass
                case _:
                    raise NotAKernel(node, ast.unparse(node).splitlines()[0], "assignments, if, while, return")

    def block(self, head: str, nodes: Sequence[ast.stmt]) -> Iterator[str]:
        yield head
        for line in self.statements(nodes):
            yield f"    {line}"

    def expression(self, node: ast.expr) -> str:
        number = constant(node, self.constants)
        if number is not None and not (isinstance(node, ast.Name) and node.id in self.types):
            return f"({number})" if number < 0 else str(number)
        match node:
            case ast.Name(id=name):
                return name
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.expression(operand)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{self.expression(operand)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return f"({self.expression(left)} {_OPERATORS[type(op)]} {self.expression(right)})"
            case ast.BoolOp(op=op, values=values):
                return "(" + (" && " if isinstance(op, ast.And) else " || ").join(map(self.expression, values)) + ")"
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return f"({self.expression(left)} {_COMPARISONS[type(op)]} {self.expression(right)})"
            case ast.Subscript(value=value, slice=index):
                return f"{self.expression(value)}[{self.expression(index)}]"
            case ast.Call(args=[argument]):
                kind = pointer_cast(node)
                inner = self.expression(argument)
                return f"(({_TYPES[kind or 'int']})(intptr_t){inner})"
            case _:
                raise NotAKernel(node, ast.unparse(node), "an expression of the kernel language")
