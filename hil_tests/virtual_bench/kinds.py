"""What can emulate a board, and what physics its joint can have: the words of command lines, which import little."""

from typing import Literal, get_args

UNIX, QEMU = "unix:", "qemu:mps2-an385"
EMULATED = {UNIX: UNIX, QEMU: QEMU, "qemu:": QEMU}  # urls of boards: as they may be written, as they are called here

PlantKind = Literal["harmonic", "ideal"]
PLANT_KINDS: tuple[PlantKind, ...] = get_args(PlantKind)
