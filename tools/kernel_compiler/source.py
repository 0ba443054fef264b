"""A firmware file as the compiler sees it: module-level constants, and viper functions in the kernel language."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.kernel_compiler.errors import NotAKernel

POINTERS = {"ptr32": 4, "ptr16": 2, "ptr8": 1}
"""Bytes a pointer of each type loads and stores."""
MAX_ARGUMENTS = 4  # of MicroPython's inline assembler

_STAGE = re.compile(r"    # stage: (.+)")
_FOLD: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """One viper function.

    Attributes:
        name: of the function.
        arguments: name and type ("ptr32", "ptr16", "ptr8", "int") of each, in order.
        body: its statements, docstring left out.
        constants: the file's const() names.
        stages: (name, number of statements of the body that stand before it), from `# stage:` lines.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    body: tuple[ast.stmt, ...]
    constants: Mapping[str, int]
    stages: tuple[tuple[str, int], ...]

    def cut(self, statements: int) -> Kernel:
        """The kernel that ends after so many statements of its body, and returns the sum of the locals still needed.

        Without that sum a compiler would leave out what only later statements use.
        """
        head, tail = self.body[:statements], self.body[statements:]
        if not tail:
            return self
        needed = sorted((_surely_stored(head) | {name for name, _ in self.arguments}) & _read_first(tail))
        types = local_types(self)
        total: ast.expr = ast.Constant(0)
        for name in needed:
            if types[name] == "int":
                total = ast.BinOp(total, ast.Add(), ast.Name(name, ast.Load()))
        ending = ast.copy_location(ast.Return(total), tail[0])
        return replace(self, body=(*head, ast.fix_missing_locations(ending)))


def read_kernel(path: Path, name: str) -> Kernel:
    """The viper function `name` of a firmware file.

    Raises:
        NotAKernel: there is no such viper function, or its arguments are not pointers and integers.
    """
    return parse_kernel(path.read_text(encoding="utf-8"), name)


def parse_kernel(text: str, name: str) -> Kernel:
    """The viper function `name` of a firmware file's text."""
    module = ast.parse(text)
    constants = _constants(module)
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            if not any(ast.unparse(each) == "micropython.viper" for each in node.decorator_list):
                raise NotAKernel(node, f"{name} is no viper function", "@micropython.viper")
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            return Kernel(name, _arguments(node), tuple(body), constants, _stages(text, node, body))
    raise NotAKernel(None, f"no function {name!r}", "a function at the top level of the file")


def _constants(module: ast.Module) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "const":
                value = constant(call.args[0], found)
                if value is not None:
                    found[node.targets[0].id] = value
    return found


def constant(node: ast.expr, constants: Mapping[str, int]) -> int | None:
    """Value of a constant expression, None when it is none."""
    match node:
        case ast.Constant(value=int(value)):
            return int(value)
        case ast.Name(id=name):
            return constants.get(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = constant(operand, constants)
            return None if value is None else -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _FOLD:
            a, b = constant(left, constants), constant(right, constants)
            return None if a is None or b is None else _FOLD[type(op)](a, b)
        case _:
            return None


def _arguments(node: ast.FunctionDef) -> tuple[tuple[str, str], ...]:
    arguments: list[tuple[str, str]] = []
    for argument in node.args.args:
        kind = argument.annotation.id if isinstance(argument.annotation, ast.Name) else "none"
        if kind not in POINTERS and kind != "int":
            raise NotAKernel(node, f"argument {argument.arg} of type {kind}", "ptr32, ptr16, ptr8, int")
        arguments.append((argument.arg, kind))
    if len(arguments) > MAX_ARGUMENTS:
        raise NotAKernel(node, f"{len(arguments)} arguments", f"at most {MAX_ARGUMENTS}")
    return tuple(arguments)


def _stages(text: str, node: ast.FunctionDef, body: list[ast.stmt]) -> tuple[tuple[str, int], ...]:
    lines = text.splitlines()
    stages: list[tuple[str, int]] = []
    for number in range(node.lineno, node.end_lineno or node.lineno):
        match = _STAGE.fullmatch(lines[number])
        if match:
            stages.append((match[1], sum(each.lineno <= number for each in body)))
    return tuple(stages)


def _surely_stored(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that have a value after these statements, whichever way they went."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            names.add(statement.targets[0].id)
        elif isinstance(statement, ast.If):
            names |= _surely_stored(statement.body) & _surely_stored(statement.orelse)
    return names


def _read_first(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that these statements may read before they have surely been assigned."""
    read: set[str] = set()
    assigned: set[str] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in assigned:
                read.add(node.id)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in assigned:
                read.add(node.target.id)
        assigned |= _surely_stored((statement,))
    return read


def local_types(kernel: Kernel) -> dict[str, str]:
    """Type of every argument and local: that of what it is assigned first."""
    types = dict(kernel.arguments)
    for statement in kernel.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                other = types.get(node.value.id, "int") if isinstance(node.value, ast.Name) else "int"
                types.setdefault(node.targets[0].id, pointer_cast(node.value) or other)
    return types


def pointer_cast(node: ast.expr) -> str | None:
    """Type that an expression casts to, None when it is no cast."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in POINTERS:
        return node.func.id
    return None
