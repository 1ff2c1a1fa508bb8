"""Lists what is directly in a folder: local, in S3, or in another file system of pyarrow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.iceberg.files import MissingFile, NoAnswer, first_line, is_no_answer
from nessie_cli.iceberg.filesystems import filesystem
from nessie_cli.iceberg.locations import is_local, local_path, shown


class EntryKind(Enum):
    """The kind of an entry in a folder."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "symbolic link"


class FolderEntry(NamedTuple):
    """A folder, file or symbolic link in a folder."""

    name: str
    kind: EntryKind


def entries_of(folder: str, properties: Mapping[str, str]) -> list[FolderEntry]:
    """Returns what is directly in a folder, sorted by name.

    A symbolic link to a folder is a link, one to a file is a file. `properties` are those of
    PyIceberg's FileIO. Raises `MissingFile` if there is no such folder, `NotAllowed`, another
    `InvalidInput` or `StoreUnavailable` if it cannot be listed, and `NoAnswer` if its file system
    does not answer. Cost: one request, on S3 one for each 1,000 entries.
    """
    listed = _local(folder) if is_local(folder) else _remote(folder, properties)
    return sorted(listed, key=lambda entry: entry.name)


def _local(folder: str) -> list[FolderEntry]:
    try:
        with os.scandir(local_path(folder)) as entries:
            return [FolderEntry(entry.name, _kind(entry)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFile(f"{shown(folder)}: no such folder") from None
    except PermissionError as error:
        raise NotAllowed(f"{shown(folder)} cannot be listed: {first_line(error)}") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{shown(folder)} cannot be listed: {first_line(error)}") from None


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    try:
        is_folder = entry.is_dir()
    except OSError:
        # A symbolic link that leads to itself.
        return EntryKind.FILE
    if not is_folder:
        return EntryKind.FILE
    return EntryKind.LINK if entry.is_symlink() else EntryKind.FOLDER


def _remote(folder: str, properties: Mapping[str, str]) -> list[FolderEntry]:
    from pyarrow import fs

    system, path = filesystem(folder, properties)
    path = path.rstrip("/")
    try:
        entries = system.get_file_info(fs.FileSelector(path))
    except FileNotFoundError:
        raise MissingFile(f"{shown(folder)}: no such folder") from None
    except Exception as error:  # noqa: BLE001 - each file system has its own errors, and none shares a base with another
        kind = NoAnswer if is_no_answer(error) else StoreUnavailable
        raise kind(f"{shown(folder)} cannot be listed: {first_line(error)}") from None
    return [
        FolderEntry(
            entry.base_name,
            EntryKind.FOLDER if entry.type == fs.FileType.Directory else EntryKind.FILE,
        )
        for entry in entries
        # Some file systems list the folder itself.
        if entry.path.strip("/") != path.strip("/") and entry.base_name
    ]
