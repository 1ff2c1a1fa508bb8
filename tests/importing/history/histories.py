"""A history for imports, on any server, and the comparison of a source with its import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nessie_cli.importing.history.importing import AtWork, ImportedHistory, import_history
from nessie_cli.importing.history.source import HistorySource
from nessie_cli.model import NO_ANCESTOR, UDF, CommitMeta, Delete, DeltaLakeTable, LogEntry, Put
from nessie_cli.model.progress import Progress
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.store_repository import StoreRepository
from tests.repository.vocabulary import NS, Catalog, delete, key, namespace, put, table, view

IMPORTED_HASH = "nessie.imported-hash"


def write_varied_history(catalog: Catalog) -> None:
    """Writes namespaces, views, renames, merges whose second parents no reference reaches, tags,
    an assigned branch, an empty branch, a large commit, and types without Iceberg."""
    repository = catalog.repository
    catalog.commit(
        "main",
        put("db", namespace("db", owner="ann")),
        put("db.sales", namespace("db.sales")),
        put("db.sales.orders", table(1)),
        put("db.view", view(1)),
        message="first\n\nwith a body, ü",
    )
    repository.commit(
        "main",
        [
            Put(key("db.udf"), UDF(sql_text="SELECT 1", dialect="spark")),
            Put(key("db.delta"), DeltaLakeTable(metadata_location_history=("a", "b"))),
        ],
        CommitMeta(
            "other types",
            authors=("ann", "bob"),
            signed_off_by=("carl",),
            properties={"run": ("1", "2")},
        ),
    )
    catalog.tag("v1")
    catalog.branch("dev")
    catalog.write("dev", {"db.sales.lines": 2})
    catalog.branch("nested", "dev")
    catalog.write("nested", {"db.sales.lines": 3})
    catalog.write("dev", {"db.sales.more": 4})
    catalog.merge("nested", "dev")
    catalog.write("main", {"db.sales.orders": 5})
    catalog.merge("dev")
    for name in ("dev", "nested"):
        repository.delete_reference(name, expected_hash=catalog.head(name))
    catalog.rename("main", "db.sales.orders", "db.sales.renamed")
    catalog.commit("main", delete("db.sales.more"))
    catalog.commit("main", *(put(f"t{n:03}", table(n)) for n in range(60)), message="large")
    catalog.branch("assigned")
    catalog.write("assigned", {"lost": 1})
    repository.assign_reference(
        "assigned", catalog.hash("v1"), expected_hash=catalog.head("assigned")
    )
    catalog.write("assigned", {"db.other": 9, "ns": NS})
    repository.create_reference(catalog.branch("empty-later").type, "empty", NO_ANCESTOR)
    catalog.tag("v2")
    catalog.write("main", {"t001": 1001})


@contextmanager
def _silent(activity: str) -> Iterator[Progress]:
    assert activity
    yield lambda _done, _total: None


SILENT: AtWork = _silent


def imported(target: StoreRepository, source: HistorySource, **options: bool) -> ImportedHistory:
    return import_history(target, source, SILENT, **options)


def assert_same(source: ReadableRepository, target: StoreRepository) -> int:
    """Compares all references, and every commit and its whole state, key by key.

    Returns the number of commits.
    """
    theirs = {(r.type, r.name): r.hash for r in source.references()}
    ours = {(r.type, r.name): r.hash for r in target.references()}
    assert ours.keys() == theirs.keys()
    commits: dict[str, LogEntry] = {}
    for hash_ in ours.values():
        if hash_ != NO_ANCESTOR:
            for entry in target.log(hash_, operations=True, all_parents=True):
                commits[entry.meta.properties[IMPORTED_HASH][0]] = entry
    old_of = {entry.hash: old for old, entry in commits.items()} | {NO_ANCESTOR: NO_ANCESTOR}
    assert {reference: old_of[hash_] for reference, hash_ in ours.items()} == theirs
    for old, entry in commits.items():
        before = source.commit_at(old)
        properties = dict(entry.meta.properties)
        assert properties.pop(IMPORTED_HASH)[0] == old
        assert properties == dict(before.meta.properties)
        for field in ("message", "authors", "signed_off_by", "author_time", "committer"):
            assert getattr(entry.meta, field) == getattr(before.meta, field), field
        assert entry.meta.commit_time == before.meta.commit_time
        assert tuple(old_of[parent] for parent in entry.meta.parents) == before.meta.parents
        assert operations(entry) == operations(before)
        assert state(target, entry.hash) == state(source, old)
    assert list(target.check()) == []
    return len(commits)


def operations(entry: LogEntry) -> set[object]:
    return {
        (operation.key, None if isinstance(operation, Delete) else repr(operation.content))
        for operation in entry.operations or ()
    }


def state(repository: ReadableRepository, at: str) -> dict[str, str]:
    return {str(e.key): repr(e.content) for e in repository.entries(at, content=True)}
