"""Which firmware this is, as one SHA-256 over the program's files, and what makes it the board's own for good.

The digest goes over the files of the slot (board, jointboard/, drivers/) in name order: path, a zero byte, SHA-256 of
the content. It is read from the files, not from what somebody wrote about them: whatever else lies there shows. Tens of
milliseconds, at boot only. A firmware that is part of the interpreter has no files: frozen.py, made when it was built
(firmware/manifest.py), holds digest and schema.
"""

import json
import os
from hashlib import sha256
from io import BytesIO

PACKAGE = __file__.rsplit("/", 1)[0]  # "a/jointboard" in a slot, "jointboard" where there are no slots
SLOT = PACKAGE[: -len("/jointboard")] if "/" in PACKAGE else ""
POINTER = "slot.json"
NEW_POINTER = "slot.new"
PROGRAM = (".py", ".mpy", ".bin")

try:
    from jointboard import frozen
except ImportError:
    frozen = None

signed_only = False  # the loader has a key, and starts nothing that is not signed by it
refused = False  # it has refused a slot for that, and started the other one
on_trial = False  # the slot runs for the first time, and no host has confirmed it


class NotConfirmed(Exception):
    """On trial for too long: the loader starts the slot before."""


def digest():
    if frozen:
        return frozen.DIGEST
    slot = SLOT + "/" if SLOT else ""
    image = sha256()
    buffer = bytearray(256)
    for name in _names(slot):
        content = sha256()
        with open(slot + name, "rb") as file:
            while count := file.readinto(buffer):
                content.update(memoryview(buffer)[:count])
        image.update(name.encode() + b"\0" + content.digest())
    return image.digest()


def confirm():
    """Make the slot that runs the one to start from: a trial has passed. Raises OSError when it cannot be written."""
    global on_trial
    if not SLOT:
        raise OSError(2)  # ENOENT: there are no slots
    with open(NEW_POINTER, "w") as file:
        json.dump({"slot": SLOT}, file)
    os.rename(NEW_POINTER, POINTER)
    on_trial = False


def schema():
    """The schema of the wire, as a file to read from."""
    return BytesIO(frozen.SCHEMA) if frozen else open(PACKAGE + "/schema.bin", "rb")


def _names(slot):
    present = os.listdir(SLOT or ".")
    names = [name for name in ("board.py", "board.mpy") if name in present]
    for package in ("boards", "drivers", "jointboard"):
        if package in present:
            names += [package + "/" + name for name in os.listdir(slot + package) if name.endswith(PROGRAM)]
    return sorted(names)
