"""Curves in dots: where they are, that they are whole, and that they stay in their frame."""

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.cli.braille import ALPHABET, Curve, braille, picture

BITS = [(0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)]


def dots(lines: list[str]) -> Array:
    """Which dots are lit, shape (4 * n_lines, 2 * n_characters)."""
    codes = np.array([[0 if c == " " else ord(c) - 0x2800 for c in line] for line in lines])
    return np.block([[np.where(codes[..., None] & BITS[r], 1, 0).reshape(len(lines), -1)] for r in range(4)]).reshape(
        4, len(lines), -1
    ).transpose(1, 0, 2).reshape(4 * len(lines), -1)  # fmt: skip


@pytest.mark.parametrize(("value", "row"), [(1.0, 0), (-1.0, 11), (0.01, 5), (-0.01, 6), (3.0, 0), (-3.0, 11)])
def test_a_level_is_one_row_of_dots_between_its_limits(value: float, row: int) -> None:
    lit = dots(braille(np.full(100, value), -1.0, 1.0, 20, 3))
    assert lit.shape == (12, 40)
    assert lit[row].all()
    assert lit.sum() == 40


def test_a_straight_line_falls_across_the_frame() -> None:
    lit = dots(braille(np.linspace(1.0, -1.0, 4000), -1.0, 1.0, 6, 3))
    # Each column joins on to the one before.
    assert [np.flatnonzero(column).tolist() for column in lit.T] == [[0], *([k - 1, k] for k in range(1, 12))]


@pytest.mark.parametrize("samples", [30, 121, 2000])
def test_the_line_is_whole_however_steep(samples: int) -> None:
    values = np.sign(np.sin(np.linspace(0.0, 20.0, samples)))
    lit = dots(braille(values, -1.0, 1.0, 60, 4)).astype(bool)
    assert lit.any(axis=0).all()
    for left, right in zip(lit.T[:-1], lit.T[1:], strict=True):
        assert (left & right).any()


def test_the_picture_fits_its_width_and_names_its_limits() -> None:
    time = np.linspace(0.0, 1.0, 500)
    curves = [
        Curve("j1", 100.0 * np.sin(7.0 * time), -150.0, 150.0, "°"),
        Curve("left_ankle_pitch", 3.0 * time, -5.0, 1200.0, " mm"),
    ]
    lines = picture(curves, 12.8, width=80, height=3).split("\n")
    assert len(lines) == 7
    assert max(map(len, lines)) == 80
    assert lines[0].lstrip().startswith("j1")
    assert " 150° ┤" in lines[0]
    assert " −150° ┤" in lines[2]
    assert lines[3].startswith("  left_ankle_pitch  1200 mm ┤")
    assert lines[-1].endswith("─ 12.8 s")
    assert lines[-1].index("└") == lines[0].index("┤")


def test_the_alphabet_says_what_a_stream_must_have() -> None:
    drawn = picture([Curve("j1", np.sin(np.linspace(0.0, 9.0, 300)), -1.0, 1.0, "°")], 20.0)
    block = {c for c in drawn if 0x2800 <= ord(c) <= 0x28FF}
    assert block
    assert all(c in ALPHABET or c.isascii() for c in set(drawn) - block)
