"""A store file as SQLite sees it, to be changed behind the program's back.

The check sums of its pages stay right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from nessie_cli.store.sqlite_pages import VFS, load_page_checks


@contextmanager
def raw(path: str | Path) -> Iterator[apsw.Connection]:
    load_page_checks()
    connection = apsw.Connection(str(path), vfs=VFS)
    try:
        yield connection
    finally:
        connection.close()
