"""A page read as a browser would: its tables, texts and references.

What a page looks like in a browser: what reaches out of the window, which texts overlap, how small letters are.
"""

from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Collects the cells of every table row, the text of elements with an id, and every tag with its attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.by_id: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._open: list[tuple[str, str]] = []
        self._cell = False
        self.feed(source)
        self.close()
        if self._open:
            raise AssertionError(f"elements left open: {[tag for tag, _ in self._open]}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.append((tag, values))
        if tag in _VOID:
            return
        self._open.append((tag, values.get("id", "")))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._cell = True

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        if opened != tag:
            raise AssertionError(f"</{tag}> closes <{opened}>")
        if tag in ("td", "th"):
            self._cell = False

    def handle_data(self, data: str) -> None:
        inside = {tag for tag, _ in self._open}
        if "style" in inside:
            return
        self.text += data
        if self._cell:
            self.rows[-1][-1] += data
        for _, identity in self._open:
            if identity:
                self.by_id[identity] = self.by_id.get(identity, "") + data


SMALLEST_LETTER = 12.0
"""Height of letters that can be read on a phone [px]."""

BEYOND = """() => [...document.querySelectorAll('body *')]
  .filter(each => !each.parentElement.closest('.scroll'))
  .filter(each => { const box = each.getBoundingClientRect();
                    return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5); })
  .map(each => `${each.tagName} ${(each.textContent || '').trim().slice(0, 30)}`)"""
"""Elements that reach out of the window; what a box scrolls is within that box."""

ON_PAPER = BEYOND.replace("!each.parentElement.closest('.scroll')", "true")

TEXTS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const folded = 'details:not([open]) > :not(summary)';
    if (!node.data.trim() || node.parentElement.closest(`style, .scroll, ${folded}`)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects())
      if (box.width > 0) found.push([node.data.trim(), box.left, box.top, box.right, box.bottom]);
  }
  return found;
}"""
"""Each line of text and its box; without what is folded away, and tables that scroll under their first column."""

LETTERS = """() => Math.min(...[...document.querySelectorAll('body *')]
  .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
  .filter(each => !each.closest('style'))
  .map(each => {
    const svg = each.closest('svg');
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1.0;
    return scale * parseFloat(getComputedStyle(each).fontSize);
  }))"""
"""Height of the smallest letters as they are shown [px]."""


def overlapping(texts: list[list[Any]]) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than the air above and below letters, a third of the lower one's height."""
    boxes = sorted(texts, key=lambda each: each[2])
    found: list[tuple[str, str]] = []
    for k, (text, left, _, right, bottom) in enumerate(boxes):
        for other, other_left, other_top, other_right, other_bottom in boxes[k + 1 :]:
            if other_top >= bottom:
                break
            across = min(right, other_right) - max(left, other_left)
            down = min(bottom, other_bottom) - other_top
            if across > 1.0 and down > (other_bottom - other_top) / 3.0:
                found.append((text, other))
    return found
