"""What can emulate a board, and what physics its joint can have: the words of command lines, which import little."""

from typing import Literal, get_args

UNIX, QEMU, RP2040 = "unix:", "qemu:mps2-an385", "rp2040:"
# Urls of boards: as they may be written, as they are called here.
EMULATED = {UNIX: UNIX, QEMU: QEMU, "qemu:": QEMU, RP2040: RP2040}

PlantKind = Literal["harmonic", "presliding", "ideal"]
PLANT_KINDS: tuple[PlantKind, ...] = get_args(PlantKind)

Variant = Literal["frictionless", "unmodelled", "published"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
"""Makes of a plant beside its usual one; `variants.in_variant` says what they are."""

VESC = "VESC"
# Dynamixels by their names: model number, current of a count [A], counts that their current is limited to.
SERVOS = {"XM430-W350": (1020, 2.69e-3, 1193), "XM540-W270": (1120, 2.69e-3, 2047), "XL330-M288": (1200, 1.0e-3, 1750)}
