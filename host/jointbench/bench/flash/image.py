"""The firmware as an image: its files, compiled and hashed, its signature and the boot file of a board."""

from __future__ import annotations

import ast
import functools
import hashlib
import hmac
import json
import os
import re
import string
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from jointbench.bench.flash.board_files import Kind, kind_named
from jointbench.bench.flash.compiler import Compiler, hide_constants
from jointbench.errors import FlashError

KEY = "image.key"
SIGNATURES = "manifest.hmac"
NEW_SIGNATURES = "manifest.new"  # until it is renamed
_DIGITS = 64
_OTHERS = 0o077  # in a file's mode
_HOW = 'make one: python -c "import secrets; print(secrets.token_hex(32))"'
_FORM = '"safe_outputs" must be a list of ["pin", PIN, LEVEL] and ["mem32", ADDRESS, VALUE]'
MANIFEST = "manifest.json"
POINTER = "slot.json"
VERSION = 1  # of manifest and config.json


@dataclass(frozen=True)
class Key:
    """Key that images are signed with; it is never shown."""

    _bytes: bytes = field(repr=False)

    def signature(self, manifest: bytes) -> str:
        """HMAC-SHA-256 of a manifest's bytes, hexadecimal."""
        return hmac.new(self._bytes, manifest, hashlib.sha256).hexdigest()

    def signed(self, manifest: bytes, signatures: bytes | None) -> bool:
        """True if one of the signatures in a manifest.hmac is this key's."""
        expected = self.signature(manifest).encode()
        return any([hmac.compare_digest(signature, expected) for signature in (signatures or b"").split()])

    @property
    def file(self) -> bytes:
        """Content of the board's image.key: the key and a check, as half of one is none."""
        return (self._bytes.hex() + hashlib.sha256(self._bytes).hexdigest()[:8]).encode() + b"\n"


@dataclass(frozen=True)
class Keys:
    """The keys of a flash.

    Attributes:
        present: that the board has; None: it has none, or none is given.
        new: that the board shall have from now on; None: it keeps what it has.
    """

    present: Key | None = None
    new: Key | None = None

    @property
    def all(self) -> Sequence[Key]:
        """All keys that sign an image: while the key changes, the image is good before and after."""
        return [key for key in (self.present, self.new) if key]

    def signatures(self, manifest: bytes) -> bytes:
        """Content of a manifest.hmac."""
        return "".join(f"{key.signature(manifest)}\n" for key in self.all).encode()


NO_KEYS = Keys()


def read_key(path: Path) -> Key:
    """The key in a file of the host: 64 hexadecimal digits that nobody else may read.

    Raises:
        FlashError: the file cannot be read, holds no key, or others may read it. What it holds is not said.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text("ascii").strip()
    except OSError as error:
        raise FlashError(f"key {path} cannot be read: {error.strerror}; {_HOW}") from error
    except ValueError:
        text, mode = "", 0
    if len(text) != _DIGITS or not set(text) <= set(string.hexdigits):
        raise FlashError(f"key {path} has {len(text)} characters; it must be {_DIGITS} hexadecimal digits. {_HOW}")
    if os.name == "posix" and mode & _OTHERS:
        raise FlashError(f"key {path} can be read by others (mode {mode & 0o777:o}); chmod 600 {path}")
    return Key(bytes.fromhex(text))


def boot_file(config: Mapping[str, Any], kind: Kind) -> bytes:
    """The statements for a board with this config.json, one line each.

    Args:
        config: its `safe_outputs` list pins to be driven to a level and words to be written, in that order; without
            it, `pins.enable` goes low.
        kind: says what to do where `config` says neither.

    Raises:
        FlashError: `safe_outputs` has another form, or the board is wired and `pins` names no `enable`.
    """
    pins: Any = config.get("pins")
    enable = cast(Mapping[str, Any], pins).get("enable") if isinstance(pins, Mapping) else None
    outputs: Any = config.get("safe_outputs")
    if outputs is None:
        outputs = [list(each) for each in kind.safe_outputs or ()] if enable is None else [["pin", enable, 0]]
    if not isinstance(outputs, Sequence) or isinstance(outputs, str):
        raise FlashError(f"config.json: {_FORM}")
    statements = "".join(_statement(output) for output in cast(Sequence[Any], outputs))
    if enable is None and kind.safe_outputs is None:
        raise FlashError(
            f"config.json: pins.enable is missing: without it nothing would switch the motor of a board of kind "
            f"{kind.name!r} off. Name the pin that ENABLE of its power stage is wired to; docs/boards.md has an example"
        )
    return statements.encode()


def _statement(output: Any) -> str:
    match output:
        case ["pin", int() | str() as pin, 0 | 1 as level]:
            return f"import machine; machine.Pin({pin!r}, machine.Pin.OUT, value={int(level)})\n"
        case ["mem32", int() as address, int() as value]:
            return f"import machine; machine.mem32[{address:#x}] = {value}\n"
        case _:
            raise FlashError(f"config.json: {_FORM}; it has {output!r}")


def find_firmware() -> Path:
    """The folder of the firmware's sources that came with this package: within it, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "firmware"
    return installed if installed.is_dir() else package.parents[1] / "firmware"


FIRMWARE = find_firmware()


@dataclass(frozen=True)
class Image:
    """Files of a slot beside its manifest.

    Attributes:
        board: kind of board it is for.
        firmware: version, "major.minor.patch".
        schema_hash: of the wire it speaks.
        mpy: ABI of its compiled files (version, sub-version), None for sources.
        architecture: of its native code; None where the board compiles for itself.
        files: content by path in the slot.
    """

    board: str
    firmware: str
    schema_hash: int
    mpy: tuple[int, int] | None
    architecture: str | None
    files: Mapping[str, bytes]

    @property
    def sha256(self) -> str:
        """Hash in the HELLO_ACK of a board that runs this image."""
        return image_sha256({name: hashlib.sha256(content).digest() for name, content in self.files.items()})

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(len(content) for content in self.files.values())

    @property
    def manifest(self) -> bytes:
        """Content of manifest.json: the slot is whole when its files hash to what stands there, each and together."""
        values = {
            "version": VERSION,
            "board": self.board,
            "firmware": self.firmware,
            "schema": f"{self.schema_hash:08x}",
            "mpy": self.mpy,
            "architecture": self.architecture,
            "image": self.sha256,
            "files": {
                name: [len(content), hashlib.sha256(content).hexdigest()]
                for name, content in sorted(self.files.items())
            },
        }
        return json.dumps(values, indent=1).encode() + b"\n"

    def in_slot(self, slot: str, keys: Keys = NO_KEYS) -> dict[str, bytes]:
        """Content by path on the board, the manifest last: a slot is whole only when it is there.

        Args:
            slot: "a" or "b".
            keys: what the image is signed with.
        """
        signed = {f"{slot}/{SIGNATURES}": keys.signatures(self.manifest)} if keys.all else {}
        files = {f"{slot}/{name}": self.files[name] for name in sorted(self.files)}
        return files | signed | {f"{slot}/{MANIFEST}": self.manifest}


def image_sha256(hashes: Mapping[str, bytes]) -> str:
    """SHA-256 of an image, hexadecimal: over its files in name order, of each its path, a zero byte and its SHA-256."""
    digest = hashlib.sha256()
    for name in sorted(hashes):
        digest.update(name.encode() + b"\0" + hashes[name])
    return digest.hexdigest()


def build_image(
    kind: str, compiled: bool | None = None, architecture: str | None = None, firmware: Path = FIRMWARE
) -> Image:
    """Build the image of a kind of board from the firmware's sources.

    Args:
        kind: a name of `BOARD_KINDS`.
        compiled: whether by mpy-cross; None: as is usual for the kind.
        architecture: of the board's native code where the kind leaves it open.
        firmware: folder with `jointboard` and `boards`.

    Raises:
        FlashError: there is no such kind or no firmware, its architecture is not known, or a file does not compile.
    """
    chosen = kind_named(kind)
    architecture = architecture or chosen.architecture
    compiled = chosen.compiles if compiled is None else compiled
    if compiled and architecture is None:
        raise FlashError(f"boards of kind {kind!r} differ in their native code; ask one what it is, or name it")
    sources = sources_of(kind, firmware)
    compiler = Compiler(architecture) if compiled and architecture else None
    files = compiler.compile(hide_constants(sources)) if compiler else sources
    return Image(
        board=kind,
        firmware=_version(sources["jointboard/__init__.py"]),
        schema_hash=_schema_hash(sources["jointboard/wire.py"]),
        mpy=compiler.abi if compiler else None,
        architecture=architecture if compiler else None,
        files=files,
    )


def factory_files(image: Image, config: Mapping[str, Any], firmware: Path = FIRMWARE) -> dict[str, bytes]:
    """Files of a fresh board by path: the loader, the image in slot a, and its configuration.

    Raises:
        FlashError: the loader is not there, or config.json says nothing usable about safe outputs.
    """
    files = image.in_slot("a")
    files["config.json"] = json.dumps({"version": VERSION, **config}, indent=1).encode() + b"\n"
    files[POINTER] = json.dumps({"slot": "a"}).encode()
    return files | loader_files(config, image.board, firmware)


def loader_files(config: Mapping[str, Any], kind: str, firmware: Path = FIRMWARE) -> dict[str, bytes]:
    """boot.py and main.py of a board of this kind and configuration.

    Raises:
        FlashError: as `factory_files`.
    """
    boot = firmware / "boot"
    return {
        "boot.py": boot_file(config, kind_named(kind)) + _read(boot / "boot.py"),
        "main.py": _read(boot / "main.py"),
    }


def write_factory(
    flash: Path | MutableMapping[str, bytes], image: Image, config: Mapping[str, Any], firmware: Path = FIRMWARE
) -> None:
    """Write what a fresh board holds into a folder, or into a mapping of content by path.

    Raises:
        FlashError: as `factory_files`.
        OSError: the folder cannot be written.
    """
    for name, content in factory_files(image, config, firmware).items():
        if isinstance(flash, Path):
            path = flash / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        else:
            flash[name] = content


def sources_of(kind: str, firmware: Path = FIRMWARE) -> dict[str, bytes]:
    """Files of an image before compiling, by path in the slot.

    Raises:
        FlashError: there is no firmware, or not for this kind of board.
    """
    package = package_of(firmware)
    sources = {"board.py": _read(firmware / "boards" / f"{kind}.py")}
    sources |= _drivers(sources["board.py"], firmware / "boards" / "drivers")
    for path in sorted(package.iterdir()):
        if path.suffix in (".py", ".bin"):
            sources[f"jointboard/{path.name}"] = _read(path)
    return sources


def package_of(firmware: Path) -> Path:
    """The package `jointboard` of a folder of sources.

    Raises:
        FlashError: it is not there.
    """
    package = firmware / "jointboard"
    if not package.is_dir():
        raise FlashError(f"no firmware at {firmware}: it comes with the package; name its folder with --firmware")
    return package


def _drivers(source: bytes, folder: Path) -> dict[str, bytes]:
    """The modules of package `drivers` that a file imports, and those that they import."""
    drivers: dict[str, bytes] = {}
    waiting = [source]
    while waiting:
        for module in _imported_drivers(waiting.pop()):
            name = f"drivers/{module}.py"
            if name not in drivers:
                drivers[name] = _read(folder / f"{module}.py")
                waiting.append(drivers[name])
    if drivers and (folder / "__init__.py").is_file():
        drivers["drivers/__init__.py"] = _read(folder / "__init__.py")
    return drivers


@functools.cache
def _imported_drivers(source: bytes) -> frozenset[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "drivers":
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("drivers."):
            modules.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("drivers.")}
    return frozenset(modules)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FlashError(f"firmware file {path} cannot be read: {error.strerror}") from error


def _version(source: bytes) -> str:
    number = _constant(source, "VERSION")
    return f"{number >> 16}.{number >> 8 & 0xFF}.{number & 0xFF}"


def _schema_hash(source: bytes) -> int:
    return _constant(source, "SCHEMA_HASH")


def _constant(source: bytes, name: str) -> int:
    match = re.search(rf"^{name} = const\((\w+)\)", source.decode(), re.MULTILINE)
    if match is None:
        raise FlashError(f"the firmware does not say its {name}; is it this project's?")
    return int(match[1], 0)
