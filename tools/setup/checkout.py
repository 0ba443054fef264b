"""Folders of the set-up: all of them inside the checkout, so that deleting it removes everything."""

import fcntl
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Checkout:
    """A copy of the project on disk."""

    root: Path

    @property
    def venv(self) -> Path:
        """The private Python environment."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The interpreter of the private environment."""
        return self.venv / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Folder of the private environment's packages."""
        return next(iter(self.venv.glob("lib/python3*/site-packages")), self.venv / "site-packages")

    @property
    def libraries(self) -> Path:
        """System libraries that this machine lacked; `run` adds the folder to LD_LIBRARY_PATH."""
        return self.venv / "libraries"

    @property
    def lock(self) -> Path:
        """Every dependency, with its version and hashes."""
        return self.root / "requirements.lock"

    @property
    def cache(self) -> Path:
        """Folder of what the set-up fetched."""
        return self.root / ".cache"

    @property
    def log(self) -> Path:
        """The full output of every program the set-up ran."""
        return self.cache / "setup.log"

    @property
    def work(self) -> Path:
        """A folder for what a running set-up has in hand; emptied before and after."""
        return self.cache / "work"

    @property
    def uv(self) -> Path:
        """The folder of uv, which fills the environment; its program is bin/uv."""
        return self.cache / "uv"

    @property
    def downloads(self) -> Path:
        """Folder of downloads for parts that are not set up yet."""
        return self.cache / "downloads"

    @property
    def micropython(self) -> Path:
        """The folder of the fetched MicroPython; its launcher is bin/micropython."""
        return self.cache / "micropython"

    @property
    def chromium(self) -> Path:
        """The folder of the fetched Chromium; its launcher is bin/chromium."""
        return self.cache / "chromium"

    @property
    def qemu(self) -> Path:
        """The folder of the emulated Cortex-M3: its image firmware.elf; in bin the programs that run and build it."""
        return self.cache / "qemu"

    @property
    def riscv(self) -> Path:
        """The folder of the emulated RISC-V board: its image firmware.elf, and the emulator in bin."""
        return self.cache / "riscv"

    @property
    def rp2(self) -> Path:
        """The folder of the emulated RP2040: the image firmware.bin, the boot ROM and the emulator rp2040js."""
        return self.cache / "rp2"


@contextmanager
def exclusive(checkout: Checkout) -> Generator[None]:
    """Let one set-up at a time work on a checkout; a second one waits.

    The programs it starts inherit the lock: should it be killed alone, the next one waits for what it left running.
    """
    checkout.cache.mkdir(exist_ok=True)
    with (checkout.cache / "setup.lock").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another set-up of this checkout is running; waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        shutil.rmtree(checkout.work, ignore_errors=True)
        checkout.work.mkdir()
        try:
            yield
        finally:
            shutil.rmtree(checkout.work, ignore_errors=True)
