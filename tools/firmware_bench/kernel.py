"""A viper function of the firmware as a syntax tree: to be cut after a stage, and to be written as C."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.firmware_bench.errors import NotAKernel

POINTERS = ("ptr32", "ptr16", "ptr8")

_STAGE = re.compile(r"    # stage: (.+)")


@dataclass(frozen=True)
class Kernel:
    """One viper function.

    Attributes:
        name: of the function.
        arguments: name and type ("ptr32", "ptr16", "ptr8", "int") of each, in order.
        body: its statements, docstring left out.
        constants: the file's const() names that it uses.
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
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            if not any(ast.unparse(each) == "micropython.viper" for each in node.decorator_list):
                raise NotAKernel(node, f"{name} is no viper function", "@micropython.viper")
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            return Kernel(name, _arguments(node), tuple(body), _constants(module, node), _stages(text, node, body))
    raise NotAKernel(None, f"no function {name!r}", "a function at the top level of the file")


def _constants(module: ast.Module, function: ast.FunctionDef) -> dict[str, int]:
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    found: dict[str, int] = {}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="const"), args=[value])):
                if name in used:
                    found[name] = _number(value)
            case _:
                pass
    return found


def _number(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            raise NotAKernel(node, f"const({ast.unparse(node)})", "a plain number")


def _arguments(node: ast.FunctionDef) -> tuple[tuple[str, str], ...]:
    arguments: list[tuple[str, str]] = []
    for argument in node.args.args:
        kind = argument.annotation.id if isinstance(argument.annotation, ast.Name) else "none"
        if kind not in POINTERS and kind != "int":
            raise NotAKernel(node, f"argument {argument.arg} of type {kind}", "ptr32, ptr16, ptr8, int")
        arguments.append((argument.arg, kind))
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
                types.setdefault(node.targets[0].id, _type_of(node.value, types))
    return types


def _type_of(node: ast.expr, types: Mapping[str, str]) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in POINTERS:
            return name
        case ast.Name(id=name):
            return types.get(name, "int")
        case _:
            return "int"
