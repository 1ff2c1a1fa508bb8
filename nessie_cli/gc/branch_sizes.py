"""Bytes that only one branch holds, and the small files of its tables.

A branch holds the files of all its commits along first parents, and of the commits that its reflog
names. So this is a mark for each branch, without retention policies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct, structs

from nessie_cli.errors import NessieError, NotFound
from nessie_cli.gc.roots import Roots
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import oldest_snapshot, parse_document
from nessie_cli.iceberg.reachable import BrokenFile, FileKind, Walker, files_in
from nessie_cli.model import NO_ANCESTOR, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.model.progress import Progress
from nessie_cli.repository.base import Repository

_SHARED = ""
"""The owner of a commit that several references hold. No reference has this name."""
_DATA = frozenset(
    {
        FileKind.DATA,
        FileKind.POSITION_DELETES,
        FileKind.EQUALITY_DELETES,
        FileKind.DELETION_VECTORS,
    }
)


class BranchTable(Struct, frozen=True):
    """A table at the head of a branch.

    `files`, `small_files` and `bytes` are about its current snapshot, with delete files. `only` are
    the bytes that no other reference holds: those of data files, delete files, manifests and
    statistics. All of them are None if a file cannot be read, and `problem` says which one.
    """

    branch: str
    key: ContentKey
    files: int | None = None
    small_files: int | None = None
    bytes: int | None = None
    only: int | None = None
    oldest_snapshot: datetime | None = None
    problem: str | None = None

    @property
    def rank(self) -> tuple[int, int, str, ContentKey]:
        """Sorts tables with the most bytes of one branch first, then those with small files."""
        return -(self.only or 0), -(self.small_files or 0), self.branch, self.key


class _Live(Struct, frozen=True):
    """The live files of one metadata file: number, small ones, bytes, and the oldest snapshot."""

    files: int
    small_files: int
    bytes: int
    oldest_snapshot: datetime | None


def branch_tables(
    repository: Repository,
    files: Files,
    small: int,
    moves_since: datetime,
    progress: Progress | None = None,
) -> list[BranchTable]:
    """Returns the Iceberg tables of all branches. Files below `small` bytes are small.

    Moves of the reflog before `moves_since` hold nothing. Cost: reads each commit once or twice,
    and of tables that some branch alone has changed every metadata file, manifest list and manifest
    once; of others those of the heads. Memory: about 300 bytes for each commit, and the paths of
    the files of one table.
    """
    states = _States(repository, moves_since)
    heads: dict[str, dict[str, BranchTable]] = defaultdict(dict)
    contents: dict[str, dict[str, IcebergTable]] = defaultdict(dict)
    for branch in repository.references():
        if branch.type is not ReferenceType.BRANCH or branch.hash == NO_ANCESTOR:
            continue
        for entry in repository.entries(f"@{branch.hash}", content=True):
            if isinstance(entry.content, IcebergTable) and entry.content.id is not None:
                heads[entry.content.id][branch.name] = BranchTable(branch.name, entry.key)
                contents[entry.content.id][branch.name] = entry.content
    tables: list[BranchTable] = []
    for number, (id_, by_branch) in enumerate(heads.items(), 1):
        tables += _measured(files, small, by_branch, contents[id_], states.of.get(id_, {}))
        if progress:
            progress(number, len(heads))
    return tables


class _States:
    """The metadata files of tables in all commits, by content id and by owner of the commit."""

    def __init__(self, repository: Repository, moves_since: datetime) -> None:
        self.of: dict[str, dict[str, str]] = defaultdict(dict)
        """By content id: the owner of each metadata file."""
        self._repository = repository
        self._owners: dict[str, str] = {}
        for root in Roots(repository, moves_since).new():
            try:
                self._walk(root.name, root.hash)
            except NotFound:
                continue  # It was deleted meanwhile.

    def _walk(self, owner: str, start: str) -> None:
        """Gives the commits along first parents to an owner; to all if another one has them."""
        if start == NO_ANCESTOR:
            return
        for entry in self._repository.log(f"@{start}", operations=True):
            before = self._owners.get(entry.hash)
            if before in (owner, _SHARED):
                return
            now = owner if before is None else _SHARED
            self._owners[entry.hash] = now
            for operation in entry.operations or ():
                if isinstance(operation, Put) and isinstance(operation.content, IcebergTable):
                    content = operation.content
                    of_table = self.of[content.id or ""]
                    location = content.metadata_location
                    same = before is not None or of_table.get(location, now) == now
                    of_table[location] = now if same else _SHARED


def _measured(
    files: Files,
    small: int,
    by_branch: Mapping[str, BranchTable],
    contents: Mapping[str, IcebergTable],
    states: Mapping[str, str],
) -> Iterator[BranchTable]:
    """Yields one table on all branches."""
    try:
        only = _only(files, states)
        live: dict[tuple[str, int], _Live] = {}
        for branch, table in by_branch.items():
            content = contents[branch]
            state = content.metadata_location, content.snapshot_id
            if state not in live:
                live[state] = _live(files, *state, small)
            measured = structs.asdict(live[state])
            yield structs.replace(table, only=only[branch], **measured)
    except (BrokenFile, NessieError) as error:
        message = error.message
        for table in by_branch.values():
            yield structs.replace(table, problem=message)


def _only(files: Files, states: Mapping[str, str]) -> Counter[str]:
    """Returns the bytes of a table that each owner holds alone."""
    by_owner: dict[str, list[str]] = defaultdict(list)
    for location, owner in states.items():
        by_owner[owner].append(location)
    only: Counter[str] = Counter()
    if not by_owner.keys() - {_SHARED}:
        return only
    shared: set[str] = set()
    manifests: set[str] = set()
    for path, kind, _ in _files_of(files, by_owner.pop(_SHARED, ()), ()):
        shared.add(path)
        if kind in (FileKind.MANIFEST, FileKind.MANIFEST_LIST):
            manifests.add(path)
    holders: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for owner, locations in by_owner.items():
        for path, _, size in _files_of(files, locations, manifests):
            if path not in shared:
                holders[path] = owner if holders.get(path, owner) == owner else _SHARED
                sizes[path] = size
    for path, owner in holders.items():
        only[owner] += sizes[path]
    return only


def _files_of(
    files: Files, locations: Iterable[str], done: Iterable[str]
) -> Iterator[tuple[str, FileKind, int]]:
    """Yields the files of metadata files, without those of manifests that are done."""
    walker = Walker(files)
    walker.remember(done)
    for location in locations:
        for file in walker.follow(location):
            if isinstance(file, BrokenFile):
                raise file
            yield file.path, file.kind, file.size


def _live(files: Files, location: str, snapshot_id: int, small: int) -> _Live:
    """Returns the live files of a snapshot."""
    document = parse_document(files.read(location), location)
    table = files_in(document, location)
    current = tuple(each for each in table.snapshots if each.id == snapshot_id)
    sizes: dict[str, int] = {}
    for file in Walker(files).below(structs.replace(table, snapshots=current), location):
        if isinstance(file, BrokenFile):
            raise file
        if file.kind in _DATA:
            sizes[file.path] = file.size
    few = sum(size < small for size in sizes.values())
    return _Live(len(sizes), few, sum(sizes.values()), oldest_snapshot(document))
