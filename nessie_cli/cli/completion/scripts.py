"""The completion scripts: next to the package in a checkout, inside it when installed."""

from __future__ import annotations

from pathlib import Path

import nessie_cli

FILE_NAMES = {"bash": "nessie.bash", "zsh": "_nessie", "fish": "nessie.fish"}
"""The file name of the script that each shell expects."""
_PACKAGE = Path(nessie_cli.__file__).parent
_FOLDERS = (_PACKAGE / "completions", _PACKAGE.parent / "completions")


def script(shell: str) -> str:
    """Returns the script of a shell."""
    path = next(folder / FILE_NAMES[shell] for folder in _FOLDERS if folder.is_dir())
    return path.read_text(encoding="utf-8")
