"""What mkdocs needs to know of a repository: README and CONTRIBUTING are pages, and so is each file that is linked to.

Links stay as they are in the repository, where they lead to files; on the site they lead to pages with the files' text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages that stand beside docs/ in the repository."""

_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")
_LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".c": "c"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages beside docs/, and one for each source file that is linked to."""
    for name, place in PAGES.items():
        text = _on_site((ROOT / name).read_text(encoding="utf-8"), "", place)
        files.append(File.generated(config, place, content=text))
    linked = {target for page in _pages() for target in _targets(page) if _is_source(target)}
    for target in sorted(linked):
        files.append(File.generated(config, _source_page(target), content=_source_text(target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links that leave docs/ lead to their pages on the site."""
    place = page.file.src_uri
    folder = posixpath.join("docs", posixpath.dirname(place))
    return markdown if page.file.generated_by else _on_site(markdown, folder, place)


def _on_site(text: str, folder: str, place: str) -> str:
    """The text of a page of `folder`, with links as they are from `place` on the site."""

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        return posixpath.relpath(_place_of(target), posixpath.dirname(place) or ".") + (link[2] or "")

    return _LINK.sub(on_site, text)


def _place_of(target: str) -> str:
    """Where something of the repository is on the site."""
    if target in PAGES:
        return PAGES[target]
    return _source_page(target) if _is_source(target) else target.removeprefix("docs/")


def _is_source(target: str) -> bool:
    return target not in PAGES and not target.startswith("docs/")


def _source_page(target: str) -> str:
    return f"source/{target}/index.md" if (ROOT / target).is_dir() else f"source/{target}.md"


def _source_text(target: str) -> str:
    """A file in a fence, or what a folder holds.

    Raises:
        PluginError: there is no such file or folder.
    """
    path = ROOT / target
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith(("_", ".")))
        return f"# {target}\n\nIn this folder of the repository:\n\n" + "".join(f"- `{name}`\n" for name in names)
    if not path.is_file():
        raise PluginError(f"a page links to {target}, which is not in the repository")
    language = _LANGUAGES.get(path.suffix, "text")
    return f"# {target}\n\n````{language}\n{path.read_text(encoding='utf-8')}\n````\n"


def _pages() -> list[Path]:
    return [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


def _targets(page: Path) -> set[str]:
    folder = page.parent.relative_to(ROOT).as_posix()
    text = page.read_text(encoding="utf-8")
    return {posixpath.normpath(posixpath.join(folder, link[1])) for link in _LINK.finditer(text)}
