"""A motor's calibration over a reset: its "persist" registers in settings.json, with the board's uid and a CRC.

A new file is written beside the old one, read back, and put in its place by renaming; the one before is kept as
settings.old. So power may fail at any moment: the next boot takes the newest file that is whole, or the defaults. The
second motor of a board has partner.json and so on: `files` is the part before the dot. Milliseconds of flash writing:
only while the board's motors rest.
"""

import json
import os
import sys
from binascii import crc32, hexlify

from jointboard import registers, wire

SAVED = ".json"
NEW = ".new"
PREVIOUS = ".old"


def load(cells, uid, files):
    """Take the saved values; a file that is broken, or another board's, is told on the console and left aside."""
    present = os.listdir()
    for name in (files + SAVED, files + PREVIOUS):
        if name in present:
            try:
                return _apply(cells, files, _read(name, uid))
            except Exception as error:  # whatever is wrong with a file must not keep the board from starting
                print("%s is left aside: %s" % (name, error), file=sys.stderr)


def save(cells, uid, files):
    """Keep the values as they are now. Raises OSError when they could not be written."""
    values = {name: cells[id] for name, id in wire.FACTS.items() if wire.ACCESS[id] == registers.PERSIST}
    with open(files + NEW, "w") as file:
        json.dump({"uid": hexlify(uid).decode(), "values": values, "crc32": _crc(uid, values)}, file)
        file.flush()  # MicroPython's files are synchronised by it
    try:
        same = _read(files + NEW, uid) == values
    except OSError:
        raise
    except Exception:  # whatever was read is not what was written
        same = False
    if not same:
        raise OSError(_EIO)
    try:
        _read(files + SAVED, uid)
        os.rename(files + SAVED, files + PREVIOUS)
    except Exception:  # there is none, or it is broken: what PREVIOUS holds is better
        pass
    os.rename(files + NEW, files + SAVED)


_EIO = 5


def _read(name, uid):
    with open(name) as file:
        settings = json.load(file)
    if settings["uid"] != hexlify(uid).decode():
        raise ValueError("it is of board %s" % settings["uid"])
    if settings["crc32"] != _crc(uid, settings["values"]):
        raise ValueError("its CRC differs")
    return settings["values"]


def _crc(uid, values):
    return crc32(repr(sorted(values.items())).encode(), crc32(uid))


def _apply(cells, files, values):
    """Names that this firmware has no longer, and values it does not allow, are left aside one by one."""
    for name, value in values.items():
        id = wire.FACTS.get(name, 0)
        if wire.ACCESS[id] != registers.PERSIST or registers.within(cells, id, value) != value:
            print("%s%s: %s = %d is left aside" % (files, SAVED, name, value), file=sys.stderr)
        else:
            cells[id] = value
    registers.derive(cells)
