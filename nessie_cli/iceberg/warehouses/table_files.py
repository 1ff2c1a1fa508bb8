"""The files of one table, read inside a warehouse only, with the settings of the warehouse.

Metadata, manifests and data files name each other, and clients write all of them. So the location
of each file is checked before it is opened.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import MAX_BYTES
from nessie_cli.iceberg.locations import LOCAL, Allowed, LocationRefused
from nessie_cli.iceberg.warehouses.metadata_files import local_errors, open_local, remote_errors
from nessie_cli.iceberg.warehouses.warehouse import Warehouse


class TableFiles:
    """Reads the files of a table, as `row_diff` needs it.

    `folders` are the folders of the table; if there are any, each file has to lie in one of them.
    `count` is called with the number of bytes after each read, and may raise an error. `opening` is
    called with the location of each file before it is read.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        folders: Iterable[str],
        count: Callable[[int], None],
        opening: Callable[[str], None],
    ) -> None:
        self._warehouse = warehouse
        self._allowed = Allowed(warehouse.allowed)
        self._folders = [Allowed((folder,)) for folder in folders]
        self._count = count
        self._opening = opening
        self._remote: dict[str, Any] = {}

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a metadata file or manifest."""
        with self.open(uri) as file:
            data = bytes(file.read(MAX_BYTES + 1))
        if len(data) > MAX_BYTES:
            raise InvalidInput(f"{uri} is larger than {MAX_BYTES // 2**20} MiB")
        return data

    def open(self, uri: str) -> Any:
        """Opens a file for random access.

        Raises `LocationRefused` before any I/O, `MissingFile`, `InvalidInput`, `StoreUnavailable`.
        """
        place, _ = self._allowed.find(uri)
        if self._folders and not any(folder.holds(uri) for folder in self._folders):
            raise LocationRefused(
                f"location {uri} is outside of the table's folder, so the server does not read it"
            )
        self._opening(uri)
        if place.scheme == LOCAL:
            with local_errors(uri, "read"):
                return CountedFile(open_local(place.path, uri), uri, local_errors, self._count)
        with remote_errors(uri, "read"):
            file = self._file_io(place.scheme, uri).new_input(uri).open()
        return CountedFile(file, uri, remote_errors, self._count)

    def _file_io(self, scheme: str, location: str) -> Any:
        if scheme not in self._remote:
            from pyiceberg.io import load_file_io

            self._remote[scheme] = load_file_io(dict(self._warehouse.storage), location)
        return self._remote[scheme]


class CountedFile(io.RawIOBase):
    """A file whose bytes are counted while they are read."""

    def __init__(
        self,
        file: Any,
        location: str,
        errors: Callable[[str, str], AbstractContextManager[None]],
        count: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._file = file
        self._location = location
        self._errors = errors
        self._count = count

    def readable(self) -> bool:
        """Returns True."""
        return True

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns the next bytes, at most `size`."""
        with self._errors(self._location, "read"):
            whole = size is None or size < 0
            data = bytes(self._file.read() if whole else self._file.read(size))
        self._count(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves to a position and returns it."""
        self._file.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        """Returns the position."""
        return int(self._file.tell())

    def close(self) -> None:
        """Closes the file."""
        if not self.closed:
            self._file.close()
        super().close()
