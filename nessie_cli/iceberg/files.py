"""Bytes of one small file by path or URI: local ones directly, all others through PyIceberg's FileIO."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from nessie_cli.errors import InvalidInput, StoreUnavailable


class MissingFile(InvalidInput):
    """There is no file of this name; all other reasons why one cannot be read are plain errors."""


class NoAnswer(StoreUnavailable):
    """The file system itself cannot be reached, or answers no more: that is no matter of the one file that was asked for."""


MAX_BYTES = 256 * 2**20
"""Metadata files beyond this are refused; those of tables with ten thousand snapshots have about 10 MB."""

TRIES = 3
"""Files that are asked for where nobody has ever answered; then no more are."""
T = TypeVar("T")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""Two characters at least: one is a drive letter."""
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")


def scheme_of(uri: str) -> str:
    """The scheme of a URI in lower case, an empty text for a plain path."""
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


def authority_of(uri: str) -> str:
    """Who is asked about a file: the scheme and host (or bucket) of a URI, an empty text for a plain path.

    >>> authority_of("s3://lake/db/t/1.json")
    's3://lake'
    """
    found = _AUTHORITY.match(uri)
    return found[0].lower() if found else ""


def shown(uri: str) -> str:
    """A file's name for a message of one line."""
    return uri if uri.isprintable() else repr(uri)


def absolute_location(uri: str) -> str:
    """What is stored as a location: exactly what was given; a relative path as an absolute one."""
    # Path.resolve would follow links, which moves a location away from what the writer of the table uses.
    return uri if scheme_of(uri) or Path(uri).is_absolute() else os.path.abspath(uri)  # noqa: PTH100


class Files:
    """Reads small files. Connections to remote file systems are kept from one file to the next."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """Take the properties of PyIceberg's FileIO (endpoints, credentials)."""
        self._properties = dict(properties or {})
        self._remote: dict[str, Any] = {}
        self._answered: set[str] = set()
        self._silent: Counter[str] = Counter()

    def has_answered(self, uri: str) -> bool:
        """Whether the file system of a file has ever said anything here, about whichever file."""
        return authority_of(uri) in self._answered

    def read(self, uri: str) -> bytes:
        """The bytes of a file.

        Raises `MissingFile`, another `InvalidInput` for what is no readable file of a sane size, `StoreUnavailable` where a remote file system does
        not answer.
        """
        data = self._asked(uri, _read_whole, _read_through)
        if len(data) > MAX_BYTES:
            raise InvalidInput(
                f"{shown(uri)}: is larger than {MAX_BYTES // 2**20} MiB, no metadata file is"
            )
        return data

    def size(self, uri: str) -> int:
        """How many bytes a file has; nothing of it is read. Raises what `read` raises. Cost: one request."""
        return self._asked(uri, _size_of, len)

    def _asked(self, uri: str, local: Callable[[Path], T], remote: Callable[[Any], T]) -> T:
        if not uri.strip():
            raise InvalidInput("the name of the metadata file is empty")
        scheme = scheme_of(uri)
        return (
            _asked_locally(uri, local)
            if scheme in ("", "file")
            else self._asked_remotely(uri, scheme, remote)
        )

    def _asked_remotely(self, uri: str, scheme: str, asked: Callable[[Any], T]) -> T:
        try:
            from pyiceberg.io import PY_IO_IMPL, SCHEMA_TO_FILE_IO
        except ImportError:
            raise InvalidInput(
                f"{shown(uri)}: files behind {scheme}: are read by PyIceberg. Hint: `pip install 'nessie-cli[iceberg]'`"
            ) from None
        _leave_warnings_to_programs()
        if scheme not in SCHEMA_TO_FILE_IO and PY_IO_IMPL not in self._properties:
            raise InvalidInput(
                f"{shown(uri)}: PyIceberg reads nothing behind {scheme}: (it knows {', '.join(SCHEMA_TO_FILE_IO)})"
            )
        if not _path_of(uri).strip("/"):
            raise InvalidInput(f"{shown(uri)}: names no file")
        if self._silent[authority_of(uri)] >= TRIES:
            raise NoAnswer(f"{shown(uri)}: cannot be read: {authority_of(uri)} does not answer")
        try:
            found = self._asked_there(uri, scheme, asked)
        except NoAnswer:
            if not self.has_answered(uri):
                self._silent[authority_of(uri)] += 1
            raise
        except (InvalidInput, StoreUnavailable):
            self._answered.add(authority_of(uri))
            raise
        self._answered.add(authority_of(uri))
        return found

    def _asked_there(self, uri: str, scheme: str, asked: Callable[[Any], T]) -> T:
        from pyiceberg.io import load_file_io

        try:
            if scheme not in self._remote:
                self._remote[scheme] = load_file_io(self._properties, uri)
            return asked(self._remote[scheme].new_input(uri))
        except FileNotFoundError:
            raise MissingFile(f"{shown(uri)}: there is no such file") from None
        except (ValueError, NotImplementedError, ImportError) as error:
            raise InvalidInput(f"{shown(uri)}: cannot be read: {first_line(error)}") from None
        except Exception as error:  # noqa: BLE001 - each file system has its own errors, and none shares a base with another
            kind = NoAnswer if is_no_answer(error) else StoreUnavailable
            raise kind(f"{shown(uri)}: cannot be read: {first_line(error)}") from None


def read_file(uri: str, properties: Mapping[str, str] | None = None) -> bytes:
    """The bytes of one file; see `Files.read`."""
    return Files(properties).read(uri)


# -- local --------------------------------------------------------------------------------------------------------------------------------


def local_path(uri: str) -> Path:
    """The path that a plain path or a `file:` URI names. Raises `InvalidInput` for another machine's file or a relative URI.

    Writers do not percent-encode these URIs, people may: where only the decoded path is there, it is that one.
    """
    if not scheme_of(uri):
        return Path(uri)
    _, _, rest = uri.partition(":")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidInput(
                f"{shown(uri)}: names the host {host!r}; write file:/absolute/path or file:///absolute/path"
            )
        rest = slash + path
    if not rest.startswith("/"):
        raise InvalidInput(
            f"{shown(uri)}: is a relative URI; write file:/absolute/path, or the path without 'file:'"
        )
    decoded = unquote(rest) if "%" in rest else rest
    return (
        Path(rest)
        if decoded == rest or os.path.lexists(rest) or not os.path.lexists(decoded)
        else Path(decoded)
    )


def _asked_locally(uri: str, asked: Callable[[Path], T]) -> T:
    try:
        path = local_path(uri)
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise InvalidInput(
                f"{shown(uri)}: is a folder; name the metadata file in it{_suggestion(path)}"
            )
        if not stat.S_ISREG(kind):
            raise InvalidInput(f"{shown(uri)}: is no regular file")
        return asked(path)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"{shown(uri)}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{shown(uri)}: cannot be read: {first_line(error)}") from None


def _read_whole(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _size_of(path: Path) -> int:
    return path.stat().st_size


def _suggestion(folder: Path) -> str:
    """The newest metadata file of a table's folder, to be named in a message."""
    found = [p for place in (folder, folder / "metadata") for p in place.glob("*.metadata.json*")]
    return (
        f", for example {max(found, key=lambda p: (p.stat().st_mtime_ns, p.name))}" if found else ""
    )


# -- remote -------------------------------------------------------------------------------------------------------------------------------


@cache
def _leave_warnings_to_programs() -> None:
    """What PyIceberg warns of is for programs that listen; where none does, Python would print it beside the error that tells the same."""
    import logging

    logging.getLogger("pyiceberg").addHandler(logging.NullHandler())


def _path_of(uri: str) -> str:
    """The path in a URI; raises `InvalidInput` for one that is none."""
    try:
        return urlsplit(uri).path
    except ValueError as error:
        raise InvalidInput(f"{shown(uri)}: is no URI: {first_line(error)}") from None


def _read_through(file: Any) -> bytes:
    with file.open(seekable=False) as stream:
        return bytes(stream.read(MAX_BYTES + 1))


_SILENCE = re.compile(
    r"NETWORK_CONNECTION|curlCode|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT|[Tt]imed? ?out|[Cc]onnection (reset|refused)"
)
"""What the file systems that pyarrow and fsspec bring say where nobody answers: some of them have one kind of error for everything."""


def is_no_answer(error: BaseException) -> bool:
    """Whether an error of a file system says that nobody answers there, as against a refusal or a file that is not there."""
    return (
        isinstance(error, (ConnectionError, TimeoutError))
        or _SILENCE.search(str(error)) is not None
    )


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__
