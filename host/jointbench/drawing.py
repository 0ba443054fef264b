"""Style of all figures, and what is drawn in several of them."""

import io
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jointbench.arrays import Array

WIDTH = 360.0
"""Width of a panel [SVG units, a pixel each where the page gives it its own width]."""

TEXT = 12.5
"""Height of its letters [SVG units]: twelve pixels on a phone that is 390 pixels wide."""

BINS = 360
"""Groups of samples along the time axis: about one a pixel."""

_ROUND = MaxNLocator(5, steps=[1, 2, 5, 10])
"""Finds the round values along a horizontal axis."""


@dataclass(frozen=True)
class Palette:
    """Colours as hexadecimal strings.

    Measured and predicted are the blue and vermilion of Okabe & Ito, which stay apart for the colour-blind
    (Color Universal Design, 2008); measured is also drawn wider, so that the pair survives a grey print.

    Attributes:
        measured, predicted: the accent pair.
        ink: text. muted: secondary text. rule: axes and hairlines. limit: bounds. paper: background.
    """

    measured: str = "#0072b2"
    predicted: str = "#d55e00"
    ink: str = "#1b1f24"
    muted: str = "#5b6570"
    rule: str = "#c5ccd3"
    limit: str = "#9a6b9e"
    paper: str = "#fefefe"


PALETTE = Palette()

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so that a picture is the same on every machine
    "font.size": 10.0,
    "axes.edgecolor": PALETTE.rule,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "text.color": PALETTE.ink,
    "text.parse_math": False,  # a joint called "$1" is a name
    "xtick.color": PALETTE.rule,
    "ytick.color": PALETTE.rule,
    "xtick.labelcolor": PALETTE.muted,
    "ytick.labelcolor": PALETTE.muted,
    "xtick.major.size": 3.0,
    "ytick.major.size": 0.0,
    "xtick.major.width": 0.8,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": PALETTE.rule,
    "grid.linewidth": 0.5,
    "grid.alpha": 0.6,
    "lines.solid_joinstyle": "round",
    "lines.solid_capstyle": "round",
    "path.simplify_threshold": 0.2,
    "svg.fonttype": "none",  # text stays text: selectable, small, in the page's own font
    "svg.hashsalt": "jointbench",
}


@contextmanager
def house_style(text: float = STYLE["font.size"]) -> Generator[None]:
    """Draw in the house's style, letters `text` points high, whatever the user's own matplotlib settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, "font.size": text})
        yield


def inline_svg(figure: Figure, identity: str, label: str) -> str:
    """Return the figure as an SVG element to stand inside an HTML page.

    Its colours become the page's custom properties (so that it follows the page into the dark), its text takes the
    page's font, its identifiers carry `identity` so that several stand on one page, and it refers to nothing outside.

    Args:
        figure: to be drawn; left as it is.
        identity: unique on the page; letters, digits and hyphens.
        label: what a screen reader says, already escaped for an attribute.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(?<=\d\.)(\d\d)\d+", r"\1", tag[0]), svg)  # places, never text
    box = re.findall(r'viewBox="([^"]*)"', svg)[0]
    svg = f'<svg viewBox="{box}" role="img" aria-label="{label}">' + svg[svg.index(">") + 1 :]
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{identity}-", svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    for name, colour in vars(PALETTE).items():
        svg = svg.replace(f": {colour}", f": var(--{name})")
    return re.sub(r"\n\s*", "\n", svg).strip()


def thin(time: Array, values: Array, bins: int) -> tuple[Array, Array]:
    """Keep the lowest and the highest sample of each of `bins` equal groups, in their order of time.

    Peaks survive, unlike with a mean or every n-th sample. A group with nothing finite leaves one NaN, which breaks
    the line: a gap in the record stays a gap in the picture.

    Args:
        time: ascending [s], shape (n,).
        values: one series over it, shape (n,); NaN where there is none.
        bins: how many groups; a record of no more than twice as many samples comes back as it is.

    Returns:
        Times and values, each of at most 2 * bins points.
    """
    if time.size <= 2 * bins:
        return time, values
    kept: list[int] = []
    for group in np.array_split(np.arange(time.size), bins):
        part = values[group]
        if np.isfinite(part).any():
            kept += sorted({int(group[np.nanargmin(part)]), int(group[np.nanargmax(part)])})
        else:
            kept.append(int(group[0]))
    return time[kept], values[kept]


class Picture(Figure):
    """A figure that notebooks show by themselves, without pyplot and whatever backend it has; `savefig` writes it."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with house_style():
            self.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
        return buffer.getvalue()


@dataclass(frozen=True, eq=False)
class Curves:
    """One quantity of all joints over time.

    Attributes:
        name: of the quantity, such as "torque".
        units: of each joint's.
        values: one array, or measured (wide, pale) and predicted (thin), shape (n, n_joints) each; NaN leaves a gap.
    """

    name: str
    units: Sequence[str]
    values: Sequence[Array]


def joint_figure(title: str, time: Array, joints: Sequence[str], quantities: Sequence[Curves]) -> Picture:
    """Draw a row for each joint and a column for each quantity over time [s].

    Args:
        title: above all.
        time: ascending, shape (n,).
        joints: their names.
        quantities: at least one.
    """
    height = 0.6 + 1.15 * len(joints)
    figure = Picture(figsize=(4.4 * len(quantities), height), dpi=100)
    with house_style(9.0):
        figure.text(0.02, 1.0 - 0.16 / height, title, va="center", fontsize=10.5)
        grid = figure.add_gridspec(
            len(joints), len(quantities), left=0.07, right=0.97, top=1.0 - 0.62 / height, bottom=0.3 / height,
            wspace=0.2, hspace=0.75,
        )  # fmt: skip
        for row, joint in enumerate(joints):
            for column, quantity in enumerate(quantities):
                axes = figure.add_subplot(grid[row, column])
                if len(quantity.values) == 2:
                    measured, predicted = (values[:, row] for values in quantity.values)
                    draw_torques(axes, time, measured, predicted, BINS)
                else:
                    axes.plot(*thin(time, quantity.values[0][:, row], BINS), color=PALETTE.measured, linewidth=1.2)
                    axes.margins(y=0.08)
                    mark_time(axes, time)
                mark_vertical(axes, most=4)
                axes.set_title(f"{joint} {quantity.name} [{quantity.units[row]}]", loc="left", fontsize=9, pad=3)
    return figure


_VERDICTS = {"identified": PALETTE.measured, "poorly excited": PALETTE.predicted}


def share_figure(title: str, names: Sequence[str], shares: Array, words: Sequence[str]) -> Picture:
    """Draw a dot for each parameter's standard error over its value, on a scale of decades, coloured by verdict.

    Args:
        title: above all.
        names, words: of the parameters, and their verdicts, shape (n,).
        shares: of the parameters, infinite where there is no standard error, shape (n,).
    """
    height = 0.9 + 0.17 * len(names)
    figure = Picture(figsize=(6.6, height), dpi=100)
    with house_style(9.0):
        axes = figure.add_axes((0.24, 0.35 / height, 0.52, 1.0 - 0.75 / height))
        figure.text(0.02, 1.0 - 0.18 / height, title, va="center", fontsize=10.5)
        known = np.isfinite(shares) & (shares > 0.0)
        low = float(shares[known].min(initial=0.01))
        high = max(1.0, float(shares[known].max(initial=1.0)))
        axes.set_xscale("log")
        axes.set_xlim(0.7 * low, 1.4 * high)
        for row, (share, word, is_known) in enumerate(zip(shares.tolist(), words, known.tolist(), strict=True)):
            colour = _VERDICTS.get(word, PALETTE.ink)
            if is_known:
                axes.plot([0.7 * low, share], [row, row], color=colour, linewidth=0.8, alpha=0.5)
                axes.plot(share, row, "o", color=colour, markersize=4)
            if word != "identified":
                axes.text(1.5 * high, row, word, va="center", fontsize=8, color=colour)
        for bound in (0.2, 0.5):  # up to which a parameter is identified, or poorly excited
            axes.axvline(bound, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3), zorder=0)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100.0 * value:g} %")
    return figure


def draw_torques(axes: Axes, time: Array, measured: Array, predicted: Array, bins: int) -> None:
    """Draw the pair into axes: one convention for the report and for the key picture."""
    axes.plot(*thin(time, measured, bins), color=PALETTE.measured, linewidth=3.6, alpha=0.4)
    axes.plot(*thin(time, predicted, bins), color=PALETTE.predicted, linewidth=1.2)
    axes.margins(y=0.08)
    mark_vertical(axes, most=5)
    mark_time(axes, time)


def mark_vertical(axes: Axes, most: int, *, symmetric: bool = False) -> None:
    """Put at most so many round values at the vertical axis."""
    axes.yaxis.set_major_locator(MaxNLocator(most - 1, steps=[1, 2, 2.5, 5, 10], symmetric=symmetric))


def mark_time(axes: Axes, time: Array) -> None:
    """Let the horizontal axis span the time [s], on to a round value where one lies within a fiftieth of the span."""
    low, high = float(time[0]), float(time[-1])
    ends = _ROUND.tick_values(low, high)
    reach = 0.02 * (high - low)
    low = min([low, *(float(value) for value in ends if 0.0 < low - value < reach)])
    high = max([high, *(float(value) for value in ends if 0.0 < value - high < reach)])
    axes.set_xlim(low, high)
    mark_horizontal(axes, "s")


def mark_horizontal(axes: Axes, unit: str) -> None:
    """Put round values under the horizontal axis, the last with the unit."""
    low, high = axes.get_xlim()
    values = _ROUND.tick_values(low, high)
    inside = [float(value) for value in values if low <= value <= high]
    labels = [f"{value:g}".replace("-", "−") for value in inside]
    axes.set_xticks(inside, [*labels[:-1], f"{labels[-1]} {unit}"] if labels else labels)


def name_vertical(axes: Axes, unit: str) -> None:
    """Put the unit above the vertical axis, over its numbers, where nothing has to be turned to read it."""
    axes.annotate(
        unit, (0.0, 1.0), xytext=(-5, 6), xycoords="axes fraction", textcoords="offset points",
        color=PALETTE.muted, ha="right", va="bottom",
    )  # fmt: skip


def stack(heights: list[float], gap: float = 38.0, left: float = 48.0) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes above each other; their heights, gap and the room left of them in SVG units."""
    right, top, bottom = 34.0, 22.0, 24.0
    total = top + sum(heights) + gap * (len(heights) - 1) + bottom
    figure = Figure(figsize=(WIDTH / 72.0, total / 72.0), dpi=72)
    axes: list[Axes] = []
    above = top
    for height in heights:
        low = total - above - height
        box = (left / WIDTH, low / total, (WIDTH - left - right) / WIDTH, height / total)
        axes.append(figure.add_axes(box))
        above += height + gap
    return figure, axes
