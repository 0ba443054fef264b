"""Images: what is in them, what they are called, and that the same sources make the same bytes."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from jointbench.errors import FlashError
from jointbench.flash.board_files import ARCHITECTURES, KINDS
from jointbench.flash.image import FIRMWARE, Image, build_image, factory_files, write_factory
from jointwire import schema_hash

CONFIG = {"node": 3, "facts": {}}


def test_an_image_of_sources_holds_the_package_and_its_board_file() -> None:
    image = build_image("unix")
    assert image.files["board.py"] == (FIRMWARE / "boards" / "unix.py").read_bytes()
    assert image.files["jointboard/app.py"] == (FIRMWARE / "jointboard" / "app.py").read_bytes()
    assert image.files["jointboard/schema.bin"] == (FIRMWARE / "jointboard" / "schema.bin").read_bytes()
    assert not [name for name in image.files if "pycache" in name or name.startswith("drivers")]
    assert (image.board, image.mpy, image.architecture) == ("unix", None, None)
    assert image.schema_hash == schema_hash()


def test_its_hash_is_over_paths_and_hashes_in_name_order() -> None:
    image = Image("unix", "1.0.0", 1, None, None, {"b": b"2", "a": b"1"})
    ones = [name + b"\0" + hashlib.sha256(content).digest() for name, content in ((b"a", b"1"), (b"b", b"2"))]
    assert image.sha256 == hashlib.sha256(b"".join(ones)).hexdigest()
    manifest = json.loads(image.manifest)
    assert manifest["image"] == image.sha256
    assert manifest["files"]["b"] == [1, hashlib.sha256(b"2").hexdigest()]
    assert list(image.in_slot("a")) == ["a/a", "a/b", "a/manifest.json"]  # the manifest last
    for other in ({"b": b"2"}, {"b": b"2", "a": b"2"}, {"b": b"2", "c": b"1"}):
        assert Image("unix", "1.0.0", 1, None, None, other).sha256 != image.sha256


def test_a_compiled_image_is_the_same_bytes_each_time() -> None:
    first, second = build_image("mps2"), build_image("mps2")
    assert first == second
    assert {name.rpartition(".")[2] for name in first.files} == {"mpy", "bin"}
    assert all(content[:2] == b"M\x06" for name, content in first.files.items() if name.endswith(".mpy"))
    assert first.mpy == (6, 3)
    assert first.size < build_image("mps2", compiled=False).size


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [("rp2", "armv6m"), ("rp2", "armv7emsp"), ("stm32", "armv7emsp"), ("esp32", "xtensawin")],
)
def test_real_boards_get_the_drivers_they_import(kind: str, architecture: str) -> None:
    files = build_image(kind, architecture=architecture).files
    assert "board.mpy" in files
    assert "drivers/joint.mpy" in files
    assert ("drivers/rp2_quadrature.mpy" in files) is (kind == "rp2")


def test_what_cannot_be_built_says_so(tmp_path: Path) -> None:
    with pytest.raises(FlashError, match="no kind of board is called 'pico'; there are unix, mps2, rp2"):
        build_image("pico")
    with pytest.raises(FlashError, match="boards of kind 'rp2' differ in their native code"):
        build_image("rp2")
    with pytest.raises(FlashError, match=r"no firmware at .*: it comes with the package"):
        build_image("unix", firmware=tmp_path)
    shutil.copytree(FIRMWARE, tmp_path / "firmware", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "firmware" / "jointboard" / "app.py").write_text("def run(:\n")
    with pytest.raises(
        FlashError, match=r"mpy-cross cannot compile jointboard/app.py for armv7em; it says: SyntaxError"
    ):
        build_image("mps2", firmware=tmp_path / "firmware")
    (tmp_path / "firmware" / "jointboard" / "wire.py").write_text("")
    with pytest.raises(FlashError, match="does not say its SCHEMA_HASH"):
        build_image("unix", firmware=tmp_path / "firmware")


def test_a_fresh_board_starts_from_slot_a(tmp_path: Path) -> None:
    image = build_image("unix")
    files = factory_files(image, CONFIG)
    assert json.loads(files["slot.json"]) == {"slot": "a"}
    assert json.loads(files["config.json"]) == {"version": 1, **CONFIG}
    assert files["main.py"] == (FIRMWARE / "boot" / "main.py").read_bytes()
    write_factory(tmp_path, image, CONFIG)
    assert {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == files
    mapping: dict[str, bytes] = {}
    write_factory(mapping, image, CONFIG)
    assert mapping == files


@pytest.mark.parametrize(
    ("kind", "config", "first"),
    [
        ("rp2", {"pins": {"enable": 22}}, "import machine; machine.Pin(22, machine.Pin.OUT, value=0)\n"),
        ("stm32", {"pins": {"enable": "PB1"}}, "import machine; machine.Pin('PB1', machine.Pin.OUT, value=0)\n"),
        (
            "esp32",
            {"pins": {"enable": 4}, "safe_outputs": [["pin", 4, 1], ["pin", 5, 0]]},
            "import machine; machine.Pin(4, machine.Pin.OUT, value=1)\n"
            "import machine; machine.Pin(5, machine.Pin.OUT, value=0)\n",
        ),
        ("mps2", {}, "import machine; machine.mem32[0x21000104] = 0\nimport machine; machine.mem32[0x21000108] = 0\n"),
        ("unix", {}, ""),
    ],
)
def test_the_first_statement_of_boot_switches_the_motor_off(kind: str, config: dict[str, object], first: str) -> None:
    boot = factory_files(build_image("unix"), {}) | {}
    rest = boot["boot.py"].decode()
    image = Image(kind, "1.0.0", 1, None, None, {})
    text = factory_files(image, config)["boot.py"].decode()
    assert text == first + rest
    assert all(line.startswith("#") for line in rest.splitlines())
    compile(text, "boot.py", "exec")


@pytest.mark.parametrize(
    "outputs", ["22", [22], [["pin", 22]], [["pin", 22, 2]], [["port", 1, 0]], [["mem32", "a", 0]], 5]
)
def test_safe_outputs_of_another_form_are_refused(outputs: object) -> None:
    with pytest.raises(FlashError, match=r'config.json: "safe_outputs" must be a list of'):
        factory_files(Image("rp2", "1.0.0", 1, None, None, {}), {"safe_outputs": outputs})


@pytest.mark.parametrize("kind", ["rp2", "stm32", "esp32"])
@pytest.mark.parametrize("config", [{}, {"pins": {}}, {"pins": []}, {"safe_outputs": [["pin", 5, 0]]}])
def test_a_wired_board_without_its_enable_pin_is_refused(kind: str, config: dict[str, object]) -> None:
    with pytest.raises(FlashError, match=rf"pins.enable is missing: .* of kind '{kind}' off. Name the pin"):
        factory_files(Image(kind, "1.0.0", 1, None, None, {}), config)


def test_every_kind_has_its_board_file_and_a_known_architecture() -> None:
    for kind in KINDS.values():
        assert (FIRMWARE / "boards" / f"{kind.name}.py").is_file()
        assert kind.architecture in ARCHITECTURES
