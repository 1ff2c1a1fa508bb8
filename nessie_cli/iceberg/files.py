"""Reads and writes small files by path or URI, remote ones through PyIceberg's FileIO."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.locations import authority_of, is_local, local_path, scheme_of, shown


class MissingFile(InvalidInput):
    """The file does not exist. Every other reason why it cannot be read is a plain error."""


class MissingPackage(InvalidInput):
    """A package that reads the file is not installed. The file may be intact."""


class NoAnswer(StoreUnavailable):
    """The file system cannot be reached or does not answer. The file may be intact."""


MAX_BYTES = 256 * 2**20
"""The limit for metadata files. The file of a table with 10,000 snapshots has about 10 MB."""

TRIES = 3
"""How many requests a file system may leave unanswered before reads fail immediately."""
T = TypeVar("T")


class Files:
    """Reads and writes small files. Keeps connections to remote file systems open between files."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """Takes the properties of PyIceberg's FileIO, such as endpoints and credentials."""
        self._properties = dict(properties or {})
        self._remote: dict[str, Any] = {}
        self._answered: set[str] = set()
        self._silent: Counter[str] = Counter()

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out connections. Other processes make their own."""
        return {**vars(self), "_remote": {}}

    def has_answered(self, uri: str) -> bool:
        """Whether the file system of a file has answered any request of this object."""
        return authority_of(uri) in self._answered

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a file.

        Raises `MissingFile`, another `InvalidInput` if the file is unreadable or too large, and
        `StoreUnavailable` if a remote file system does not answer.
        """
        data = self._asked(uri, _read_whole, lambda io: _read_through(io.new_input(uri)))
        if len(data) > MAX_BYTES:
            raise InvalidInput(
                f"{shown(uri)} is larger than {MAX_BYTES // 2**20} MiB, "
                "the limit for metadata files"
            )
        return data

    def size(self, uri: str) -> int:
        """Returns the size of a file in bytes. Raises the errors of `read`. Cost: one request."""
        return self._asked(uri, _size_of, lambda io: len(io.new_input(uri)))

    def write(self, uri: str, data: bytes) -> None:
        """Writes a new file, durably. Raises `InvalidInput` or `StoreUnavailable`."""
        if is_local(uri):
            _write_locally(uri, data)
        else:
            self._asked_remotely(uri, scheme_of(uri), lambda io: _write_through(io, uri, data))

    def remove(self, uri: str) -> None:
        """Removes a file that nothing names. Raises `InvalidInput` or `StoreUnavailable`."""
        if is_local(uri):
            local_path(uri).unlink(missing_ok=True)
        else:
            self._asked_remotely(uri, scheme_of(uri), lambda io: io.delete(uri))

    def open(self, uri: str) -> Any:
        """Opens a file of any size for random access by pyarrow. Raises the errors of `read`."""
        return self._asked(uri, lambda path: path.open("rb"), lambda io: io.new_input(uri).open())

    def _asked(self, uri: str, local: Callable[[Path], T], remote: Callable[[Any], T]) -> T:
        if not uri.strip():
            raise InvalidInput("the name of the metadata file is empty")
        if is_local(uri):
            return _asked_locally(uri, local)
        return self._asked_remotely(uri, scheme_of(uri), remote)

    def _asked_remotely(self, uri: str, scheme: str, asked: Callable[[Any], T]) -> T:
        try:
            from pyiceberg.io import PY_IO_IMPL, SCHEMA_TO_FILE_IO
        except ImportError:
            raise MissingPackage(
                f"{shown(uri)}: PyIceberg is needed to read {scheme}: locations",
                hint="`pip install 'nessie-cli[iceberg]'`",
            ) from None
        leave_warnings_to_programs()
        if scheme not in SCHEMA_TO_FILE_IO and PY_IO_IMPL not in self._properties:
            raise InvalidInput(
                f"{shown(uri)}: PyIceberg does not support {scheme}: locations; "
                f"it supports {', '.join(SCHEMA_TO_FILE_IO)}"
            )
        if not _path_of(uri).strip("/"):
            raise InvalidInput(f"{shown(uri)} does not name a file")
        if self._silent[authority_of(uri)] >= TRIES:
            raise NoAnswer(f"{shown(uri)} cannot be read: {authority_of(uri)} does not answer")
        try:
            answer = self._asked_there(uri, scheme, asked)
        except NoAnswer:
            if not self.has_answered(uri):
                self._silent[authority_of(uri)] += 1
            raise
        except (InvalidInput, StoreUnavailable):
            self._answered.add(authority_of(uri))
            raise
        self._answered.add(authority_of(uri))
        return answer

    def _asked_there(self, uri: str, scheme: str, asked: Callable[[Any], T]) -> T:
        from pyiceberg.io import load_file_io

        try:
            if scheme not in self._remote:
                self._remote[scheme] = load_file_io(self._properties, uri)
            return asked(self._remote[scheme])
        except FileNotFoundError:
            raise MissingFile(f"{shown(uri)}: no such file") from None
        except (ValueError, NotImplementedError, ImportError) as error:
            raise InvalidInput(f"{shown(uri)} cannot be read: {first_line(error)}") from None
        except Exception as error:  # noqa: BLE001 - file systems share no base class of errors
            kind = NoAnswer if is_no_answer(error) else StoreUnavailable
            raise kind(f"{shown(uri)} cannot be read: {first_line(error)}") from None


def read_file(uri: str, properties: Mapping[str, str] | None = None) -> bytes:
    """Returns the bytes of one file. See `Files.read`."""
    return Files(properties).read(uri)


# -- local ----------------------------------------------------------------------------------------


def _asked_locally(uri: str, asked: Callable[[Path], T]) -> T:
    try:
        path = local_path(uri)
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise InvalidInput(
                f"{shown(uri)} is a folder", hint=f"name the metadata file in it{_suggestion(path)}"
            )
        if not stat.S_ISREG(kind):
            raise InvalidInput(f"{shown(uri)} is not a regular file")
        return asked(path)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"{shown(uri)}: no such file") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{shown(uri)} cannot be read: {first_line(error)}") from None


def _read_whole(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _size_of(path: Path) -> int:
    return path.stat().st_size


def _write_locally(uri: str, data: bytes) -> None:
    try:
        path = local_path(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # The commit that names this file will be durable.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"{shown(uri)} cannot be written: {first_line(error)}") from None


def _suggestion(folder: Path) -> str:
    """Returns the newest metadata file of a table's folder, as the end of a message."""
    files = [p for place in (folder, folder / "metadata") for p in place.glob("*.metadata.json*")]
    return (
        f", for example {max(files, key=lambda p: (p.stat().st_mtime_ns, p.name))}" if files else ""
    )


# -- remote ---------------------------------------------------------------------------------------


@cache
def leave_warnings_to_programs() -> None:
    """Keeps PyIceberg's warnings from stderr, unless the program has logging handlers."""
    import logging

    logging.getLogger("pyiceberg").addHandler(logging.NullHandler())


def _path_of(uri: str) -> str:
    """Returns the path in a URI. Raises `InvalidInput` for an invalid URI."""
    try:
        return urlsplit(uri).path
    except ValueError as error:
        raise InvalidInput(f"{shown(uri)} is not a URI: {first_line(error)}") from None


def _read_through(file: Any) -> bytes:
    with file.open(seekable=False) as stream:
        return bytes(stream.read(MAX_BYTES + 1))


def _write_through(file_io: Any, uri: str, data: bytes) -> None:
    with file_io.new_output(uri).create(overwrite=True) as stream:
        stream.write(data)


_SILENCE = re.compile(
    r"NETWORK_CONNECTION|curlCode|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT"
    r"|[Tt]imed? ?out|[Cc]onnection (reset|refused)"
)
"""Matches messages of pyarrow and fsspec when a file system does not answer.

Some file systems have one error class for everything.
"""


def is_no_answer(error: BaseException) -> bool:
    """Whether an error means that the file system does not answer."""
    return (
        isinstance(error, (ConnectionError, TimeoutError))
        or _SILENCE.search(str(error)) is not None
    )


def first_line(error: BaseException) -> str:
    """Returns the message of an error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__
