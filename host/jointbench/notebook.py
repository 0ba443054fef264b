"""Views of runs, models, validations and plans in a notebook: a few facts, a picture, a table of pandas."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from jointbench.extras import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTRA = "notebook"
"""Extra of the distribution that has matplotlib and pandas."""

_RESOLUTION = 72
"""Of the pictures beside facts [dots per inch]: a notebook keeps each of them in its file."""


def need_figures(what: str) -> None:
    """Have matplotlib installed, or refuse.

    Args:
        what: needs it, as the sentence begins: "the picture of a run".

    Raises:
        MissingExtra: it is not installed; names the extra.
    """
    need(EXTRA, what, "matplotlib")


def data_frame(columns: Mapping[str, Any], index: str, what: str) -> Any:
    """Make a table of pandas.

    Args:
        columns: their values by name, each of shape (n,); copied.
        index: the column that names the rows.
        what: is shown in it, as the sentence begins: "the table of a run".

    Returns:
        A pandas DataFrame; pandas has no types that a checker takes.

    Raises:
        MissingExtra: pandas is not installed; names the extra.
    """
    need(EXTRA, what, "pandas")
    from pandas import DataFrame

    return DataFrame(dict(columns), copy=True).set_index(index)


def card(title: str, facts: Sequence[tuple[str, str]], draw: Callable[[], Figure]) -> str:
    """Return HTML with a heading, facts and a picture; without the picture where matplotlib is not installed.

    Args:
        title: plain text, as all facts are.
        facts: what each is called, and its text.
        draw: makes the picture.
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    picture = ""
    if find_spec("matplotlib") is not None:
        content = base64.b64encode(png(draw(), _RESOLUTION)).decode("ascii")
        picture = f'<img alt="{escape(title)}" src="data:image/png;base64,{content}">'
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{picture}</div>"


def png(figure: Figure, resolution: float) -> bytes:
    """Return a figure as a PNG file of so many dots per inch; the same figure gives the same bytes."""
    from jointbench.drawing import house_style

    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="png", dpi=resolution, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()
