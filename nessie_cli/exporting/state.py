"""The record of an export: the tag `exported/NAME`, with what NAME has of this repository.

The keys of that state are the names in the other catalog. So the tag keeps the files of these
tables, and a table there is unchanged if its metadata file is the one at the tag.

An export first commits what it is going to register, on the branch `exporting/NAME`, which begins
at the tag. It then registers, moves the tag to the branch, and deletes the branch. An interrupted
export leaves the branch, and the next one continues on it.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from nessie_cli.errors import AlreadyExists, InvalidInput, ReferenceMoved, ReferenceNotFound
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Content,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Operation,
    Put,
    Reference,
    ReferenceType,
    RestoredFrom,
    check_new_reference_name,
)
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision

SOURCE = "nessie.exported-commit"
"""The property of a commit of the record with the exported commit."""

_TAGS, _BRANCHES = "exported/", "exporting/"


def export_tag(name: str) -> str:
    """Returns the name of the tag with the tables that were exported to a catalog."""
    return f"{_TAGS}{name}"


def export_references(repository: Repository) -> Iterator[tuple[str, Reference]]:
    """Yields the tags and branches of all exports, each after the name of its catalog."""
    for reference in repository.references():
        for prefix in (_TAGS, _BRANCHES):
            if reference.name.startswith(prefix):
                yield reference.name.removeprefix(prefix), reference


def deletion_of(reference: str) -> str:
    """Returns the command, after `nessie`, that deletes a reference of an export."""
    command = "tag -d" if reference.startswith(_TAGS) else "branch -d"
    return f"{command} {shlex.quote(reference)}"


class ExportRecord:
    """The record of the exports to one catalog, as it is when it is opened.

    `contents` are those that were exported, by their names in the other catalog. `is_interrupted`
    says that the last export did not end, and `leaving` has the contents that it was to drop.
    """

    def __init__(self, repository: Repository, name: str) -> None:
        """Reads the record. Raises `InvalidInput` if the name cannot be part of a tag's name."""
        self._repository = repository
        try:
            self.tag = check_new_reference_name(export_tag(name))
        except InvalidInput:
            raise InvalidInput(
                f"the catalog's name {name!r} cannot be part of a tag's name",
                hint="in PyIceberg's configuration, name it with letters, digits and ._-",
            ) from None
        self.branch = f"{_BRANCHES}{name}"
        self._tag = self._reference(self.tag)
        self._branch = self._reference(self.branch)
        self._is_left_over = self._precedes_tag()
        self.is_interrupted = self._branch is not None and not self._is_left_over
        self._locations: defaultdict[ContentKey, set[str]] = defaultdict(set)
        self.leaving: dict[ContentKey, Content] = {}
        self.contents = self._read()

    def _reference(self, name: str) -> Reference | None:
        try:
            return self._repository.reference(name)
        except ReferenceNotFound:
            return None

    def _precedes_tag(self) -> bool:
        """Whether the branch has nothing that is not at the tag: its export wrote no commit."""
        if self._branch is None or self._tag is None:
            return False
        hash_ = self._branch.hash
        line = self._repository.log(Revision(None, self._tag.hash))
        return hash_ == NO_ANCESTOR or any(entry.hash == hash_ for entry in line)

    def _read(self) -> dict[ContentKey, Content]:
        done, begun = self._tag, self._branch
        contents = self._contents(done.hash) if done else {}
        for key, content in contents.items():
            self._add(key, content)
        if begun is None or self._is_left_over:
            return contents
        line = self._repository.log(
            Revision(None, begun.hash), until=done.hash if done else None, operations=True
        )
        for entry in line:
            for operation in entry.operations or ():
                if isinstance(operation, Put):
                    self._add(operation.key, operation.content)
                    self.leaving.setdefault(operation.key, operation.content)
        self.leaving |= contents
        contents = self._contents(begun.hash)
        for name in contents.keys() & self.leaving.keys():
            del self.leaving[name]
        return contents

    def _contents(self, hash_: str) -> dict[ContentKey, Content]:
        entries = self._repository.entries(Revision(None, hash_), content=True)
        return {entry.key: entry.content for entry in entries if entry.content is not None}

    def _add(self, key: ContentKey, content: Content) -> None:
        if isinstance(content, IcebergTable):
            self._locations[key].add(content.metadata_location)

    def is_ours(self, name: ContentKey, location: str) -> bool:
        """Whether the last exports registered a table with this metadata file."""
        return location in self._locations.get(name, ())

    def has(self, name: ContentKey, content: Content) -> bool:
        """Whether a content was exported under this name, in this state."""
        return self.contents.get(name) == self._recorded(name, content)

    def _recorded(self, name: ContentKey, content: Content) -> Content:
        """Returns a content with its id in the record.

        A server without our extensions gives a content a new id on another branch.
        """
        if self._repository.restores_content_ids:
            return content
        earlier = self.contents.get(name)
        return replace(content, id=earlier.id if type(earlier) is type(content) else None)

    def is_complete(
        self, contents: Mapping[ContentKey, Content], gone: Sequence[ContentKey]
    ) -> bool:
        """Whether the tag has these contents, and not the names that are gone."""
        return (
            self._branch is None
            and all(self.has(key, content) for key, content in contents.items())
            and not any(key in self.contents for key in gone)
        )

    # -- writing ----------------------------------------------------------------------------------

    def begin(
        self,
        contents: Mapping[ContentKey, Content],
        origins: Mapping[ContentKey, RestoredFrom],
        gone: Sequence[ContentKey],
        meta: CommitMeta,
    ) -> None:
        """Commits what is going to be registered, and what is going to be dropped.

        `origins` has the commit and key of each content in this repository. Raises `ReferenceMoved`
        if another export to the same catalog began or ended meanwhile.
        """
        start = self._tag.hash if self._tag else NO_ANCESTOR
        if self._branch is None:
            try:
                self._branch = self._repository.create_reference(
                    ReferenceType.BRANCH, self.branch, start
                )
            except AlreadyExists:
                raise self._another_export() from None
            # An export that began and ended since the record was read has moved the tag. The
            # branch keeps others away from now on.
            if self._reference(self.tag) != self._tag:
                self._repository.delete_reference(self.branch, expected_hash=start)
                raise self._another_export()
        elif self._is_left_over and self._branch.hash != start:
            self._branch = self._repository.assign_reference(
                self.branch, start, expected_hash=self._branch.hash
            )
        operations = self._operations(contents, origins, gone)
        if operations:
            result = self._repository.commit(
                self.branch, operations, meta, expected_hash=self._branch.hash
            )
            self._branch = result.reference

    def _another_export(self) -> ReferenceMoved:
        return ReferenceMoved(
            f"another export has changed {self.tag} or {self.branch} meanwhile",
            hint="when it has ended, run the same command again",
        )

    def _operations(
        self,
        contents: Mapping[ContentKey, Content],
        origins: Mapping[ContentKey, RestoredFrom],
        gone: Sequence[ContentKey],
    ) -> list[Operation]:
        here = self.contents
        restores = self._repository.restores_content_ids
        ids = {content.id for content in here.values()}
        puts = {
            key: self._recorded(key, content)
            for key, content in contents.items()
            if not self.has(key, content)
        }
        operations: list[Operation] = [Delete(key) for key in gone if key in here]
        operations += [
            Put(key, Namespace(elements=key.elements))
            for key in sorted(_parents(puts) - here.keys() - puts.keys())
        ]
        for key, content in puts.items():
            earlier = here.get(key)
            # A content that was exported under another name leaves it in this commit.
            origin = origins[key] if restores and content.id not in ids else None
            operations.append(Put(key, content, earlier, origin))
        return operations

    def complete(self) -> str:
        """Moves the tag to what was registered, and deletes the branch. Returns the commit."""
        assert self._branch is not None
        hash_ = self._branch.hash
        if self._tag is None:
            self._repository.create_reference(ReferenceType.TAG, self.tag, hash_)
        elif self._tag.hash != hash_:
            self._repository.assign_reference(self.tag, hash_, expected_hash=self._tag.hash)
        with suppress(ReferenceNotFound):
            self._repository.delete_reference(self.branch, expected_hash=hash_)
        return hash_


def _parents(keys: Mapping[ContentKey, Content]) -> set[ContentKey]:
    return {
        ContentKey(key.elements[:length]) for key in keys for length in range(1, len(key.elements))
    }
