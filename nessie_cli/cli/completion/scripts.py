"""The completion scripts: beside the package in a checkout, inside of it when it is installed."""

from __future__ import annotations

from pathlib import Path

import nessie_cli

FILE_NAMES = {"bash": "nessie.bash", "zsh": "_nessie", "fish": "nessie.fish"}
"""What each shell, or its packages, want the file to be called."""
_PACKAGE = Path(nessie_cli.__file__).parent
_FOLDERS = (_PACKAGE / "completions", _PACKAGE.parent / "completions")


def script(shell: str) -> str:
    """Returns the script of a shell."""
    path = next(folder / FILE_NAMES[shell] for folder in _FOLDERS if folder.is_dir())
    return path.read_text(encoding="utf-8")
