"""Files are removed here and nowhere else: one by one, never outside of the allowed locations, and only where they still are what was reviewed.

Each file has an outcome of its own; what goes wrong with one does not keep the others.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from nessie_cli.errors import NessieError
from nessie_cli.gc.listing import is_local, local_names, moment
from nessie_cli.iceberg.files import NoAnswer, first_line, is_no_answer
from nessie_cli.iceberg.filesystems import filesystem
from nessie_cli.iceberg.locations import normalised

AT_A_TIME = 8
"""Requests to a remote file system that are under way at a time."""


METADATA = (".metadata.json", ".metadata.json.gz")
"""How the names of metadata files end."""


class Outcome(StrEnum):
    """What became of one candidate. The first two are as they should be, FAILED can be tried again; the others stay, and are told."""

    DELETED = "DELETED"
    GONE = "GONE"
    FAILED = "FAILED"
    CHANGED = "CHANGED"
    OUTSIDE = "OUTSIDE"
    LIVE = "LIVE"
    PROTECTED = "PROTECTED"


class Candidate(NamedTuple):
    """A file to be removed, as it was when it was reviewed: its location, size, time of change, and the base that it was found below."""

    location: str
    size: int
    modified: datetime
    base: str


class Removed(NamedTuple):
    """What became of a file, and why where that is not plain; `silent` where its file system answers no more."""

    location: str
    outcome: Outcome
    message: str = ""
    silent: bool = False


class Scope:
    """The locations that files may be removed below."""

    def __init__(self, warehouse: Sequence[str]) -> None:
        self._below = tuple(f"{normalised(location).rstrip('/')}/" for location in warehouse)

    def holds(self, location: str) -> bool:
        """Whether a file is below one of them, links of folders followed."""
        return normalised(location).startswith(self._below)


class Remover:
    """Removes files; `properties` are those of PyIceberg's FileIO."""

    def __init__(self, scope: Scope, properties: Mapping[str, str]) -> None:
        self._scope = scope
        self._properties = properties

    def remove(self, candidates: Sequence[Candidate]) -> list[Removed]:
        """Remove files, metadata files last; what became of each, in the order of the candidates.

        An interrupt or a kill leaves some removed: whoever repeats the call meets those as `GONE`.
        """
        found: dict[str, Removed] = {}
        for metadata in (False, True):
            found |= {
                one.location: one
                for one in self._removed(
                    [c for c in candidates if c.location.endswith(METADATA) == metadata]
                )
            }
        return [found[candidate.location] for candidate in candidates]

    def _removed(self, candidates: Sequence[Candidate]) -> Iterator[Removed]:
        remote = [candidate for candidate in candidates if not is_local(candidate.location)]
        yield from map(
            self._one, (candidate for candidate in candidates if is_local(candidate.location))
        )
        if remote:
            with ThreadPoolExecutor(min(AT_A_TIME, len(remote))) as pool:
                yield from pool.map(self._one, remote)

    def _one(self, candidate: Candidate) -> Removed:
        if not self._scope.holds(candidate.location):
            return Removed(
                candidate.location, Outcome.OUTSIDE, "is outside of the locations that are allowed"
            )
        try:
            return (
                _remove_local(candidate)
                if is_local(candidate.location)
                else self._remove_remote(candidate)
            )
        except NessieError as error:
            return Removed(
                candidate.location, Outcome.FAILED, error.message, isinstance(error, NoAnswer)
            )

    def _remove_remote(self, candidate: Candidate) -> Removed:
        found, path = filesystem(candidate.location, self._properties)
        try:
            outcome = _state(found, path, candidate)
            if outcome is None:
                found.delete_file(path)
            return Removed(candidate.location, outcome or Outcome.DELETED)
        except Exception as error:  # noqa: BLE001 - each file system has its own errors, and none shares a base with another
            # Some make the folder of a removed file again, and fail where only that is forbidden: the file is what counts.
            if _is_gone(found, path):
                return Removed(candidate.location, Outcome.DELETED)
            return Removed(
                candidate.location, Outcome.FAILED, first_line(error), is_no_answer(error)
            )


def _remove_local(candidate: Candidate) -> Removed:
    root, stem = local_names(candidate.base)
    if not candidate.location.startswith(f"{stem}/"):
        return Removed(candidate.location, Outcome.OUTSIDE, f"is not below {candidate.base}")
    try:
        return _remove_below(root, candidate.location[len(stem) :], candidate)
    except (FileNotFoundError, NotADirectoryError):
        return Removed(candidate.location, Outcome.GONE)
    except OSError as error:
        return Removed(candidate.location, Outcome.FAILED, first_line(error))


def _remove_below(root: str, name: str, candidate: Candidate) -> Removed:
    below, _, name = name.rpartition("/")
    # The folder is opened first, and all the rest is done in the one that is open: it cannot become another on the way.
    descriptor = os.open(f"{root}{below}", os.O_RDONLY | os.O_DIRECTORY)
    try:
        plain = f"{os.path.realpath(root)}{below}"
        if os.path.realpath(f"{root}{below}") != plain or not os.path.samestat(
            os.fstat(descriptor), os.lstat(plain)
        ):
            return Removed(
                candidate.location, Outcome.CHANGED, "a folder on the way has become a link"
            )
        return _remove_in(descriptor, name, candidate)
    finally:
        os.close(descriptor)


def _remove_in(descriptor: int, name: str, candidate: Candidate) -> Removed:
    """Remove a file of an open folder."""
    there = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    if not stat.S_ISREG(there.st_mode):
        return Removed(candidate.location, Outcome.CHANGED, "is no regular file any more")
    if there.st_size != candidate.size or moment(there.st_mtime_ns) != candidate.modified:
        return Removed(candidate.location, Outcome.CHANGED, "was written anew since the plan")
    os.unlink(name, dir_fd=descriptor)
    return Removed(candidate.location, Outcome.DELETED)


def _state(found: Any, path: str, candidate: Candidate) -> Outcome | None:
    """Why a remote file is not to be removed; None for one that is as it was."""
    from pyarrow import fs

    there = found.get_file_info(path)
    if there.type != fs.FileType.File:
        return Outcome.GONE if there.type == fs.FileType.NotFound else Outcome.CHANGED
    # A listing tells the time more exactly than the answer about one object does.
    same = (
        there.mtime is None
        or abs((there.mtime.astimezone(UTC) - candidate.modified).total_seconds()) < 1
    )
    return None if there.size == candidate.size and same else Outcome.CHANGED


def _is_gone(found: Any, path: str) -> bool:
    from pyarrow import fs

    try:
        return bool(found.get_file_info(path).type == fs.FileType.NotFound)
    except Exception:  # noqa: BLE001 - nobody knows then; the first error is the one to tell
        return False
