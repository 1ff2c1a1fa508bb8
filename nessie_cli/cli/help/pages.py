"""The manual pages: next to the package in a checkout, inside it when installed."""

from __future__ import annotations

from pathlib import Path

import nessie_cli

_PACKAGE = Path(nessie_cli.__file__).parent
_FOLDERS = (_PACKAGE / "man", _PACKAGE.parent / "man")


def page_names() -> list[str]:
    """Returns the names of all pages, such as `nessie-log`."""
    return sorted({file.stem for folder in _FOLDERS for file in folder.glob("man*/nessie*.*")})


def page_source(name: str) -> str | None:
    """Returns the source of a page, or None if the page does not exist. Follows aliases."""
    file = next((file for folder in _FOLDERS for file in folder.glob(f"man*/{name}.?")), None)
    source = file.read_text(encoding="utf-8") if file else None
    if source is None or not source.startswith(".so "):
        return source
    return page_source(Path(source.split()[1]).stem)


def topics() -> dict[str, str]:
    """Returns the topic pages, each with its one-line description."""
    descriptions = {}
    for folder in _FOLDERS:
        for file in folder.glob("man7/nessie-*.7"):
            lines = file.read_text(encoding="utf-8").splitlines()
            heading = next((line for line in lines if line.startswith("nessie")), "")
            descriptions[file.stem.removeprefix("nessie-")] = (
                heading.partition(" \\- ")[2].strip().replace("\\-", "-")
            )
    return dict(sorted(descriptions.items()))
