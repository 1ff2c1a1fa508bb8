"""Removes files: only below allowed locations, and only unchanged ones.

Each file has an outcome. An error with one file does not stop the others.
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
from nessie_cli.gc.listing import local_names, moment
from nessie_cli.iceberg.files import NoAnswer, first_line, is_no_answer
from nessie_cli.iceberg.filesystems import filesystem
from nessie_cli.iceberg.locations import is_local, normalised

AT_A_TIME = 8
"""The number of concurrent requests to a remote file system."""


METADATA = (".metadata.json", ".metadata.json.gz")
"""The ends of the names of metadata files."""


class RemovalOutcome(StrEnum):
    """The outcome for one candidate: deleted, already missing, failed (can be retried), or kept."""

    DELETED = "DELETED"
    GONE = "GONE"
    FAILED = "FAILED"
    CHANGED = "CHANGED"
    OUTSIDE = "OUTSIDE"
    LIVE = "LIVE"
    PROTECTED = "PROTECTED"


class RemovalCandidate(NamedTuple):
    """A reviewed file: its location, size, modification time, and the base it was found below."""

    location: str
    size: int
    modified: datetime
    base: str


class Removed(NamedTuple):
    """The outcome for a file, with a reason. `silent` if its file system does not answer."""

    location: str
    outcome: RemovalOutcome
    message: str = ""
    silent: bool = False


class RemovalScope:
    """The locations below which files may be removed."""

    def __init__(self, warehouse: Sequence[str]) -> None:
        self._below = tuple(f"{normalised(location).rstrip('/')}/" for location in warehouse)

    def holds(self, location: str) -> bool:
        """Whether a file is below one of them, with symbolic links resolved."""
        return normalised(location).startswith(self._below)


class Remover:
    """Removes files; `properties` are those of PyIceberg's FileIO."""

    def __init__(self, scope: RemovalScope, properties: Mapping[str, str]) -> None:
        self._scope = scope
        self._properties = properties

    def remove(self, candidates: Sequence[RemovalCandidate]) -> list[Removed]:
        """Removes files, metadata files last. Returns the outcomes in the order of the candidates.

        After an interruption, a repeated call returns `GONE` for the files that were removed.
        """
        removals: dict[str, Removed] = {}
        for metadata in (False, True):
            removals |= {
                removal.location: removal
                for removal in self._removed(
                    [c for c in candidates if c.location.endswith(METADATA) == metadata]
                )
            }
        return [removals[candidate.location] for candidate in candidates]

    def _removed(self, candidates: Sequence[RemovalCandidate]) -> Iterator[Removed]:
        remote = [candidate for candidate in candidates if not is_local(candidate.location)]
        yield from map(
            self._one, (candidate for candidate in candidates if is_local(candidate.location))
        )
        if remote:
            with ThreadPoolExecutor(min(AT_A_TIME, len(remote))) as pool:
                yield from pool.map(self._one, remote)

    def _one(self, candidate: RemovalCandidate) -> Removed:
        if not self._scope.holds(candidate.location):
            return Removed(
                candidate.location, RemovalOutcome.OUTSIDE, "is outside of the allowed locations"
            )
        try:
            return (
                _remove_local(candidate)
                if is_local(candidate.location)
                else self._remove_remote(candidate)
            )
        except NessieError as error:
            return Removed(
                candidate.location,
                RemovalOutcome.FAILED,
                error.message,
                isinstance(error, NoAnswer),
            )

    def _remove_remote(self, candidate: RemovalCandidate) -> Removed:
        file_system, path = filesystem(candidate.location, self._properties)
        try:
            outcome = _state(file_system, path, candidate)
            if outcome is None:
                file_system.delete_file(path)
            return Removed(candidate.location, outcome or RemovalOutcome.DELETED)
        except Exception as error:  # noqa: BLE001 - each file system has its own errors, and none shares a base with another
            # Some file systems then recreate the folder, and fail if that is forbidden.
            if _is_gone(file_system, path):
                return Removed(candidate.location, RemovalOutcome.DELETED)
            return Removed(
                candidate.location, RemovalOutcome.FAILED, first_line(error), is_no_answer(error)
            )


def _remove_local(candidate: RemovalCandidate) -> Removed:
    root, stem = local_names(candidate.base)
    if not candidate.location.startswith(f"{stem}/"):
        return Removed(candidate.location, RemovalOutcome.OUTSIDE, f"is not below {candidate.base}")
    try:
        return _remove_below(root, candidate.location[len(stem) :], candidate)
    except (FileNotFoundError, NotADirectoryError):
        return Removed(candidate.location, RemovalOutcome.GONE)
    except OSError as error:
        return Removed(candidate.location, RemovalOutcome.FAILED, first_line(error))


def _remove_below(root: str, name: str, candidate: RemovalCandidate) -> Removed:
    below, _, name = name.rpartition("/")
    # All steps use the open folder, so that it cannot be replaced by a link meanwhile.
    descriptor = os.open(f"{root}{below}", os.O_RDONLY | os.O_DIRECTORY)
    try:
        plain = f"{os.path.realpath(root)}{below}"
        if os.path.realpath(f"{root}{below}") != plain or not os.path.samestat(
            os.fstat(descriptor), os.lstat(plain)
        ):
            return Removed(
                candidate.location,
                RemovalOutcome.CHANGED,
                "a folder in its path has become a symbolic link",
            )
        return _remove_in(descriptor, name, candidate)
    finally:
        os.close(descriptor)


def _remove_in(descriptor: int, name: str, candidate: RemovalCandidate) -> Removed:
    """Removes a file of an open folder."""
    there = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    if not stat.S_ISREG(there.st_mode):
        return Removed(candidate.location, RemovalOutcome.CHANGED, "is no longer a regular file")
    if there.st_size != candidate.size or moment(there.st_mtime_ns) != candidate.modified:
        return Removed(candidate.location, RemovalOutcome.CHANGED, "was modified after the plan")
    os.unlink(name, dir_fd=descriptor)
    return Removed(candidate.location, RemovalOutcome.DELETED)


def _state(file_system: Any, path: str, candidate: RemovalCandidate) -> RemovalOutcome | None:
    """Returns the reason to keep a remote file, None if it is unchanged."""
    from pyarrow import fs

    file = file_system.get_file_info(path)
    if file.type != fs.FileType.File:
        return RemovalOutcome.GONE if file.type == fs.FileType.NotFound else RemovalOutcome.CHANGED
    # A listing has more exact times than a request for one object.
    same = (
        file.mtime is None
        or abs((file.mtime.astimezone(UTC) - candidate.modified).total_seconds()) < 1
    )
    return None if file.size == candidate.size and same else RemovalOutcome.CHANGED


def _is_gone(file_system: Any, path: str) -> bool:
    from pyarrow import fs

    try:
        return bool(file_system.get_file_info(path).type == fs.FileType.NotFound)
    except Exception:  # noqa: BLE001 - the first error is the one to report
        return False
