"""Folders for golden command lines: a repository with fixed hashes, and broken workspaces.

All hashes and content ids in it have names, so an answer can be written by names.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from nessie_cli import CommitMeta, Delete, Put, Repository, create
from nessie_cli.model import (
    NO_ANCESTOR,
    UDF,
    Content,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Operation,
    ReferenceType,
)
from nessie_cli.model import UnknownContent as Unknown
from tests.json import heap
from tests.store.raw import raw

BEGIN = 1_735_689_600_000_000
"""2025-01-01T00:00:00Z in microseconds, in the past, so that commands write later times."""
MINUTE = 60_000_000
STORE = ".nessie/store.sqlite"


class Story:
    """Writes the repository. A minute passes between commits, whatever the program does
    meanwhile."""

    def __init__(self, url: str) -> None:
        self._minute = 0
        numbers = itertools.count(1)
        self.repository: Repository = create(
            url,
            who="Ann",
            clock=lambda: BEGIN + self._minute * MINUTE,
            random=lambda size: next(numbers).to_bytes(size, "big"),
        )

    def commit(
        self,
        branch: str,
        message: str,
        *operations: Operation,
        author: str = "Ann <ann@example.org>",
    ) -> None:
        self._minute += 1
        self.repository.commit(branch, operations, CommitMeta(message, authors=(author,)))

    def branch(self, name: str, at: str) -> None:
        self._minute += 1
        self.repository.create_reference(
            ReferenceType.BRANCH, name, self.repository.resolve(at).hash
        )

    def tag(self, name: str, at: str) -> None:
        self._minute += 1
        self.repository.create_reference(ReferenceType.TAG, name, self.repository.resolve(at).hash)

    def put(self, key: str, content: Content, at: str | None = None) -> Put:
        """Returns a Put; with `at`, of the content at that revision."""
        parsed = ContentKey.parse(key)
        before = self.repository.content(at, parsed) if at else None
        return Put(parsed, content.with_id(before.id) if before and before.id else content, before)

    def rename(self, old: str, new: str, at: str) -> tuple[Operation, Operation]:
        content = self.repository.content(at, ContentKey.parse(old))
        return Delete(ContentKey.parse(old)), Put(ContentKey.parse(new), content)


def table(number: int) -> IcebergTable:
    return IcebergTable(
        metadata_location=f"s3://lake/{number:05}.metadata.json",
        snapshot_id=number,
        schema_id=1,
        spec_id=2,
        sort_order_id=3,
    )


def namespace(name: str) -> Namespace:
    return Namespace(elements=ContentKey.parse(name).elements)


def _write_history(story: Story) -> None:
    """`feature` conflicts with `main` at db.orders, `clean` merges, `renamed` renames a key that
    `main` changed."""
    story.commit(
        "main",
        "a place for tables",
        story.put("db", Namespace(elements=("db",), properties={"owner": "ann"})),
    )
    story.commit(
        "main",
        "orders and items",
        story.put("db.orders", table(1)),
        story.put("db.items", table(2)),
    )
    story.tag("v1", "main")
    for name in ("feature", "clean", "renamed", "closed"):
        story.branch(name, "main")
    view = IcebergView(
        metadata_location="s3://lake/v.json",
        version_id=1,
        schema_id=0,
        sql_text="select 1",
        dialect="spark",
    )
    others = (
        story.put(
            "db.delta",
            DeltaLakeTable(
                metadata_location_history=("a",),
                checkpoint_location_history=("b",),
                last_checkpoint="c",
            ),
        ),
        story.put("db.udf", UDF(sql_text="x + 1", dialect="spark")),
        story.put(
            "db.paimon",
            Unknown(foreign_type="PAIMON_TABLE", foreign_attributes={"buckets": [4, None]}),
        ),
    )
    story.commit(
        "main",
        "one of each kind",
        story.put('db."an order.s view"', view),
        *others,
        author="Bob <bob@example.org>",
    )
    story.commit("main", "nightly load", story.put("db.orders", table(3), "main"), author="etl")
    story.commit(
        "feature",
        "orders: another schema",
        story.put("db.orders", table(4), "feature"),
        story.put("db.extra", table(5)),
    )
    story.commit("feature", "items go", Delete(ContentKey.parse("db.items")))
    story.commit("clean", "fresh table", story.put("db.fresh", table(6)))
    story.commit(
        "renamed", "orders become sales", *story.rename("db.orders", "db.sales", "renamed")
    )
    story.repository.put_setting("protect.closed", "no-delete,no-rewind,merge-only")


def make(folder: Path) -> dict[str, str]:
    """Creates a workspace on `main` with this repository; returns the names of all hashes and
    content ids."""
    (folder / ".nessie").mkdir(parents=True)
    (folder / ".nessie/HEAD").write_text("main\n")
    story = Story(str(folder / STORE))
    _write_history(story)
    names_by_id = names(story.repository)
    story.repository.close()
    return names_by_id


def names(repository: Repository) -> dict[str, str]:
    """Returns a name for each hash, `main` first, and for each content id."""
    labels = {NO_ANCESTOR: "<the empty history>"}
    references = sorted(
        (reference.name for reference in repository.references()),
        key=lambda name: (name != "main", name),
    )
    for name in references:
        for number, entry in enumerate(repository.log(name)):
            labels.setdefault(entry.hash, f"<{name}~{number}>" if number else f"<{name}>")
    for name in references:
        for entry in repository.entries(name):
            labels.setdefault(entry.content_id, f"<id of {'.'.join(entry.key.elements)}>")
    return labels


# -- broken workspaces ---------------------------------------------------------------------------
def _empty(folder: Path) -> None:
    shutil.rmtree(folder / ".nessie")


def _garbage_head(folder: Path) -> None:
    (folder / ".nessie/HEAD").write_text("what is\tthis\n")


def _garbage_config(folder: Path) -> None:
    (folder / ".nessie/config.toml").write_text("store = [\n")


def _garbage_batch(folder: Path) -> None:
    (folder / ".nessie/batch.json").write_text('{"version": 1, "begunAt": 7}')


def _no_store(folder: Path) -> None:
    for path in (folder / ".nessie").glob("store.sqlite*"):
        path.unlink()


def _foreign_file(folder: Path) -> None:
    _no_store(folder)
    (folder / STORE).write_bytes(b"This is no database at all. " * 100)


def _newer_format(folder: Path) -> None:
    with raw(folder / STORE) as connection:
        connection.execute("PRAGMA user_version = 999")


def _damaged(folder: Path) -> None:
    """The bytes of the newest commit of `main` do not match its id."""
    with raw(folder / STORE) as connection:
        connection.execute(
            "UPDATE objects SET packed = zeroblob(length(packed)) WHERE substr(id, -32) = (SELECT"
            " target FROM refs WHERE name = 'main')"
        )
        assert connection.changes() == 1


def _store_is_a_folder(folder: Path) -> None:
    _no_store(folder)
    (folder / STORE).mkdir()


def _crowded(folder: Path) -> None:
    """Creates so many commits that two of them share their first four digits; `shared` is a
    branch at one of them."""
    (folder / ".nessie/store.sqlite").unlink()
    story = Story(str(folder / STORE))
    seen: dict[str, str] = {}
    for number in range(5_000):
        story.commit(
            "main",
            f"commit {number}",
            *([story.put("db", namespace("db"))] if number == 0 else _touch(story, number)),
        )
        head = story.repository.reference("main").hash
        if head[:4] in seen:
            (folder / "shared").write_text(head[:4])
            break
        seen[head[:4]] = head
    story.repository.close()


def _touch(story: Story, number: int) -> list[Operation]:
    return [story.put("db", Namespace(elements=("db",), properties={"n": str(number)}), "main")]


def _metadata(columns: int) -> dict[str, object]:
    """Returns the metadata file of an Iceberg table with this many columns and no snapshot."""
    fields = [
        {"id": number, "name": f"column{number}", "required": False, "type": "long"}
        for number in range(1, columns + 1)
    ]
    return {
        "format-version": 2,
        "table-uuid": "4a5e1bd4-7d1c-4b56-93a9-5fa0ddf92d25",
        "location": "s3://lake/t",
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": columns,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }


def _tables(folder: Path) -> None:
    """Creates files for options."""
    content = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": "s3://lake/file.json",
        "snapshotId": 9,
        "schemaId": 1,
        "specId": 2,
        "sortOrderId": 3,
    }
    (folder / "content.json").write_text(json.dumps(content))
    view = {
        "type": "ICEBERG_VIEW",
        "metadataLocation": "s3://lake/file.json",
        "versionId": 1,
        "schemaId": 1,
    }

    def batch(name: str, *operations: tuple[str, str, object]) -> None:
        lines = [
            {"type": type_, "key": {"elements": ["db", key]}}
            | ({"content": value} if value else {})
            for type_, key, value in operations
        ]
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    batch("batch.jsonl", ("PUT", "bulk", content))
    batch("again.jsonl", ("DELETE", "items", None), ("PUT", "items", content))
    batch("view.jsonl", ("DELETE", "items", None), ("PUT", "items", view))
    for number in (1, 2):
        (folder / f"{number}.metadata.json").write_text(json.dumps(_metadata(number)))
    (folder / "garbage.json").write_text("{")
    (folder / "message.txt").write_bytes(b"caf\xe9")


def theirs(folder: Path, name: str = "theirs") -> None:
    """Creates the folder of a warehouse with one table, as Spark's Hadoop catalog does."""
    table = folder / name / "db" / "t"
    (table / "metadata").mkdir(parents=True)
    metadata = {**_metadata(1), "location": os.fspath(table)}
    (table / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))
    (table / "metadata" / "version-hint.text").write_text("1")


FOLDERS: Mapping[str, Callable[[Path], None]] = {
    "lake": lambda _: None,
    "empty": _empty,
    "files": _tables,
    "garbage head": _garbage_head,
    "garbage config": _garbage_config,
    "garbage batch": _garbage_batch,
    "no store": _no_store,
    "foreign file": _foreign_file,
    "newer format": _newer_format,
    "damaged": _damaged,
    "store is a folder": _store_is_a_folder,
    "crowded": _crowded,
    "heap": _empty,
    "planned": _empty,
    "approved": _empty,
    "theirs": _empty,
}
"""The values of `folder` in a golden file."""
PLACED: Mapping[str, Callable[[Path], None]] = {
    "heap": heap.make,
    "planned": heap.planned,
    "approved": heap.approved,
    "theirs": theirs,
}
"""Folders that are created in place, because they contain their own path."""


class Lakes:
    """Creates each folder once and copies it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[str, dict[str, str]] = {}

    def put(self, kind: str, folder: Path) -> dict[str, str]:
        """Copies one kind of folder; returns the names of its hashes and ids."""
        if "lake" not in self._names:
            self._names["lake"] = make(self._root / "lake")
        if kind not in self._names:
            shutil.copytree(self._root / "lake", self._root / kind)
            FOLDERS[kind](self._root / kind)
            self._names[kind] = {} if kind == "crowded" else self._names["lake"]
        shutil.copytree(self._root / kind, folder, dirs_exist_ok=True)
        if kind in PLACED:
            PLACED[kind](folder)
        return self._names[kind]


def placeholders(folder: Path) -> dict[str, str]:
    """Returns the replacements for braces in a command line."""
    shared = folder / "shared"
    return {"shared": shared.read_text() if shared.exists() else "", "folder": os.fspath(folder)}
