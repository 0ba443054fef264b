"""Flashing: images of the firmware, plans to write them, configurations, and which boards are one."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jointbench.bench.bench_file import BoardEntry
from jointbench.bench.flash.board_files import ARCHITECTURES, BOARD_KINDS, FolderFiles
from jointbench.bench.flash.compiler import hide_constants
from jointbench.bench.flash.image import FIRMWARE, Image, build_image, factory_files, write_factory
from jointbench.bench.flash.plan import carry_out, plan_flash
from jointbench.bench.flash.slots import keep, read_config, read_json
from jointbench.bench.flash.update import boards_of
from jointbench.errors import FlashError
from jointbench.tests.bench.test_board import identity
from jointwire import schema_hash

CONFIG = {"node": 3, "facts": {}}


def test_an_image_of_sources_holds_the_package_and_its_board_file() -> None:
    image = build_image("unix")
    assert image.files["board.py"] == (FIRMWARE / "boards" / "unix.py").read_bytes()
    assert image.files["jointboard/app.py"] == (FIRMWARE / "jointboard" / "app.py").read_bytes()
    assert image.files["jointboard/schema.bin"] == (FIRMWARE / "jointboard" / "schema.bin").read_bytes()
    assert not [name for name in image.files if "pycache" in name]
    drivers = {name.removeprefix("drivers/") for name in image.files if name.startswith("drivers/")}
    assert drivers == {
        "__init__.py", "configuration.py", "dynamixel.py", "errors.py", "failures.py", "smart_drive.py", "vesc.py"
    }  # that it imports  # fmt: skip
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


CELLS = """
STATE = const(133)
FIRST = const(1)
NAMED = const(2)
WHOLE = const(FIRST | 4)
TAKEN = const(5)
_TAKEN = 6
CHECKED = "NAMED"


def kernel(x, FIRST_OF=FIRST):
    return x.FIRST + FIRST + (WHOLE
        + STATE)
"""
READER = "from cells import kernel\nimport cells\nFIRST = const(3)\nprint(cells.STATE, FIRST, cells.kernel)\n"


def test_constants_that_no_other_file_reads_take_no_memory() -> None:
    """`x.FIRST` may be the constant: with it the name stays. What others read, or strings name, stays anyway."""
    sources = {"cells.py": CELLS.encode(), "reader.py": READER.encode(), "schema.bin": b"STATE = const(1)"}
    hidden = hide_constants(sources)
    assert hidden["cells.py"].decode() == CELLS.replace("WHOLE", "_WHOLE")
    assert hidden["reader.py"] == sources["reader.py"]
    assert hidden["schema.bin"] == sources["schema.bin"]
    sources["cells.py"] = CELLS.replace("x.FIRST + ", "").encode()
    hidden = hide_constants(sources)
    expected = CELLS.replace("x.FIRST + ", "").replace("WHOLE", "_WHOLE")
    for old, new in (
        ("FIRST =", "_FIRST ="),
        ("(FIRST |", "(_FIRST |"),
        ("=FIRST)", "=_FIRST)"),
        (" FIRST + ", " _FIRST + "),
    ):
        expected = expected.replace(old, new)
    assert hidden["cells.py"].decode() == expected
    assert b"_FIRST = const(3)\nprint(cells.STATE, _FIRST, cells.kernel)" in hidden["reader.py"]


def test_a_compiled_image_holds_no_name_of_a_constant_that_only_its_file_reads() -> None:
    files = build_image("rp2", architecture="armv6m").files
    tick, wire = files["jointboard/tick.mpy"], files["jointboard/wire.mpy"]
    assert b"TORQUE_WEIGHTED" not in tick
    assert b"CHANNEL_KIND_COMMAND" not in wire
    assert b"STATUS_IN" in tick  # motor.py reads it
    assert b"REFUSAL_BAD_TOKEN" in wire


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
    for kind in BOARD_KINDS.values():
        assert (FIRMWARE / "boards" / f"{kind.name}.py").is_file()
        assert kind.architecture in ARCHITECTURES


OLD, NEW = (Image("rp2", "1.0.0", 1, None, None, {"board.py": content}) for content in (b"1", b"2"))
PLAN_CONFIG = {"version": 1, "node": 3, "facts": {}, "pins": {"enable": 22}}


@pytest.fixture
def prepared_board(tmp_path: Path) -> FolderFiles:
    write_factory(tmp_path, OLD, PLAN_CONFIG)
    return FolderFiles(tmp_path)


def test_a_loader_of_this_release_is_left_alone(prepared_board: FolderFiles) -> None:
    plan = plan_flash(prepared_board, NEW, PLAN_CONFIG)
    assert plan.notes == ()
    assert str(plan.steps[-1]) == "rename slot.new to slot.json"


def test_another_enable_pin_is_told_as_boot_py_still_has_the_old_one(prepared_board: FolderFiles) -> None:
    plan = plan_flash(prepared_board, NEW, PLAN_CONFIG | {"pins": {"enable": 23}})
    stays, why = plan.notes
    assert stays.startswith("boot.py differ from this release's and stay")
    assert why.startswith(
        "boot.py does not begin with what switches off the motor of this configuration (import machine"
    )
    assert "machine.Pin(23, machine.Pin.OUT, value=0)" in why


def test_a_loader_whose_main_py_was_removed_is_written_anew(prepared_board: FolderFiles) -> None:
    """So both are replaced by hand, as docs/flash.md says."""
    prepared_board.write("boot.py", b"# another")
    prepared_board.remove("main.py")
    config = PLAN_CONFIG | {"pins": {"enable": 23}}
    plan = plan_flash(prepared_board, NEW, config)
    assert plan.notes == ()
    carry_out(plan.steps, prepared_board)
    wanted = factory_files(NEW, config)
    assert [prepared_board.read(name) for name in ("boot.py", "main.py")] == [wanted["boot.py"], wanted["main.py"]]
    assert read_json(prepared_board, "config.json") == json.loads(wanted["config.json"])


def board(folder: Path, **files: str) -> FolderFiles:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return FolderFiles(folder)


def test_what_is_there_stays_and_gets_its_version(tmp_path: Path) -> None:
    files = board(tmp_path, config_json='{"node": 4, "facts": {"current.scale": 5}, "pins": {"enable": 2}}')
    expected = {"version": 1, "node": 4, "facts": {"current.scale": 5}, "pins": {"enable": 2}}
    assert read_config(files, None, 4) == expected


def test_a_given_file_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"facts": {"current.scale": 6}}')
    files = board(tmp_path, config_json='{"node": 4}')
    assert read_config(files, tmp_path / "mine.json", 4) == {"version": 1, "node": 4, "facts": {"current.scale": 6}}


def test_a_board_with_two_motors_is_known_by_either_node(tmp_path: Path) -> None:
    partner = {"node": 5, "facts": {"current.scale": 6}}
    files = board(tmp_path, config_json=json.dumps({"node": 4, "facts": {}, "partner": partner}))
    for nodes in ((4, 5), (5, 4), (4,), (5,)):
        config = read_config(files, None, *nodes)
        assert (config["node"], config["partner"]) == (4, partner)
    with pytest.raises(FlashError, match="belongs to node 4 and 5, and this board is node 6"):
        read_config(files, None, 4, 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its config.json holds no configuration; give one with --config FILE"),
        ("[]", "its config.json holds no configuration"),
        ('{"facts": []}', r"its config.json: facts is \[\]; it must be a table of names and numbers"),
        ('{"facts": {"current.scale": 1.5}}', "fact 'current.scale' is 1.5, and the firmware would stop at it"),
        ('{"facts": {"current.scale": "5"}}', "fact 'current.scale' is '5', and the firmware would stop at it"),
        ('{"facts": {"current.scale": 4294967296}}', "fact 'current.scale' is 4294967296, and"),
        ('{"node": "4"}', "its config.json belongs to node '4', and this board is node 4"),
        ('{"facts": {"motor.colour": 1}}', "fact 'motor.colour' is none of this firmware's, which would stop at it"),
        ('{"facts": {"limit.current": 1}}', "fact 'limit.current' is none of"),  # a register, but none of a board's own
        ('{"node": 4, "partner": {"node": 5, "facts": {"limit.current": 1}}}', "fact 'limit.current' is none of"),
        ('{"node": 4, "partner": 5}', "partner is 5; it must be as"),
        ('{"module": "type1"}', "its config.json: module is 'type1'; it must be such as"),
        ('{"module": {"type": "type1.turn"}}', "module is {'type': 'type1.turn'}; it must be such as"),
        ('{"module": {"type": "type1.turn", "serial": 7, "size": 1}}', "module is .*; it must be such as"),
        ('{"module": {"type": "one longer than 16", "serial": "7"}}', "module is .*; it must be such as"),
        ('{"node": 5}', "its config.json belongs to node 5, and this board is node 4; check the port"),
    ],
)
def test_a_configuration_that_the_firmware_would_stop_at_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FlashError, match=message):
        read_config(board(tmp_path, config_json=text), None, 4)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(FlashError, match=r"configuration .*none.json cannot be read"):
        read_config(FolderFiles(tmp_path), tmp_path / "none.json", 1)


def test_a_boards_own_files_are_kept_by_its_uid(tmp_path: Path) -> None:
    (tmp_path / "board").mkdir()
    files = board(tmp_path / "board", config_json="{}", settings_json='{"uid": "ab"}', other_txt="no")
    places = [keep(files, tmp_path / "kept", "abcd") for _ in range(2)]
    assert places[0] != places[1]
    for place in places:
        assert place.parent == tmp_path / "kept" / "abcd"
        assert {each.name: each.read_text() for each in place.iterdir()} == {
            "config.json": "{}",
            "settings.json": '{"uid": "ab"}',
        }
    for uid, name in (("../../ESCAPED", "------ESCAPED"), ("/etc", "-etc"), ("", "without-uid"), ("..", "--")):
        assert keep(files, tmp_path / "kept", uid).parent == tmp_path / "kept" / name
    (tmp_path / "file").write_text("")
    with pytest.raises(FlashError, match=r"backup .* cannot be written"):
        keep(files, tmp_path / "file", json.dumps(1))


def entry(node: int, url: str, flash: Path | None = None) -> BoardEntry:
    return BoardEntry(node, f"j{node}", url, 921600, flash)


def test_nodes_of_one_chip_on_one_line_are_one_board() -> None:
    one = identity()
    other = replace(one, uid="0b" * 12)
    entries = [entry(1, "/dev/A"), entry(2, "/dev/A"), entry(3, "/dev/A"), entry(4, "/dev/B"), entry(5, "/dev/A")]
    # 4 has the same UID at another port: two boards of a maker that numbers none. 5 does not answer: nobody knows.
    said = {"j1": one, "j2": one, "j3": other, "j4": one, "j5": None}
    boards = [[each.node for each in board] for board in boards_of(entries, said)]
    assert boards == [[1, 2], [3], [4], [5]]


def test_emulated_boards_are_known_by_their_folders(tmp_path: Path) -> None:
    entries = [entry(node, "/dev/A", tmp_path / folder) for node, folder in ((1, "a"), (2, "a"), (3, "b"))]
    boards = [[each.node for each in board] for board in boards_of(entries, dict.fromkeys(("j1", "j2", "j3")))]
    assert boards == [[1, 2], [3]]
