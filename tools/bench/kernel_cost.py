"""Viper kernels of the firmware translated to C: the peer whose instructions the benchmark counts beside theirs."""

from __future__ import annotations

import ast
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hil_tests.virtual_bench.qemu import find_compiler
from tools.bench.peers import BenchmarkFailed


class NotAKernel(BenchmarkFailed):
    """The firmware's source uses what cannot be said in C."""

    def __init__(self, where: ast.AST | None, what: str, allowed: str) -> None:
        """`where` gives the line, `what` was found there, `allowed` is what may stand there instead."""
        line = getattr(where, "lineno", None)
        super().__init__(f"{'' if line is None else f'line {line}: '}{what}; allowed: {allowed}")


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


# Besides optimisation and core: integers wrap, and pointers of all types may meet, as in viper.
_FLAGS = (
    "-O2", "-mcpu=cortex-m3", "-mthumb", "-fwrapv", "-fno-strict-aliasing", "-ffreestanding", "-nostdlib", "-std=c11",
)  # fmt: skip
_TYPES = {"ptr32": "int32_t *", "ptr16": "uint16_t *", "ptr8": "uint8_t *", "int": "int32_t "}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>", ast.FloorDiv: "/", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.And: "&&", ast.Or: "||", ast.USub: "-", ast.Not: "!",
}  # fmt: skip


def compile_peer(kernel: Kernel) -> bytes:
    """Machine code of a kernel's C; it begins with the function.

    Raises:
        NotAKernel: the kernel uses what cannot be said in C.
        BenchmarkFailed: the compiler refuses it, or the code needs anything outside itself.
        QemuMissing: there is no compiler.
    """
    compiler = find_compiler()
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        source, linked, binary = (Path(name) / f"kernel.{suffix}" for suffix in ("c", "elf", "bin"))
        source.write_text(c_source(kernel), encoding="utf-8")
        place = ("-Wl,-Ttext=0", f"-Wl,-e,{kernel.name}", "-Wl,--build-id=none")
        _run([str(compiler), *_FLAGS, *place, str(source), "-o", str(linked)], kernel)
        objcopy = compiler.with_name(compiler.name.replace("gcc", "objcopy"))
        _run([str(objcopy), "-O", "binary", "-j", ".text", str(linked), str(binary)], kernel)
        return binary.read_bytes()


def _run(command: list[str], kernel: Kernel) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkFailed(f"{kernel.name}: {done.stderr.strip()}")


def compiler_version() -> str:
    """First line of what the compiler says of itself."""
    done = subprocess.run([str(find_compiler()), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def c_source(kernel: Kernel) -> str:
    """A C file with one function, named as the kernel.

    Raises:
        NotAKernel: the kernel uses what cannot be said in C.
    """
    constants = "".join(f"    {name} = {value},\n" for name, value in kernel.constants.items())
    arguments = ", ".join(f"{_TYPES[kind]}{name}" for name, kind in kernel.arguments)
    given = {name for name, _ in kernel.arguments}
    variables = [f"{_TYPES[kind]}{name};" for name, kind in local_types(kernel).items() if name not in given]
    body = "".join(f"    {line}\n" for line in (*variables, *_statements(kernel.body), "return 0;"))
    head = "#include <stdint.h>\n\n" + (f"enum {{\n{constants}}};\n\n" if constants else "")
    return f"{head}int32_t {kernel.name}({arguments}) {{\n{body}}}\n"


def _statements(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[target], value=value):
                yield f"{_expression(target)} = {_expression(value)};"
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _OPERATORS:
                yield f"{_expression(target)} {_OPERATORS[type(op)]}= {_expression(value)};"
            case ast.If(test=test, body=body, orelse=orelse):
                yield from (f"if ({_expression(test)}) {{", *_indented(body))
                if orelse:
                    yield from ("} else {", *_indented(orelse))
                yield "}"
            case ast.While(test=test, body=body, orelse=[]):
                yield from (f"while ({_expression(test)}) {{", *_indented(body), "}")
            case ast.Return(value=value):
                yield f"return {'0' if value is None else _expression(value)};"
            case _:
                raise NotAKernel(node, ast.unparse(node).splitlines()[0], "assignments, if, while, return")


def _indented(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    return (f"    {line}" for line in _statements(nodes))


def _expression(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=int(value)):
            return str(value)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return f"({_OPERATORS[type(op)]}{_expression(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return f"({_expression(left)} {_OPERATORS[type(op)]} {_expression(right)})"
        case ast.BoolOp(op=op, values=values):
            return "(" + f" {_OPERATORS[type(op)]} ".join(map(_expression, values)) + ")"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return f"({_expression(left)} {_OPERATORS[type(op)]} {_expression(right)})"
        case ast.Subscript(value=value, slice=index):
            return f"{_expression(value)}[{_expression(index)}]"
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in (*POINTERS, "int"):
            return f"(({_TYPES[name]})(intptr_t){_expression(argument)})"
        case _:
            raise NotAKernel(node, ast.unparse(node), "numbers, names, operators, indices, casts to pointers and int")
