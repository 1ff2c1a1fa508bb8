"""Helpers of the repository tests: short keys, numbered tables, and a catalog that reads and
writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    IcebergTable,
    IcebergView,
    KeyBehavior,
    LogEntry,
    MergeBehavior,
    MergeResult,
    Namespace,
    Operation,
    Put,
    Reference,
    ReferenceType,
    Unchanged,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions

NS = "namespace"
"""A number that marks a key as a namespace."""

NOBODY = "11223344556677889900aabbccddeeff11223344556677889900aabbccddeeff"
"""A well-formed hash that no commit has."""


def key(text: str) -> ContentKey:
    return ContentKey(tuple(text.split(".")))


def table(number: int, content_id: str | None = None) -> IcebergTable:
    return IcebergTable(
        metadata_location=f"s3://lake/{number}.metadata.json",
        snapshot_id=number,
        schema_id=1,
        spec_id=2,
        sort_order_id=3,
        id=content_id,
    )


def view(number: int, content_id: str | None = None) -> IcebergView:
    return IcebergView(
        metadata_location=f"s3://lake/v{number}.metadata.json",
        version_id=number,
        schema_id=1,
        id=content_id,
    )


def namespace(text: str, content_id: str | None = None, **properties: str) -> Namespace:
    return Namespace(elements=tuple(text.split(".")), properties=properties, id=content_id)


def put(text: str, content: Content, expected: Content | None = None) -> Put:
    return Put(key(text), content, expected)


def delete(text: str) -> Delete:
    return Delete(key(text))


def unchanged(text: str) -> Unchanged:
    return Unchanged(key(text))


def behave(
    text: str,
    behavior: str = "NORMAL",
    expected: Content | None = None,
    resolved: Content | None = None,
) -> KeyBehavior:
    return KeyBehavior(key(text), MergeBehavior(behavior), expected, resolved)


def number_of(content: Content | None) -> int | str | None:
    """Returns the number of a table or view; the type of anything else."""
    match content:
        case None:
            return None
        case IcebergTable():
            return content.snapshot_id
        case IcebergView():
            return f"view {content.version_id}"
        case Namespace():
            return NS
    return content.type_name


def types_and_keys(conflicts: Iterable[Conflict]) -> list[tuple[str, str]]:
    return sorted((c.type.value, c.key.plain if c.key else "") for c in conflicts)


def found(refused: pytest.ExceptionInfo[ReferenceConflict]) -> list[tuple[str, str]]:
    """Returns type and key of each conflict of an error, sorted, without keys that are only
    listed beside the real conflicts."""
    return types_and_keys(
        c
        for c in refused.value.conflicts
        if c.type != ConflictType.KEY_CONFLICT or "UNKNOWN" not in c.message
    )


def touched(result: MergeResult) -> dict[str, str]:
    """Returns the keys that a merge or transplant reports, each with its behavior."""
    return {d.key.plain: d.behavior.value for d in result.details}


class Catalog:
    """A repository under test."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def head(self, name: str = "main") -> str:
        return self.repository.reference(name).hash

    def branch(self, name: str, at: str = "main") -> Reference:
        return self.repository.create_reference(ReferenceType.BRANCH, name, self.hash(at))

    def tag(self, name: str, at: str = "main") -> Reference:
        return self.repository.create_reference(ReferenceType.TAG, name, self.hash(at))

    def hash(self, revision: str) -> str:
        return self.repository.resolve(revision).hash

    def commit(
        self,
        branch: str,
        *operations: Operation,
        at: str | None = None,
        message: str = "work",
        **options: Any,
    ) -> str:
        """Creates one commit; returns the new head."""
        return self.repository.commit(
            branch, operations, CommitMeta(message), expected_hash=at, **options
        ).reference.hash

    def write(self, branch: str, state: Mapping[str, int | str | None], message: str = "") -> str:
        """Creates one commit that puts numbered tables and namespaces, or deletes (None).

        Existing keys are updated. Returns the new head.
        """
        present = self.repository.contents(branch, [key(k) for k in state])
        operations: list[Operation] = []
        for name, value in state.items():
            old = present.get(key(name))
            content_id = old.id if old else None
            if value is None:
                operations.append(delete(name))
            elif value == NS:
                operations.append(put(name, namespace(name, content_id)))
            else:
                operations.append(put(name, table(int(value), content_id)))
        return self.commit(branch, *operations, message=message or f"write {', '.join(state)}")

    def rename(self, branch: str, old: str, new: str, number: int | None = None) -> str:
        """Commits a rename of a content, with a change if a number is given."""
        content = self.content(branch, old)
        moved = content if number is None else table(number, content.id)
        return self.commit(branch, delete(old), put(new, moved), message=f"rename {old} {new}")

    def recreate(self, branch: str, name: str, content: Content) -> str:
        """Creates one commit that drops a key and recreates it with a new content id."""
        return self.commit(branch, delete(name), put(name, content), message=f"recreate {name}")

    def content(self, at: str, name: str) -> Content:
        return self.repository.content(at, key(name))

    def id(self, at: str, name: str) -> str:
        content_id = self.content(at, name).id
        assert content_id is not None
        return content_id

    def numbers(self, at: str = "main") -> dict[str, int | str | None]:
        """Returns the whole state: each key and its number."""
        return {
            e.key.plain: number_of(e.content) for e in self.repository.entries(at, content=True)
        }

    def log(self, at: str = "main", **options: Any) -> list[LogEntry]:
        return list(self.repository.log(at, **options))

    def hashes(self, at: str = "main", **options: Any) -> list[str]:
        return [entry.hash for entry in self.log(at, **options)]

    def top(self, at: str = "main") -> LogEntry:
        return self.repository.commit_at(at)

    def merge(
        self, source: str, into: str = "main", *, request_id: str | None = None, **options: Any
    ) -> MergeResult:
        """Merges with the rules of the original, key by key."""
        chosen = MergeOptions(per_key=True, **options)
        return self.repository.merge(into, source, chosen, request_id=request_id)

    def transplant(
        self,
        commits: Iterable[str],
        onto: str = "main",
        *,
        request_id: str | None = None,
        **options: Any,
    ) -> MergeResult:
        """Transplants with the rules of the original, key by key."""
        chosen = MergeOptions(per_key=True, **options)
        return self.repository.transplant(onto, list(commits), chosen, request_id=request_id)

    def merge_contents(self, source: str, into: str = "main", **options: Any) -> MergeResult:
        return self.repository.merge(into, source, MergeOptions(**options))

    def transplant_contents(
        self, commits: Iterable[str], onto: str = "main", **options: Any
    ) -> MergeResult:
        return self.repository.transplant(onto, list(commits), MergeOptions(**options))

    def everything(self) -> tuple[object, ...]:
        """Returns everything that a refused write or a dry run must not change."""
        references = tuple((r.type, r.name, r.hash) for r in self.repository.references())
        return (
            references,
            len(list(self.repository.reflog())),
            tuple(self.hashes(name) == [] for _, name, _ in references),
        )


def write_history(catalog: Catalog) -> None:
    """Writes a short history of everything: values, small and large trees, a merge, a long list
    of operations, a tag."""
    catalog.write("main", {"n": NS, "n.a": 1, "b": 2})
    catalog.branch("dev")
    catalog.write("dev", {"n.a": 3, "c": 1})
    catalog.write("main", {"b": None})
    catalog.merge("dev")
    catalog.commit("main", *(put(f"t{n:03}", table(n)) for n in range(150)))
    catalog.tag("v1")


EMPTY = NO_ANCESTOR
