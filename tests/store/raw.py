"""Direct SQLite access to a store file, to change it without the store.

The checksums of its pages remain valid.
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
