"""`./run house`: how much code there is, how its modules lean on each other, and how many files one job runs through.

A job's files are those of host and protocol in which a function is executed while it runs: `fit` with nothing but its
defaults, `open_run`, and a trajectory played by one emulated board. What importing executes does not count.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("jointwire", "jointbench")  # packages whose modules, importers and functions are counted
SOURCES = {"host": ROOT / "host", "protocol": ROOT / "protocol"}

LAYERS: tuple[tuple[str, ...], ...] = (
    ("testing",),
    ("cli",),
    ("results",),
    ("identification",),
    ("recording", "excitation", "bench"),
    ("model", "signals"),
)
"""Rooms of the host, top down: one may import from those below it, not from those above."""


@dataclass(frozen=True)
class Module:
    """A Python file.

    Attributes:
        name: dotted, as it is imported.
        path: from the root.
        tree: its syntax.
        n_lines: of its text.
    """

    name: str
    path: Path
    tree: ast.Module
    n_lines: int

    @property
    def is_test(self) -> bool:
        """True for tests, a test bench's files excepted."""
        return "tests" in self.path.parts or self.path.name == "conftest.py" or self.path.name.startswith("test_")

    @property
    def is_product(self) -> bool:
        """True for a module of host or protocol."""
        return not self.is_test and self.name.split(".")[0] in PRODUCT

    @property
    def is_program(self) -> bool:
        """True for a face or a program: a package's `__init__`, a `__main__`, or a verb, imported by its name."""
        targets = [node.targets[0] for node in self.tree.body if isinstance(node, ast.Assign)]
        is_verb = self.room == "cli" and any(isinstance(target, ast.Name) and target.id == "VERB" for target in targets)
        return is_verb or self.path.stem in ("__init__", "__main__")

    @property
    def room(self) -> str:
        """The package below jointbench that it belongs to; empty for one that belongs to none."""
        parts = self.path.parts
        return parts[2] if parts[:2] == ("host", "jointbench") and len(parts) > 3 else ""


@dataclass(frozen=True)
class House:
    """All modules of a checkout, by name."""

    modules: Mapping[str, Module]

    @classmethod
    def read(cls, root: Path) -> House:
        """The Python files that git knows in a checkout."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "*.py"], cwd=root, capture_output=True, text=True, check=True
        ).stdout
        modules: dict[str, Module] = {}
        for path in map(Path, filter(None, listed.split("\0"))):
            text = (root / path).read_text(encoding="utf-8")
            parts = path.with_suffix("").parts[1 if path.parts[0] in SOURCES else 0 :]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module(name, path, ast.parse(text), text.count("\n"))
        return cls(modules)

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Modules of the house that each module imports, those for annotations alone left out."""
        return {name: set(self._imported_by(module)) for name, module in self.modules.items()}

    def _imported_by(self, module: Module) -> Iterator[str]:
        for node in _running_nodes(module.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.modules)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    yield from [each for each in (name, node.module) if each in self.modules][:1]

    def lines(self, tests: bool) -> int:
        """Lines of tests, or of everything else."""
        return sum(module.n_lines for module in self.modules.values() if module.is_test == tests)

    @property
    def product_lines(self) -> int:
        """Lines of host, protocol and firmware without their tests."""
        rooms = (*SOURCES, "firmware")
        return sum(m.n_lines for m in self.modules.values() if not m.is_test and m.path.parts[0] in rooms)

    @property
    def with_one_importer(self) -> list[str]:
        """Modules of the product, faces and programs left out, that one other module alone imports."""
        importers: dict[str, set[str]] = {name: set() for name in self.modules}
        for name, imported in self.imports.items():
            if not self.modules[name].is_test:
                for other in imported:
                    importers[other].add(name)
        return [
            name
            for name, module in self.modules.items()
            if module.is_product and not module.is_program and len(importers[name]) == 1
        ]

    @property
    def exceptions(self) -> list[str]:
        """Classes in the product's files of errors."""
        return [
            f"{module.name}.{node.name}"
            for module in self.modules.values()
            if module.is_product and module.path.name == "errors.py"
            for node in module.tree.body
            if isinstance(node, ast.ClassDef)
        ]

    @property
    def longest_function(self) -> tuple[int, str]:
        """Lines of the product's longest function, decorators and docstring included, and its name."""
        return max(
            (node.end_lineno - node.lineno + 1, f"{module.name}.{node.name}")
            for module in self.modules.values()
            if module.is_product
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
        )

    @property
    def circles(self) -> list[list[str]]:
        """Rooms of the host that import each other, directly or by way of others."""
        rooms = self.room_imports
        reached = {room: _reached(room, rooms) for room in rooms}
        groups = {frozenset(other for other in reached[room] if room in reached[other]) for room in rooms}
        return sorted(sorted(group) for group in groups if len(group) > 1)

    @property
    def room_imports(self) -> dict[str, set[str]]:
        """Rooms of the host that the modules of each room import."""
        rooms: dict[str, set[str]] = {}
        for name, module in self.modules.items():
            if module.is_product and module.room:
                others = {self.modules[other].room for other in self.imports[name]}
                rooms.setdefault(module.room, set()).update(others - {"", module.room})
        return rooms

    @property
    def upward(self) -> list[str]:
        """Imports of a room from one that stands above it, module by module."""
        level = {room: k for k, layer in enumerate(LAYERS) for room in layer}
        return sorted(
            f"{name} -> {other}"
            for name, module in self.modules.items()
            if module.is_product and module.room in level
            for other in self.imports[name]
            if level.get(self.modules[other].room, len(LAYERS)) < level[module.room]
        )


def _running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _running_nodes(node)


def _reached(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    reached, rest = set[str](), [start]
    while rest:
        for target in arrows.get(rest.pop(), set()) - reached:
            reached.add(target)
            rest.append(target)
    return reached


class Walk:
    """The product's files in which functions run while it is on, and how many functions."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Note what runs, in this thread and in those that begin meanwhile."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # pyright: ignore[reportArgumentType] (None ends it, as of sys.settrace)

    def _trace(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # bodies of modules and classes are not
            self._codes.add(frame.f_code)

    @property
    def functions(self) -> list[CodeType]:
        """Those of the product's modules."""
        sources = [str(source) for source in SOURCES.values()]
        return [
            code
            for code in self._codes
            if code.co_filename.startswith(tuple(sources)) and "/tests/" not in code.co_filename
        ]

    @property
    def files(self) -> list[str]:
        """Theirs, from the root."""
        return sorted({str(Path(code.co_filename).relative_to(ROOT)) for code in self.functions})


def walk_fit(folder: Path) -> Walk:
    """Fit a recording of the library's cobot6 by defaults."""
    from jointbench.identification import fit
    from jointbench.recording import open_run

    run = open_run(_example(folder))
    walk = Walk()
    with walk.on():
        fit(run)
    return walk


def walk_open_run(folder: Path) -> Walk:
    """Open a run that boards recorded, and take its samples."""
    from jointbench.recording import open_run
    from jointbench.tests.recording.simulated_run import record

    path = record(folder / "recorded")
    walk = Walk()
    with walk.on():
        _ = open_run(path).samples
    return walk


def walk_trajectory(folder: Path) -> Walk:
    """Play a plan on a bench of one emulated board."""
    from hil_tests.pendulum import COBOT6_PLANT
    from hil_tests.virtual_bench import virtual_bench
    from jointbench.bench import open_bench
    from jointbench.excitation import plan_excitation
    from jointbench.model import load_robot

    file = folder / "one.toml"
    file.write_text(
        f'version = 1\nname = "one"\nrobot = "cobot6:1"\nplant = "{COBOT6_PLANT}"\n'
        '[[board]]\nnode = 1\njoint = "j1"\nurl = "unix:"\n',
        encoding="utf-8",
    )
    plan = plan_excitation(load_robot("cobot6:1"), harmonics=2, period=1.6, seed=1, starts=1, iterations=2)
    walk = Walk()
    with virtual_bench(file, out=folder / "sim") as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        with walk.on():
            bench.play(plan)
    return walk


def _example(folder: Path) -> Path:
    from tools.docs.example_runs import imported

    return imported("cobot6", folder / "example", 1).path


WALKS: dict[str, Callable[[Path], Walk]] = {
    "a default fit": walk_fit,
    "open_run": walk_open_run,
    "a trajectory to one board": walk_trajectory,
}


def main(arguments: list[str] | None = None) -> int:
    """Print all counts."""
    options = argparse.ArgumentParser(prog="./run house", description="What a reader of the code meets, counted.")
    options.add_argument("--walk", choices=list(WALKS), help="list the files and functions of this job instead")
    options.add_argument("--list", choices=["one_importer", "exceptions", "upward"], help="list these instead")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="jointbench-house-") as name:
        if given.walk:
            walk = WALKS[given.walk](Path(name))
            print("\n".join(walk.files))
            return 0
        house = House.read(ROOT)
        if given.list:
            named = {"one_importer": house.with_one_importer, "exceptions": house.exceptions, "upward": house.upward}
            print("\n".join(named[given.list]))
            return 0
        longest, function = house.longest_function
        print(f"Python lines: {house.lines(False) + house.lines(True)}, of tests {house.lines(True)}")
        print(f"  of host, protocol and firmware without tests: {house.product_lines}")
        print(f"Python files: {len(house.modules)}")
        print(f"modules with one importer: {len(house.with_one_importer)}")
        print(f"exceptions: {len(house.exceptions)}")
        print(f"longest function: {longest} lines, {function}")
        print(f"circles of rooms: {house.circles or 'none'}")
        print(f"upward arrows: {len(house.upward)}")
        for job, follow in WALKS.items():
            walk = follow(Path(name))
            print(f"{job}: {len(walk.files)} files, {len(walk.functions)} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
