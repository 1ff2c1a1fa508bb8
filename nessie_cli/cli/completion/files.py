"""Files and folders whose path begins as a word does."""

from __future__ import annotations

import os

from nessie_cli.workspace.locations import home


def files(word: str, *, folders_only: bool = False) -> list[tuple[str, str]]:
    """Files and folders, folders with a slash behind them; hidden ones only where the word asks for them."""
    above, name = word[: word.rfind("/") + 1], word[word.rfind("/") + 1 :]
    found = []
    try:
        with os.scandir(home(above) or ".") as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") and not name.startswith(".")
                if entry.name.startswith(name) and not hidden and (entry.is_dir() or not folders_only):
                    found.append((above + entry.name + ("/" if entry.is_dir() else ""), ""))
    except OSError:
        return []
    return sorted(found)
