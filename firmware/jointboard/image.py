"""Which firmware this is: one SHA-256 over the board's program, as the host computes it over the files it wrote.

For each file (boot.py and main.py, then those of the package that end in .py, .mpy or .bin, in name order): its path, a
zero byte, its bytes.
"""

import os
from hashlib import sha256


def digest():
    names = [name for name in ("boot.py", "main.py") if name in os.listdir()]
    names += sorted("jointboard/" + name for name in os.listdir("jointboard") if name.endswith((".py", ".mpy", ".bin")))
    image = sha256()
    buffer = bytearray(256)
    for name in names:
        image.update(name.encode() + b"\0")
        with open(name, "rb") as file:
            while count := file.readinto(buffer):
                image.update(memoryview(buffer)[:count])
    return image.digest()
