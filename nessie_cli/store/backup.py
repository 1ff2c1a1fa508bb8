"""Backups: a store as one SQLite file, which is a store itself."""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH100

from __future__ import annotations

import os

from nessie_cli.errors import FileExists
from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Counts, Store
from nessie_cli.store.sqlite import open_sqlite
from nessie_cli.store.sqlite_schema import new_file


def back_up(store: Store, path: str, progress: Progress | None = None) -> Counts:
    """Writes one consistent state of a store to a new file, while others read and write the store.

    The file appears when it is complete. Raises `FileExists`, `StoreUnavailable`, and `DamagedObject` for the first
    damaged object.
    """
    path = os.path.abspath(path)
    exists = FileExists(f"{path}: exists already; a backup is written to a new file", path)
    if os.path.lexists(path):
        raise exists
    try:
        with new_file(path) as unfinished, store.dump() as dump:
            copy = open_sqlite(unfinished)
            try:
                copy.load(dump, progress)
            finally:
                copy.close()
            return dump.counts
    except FileExistsError:
        raise exists from None


def load_backup(path: str, store: Store, progress: Progress | None = None) -> Counts:
    """Loads a SQLite store into an empty store of any kind. Raises what `Store.load` and `open_sqlite` raise."""
    backup = open_sqlite(path)
    try:
        with backup.dump() as dump:
            store.load(dump, progress)
            return dump.counts
    finally:
        backup.close()
