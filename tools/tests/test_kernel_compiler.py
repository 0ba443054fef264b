"""The kernel compiler: random programs in plain Python, viper, Thumb and C, bit for bit; encodings; refusals."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import pytest

from firmware.tests.driver import micropython
from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.qemu import find_compiler, run_program
from tools.firmware_bench.kernels import PROGRAMS, mpy
from tools.firmware_bench.peer import compile_peer
from tools.kernel_compiler.encode import Code
from tools.kernel_compiler.errors import NotAKernel
from tools.kernel_compiler.evaluate import evaluate
from tools.kernel_compiler.firmware_files import FILES, JOINTBOARD, GeneratedFile
from tools.kernel_compiler.source import Kernel, parse_kernel, read_kernel
from tools.kernel_compiler.thumb import Function, compile_kernel
from tools.tests.kernel_programs import CELLS, kernel_source, number

SEED = 11
PROGRAM_COUNT, MANY, CASES = 12, 40, 8
HALF = CELLS * 2  # bytes before the second half, where the ptr16 argument points
BASE = 0x20000000  # of the memory in plain Python; no result depends on it
HEAD = "import micropython\nfrom micropython import const\n\n"

# Runs each kernel on each case, and writes what it returned and what it left in memory.
PROGRAM = """
import gc, struct, sys, uctypes
memory = bytearray({size})
at = uctypes.addressof(memory)
number = bytearray(4)
{setup}
with open("cases.bin", "rb") as cases, open("{out}", "wb") as out:
    for k in range({kernels}):
        run = load(k)
        for _ in range({cases}):
            cases.readinto(number)
            cases.readinto(memory)
            result = run(struct.unpack("<i", number)[0])
            out.write(struct.pack("<I", result & 0xFFFFFFFF) + memory)
        gc.collect()
"""
PYTHON_SETUP = """
def load(k):
    module = __import__("kernel_%d" % k)
    del sys.modules["kernel_%d" % k]
    kernel = getattr(module, "k%d" % k)
    return lambda n: kernel(at, at + {half}, at, n)
"""
C_SETUP = """
from array import array
from counting import code, repeat, FROM, TO, WORDS, TURNS, RESULT
table = array("i", bytes(48))
table[FROM] = table[TO] = at
table[WORDS], table[TURNS] = 1, 1
def load(k):
    with open("peer_%d.bin" % k, "rb") as file:
        binary = bytearray(file.read())
    def run(n):
        table[0], table[1], table[2], table[3], table[4] = code(binary), at, at + {half}, at, n
        repeat(uctypes.addressof(table))
        return table[RESULT]
    return run
"""


def program(setup: str, out: str, kernels: int) -> str:
    setup = setup.format(half=HALF)
    return PROGRAM.format(size=4 * CELLS, setup=setup, out=out, kernels=kernels, cases=CASES)


class Programs:
    """Random kernels, cases for each, and what plain Python makes of them."""

    def __init__(self, seed: int, count: int) -> None:
        rng = random.Random(seed)
        self.sources = [kernel_source(f"k{index}", rng) for index in range(count)]
        self.kernels = [parse_kernel(source, f"k{index}") for index, source in enumerate(self.sources)]
        cases: list[bytes] = []
        self.expected: list[bytes] = []
        for kernel in self.kernels:
            for _ in range(CASES):
                n, words = number(rng), [number(rng) for _ in range(CELLS)]
                memory = bytearray(struct.pack(f"<{CELLS}i", *words))
                cases.append(struct.pack("<i", n) + memory)
                result = evaluate(kernel, memory, BASE, (BASE, BASE + HALF, BASE, n))
                self.expected.append(struct.pack("<i", result) + memory)
        self.cases = b"".join(cases)

    @cached_property
    def functions(self) -> list[Function]:
        return [compile_kernel(kernel) for kernel in self.kernels]

    def check(self, found: bytes) -> None:
        size = 4 + 4 * CELLS
        assert len(found) == size * len(self.expected)
        for index, expected in enumerate(self.expected):
            got = found[index * size : (index + 1) * size]
            numbers = [struct.unpack(f"<{CELLS + 1}i", each) for each in (got, expected)]
            assert got == expected, f"{self.sources[index // CASES]}\ngave {numbers[0]}\nnot  {numbers[1]}"


def check_viper(programs: Programs, folder: Path) -> None:
    """MicroPython's own compiler, on the 32-bit interpreter."""
    for index, source in enumerate(programs.sources):
        (folder / f"kernel_{index}.py").write_text(HEAD + source, encoding="utf-8")
    (folder / "cases.bin").write_bytes(programs.cases)
    (folder / "main.py").write_text(program(PYTHON_SETUP, "out.bin", len(programs.kernels)), encoding="utf-8")
    subprocess.run([micropython(), "main.py"], cwd=folder, check=True)
    programs.check((folder / "out.bin").read_bytes())


def check_thumb(programs: Programs, _folder: Path) -> None:
    """This compiler, on an emulated Cortex-M3."""
    need_qemu()
    files = {"cases.bin": programs.cases}
    for index, function in enumerate(programs.functions):
        files[f"kernel_{index}.mpy"] = mpy(HEAD + function.source)
    programs.check(run_program(program(PYTHON_SETUP, "out.bin", len(programs.kernels)), files)["out.bin"])


def check_c_peer(programs: Programs, _folder: Path) -> None:
    """A C compiler, on the same."""
    need_qemu()
    files = {"cases.bin": programs.cases, "counting.mpy": mpy((PROGRAMS / "counting.py").read_text("utf-8"))}
    for index, kernel in enumerate(programs.kernels):
        files[f"peer_{index}.bin"] = compile_peer(kernel)
    programs.check(run_program(program(C_SETUP, "out.bin", len(programs.kernels)), files)["out.bin"])


by_each_compiler = pytest.mark.parametrize(
    "check", [check_viper, check_thumb, check_c_peer], ids=["viper", "thumb", "c"]
)


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs(SEED, PROGRAM_COUNT)


@by_each_compiler
def test_programs_compute_what_the_language_says(
    programs: Programs, check: Callable[[Programs, Path], None], tmp_path: Path
) -> None:
    check(programs, tmp_path)


@pytest.mark.slow
@by_each_compiler
def test_many_programs_compute_what_the_language_says(check: Callable[[Programs, Path], None], tmp_path: Path) -> None:
    check(Programs(SEED + 1, MANY), tmp_path)


def test_a_wrong_result_does_not_pass(programs: Programs) -> None:
    right = bytearray(b"".join(programs.expected))
    right[-1] ^= 1
    with pytest.raises(AssertionError, match="gave"):
        programs.check(bytes(right))


@pytest.fixture(scope="module")
def firmware() -> dict[str, Function]:
    """The kernels of the firmware by their names, compiled."""
    kernels = [read_kernel(JOINTBOARD / f"{each.source}.py", name) for each in FILES for name in each.kernels]
    return {kernel.name: compile_kernel(kernel) for kernel in kernels}


def test_every_instruction_is_what_its_comment_says(
    firmware: dict[str, Function], programs: Programs, tmp_path: Path
) -> None:
    """The architecture's own disassembler reads the same text out of the halfwords."""
    need_qemu()
    codes = [code for function in [*firmware.values(), *programs.functions] for code in function.codes]
    plain = [code for code in dict.fromkeys(codes) if not re.match(r"(b|b\w\w|cbn?z)(\.w)? ", code.text)]
    assert len(plain) > 1000
    assert [normal(code.text) for code in plain] == disassembled(plain, tmp_path)


def disassembled(codes: list[Code], folder: Path) -> list[str]:
    binary = folder / "code.bin"
    binary.write_bytes(b"".join(struct.pack(f"<{len(code.halfwords)}H", *code.halfwords) for code in codes))
    compiler = find_compiler()
    objdump = compiler.with_name(compiler.name.replace("gcc", "objdump"))
    command = [str(objdump), "-D", "-b", "binary", "-marm", "-Mforce-thumb", str(binary)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") >= 2]
    return [normal(" ".join(cells[2:])) for cells in lines]


def normal(text: str) -> str:
    """One spelling of an instruction: register names, numbers, and what may be left out."""
    text = re.split(r"\s*[@;]|\s*//", text)[0].replace("rsb.w", "rsb").replace("rsbs.w", "rsbs")
    for other, name in {"sl": "r10", "fp": "r11", "ip": "r12", "r13": "sp", "r14": "lr"}.items():
        text = re.sub(rf"\b{other}\b", name, text)
    text = re.sub(r"#(-?\w+)", lambda match: f"#{int(match[1], 0) & 0xFFFFFFFF}", text)
    text = re.sub(r"mov(s?)\.w (\w+), (\w+), (asr|lsl|lsr) ", r"\4\1.w \2, \3, ", text)
    text = re.sub(r"\s+", " ", text.strip()).replace(", #0]", "]")
    text = (
        text.replace("stmdb sp!,", "push")
        .replace("ldmia.w sp!,", "pop.w")
        .replace("push.w", "push")
        .replace("pop.w", "pop")
    )
    text = re.sub(r"str\.?w? (r\d+), \[sp, #4294967292\]!", r"push {\1}", text)
    return re.sub(r"ldr\.?w? (r\d+), \[sp\], #4", r"pop {\1}", text)


def test_what_is_in_memory_is_what_was_encoded(firmware: dict[str, Function]) -> None:
    """MicroPython's assembler makes of the names, labels and numbers exactly the compiler's halfwords."""
    need_qemu()
    files = {f"{name}_kernel.mpy": mpy(HEAD + each.source) for name, each in firmware.items()}
    sizes = {name: 2 * sum(len(code.halfwords) for code in each.codes) for name, each in firmware.items()}
    lines = ["import machine, uctypes"]
    for name in firmware:
        lines += [
            f"import {name}_kernel",
            f"at = machine.mem32[id({name}_kernel.{name}) + 8] & ~1",
            f"with open('{name}.bin', 'wb') as file:",
            f"    file.write(uctypes.bytes_at(at + 2, {sizes[name]}))",  # behind the assembler's own push
        ]
    found = run_program("\n".join(lines) + "\n", files)
    for name, function in firmware.items():
        expected = b"".join(struct.pack(f"<{len(code.halfwords)}H", *code.halfwords) for code in function.codes)
        assert found[f"{name}.bin"] == expected


def test_generated_files_are_what_their_sources_say() -> None:
    stale = [each.path.name for each in FILES if each.is_stale()]
    assert not stale, f"stale: {stale}; type python -m tools.kernel_compiler"


def test_a_changed_file_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.kernel_compiler.firmware_files.JOINTBOARD", tmp_path)
    (tmp_path / "small.py").write_text(HEAD + SMALL, encoding="utf-8")
    small = GeneratedFile("small", ("small",))
    assert small.is_stale()
    small.path.write_text(small.text(), encoding="utf-8")
    assert not small.is_stale()
    (tmp_path / "small.py").write_text(HEAD + SMALL.replace("32767", "16383"), encoding="utf-8")
    assert small.is_stale()


SMALL = """
@micropython.viper
def small(cells: ptr32) -> int:
    word = cells[0]
    # stage: clamp
    if word > 32767:
        word = 32767
    if word < -32768:
        word = -32768
    cells[1] = word
    # stage: rest
    other = cells[1] + cells[0]
    return other
"""


def texts(kernel: Kernel) -> list[str]:
    return [code.text for code in compile_kernel(kernel).codes]


def test_a_clamp_is_one_instruction_and_what_is_known_is_not_loaded_again() -> None:
    code = texts(parse_kernel(SMALL, "small"))
    assert sum("ssat" in text for text in code) == 1
    assert sum(text.startswith("ldr") for text in code) == 1


ONE_LOOK = """
@micropython.viper
def k(a: ptr32) -> int:
    x = a[0]
    if (x + 32768) >> 16:
        x = 32767 ^ (x >> 31)
    return x
"""


def test_a_clamp_in_one_look_is_one_instruction_too() -> None:
    code = texts(parse_kernel(ONE_LOOK, "k"))
    assert sum("ssat" in text for text in code) == 1
    assert len(code) == 2  # and the load


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("+ 32768", "+ 32767"), (">> 16", ">> 15"), ("32767 ^", "16383 ^"), ("x >> 31", "x >> 30"),
        ("x = 32767", "a[1] = 32767"), ("(x + 32768)", "(a[1] + 32768)"), ("x >> 31)", "x >> 31)\n        a[1] = x"),
        ("(x + 32768) >> 16", "a[1]"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_clamp_is_none(what: str, other: str) -> None:
    source = ONE_LOOK.replace(what, other)
    assert source != ONE_LOOK
    kernel = parse_kernel(source, "k")
    assert not any("ssat" in text for text in texts(kernel))


def test_a_pointer_into_what_another_points_to_costs_nothing_and_hides_nothing() -> None:
    """What is stored by one is what the other loads, also where ways have met since the pointer was made."""
    source = """
@micropython.viper
def k(a: ptr32) -> int:
    near = ptr32(int(a) + 4 * 20)
    if a[0] > 3:
        a[1] = 5
    near[2] = a[0]
    a[23] = 7
    return near[2] + near[3]
"""
    code = texts(parse_kernel(source, "k"))
    assert sum(text.startswith("ldr") for text in code) == 1
    assert not any(text.startswith("add") and "#80" in text for text in code)


def test_a_store_elsewhere_may_have_changed_what_was_loaded() -> None:
    source = "@micropython.viper\ndef k(a: ptr32, b: ptr32) -> int:\n    x = a[0]\n    b[1] = 3\n    return x + a[0]\n"
    assert sum(text.startswith("ldr") for text in texts(parse_kernel(source, "k"))) == 2


def test_a_cut_kernel_returns_the_sum_of_what_is_still_needed() -> None:
    whole = parse_kernel(SMALL, "small")
    assert whole.stages == (("clamp", 1), ("rest", 4))
    memory = bytearray(struct.pack("<2i", 70000, 5))
    assert evaluate(whole.cut(1), memory, BASE, (BASE,)) == 70000
    assert evaluate(whole.cut(4), memory, BASE, (BASE,)) == 0
    assert struct.unpack("<2i", memory) == (70000, 32767)
    assert whole.cut(6) is whole


REFUSED = {
    "    return float(a[0])": "line 3: expression float",
    "    x = a[0] / 2\n    return x": r"line 3: expression a\[0\] / 2",
    "    for i in range(3):\n        pass\n    return 0": "line 3: for i in range",
    "    return missing": "line 3: name 'missing'",
    "    return a[0] + 0x40000000": "line 3: constant 1073741824",
    "    x = ptr16(a[0])\n    x = 3\n    return 0": "line 4: x as int; allowed: ptr16",
    "    return n[0]": "line 3: index into n",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_no_kernel_is_refused_by_line(body: str) -> None:
    kernel = parse_kernel(f"@micropython.viper\ndef k(a: ptr32, n: int) -> int:\n{body}\n", "k")
    with pytest.raises(NotAKernel, match=REFUSED[body]):
        compile_kernel(kernel)


def test_a_function_must_be_viper_with_few_plain_arguments() -> None:
    with pytest.raises(NotAKernel, match="k is no viper function"):
        parse_kernel("def k(a: ptr32) -> int:\n    return 0\n", "k")
    with pytest.raises(NotAKernel, match="5 arguments; allowed: at most 4"):
        parse_kernel("@micropython.viper\ndef k(a: int, b: int, c: int, d: int, e: int):\n    return 0\n", "k")
    with pytest.raises(NotAKernel, match="argument a of type object"):
        parse_kernel("@micropython.viper\ndef k(a: object):\n    return 0\n", "k")
    with pytest.raises(NotAKernel, match="no function 'other'"):
        parse_kernel(SMALL, "other")


def test_the_command_checks_without_writing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    from tools.kernel_compiler import __main__

    monkeypatch.setattr("tools.kernel_compiler.firmware_files.JOINTBOARD", tmp_path)
    monkeypatch.setattr(__main__, "FILES", (GeneratedFile("small", ("small",)),))
    (tmp_path / "small.py").write_text(HEAD + SMALL, encoding="utf-8")
    assert __main__.main(["--check"]) == 1
    assert not (tmp_path / "small_thumb.py").exists()
    assert __main__.main([]) == 0
    assert __main__.main(["--check"]) == 0
    (tmp_path / "small.py").write_text(HEAD + SMALL.replace("cells[0]", "cells.x"), encoding="utf-8")
    assert __main__.main(["--check"]) == 2
    assert "small.py: line" in capsys.readouterr().err
