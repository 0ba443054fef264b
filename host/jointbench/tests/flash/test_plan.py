"""What is to be done to a board: the loader's files stay, unless they are not ours; what then is wrong is told."""

import json
from pathlib import Path

import pytest

from jointbench.flash.board_files import FolderFiles
from jointbench.flash.image import Image, factory_files, write_factory
from jointbench.flash.plan import carry_out, plan_flash
from jointbench.flash.slots import read_json

OLD, NEW = (Image("rp2", "1.0.0", 1, None, None, {"board.py": content}) for content in (b"1", b"2"))
CONFIG = {"version": 1, "node": 3, "facts": {}, "pins": {"enable": 22}}


@pytest.fixture
def board(tmp_path: Path) -> FolderFiles:
    write_factory(tmp_path, OLD, CONFIG)
    return FolderFiles(tmp_path)


def test_a_loader_of_this_release_is_left_alone(board: FolderFiles) -> None:
    plan = plan_flash(board, NEW, CONFIG)
    assert plan.notes == ()
    assert str(plan.steps[-1]) == "rename slot.new to slot.json"


def test_another_enable_pin_is_told_as_boot_py_still_has_the_old_one(board: FolderFiles) -> None:
    plan = plan_flash(board, NEW, CONFIG | {"pins": {"enable": 23}})
    stays, why = plan.notes
    assert stays.startswith("boot.py differ from this release's and stay")
    assert why.startswith(
        "boot.py does not begin with what switches off the motor of this configuration (import machine"
    )
    assert "machine.Pin(23, machine.Pin.OUT, value=0)" in why


def test_a_loader_whose_main_py_was_removed_is_written_anew(board: FolderFiles) -> None:
    """So both are replaced by hand, as docs/flash.md says."""
    board.write("boot.py", b"# another")
    board.remove("main.py")
    config = CONFIG | {"pins": {"enable": 23}}
    plan = plan_flash(board, NEW, config)
    assert plan.notes == ()
    carry_out(plan.steps, board)
    wanted = factory_files(NEW, config)
    assert [board.read(name) for name in ("boot.py", "main.py")] == [wanted["boot.py"], wanted["main.py"]]
    assert read_json(board, "config.json") == json.loads(wanted["config.json"])
