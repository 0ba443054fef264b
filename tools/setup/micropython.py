"""A 32-bit MicroPython, the interpreter that runs an emulated board.

viper's integers are as wide as the machine's word, so only a 32-bit interpreter computes what a board computes. It
comes from Debian trixie with its own C library and loader, and runs on 64-bit machines that are left as they are.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.setup import apt, debian
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError

VARIABLE = "JOINTBENCH_MICROPYTHON"
KEY = "debian-key"  # the file that says from which packages it was made
OTHER_WAYS = (
    f"\n  Other ways: name a Debian mirror in {apt.MIRROR_VARIABLE}; name a 32-bit micropython in {VARIABLE}; "
    "or build the container: podman build -t jointbench ."
)

# Prints the word size of the interpreter and what viper makes of a product beyond 32 bits.
PROBE = """
import sys
print(sys.implementation.name, sys.maxsize == 2**31 - 1)
@micropython.viper
def product(a: int, b: int) -> int:
    return a * b
print(product(70000, 70000))
"""
PROBE_ANSWER = "micropython True 605032704"  # 70000 * 70000 modulo 2**32, as a board's 32-bit registers hold it

LAUNCHER = """\
#!/bin/sh
root=${{0%/*}}/../root
exec "$root/{loader}" --library-path "$root/{libraries}" "$root/usr/bin/micropython" "$@"
"""


@dataclass(frozen=True)
class Port:
    """A 32-bit Debian architecture, and where its packages keep the loader and the libraries."""

    architecture: str
    loader: str
    libraries: str


I386 = Port("i386", "usr/lib/ld-linux.so.2", "usr/lib/i386-linux-gnu")
ARMHF = Port("armhf", "usr/lib/ld-linux-armhf.so.3", "usr/lib/arm-linux-gnueabihf")
PORTS = {"x86_64": I386, "i686": I386, "i586": I386, "aarch64": ARMHF, "armv8l": ARMHF, "armv7l": ARMHF}


def port_of(machine: str) -> Port:
    """Return the 32-bit architecture a machine can run.

    Args:
        machine: its name as `uname -m` gives it.
    """
    if machine not in PORTS:
        known = ", ".join(PORTS)
        raise SetupError(f"no 32-bit MicroPython is known for a {machine} machine; known are {known}{OTHER_WAYS}")
    return PORTS[machine]


def check(interpreter: Path) -> None:
    """Make sure that a file is a MicroPython which computes as a board does.

    Raises:
        SetupError: it does not run, is not MicroPython, is a 64-bit build, or has no viper.
    """
    try:
        done = subprocess.run(
            [interpreter, "-c", PROBE], capture_output=True, text=True, errors="replace", check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{interpreter} does not run as a MicroPython ({error}){OTHER_WAYS}") from error
    answer = " ".join(done.stdout.split())
    if answer == PROBE_ANSWER:
        return
    if answer.startswith("micropython False"):
        raise SetupError(
            f"{interpreter} is a 64-bit MicroPython, whose viper does not compute as a board does; "
            f"a 32-bit build is needed (unset {VARIABLE} to have one fetched)"
        )
    said = ((done.stderr or done.stdout).strip().splitlines() or ["nothing"])[-1]
    raise SetupError(
        f"{interpreter} is not a MicroPython with viper that runs on this machine (it said: {said}){OTHER_WAYS}"
    )


def launcher(checkout: Checkout) -> Path:
    """Return the interpreter of the emulated boards: the one the user named, else the fetched one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else checkout.micropython / "bin" / "micropython"


def is_ready(checkout: Checkout) -> bool:
    """Say whether the interpreter is there as the lock has it, and computes as a board does."""
    try:
        if not os.environ.get(VARIABLE) and not _is_as_locked(checkout):
            return False
        check(launcher(checkout))
    except SetupError:
        return False
    return True


def _is_as_locked(checkout: Checkout) -> bool:
    stamp = checkout.micropython / KEY
    return stamp.exists() and stamp.read_text() == debian.key("micropython", port_of(os.uname().machine).architecture)


def install(checkout: Checkout) -> None:
    """Fetch MicroPython, check it by running it, and only then put it in its place.

    Raises:
        SetupError: the interpreter the user named will not do, or none can be had here.
    """
    if os.environ.get(VARIABLE):
        check(launcher(checkout))
        return
    port = port_of(os.uname().machine)
    try:
        debs = debian.fetch("micropython", port.architecture, checkout)
    except SetupError as error:
        raise SetupError(f"MicroPython cannot be fetched: {error}{OTHER_WAYS}") from error
    new = checkout.work / "micropython"
    program = new / "bin" / "micropython"
    program.parent.mkdir(parents=True)
    apt.unpack(debs, new / "root", checkout.log)
    program.write_text(LAUNCHER.format(loader=port.loader, libraries=port.libraries))
    program.chmod(0o755)
    check(program)
    (new / KEY).write_text(debian.key("micropython", port.architecture))
    shutil.rmtree(checkout.micropython, ignore_errors=True)
    new.rename(checkout.micropython)
