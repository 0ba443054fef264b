"""A board's configuration: checked before anything is written, added to and never taken from."""

import json
from pathlib import Path

import pytest

from jointbench.errors import FlashError
from jointbench.flash.board_files import FolderFiles
from jointbench.flash.configuration import keep, read_config


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
    with pytest.raises(FlashError, match="is of node 4 and 5, this board is node 6"):
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
        ('{"node": "4"}', "its config.json is of node '4', this board is node 4"),
        ('{"facts": {"motor.colour": 1}}', "fact 'motor.colour' is none of this firmware's, which would stop at it"),
        ('{"facts": {"limit.current": 1}}', "fact 'limit.current' is none of"),  # a register, but none of a board's own
        ('{"node": 4, "partner": {"node": 5, "facts": {"limit.current": 1}}}', "fact 'limit.current' is none of"),
        ('{"node": 4, "partner": 5}', "partner is 5; it must be as"),
        ('{"module": "type1"}', "its config.json: module is 'type1'; it must be such as"),
        ('{"module": {"type": "type1.turn"}}', "module is {'type': 'type1.turn'}; it must be such as"),
        ('{"module": {"type": "type1.turn", "serial": 7, "size": 1}}', "module is .*; it must be such as"),
        ('{"module": {"type": "one longer than 16", "serial": "7"}}', "module is .*; it must be such as"),
        ('{"node": 5}', "its config.json is of node 5, this board is node 4; is it the right port"),
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
