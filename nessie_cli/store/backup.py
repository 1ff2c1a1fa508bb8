"""Backups: a store as one SQLite file, which is a store itself."""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH100, PTH110, PTH118

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from tempfile import TemporaryDirectory

from nessie_cli.errors import DamagedObject, FileExists, FileNotFound
from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Dump, Store
from nessie_cli.store.opening import create_store, open_store, sqlite_path
from nessie_cli.store.records import Counts
from nessie_cli.store.sqlite.format_3 import has_format_3, open_format_3
from nessie_cli.store.sqlite.schema import new_file
from nessie_cli.store.sqlite.store import open_sqlite

Verify = Callable[[Store], object]
"""Verifies a copy, by the rules of those who know what objects mean. Raises `DamagedObject`."""


def back_up(
    url: str, path: str, progress: Progress | None = None, verify: Verify | None = None
) -> Counts:
    """Writes one consistent state of a store to a new file, beside readers and writers.

    The file appears when it is complete and verified. Raises `FileExists`, `DamagedObject`
    for the first object or row that is damaged or missing, and the errors of `open_store`.
    """
    path = os.path.abspath(path)
    exists = FileExists(f"{path} already exists", path, hint="write the backup to a new file")
    if os.path.lexists(path):
        raise exists
    with closing(open_store(url)) as store:
        try:
            _require_intact(store.verify_file())
            with store.dump() as dump:
                _copy(dump, path, progress, verify)
                return dump.counts
        except FileExistsError:
            raise exists from None


def load_backup(
    path: str, url: str, progress: Progress | None = None, verify: Verify | None = None
) -> Counts:
    """Loads a SQLite store into a store of any kind that is empty or does not exist.

    The file may have format 3, and stays unchanged. It is verified before an existing store
    changes. A new SQLite store is verified, and appears when it is complete.

    Raises `FileNotFound`, `DamagedObject` for the first object or row that is damaged or missing,
    and the errors of `Store.load`, `create_store` and `open_sqlite`.
    """
    if not os.path.exists(path):
        raise FileNotFound(f"{path}: no such file", path)
    target = sqlite_path(url)
    if target is not None and not os.path.lexists(target):
        with suppress(FileExistsError), _opened(path) as dump:
            _copy(dump, os.path.abspath(target), progress, verify)
            return dump.counts
    with _verified(path, verify) as dump, closing(create_store(url)) as store:
        store.load(dump, progress)
        return dump.counts


def _require_intact(problems: Iterable[str]) -> None:
    for problem in problems:
        raise DamagedObject(problem)


def _copy(dump: Dump, path: str, progress: Progress | None, verify: Verify | None) -> None:
    """Writes a dump to a new file. Raises `FileExistsError` if another process made one."""
    with new_file(path) as unfinished, closing(open_sqlite(unfinished)) as copy:
        copy.load(dump, progress)
        if verify is not None:
            verify(copy)


@contextmanager
def _verified(path: str, verify: Verify | None) -> Iterator[Dump]:
    """Opens the dump of a file after verifying all of it. A file of format 3 is copied first."""
    if not has_format_3(path):
        with closing(open_sqlite(path)) as backup:
            if verify is not None:
                verify(backup)
        with _opened(path) as dump:
            yield dump
        return
    with TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.sqlite")
        with _opened(path) as dump:
            _copy(dump, copy, None, verify)
        with _opened(copy) as dump:
            yield dump


@contextmanager
def _opened(path: str) -> Iterator[Dump]:
    """Opens the dump of a file. Raises `DamagedObject` if the file is damaged."""
    if has_format_3(path):
        with open_format_3(path) as dump:
            _require_intact(dump.problems())
            yield dump
        return
    with closing(open_sqlite(path)) as backup:
        _require_intact(backup.verify_file())
        with backup.dump() as dump:
            yield dump
