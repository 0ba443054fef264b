"""The C peer of a kernel: the same statements in the same order, compiled to bare machine code that stands anywhere."""

from __future__ import annotations

import ast
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hil_tests.virtual_bench.qemu import find_compiler
from tools.firmware_bench.errors import NotAKernel, PeerFailed
from tools.firmware_bench.kernel import POINTERS, Kernel, local_types

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
        PeerFailed: the compiler refuses it, or the code needs anything outside itself.
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
        raise PeerFailed(f"{kernel.name}: {done.stderr.strip()}")


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
