"""Kinds of boards, and what each one's interpreter runs."""

from __future__ import annotations

from dataclasses import dataclass

from jointbench.errors import FlashError

# Native code by the number in sys.implementation._mpy (MicroPython's MP_NATIVE_ARCH_*), as mpy-cross calls it.
ARCHITECTURES = (
    None, "x86", "x64", "armv6", "armv6m", "armv7m", "armv7em", "armv7emsp", "armv7emdp", "xtensa", "xtensawin",
    "rv32imc", "rv64imc",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of board.

    Attributes:
        name: as HELLO_ACK says it, and the name of its file in firmware/boards.
        platform: what its interpreter calls itself (sys.platform).
        architecture: of native code where the kind settles it, None where only the board itself can say.
        compiles: whether images for it hold what mpy-cross made; otherwise the sources, which it compiles itself.
        safe_outputs: what switches its motor off (boot_file.py says how); None where its wiring must say it.
    """

    name: str
    platform: str
    architecture: str | None
    compiles: bool
    safe_outputs: tuple[tuple[str, int, int], ...] | None = None


KINDS = {
    kind.name: kind
    for kind in (
        Kind("unix", "linux", "x86", False, ()),  # its flash is a folder to look into; no pins of its own
        # A Cortex-M3, but MicroPython says so of any that has Thumb-2 and no FPU. Its outputs are words of its mailbox.
        Kind("mps2", "qemu", "armv7em", True, (("mem32", 0x21000104, 0), ("mem32", 0x21000108, 0))),
        Kind("rp2", "rp2", None, True),  # RP2040: armv6m, RP2350: armv7emsp
        Kind("stm32", "pyboard", None, True),  # by its core: armv7m, armv7emsp, armv7emdp
        Kind("esp32", "esp32", None, True),  # xtensawin; rv32imc for the C and H series
    )
}


def kind_named(name: str) -> Kind:
    """The kind of this name.

    Raises:
        FlashError: there is none.
    """
    if name not in KINDS:
        raise FlashError(f"no kind of board is called {name!r}; there are {', '.join(KINDS)}")
    return KINDS[name]
