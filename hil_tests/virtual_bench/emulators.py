"""The emulators that boards run on, each looked for when a board first needs it."""

import functools
import json
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.bench_file import QEMU, BoardEntry
from hil_tests.virtual_bench.board import Board
from hil_tests.virtual_bench.emulated_board import EmulatedBoard, prepare_flash
from hil_tests.virtual_bench.errors import BoardStartError
from hil_tests.virtual_bench.interpreter import find_interpreter
from hil_tests.virtual_bench.qemu import Qemu, find_qemu
from hil_tests.virtual_bench.qemu_board import QemuBoard
from jointbench.errors import FlashError
from jointbench.flash import Image, build_image, factory_files


class Emulators:
    """Starts boards on what their entries ask for."""

    def start(self, entry: BoardEntry, folder: Path, config: dict[str, Any]) -> Board:
        """Start a board with a new flash.

        Args:
            entry: of the bench file.
            folder: for the board's files.
            config: its config.json.

        Raises:
            BenchError: its emulator is missing or wrong, or the board cannot be started.
        """
        if entry.url == QEMU:
            return QemuBoard(self._qemu, folder, self._qemu_files(config, entry.program), len(entry.motors))
        prepare_flash(folder, config, entry.program)
        return EmulatedBoard(self._interpreter, folder, len(entry.motors))

    @functools.cached_property
    def _interpreter(self) -> Path:
        return find_interpreter()

    @functools.cached_property
    def _qemu(self) -> Qemu:
        return find_qemu()

    @functools.cached_property
    def _image(self) -> Image:
        return build_image("mps2", compiled=False)  # compiling on six boards takes less time than mpy-cross does

    def _qemu_files(self, config: dict[str, Any], program: Path | None) -> dict[str, bytes]:
        """Files of a fresh board; a `program` takes the place of the slots, as in a unix board's folder."""
        try:
            if program is None:
                return factory_files(self._image, config)
            files = {"main.py": program.read_bytes(), "config.json": json.dumps(config).encode(), **self._image.files}
        except (OSError, FlashError) as error:
            raise BoardStartError(f"flash of a board cannot be filled: {error}") from error
        return files
