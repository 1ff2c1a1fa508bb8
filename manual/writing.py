"""All generated files: their contents, which ones are out of date, writing them."""

from __future__ import annotations

from pathlib import Path

from manual import completion_scripts, markdown, roff, schemas, tree
from manual.pages import every_page

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("completions", "man", "docs/reference/commands", "docs/reference/json")
"""Folders that contain only generated files; other files are removed."""


def files() -> dict[str, str]:
    """Returns every generated file by its path."""
    commands = tree.read()
    pages = every_page(commands)
    found = {**completion_scripts.scripts(commands), **schemas.files()}
    found["docs/reference/commands/index.md"] = markdown.index(pages)
    for page in pages:
        found[f"docs/reference/commands/{page.name}.md"] = markdown.page(page)
        found[f"man/man{page.number}/{page.name}.{page.number}"] = roff.page(page)
        for name in page.aliases:
            found[f"man/man{page.number}/{name}.{page.number}"] = roff.alias(page)
    return found


def outdated() -> list[str]:
    """Returns the paths of files that are missing, out of date, or left over."""
    wanted = files()
    changed = [name for name, text in wanted.items() if _text(ROOT / name) != text]
    return sorted(changed + [name for name in _present() if name not in wanted])


def write() -> list[str]:
    """Writes the files that are out of date; returns their paths."""
    wanted = files()
    found = outdated()
    for name in found:
        path = ROOT / name
        if name in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[name], encoding="utf-8")
        else:
            path.unlink()
    return found


def _present() -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
