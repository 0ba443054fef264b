"""The emulators that boards run on, each looked for when a board first needs it."""

import functools
import json
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.bench_file import BAUD, QEMU, RP2040, BoardEntry
from hil_tests.virtual_bench.board import Board
from hil_tests.virtual_bench.dynamixel import Dynamixel
from hil_tests.virtual_bench.emulated_board import EmulatedBoard, find_interpreter, prepare_flash
from hil_tests.virtual_bench.errors import BoardStartError
from hil_tests.virtual_bench.kinds import SERVOS, VESC
from hil_tests.virtual_bench.plant_file import PowerTruth
from hil_tests.virtual_bench.qemu import Qemu, find_qemu
from hil_tests.virtual_bench.qemu_board import QemuBoard
from hil_tests.virtual_bench.rp2040.board import Rp2040, Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.wiring import board_config, read_wiring
from hil_tests.virtual_bench.smart_drive import DriveOfBoard
from hil_tests.virtual_bench.vesc import Vesc
from jointbench.bench.flash import Image, build_image, factory_files
from jointbench.errors import FlashError


class Emulators:
    """Starts boards on what their entries ask for."""

    def __init__(self, power: PowerTruth | None = None) -> None:
        """Know supply and windings, which chips are told of their motors; other boards need none."""
        self._power = power

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
            files = self._files(self._qemu_image, config, entry.program)
            return QemuBoard(self._qemu, folder, files, len(entry.motors))
        if entry.url == RP2040:
            assert self._power is not None
            wiring = read_wiring(entry.wiring, len(entry.motors))
            config = board_config(config, wiring, self._power, entry.baud or BAUD)
            return Rp2040Board(self._rp2040, folder, self._files(self._rp2040_image, config, entry.program), config)
        servo = None
        if entry.drive is not None:
            is_vesc = entry.drive == VESC
            drive = Vesc() if is_vesc else Dynamixel(entry.node, *SERVOS[entry.drive])
            servo = DriveOfBoard(drive, config["facts"])
            config = config | {"drive": {"kind": "vesc" if is_vesc else "dynamixel", "id": entry.node}}
        prepare_flash(folder, config, entry.program)
        return EmulatedBoard(self._interpreter, folder, len(entry.motors), servo=servo)

    @functools.cached_property
    def _interpreter(self) -> Path:
        return find_interpreter()

    @functools.cached_property
    def _qemu(self) -> Qemu:
        return find_qemu()

    @functools.cached_property
    def _rp2040(self) -> Rp2040:
        return find_rp2040()

    @functools.cached_property
    def _qemu_image(self) -> Image:
        return build_image("mps2", compiled=False)  # compiling on six boards takes less time than mpy-cross does

    @functools.cached_property
    def _rp2040_image(self) -> Image:
        return build_image("rp2", architecture="armv6m")

    def _files(self, image: Image, config: dict[str, Any], program: Path | None) -> dict[str, bytes]:
        """Files of a fresh board; a `program` takes the place of the slots, as in a unix board's folder."""
        try:
            if program is None:
                return factory_files(image, config)
            files = {"main.py": program.read_bytes(), "config.json": json.dumps(config).encode(), **image.files}
        except (OSError, FlashError) as error:
            raise BoardStartError(f"flash of a board cannot be filled: {error}") from error
        return files
