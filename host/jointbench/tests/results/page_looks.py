"""What a page looks like in a browser: what reaches out of the window, which texts overlap, how small letters are."""

from typing import Any

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
