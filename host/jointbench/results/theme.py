"""The look of every picture: one ink scale, one pair of colours for measured and predicted, small type."""

import io
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure


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
