"""Files and folders that only the user can read, because they contain the token of a run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nessie_cli.errors import StoreUnavailable


def private_folder(path: Path, *, is_empty: bool = False) -> None:
    """Makes a folder if it does not exist. With `is_empty`, deletes everything in it first.

    Raises `StoreUnavailable` if this fails.
    """
    try:
        if is_empty and path.exists():
            shutil.rmtree(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be created: {error.strerror}") from None


def private_file(path: Path, text: str) -> None:
    """Creates or replaces a file. Raises `StoreUnavailable` if writing fails."""
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror}") from None
