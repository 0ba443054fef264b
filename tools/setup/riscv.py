"""An emulated RISC-V board: QEMU's machine virt with a 32-bit processor, and MicroPython's own port for it, VIRT_RV32.

`.cache/riscv` holds `firmware.elf`, and `bin/qemu-system-riscv32`; compiler and sources are not kept. The headers are
newlib's, as for the Cortex-M3: Debian's picolibc is 122 MB, and the image takes no code of either.
"""

import hashlib
import os
import re
import shutil
from pathlib import Path

from tools.setup import apt, debian, qemu_image, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import SetupError, Unavailable, must_say

# What the user may name instead.
VARIABLES = ("JOINTBENCH_QEMU_RISCV", "JOINTBENCH_RISCV_FIRMWARE")
OTHER_WAYS = (
    f"\n  Other ways: name a Debian mirror in {apt.MIRROR_VARIABLE}; or name a qemu-system-riscv32 and a firmware.elf "
    f"of MicroPython's board VIRT_RV32 in {', '.join(VARIABLES)}"
)

# Of the packages what C for a 32-bit RISC-V needs, and the emulator. As in qemu_tools, some programs are hard links.
WANTED = re.compile(
    r"""usr/(
        bin/(qemu-system-riscv32|make)
      | bin/riscv64-unknown-elf-(gcc|as|ld|ar|nm|objcopy|objdump|ranlib|readelf|size|strip)
      | lib/riscv64-unknown-elf/bin/[^/]+
      | lib/gcc/riscv64-unknown-elf/[^/]+/(
            cc1|collect2|lto-wrapper|liblto_plugin\.so|include(-fixed)?/.+|rv32imac/ilp32/libgcc\.a
        )
      | include/newlib/.+
      | lib/[^/]+-linux-gnu/[^/]+\.so[^/]*
    )""",
    re.VERBOSE,
)
KEPT = ("bin/qemu-system-riscv32*", "lib/*-linux-gnu")
OPTIONS = {"riscv64-unknown-elf-gcc": ' -isystem "$root/include/newlib"'}
VARIABLES_OF_MAKE = (
    "BOARD=VIRT_RV32",
    "FROZEN_MANIFEST=",  # which would want a mpy-cross compiled for this machine
    f"MICROPY_HEAP_SIZE={256 * 1024}",  # as the emulated Cortex-M3 has
    "LIBS=-nostdlib -lgcc",
)

# Typed at the raw REPL; a reset ends the emulator.
PROBE = """
import machine, sys
@micropython.viper
def product(a: int, b: int) -> int:
    return a * b
print(product(70000, 70000), sys.implementation._mpy >> 10)
machine.reset()
"""
PROBE_ANSWER = "605032704 11"  # modulo 2**32 as a board's registers hold it; rv32imc
MACHINE = ("-machine", "virt", "-bios", "none", "-display", "none", "-monitor", "none", "-semihosting")
PATIENCE_S = 60  # against a QEMU that hangs; a busy machine takes about 2 s


def key() -> str:
    """Return a digest of what the image and the emulator are made from."""
    packages = debian.key("riscv", apt.architecture_of(os.uname().machine))
    made = f"{packages}{WANTED.pattern} {qemu_tools.WRAPPER} {OPTIONS} {VARIABLES_OF_MAKE}"
    return hashlib.sha256(made.encode()).hexdigest() + "\n"


def is_ready(checkout: Checkout) -> bool:
    """Say whether emulator and image are there, and made from what is chosen now."""
    if all(os.environ.get(name) for name in VARIABLES):
        return True
    stamp = checkout.riscv / "key"
    return stamp.exists() and stamp.read_text() == key()


def install(checkout: Checkout) -> None:
    """Fetch emulator and compiler, build the image, check it by running it, and only then put both in their place.

    Raises:
        Unavailable: the programs cannot be had here.
        SetupError: the image cannot be built, or does not run.
    """
    root, new = checkout.work / "riscv-root" / "usr", checkout.work / "riscv"
    try:
        architecture = apt.architecture_of(os.uname().machine)
        *debs, source = debian.fetch("riscv", architecture, checkout)
    except SetupError as error:
        raise Unavailable(f"QEMU and the RISC-V compiler cannot be fetched: {error}{OTHER_WAYS}") from error
    qemu_tools.unpack(debs, root.parent, WANTED, architecture, OPTIONS)
    port = qemu_image.unpack(checkout, source, "riscv-build") / "ports" / "qemu"
    qemu_image.make(checkout, port, root / "bin", *VARIABLES_OF_MAKE)
    for path in (path for pattern in KEPT for path in root.glob(pattern)):
        place = new / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(place)
    shutil.copyfile(port / "build-VIRT_RV32" / "firmware.elf", new / "firmware.elf")
    check(new / "bin" / "qemu-system-riscv32", new / "firmware.elf")
    (new / "key").write_text(key())
    shutil.rmtree(checkout.riscv, ignore_errors=True)
    new.rename(checkout.riscv)


def check(qemu: Path, image: Path) -> None:
    """Make sure that an image runs as a board: its console, its arithmetic, its instructions.

    Raises:
        SetupError: QEMU does not start, or the board does not answer as it should.
    """
    command = [qemu, *MACHINE, "-serial", "stdio", "-kernel", image]
    must_say(PROBE_ANSWER, command, f"{image} does not run as a board in {qemu}", PATIENCE_S, f"\x01{PROBE}\x04")
