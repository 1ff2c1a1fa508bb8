"""Lists all files below a location with size and modification time: local, S3, fsspec.

Folders are read one after the other, so memory depends on the largest folder only. Symbolic links
are neither followed nor listed, because their targets may belong to other programs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.files import NoAnswer, first_line, is_no_answer
from nessie_cli.iceberg.filesystems import filesystem
from nessie_cli.iceberg.locations import absolute_location, is_local, local_path, scheme_of


class Listed(NamedTuple):
    """A file. `location` has the form of the base location, `modified` is in UTC."""

    location: str
    size: int
    modified: datetime


class Unlisted(NamedTuple):
    """A location that could not be listed. `silent` if its file system does not answer."""

    location: str
    message: str
    silent: bool = False


Found = Listed | Unlisted


def files_below(base: str, properties: Mapping[str, str]) -> Iterator[Found]:
    """Yields every file below a location once, in any order. A missing folder has no files.

    `properties` are those of PyIceberg's FileIO. Raises nothing: a folder that cannot be listed is
    an `Unlisted`. Cost: one request for each folder, on S3 one for each 1,000 files in it.
    """
    try:
        if is_local(base):
            yield from _local(base)
        else:
            file_system, path = filesystem(base, properties)
            yield from _remote(file_system, path.rstrip("/"), base.rstrip("/"))
    except NessieError as error:
        yield Unlisted(base, error.message, isinstance(error, NoAnswer))


# -- local ----------------------------------------------------------------------------------------


def _local(base: str) -> Iterator[Found]:
    root, stem = local_names(base)
    folders = [""]
    while folders:
        below = folders.pop()
        try:
            with os.scandir(f"{root}{below}/") as entries:
                for entry in entries:
                    name = f"{below}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(name)
                    elif entry.is_file(follow_symlinks=False):
                        yield from _listed(entry, f"{stem}{name}")
        except (FileNotFoundError, NotADirectoryError) as error:
            # The table or the folder was deleted. A file at the base location is not a table's.
            if not below and isinstance(error, NotADirectoryError):
                yield Unlisted(base, "is not a folder")
        except OSError as error:
            yield Unlisted(f"{stem}{below}", first_line(error))


def local_names(base: str) -> tuple[str, str]:
    """Returns the path of a local base, and the prefix that replaces it in locations of files."""
    root = str(local_path(absolute_location(base))).rstrip("/")
    return root, base.rstrip("/") if scheme_of(base) else root


def _listed(entry: os.DirEntry[str], location: str) -> Iterator[Found]:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Unlisted(location, first_line(error))
        return
    yield Listed(location, status.st_size, moment(status.st_mtime_ns))


def moment(nanoseconds: int) -> datetime:
    """Returns a time of a file, to the microsecond."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)


# -- remote ---------------------------------------------------------------------------------------


def _remote(file_system: Any, root: str, stem: str) -> Iterator[Found]:
    from pyarrow import fs

    # Some file systems put a slash in front of every name.
    above = len(root.lstrip("/"))
    folders = [root]
    while folders:
        folder = folders.pop()
        location = f"{stem}{folder.lstrip('/')[above:]}"
        try:
            entries = file_system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        except Exception as error:  # noqa: BLE001 - each file system has its own errors, and none shares a base with another
            yield Unlisted(location, first_line(error), is_no_answer(error))
            continue
        for entry in entries:
            if entry.type == fs.FileType.Directory:
                if (below := entry.path.rstrip("/")) != folder:
                    folders.append(below)
                else:
                    yield Unlisted(f"{location}//", "folders without a name cannot be listed")
            elif entry.type == fs.FileType.File:
                yield Listed(
                    f"{stem}{entry.path.lstrip('/')[above:]}", entry.size or 0, _modified(entry)
                )


def _modified(entry: Any) -> datetime:
    """Returns the modification time of a file. An unknown one counts as new."""
    modified: datetime | None = entry.mtime
    return datetime.now(UTC) if modified is None else modified.astimezone(UTC)
