"""Metadata files of a warehouse: read, written once, removed; and their text, within limits.

The only place where a server opens a file that a client named.

A metadata file never changes once it is written, and its name contains a random UUID. So the files
of an object store that were read or written last are cached, and files that a commit names come
from there. Local files are always read: that is cheap, and shows at once if another program has
deleted one.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import uuid
from codecs import iterdecode
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.files import MissingFile, is_no_answer
from nessie_cli.iceberg.filesystems import filesystem, upload_small_files_at_once
from nessie_cli.iceberg.locations import (
    LOCAL,
    METADATA_PATH,
    Allowed,
    LocationRefused,
    ParsedLocation,
)
from nessie_cli.iceberg.metadata import GZIP, NoJson, TooLarge, json_of, too_deep, unpacked
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.repository.bounded_cache import BoundedCache
from nessie_cli.wire.large_json import (
    MOST_VALUES,
    count_values,
    decode_members,
    free,
    steps,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_BYTES = 64 * 2**20
"""The largest metadata file, as it is and decompressed.

With ten thousand snapshots one has about 10 MB.
"""

_METADATA_FILE = re.compile(r"(?:.*/)?v?(\d{1,18})(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")

MOST_BYTES = 32 << 20
"""Bytes of all values of a cache."""
MOST_OF_ONE = 1 << 20
"""The largest value that is cached."""


def byte_cache() -> BoundedCache[Hashable, bytes]:
    """Returns a cache of metadata files, or of answers that contain one."""
    return BoundedCache(MOST_BYTES, len, MOST_OF_ONE)


logger = logging.getLogger(__name__)


class LocalFile(NamedTuple):
    """A local file at some time: its path, and its inode, time of change and size."""

    path: str
    stamp: tuple[int, int, int]

    def is_unchanged(self) -> bool:
        """Returns whether the file is still the same."""
        try:
            return _stamp(self.path) == self.stamp
        except OSError:
            return False


class MetadataFiles:
    """The metadata files of one warehouse. Threads may share it; it keeps connections.

    File systems get their settings from the warehouse alone, not from tables or clients.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.allowed = Allowed(warehouse.allowed)
        self._remote: dict[str, Any] = {}
        self._recent = byte_cache()
        """Remote files by location."""

    def check(self, location: str) -> str:
        """Returns the normal form of a location, with symbolic links resolved.

        Raises `LocationRefused` unless it is allowed.
        """
        return self.allowed.find(location)[0].normal

    def local_file(self, location: str) -> LocalFile | None:
        """Returns a local file as it is now; None for a remote one, which never changes.

        Raises `LocationRefused`, and `MissingFile` if a local file is missing.
        """
        place, _ = self.allowed.find(location)
        if place.scheme != LOCAL:
            return None
        with local_errors(location, "read"):
            return LocalFile(place.path, _stamp(place.path))

    def read(self, location: str, *, committed: bool = False) -> bytes:
        """Returns the text of a file, which may be compressed by gzip.

        A file that a commit names (`committed`) may come from memory. Raises `LocationRefused`
        before any I/O, `MissingFile`, `InvalidInput` for a file that is too large or damaged,
        `StoreUnavailable`. Messages never quote the file. Cost: at most one read.
        """
        place, _ = self.allowed.find(location)
        if place.scheme == LOCAL:
            data = _read_local(place.path, location)
        else:
            data = (self._recent.get(location) if committed else None) or self._read_remote(
                place.scheme, location
            )
        return plain(data, location)

    def write(self, location: str, data: bytes) -> None:
        """Write a new file, durably. Its name has to be new.

        Raises `LocationRefused`, `InvalidInput` for one that is too large, and `StoreUnavailable`,
        also for a local file that exists. Cost in an object store: one request, as looking for the
        file first would cost two more.
        """
        place, base = self.allowed.find(location)
        if len(data) > MAX_BYTES:
            raise too_large(location)
        if place.scheme == LOCAL:
            _write_local(place, base.resolved, location, data)
        else:
            self._write_remote(place.scheme, location, data)

    def make_folders(self, table_location: str) -> None:
        """Creates the folders of a table on a local disk. Object stores have none.

        Raises `LocationRefused`, `StoreUnavailable`.
        """
        place, base = self.allowed.find(f"{table_location.rstrip('/')}/metadata/file")
        if place.scheme == LOCAL:
            with (
                local_errors(table_location, "created"),
                _folder_of(place, base.resolved, create=True),
            ):
                pass

    def remove(self, location: str) -> None:
        """Remove a file that no commit names.

        One that stays does no harm: failures are logged.
        """
        try:
            place, base = self.allowed.find(location)
            if place.scheme == LOCAL:
                with _folder_of(place, base.resolved, create=False) as folder:
                    os.unlink(PurePosixPath(place.path).name, dir_fd=folder)
            else:
                self._recent.drop(location)
                self._file_io(place.scheme, location).delete(location)
        except FileNotFoundError:
            # It was never written.
            return
        except Exception:  # noqa: BLE001 - each file system has its own errors; none may hide the commit's
            logger.warning("the metadata file %s could not be removed", location)

    def has_any(self, table_location: str) -> bool:
        """Whether there is a first metadata file below the location of a table.

        Cost: one listing of a folder.
        """
        folder = f"{table_location.rstrip('/')}/metadata"
        place, _ = self.allowed.find(folder)
        with (
            local_errors(folder, "read") if place.scheme == LOCAL else remote_errors(folder, "read")
        ):
            names = _names_in(place.path) if place.scheme == LOCAL else self._names_in(folder)
        return any(name.startswith("00000-") and ".metadata.json" in name for name in names)

    # -- remote ------------------------------------------------------------------------------------

    def _names_in(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        system, path = filesystem(folder, self.warehouse.storage)
        files = system.get_file_info(FileSelector(path, allow_not_found=True))
        return [file.base_name for file in files]

    def _file_io(self, scheme: str, location: str) -> Any:
        file_io = self._remote.get(scheme)
        if file_io is None:
            try:
                from pyiceberg.io import load_file_io
            except ImportError:
                raise InvalidInput(
                    f"{location}: PyIceberg reads files in {scheme}:",
                    hint="`pip install 'nessie-cli[iceberg]'`",
                ) from None
            file_io = load_file_io(dict(self.warehouse.storage), location)
            upload_small_files_at_once(file_io)
            self._remote[scheme] = file_io
        return file_io

    def _read_remote(self, scheme: str, location: str) -> bytes:
        with remote_errors(location, "read"):
            file_io = self._file_io(scheme, location)
            with file_io.new_input(location).open(seekable=False) as stream:
                data = bytes(stream.read(MAX_BYTES + 1))
        self._recent[location] = data
        return data

    def _write_remote(self, scheme: str, location: str, data: bytes) -> None:
        with remote_errors(location, "written"):
            file_io = self._file_io(scheme, location)
            with file_io.new_output(location).create(overwrite=True) as stream:
                stream.write(data)
        self._recent[location] = data


@contextmanager
def remote_errors(location: str, done: str) -> Iterator[None]:
    """Raise our errors for those of a remote file system.

    Their own texts are logged, not sent: they may name hosts and keys.
    """
    try:
        yield
    except (InvalidInput, StoreUnavailable):
        raise
    except FileNotFoundError:
        raise MissingFile(f"{location}: no such file") from None
    except Exception as error:  # noqa: BLE001 - each file system has its own errors, and none shares a base with another
        logger.warning("%s could not be %s: %s", location, done, error)
        why = "the storage does not answer" if is_no_answer(error) else "the storage refuses it"
        raise StoreUnavailable(f"{location} cannot be {done}: {why}") from None


# -- local -----------------------------------------------------------------------------------------


def _stamp(path: str) -> tuple[int, int, int]:
    status = os.stat(path)  # noqa: PTH116 - a third of the time
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def _folder_of(place: ParsedLocation, base: ParsedLocation, *, create: bool) -> Iterator[int]:
    """Opens the folder of a resolved path, from a base down, without following symbolic links.

    So it fails if a folder became a link after the path was checked.
    """
    folders = PurePosixPath(place.path).relative_to(base.path).parts[:-1]
    if place.path == base.path:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if create:
        os.makedirs(base.path, exist_ok=True)  # noqa: PTH103 - configured by the administrator
    descriptor = os.open(base.path, _FOLDER)
    try:
        for name in folders:
            if create:
                _make_folder(name, descriptor)
            inner = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _make_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return
    os.fsync(parent)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - a third of the time
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_local(path: str, location: str) -> bytes:
    with local_errors(location, "read"), open_local(path, location) as file:
        return file.read(MAX_BYTES + 1)


def open_local(path: str, location: str) -> BinaryIO:
    """Opens the regular file at a resolved path. To be used inside `local_errors`."""
    file = os.fdopen(os.open(path, _READ), "rb")
    try:
        _check_opened(file.fileno(), path, location)
    except BaseException:
        file.close()
        raise
    return file


def _check_opened(descriptor: int, path: str, location: str) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise InvalidInput(f"{location} is not a regular file")
    if _path_of(descriptor, path) != path:
        raise LocationRefused(f"location {location}: it has been replaced by a symbolic link")


def _path_of(descriptor: int, path: str) -> str:
    """The path of an open file: links may have changed after its location was checked."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a third of the time
    except OSError:
        return os.path.realpath(path)


def _write_local(place: ParsedLocation, base: ParsedLocation, location: str, data: bytes) -> None:
    with local_errors(location, "written"), _folder_of(place, base, create=True) as folder:
        name = PurePosixPath(place.path).name
        descriptor = os.open(name, _NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                # The commit that names this file will be durable.
                os.fsync(descriptor)
            os.fsync(folder)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise


@contextmanager
def local_errors(location: str, done: str) -> Iterator[None]:
    """Raises our errors for those of the local file system."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"{location}: no such file") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LocationRefused(f"location {location} is a symbolic link") from None
        if done == "read":
            raise InvalidInput(f"{location} cannot be read: {error.strerror}") from None
        raise StoreUnavailable(f"{location} cannot be {done}: {error.strerror}") from None


# -- the text of a file ----------------------------------------------------------------------------


def next_metadata_file(
    table_location: str, properties: Mapping[str, str], current: str | None
) -> str:
    """Returns the name of a table's or view's next metadata file.

    It is `.../metadata/NNNNN-UUID.metadata.json`.
    """
    folder = properties.get(METADATA_PATH) or f"{table_location.rstrip('/')}/metadata"
    match = _METADATA_FILE.fullmatch(current) if current else None
    number = int(match[1]) + 1 if match else 0
    return f"{folder.rstrip('/')}/{number:05}-{uuid.uuid4()}.metadata.json"


class Head(Struct, frozen=True, rename="kebab"):
    """The members of metadata that are read without the others, which takes a tenth of the time."""

    format_version: int
    location: str | None = None
    table_uuid: str | None = None
    current_schema_id: int | None = None
    default_spec_id: int | None = None
    default_sort_order_id: int | None = None
    current_snapshot_id: int | None = None
    current_version_id: int | None = None


MOST_AT_ONCE = 8 << 20
"""The most bytes of a text whose head is read by one call."""
_HEAD_MEMBERS = [field.encode_name for field in msgspec.structs.fields(Head)]
_decode_head = msgspec.json.Decoder(Head).decode


def head_of(text: bytes, location: str) -> Head:
    """Returns the head of a metadata file.

    The other members are valid JSON in UTF-8, of any kind. Raises `InvalidInput`.
    """
    try:
        if len(text) > MOST_AT_ONCE:
            return msgspec.convert(decode_members(text, _HEAD_MEMBERS), Head)
        for _ in iterdecode(steps(text), "utf-8"):
            pass
        return _decode_head(text)
    except ValueError:
        raise _no_metadata(location) from None
    except RecursionError:
        raise InvalidInput(f"{location}: {too_deep().message}") from None


def check_values(text: bytes, location: str) -> None:
    """Raises `InvalidInput` for a text of too many JSON values, or one that is still compressed."""
    if text.startswith(GZIP):
        raise _no_metadata(location)
    if len(text) > MOST_VALUES and count_values(text) > MOST_VALUES:
        raise InvalidInput(f"{location} has more than {MOST_VALUES:,} JSON values")


def parsed(text: bytes, location: str) -> Document:
    """Returns the document of a metadata file. Raises `InvalidInput` if it exceeds a limit."""
    check_values(text, location)
    try:
        document = json_of(text)
    except NoJson:
        raise _no_metadata(location) from None
    except InvalidInput as error:
        raise InvalidInput(f"{location}: {error.message}") from None
    if not isinstance(document, dict) or "format-version" not in document:
        values = [document]
        del document
        free(values)
        raise _no_metadata(location)
    return document


def plain(data: bytes, location: str) -> bytes:
    """Returns the text of a file that may be compressed by gzip. Raises `InvalidInput`."""
    try:
        return unpacked(data, MAX_BYTES)
    except TooLarge:
        raise too_large(location) from None
    except InvalidInput as error:
        raise InvalidInput(f"{location}: {error.message}") from None


def too_large(location: str) -> InvalidInput:
    """Returns the error for a metadata file of more than `MAX_BYTES`."""
    return InvalidInput(f"{location} is larger than {MAX_BYTES // 2**20} MiB")


def _no_metadata(location: str) -> InvalidInput:
    return InvalidInput(f"{location} is not an Iceberg metadata file")
