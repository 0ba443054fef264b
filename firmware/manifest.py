"""The firmware inside a MicroPython of your own: `make … FROZEN_MANIFEST=…/firmware/manifest.py`.

From a manifest of yours: include("…/firmware/manifest.py"). docs/flash.md says what a board needs besides.

The emulated boards stay out: no chip needs them, and the assembler of one does not compile for every chip.
`emulated=True` takes them in.

What a slot has as files is a module here: jointboard/frozen.py, made now, holds the schema, and the digest that HELLO
says: over the same files as where mip put them (jointboard/image.py).
"""
# ruff: noqa: F821 - `package` and `options` are MicroPython's

import atexit
import os
import shutil
import tempfile
from hashlib import sha256


def modules(folder):
    """The names of a folder's modules."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".py"))


def content(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


options.defaults(emulated=False)
boards = [name for name in modules("boards") if options.emulated or name not in ("mps2.py", "unix.py")]
drivers, core = modules("boards/drivers"), modules("jointboard")
package("boards", files=boards)
package("drivers", files=drivers, base_path="boards")
package("jointboard", files=core)

files = {"boards/" + name: "boards/" + name for name in boards}
files.update({"drivers/" + name: "boards/drivers/" + name for name in drivers})
files.update({"jointboard/" + name: "jointboard/" + name for name in [*core, "schema.bin"]})
image = sha256()
for name in sorted(files):
    image.update(name.encode() + b"\0" + sha256(content(files[name])).digest())

made = tempfile.mkdtemp()
atexit.register(shutil.rmtree, made)  # the build reads it until this program ends
os.mkdir(made + "/jointboard")
with open(made + "/jointboard/frozen.py", "w") as file:
    file.write(f"DIGEST = {image.digest()!r}\nSCHEMA = {content('jointboard/schema.bin')!r}\n")
package("jointboard", files=("frozen.py",), base_path=made)
