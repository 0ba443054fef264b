"""Which entries of a bench file are of one board."""

from dataclasses import replace
from pathlib import Path

from jointbench.flash.update import boards_of
from jointbench.link.bench_file import BoardEntry
from jointbench.tests.link.test_board import identity


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
