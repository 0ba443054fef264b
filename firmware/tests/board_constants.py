"""Constants of a board's source file, read from its text: CPython cannot import MicroPython code."""

import ast
from pathlib import Path

from firmware.tests.driver import FIRMWARE


def constants(module: str) -> dict[str, int]:
    """Every `NAME = const(number)` of a module of the firmware, such as "jointboard/tick"."""
    path = Path(FIRMWARE, f"{module}.py")
    found: dict[str, int] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("const"), [number])):
                found[name] = ast.literal_eval(number)
    return found
