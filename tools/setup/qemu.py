"""An emulated Cortex-M3 board: QEMU's machine mps2-an385, and a MicroPython for it that boots from a flash of its own.

`.cache/qemu` holds `firmware.elf`, and in `bin` the programs qemu-system-arm and arm-none-eabi-gcc (with its kin).
"""

import hashlib
import os
import shutil
from pathlib import Path

from tools.setup import apt, qemu_image, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable, must_say

# What the user may name instead. What a machine has installed is not taken unasked: another compiler makes other
# programs, whose instructions are other numbers.
VARIABLES = ("JOINTBENCH_QEMU", "JOINTBENCH_QEMU_FIRMWARE", "JOINTBENCH_ARM_GCC")
OTHER_WAYS = (
    f"\n  Other ways: name a Debian mirror in {apt.MIRROR_VARIABLE}; name a qemu-system-arm, its image and an "
    f"arm-none-eabi-gcc of your own in {', '.join(VARIABLES)}; or build the container: podman build -t jointbench ."
)

# Typed at the raw REPL of a board with a blank flash.
PROBE = """
import machine, os
@micropython.viper
def product(a: int, b: int) -> int:
    return a * b
print(product(70000, 70000), os.statvfs("/")[2], os.listdir("/"))
machine.reset()
"""
PROBE_ANSWER = "605032704 256 []"  # modulo 2**32 as a board's registers hold it; 256 blocks of flash, no file
PATIENCE_S = 60  # against a QEMU that hangs; a busy machine takes about 2 s


def key(checkout: Checkout) -> str:
    """Return a digest of what the image is made from: Debian's packages, MicroPython's source, and the port."""
    digest = hashlib.sha256(qemu_tools.key().encode())
    digest.update(qemu_tools.source_of(checkout.qemu).name.encode())
    for path in qemu_image.port_files(checkout):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest() + "\n"


def is_ready(checkout: Checkout) -> bool:
    """Say whether the image is there, and made from what is in the checkout now."""
    if _all_named():
        return True
    stamp = _stamp(checkout)
    return has_tools(checkout) and stamp.exists() and stamp.read_text() == key(checkout)


def has_tools(checkout: Checkout) -> bool:
    """Say whether the programs are there, and are those that are chosen now."""
    stamp = checkout.qemu / "tools-key"
    return stamp.exists() and stamp.read_text() == qemu_tools.key()


def install(checkout: Checkout) -> None:
    """Fetch the programs if need be, build the image, check it by running it, and only then put it in its place.

    Raises:
        Unavailable: the programs cannot be had here.
        SetupError: the image cannot be built, or does not run.
    """
    new = checkout.qemu
    if not has_tools(checkout):
        new = checkout.work / "qemu"
        try:
            qemu_tools.install(checkout, new)
        except SetupError as error:
            raise Unavailable(f"QEMU and the ARM compiler cannot be fetched: {error}{OTHER_WAYS}") from error
        (new / "tools-key").write_text(qemu_tools.key())
    image = qemu_image.build(checkout, new)
    check(new / "bin" / "qemu-system-arm", image)
    image.replace(new / "firmware.elf")
    if new != checkout.qemu:
        shutil.rmtree(checkout.qemu, ignore_errors=True)
        new.rename(checkout.qemu)
    _stamp(checkout).write_text(key(checkout))


def check(qemu: Path, image: Path) -> None:
    """Make sure that an image runs as a board: its console, its arithmetic, its flash.

    Raises:
        SetupError: QEMU does not start, or the board does not answer as it should.
    """
    # -no-reboot: the reset at the end of the probe ends QEMU.
    machine = ["-machine", "mps2-an385", "-no-reboot", "-display", "none", "-monitor", "none", "-serial", "stdio"]
    command = [qemu, *machine, "-kernel", image]
    must_say(PROBE_ANSWER, command, f"{image} does not run as a board in {qemu}", PATIENCE_S, f"\x01{PROBE}\x04")


def _all_named() -> bool:
    return all(os.environ.get(name) for name in VARIABLES)


def _stamp(checkout: Checkout) -> Path:
    return checkout.qemu / "image-key"
