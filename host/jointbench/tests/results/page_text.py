"""A page read as a browser would: its tables, texts and references."""

from html.parser import HTMLParser

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
