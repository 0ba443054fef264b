"""A kernel as a MicroPython module again: needed where it has been cut."""

from __future__ import annotations

import ast

from tools.kernel_compiler.source import Kernel


def viper_source(kernel: Kernel) -> str:
    """A module with the kernel and the constants it uses."""
    names = {node.id for each in kernel.body for node in ast.walk(each) if isinstance(node, ast.Name)}
    constants = [f"{name} = const({value})\n" for name, value in kernel.constants.items() if name in names]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in kernel.arguments)
    body = "".join(f"    {line}\n" for each in kernel.body for line in ast.unparse(each).splitlines())
    head = "import micropython\nfrom micropython import const\n\n" + "".join(constants)
    return f"{head}\n\n@micropython.viper\ndef {kernel.name}({arguments}) -> int:\n{body}"
