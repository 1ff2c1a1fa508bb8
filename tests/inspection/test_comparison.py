"""Changes and comparisons as values, read from a repository without a command line."""

from collections.abc import Iterator
from typing import Any

import pytest

from nessie_cli.inspection.changes import (
    ChangeKind,
    ContentChange,
    changes_of_commit,
    outline_of_commit,
    tally,
)
from nessie_cli.inspection.comparison import changes_between, ends_of
from nessie_cli.inspection.contents import entry_at, tree_rows
from nessie_cli.inspection.fields import Difference, changed_fields, changed_labels
from nessie_cli.inspection.key_history import history_of_key
from nessie_cli.inspection.last_changes import last_changes
from nessie_cli.inspection.references import containing, is_only_way_to, merged, sort_references
from nessie_cli.model import Delete, DiffEntry, KeyRange, Put
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import create
from nessie_cli.revisions import Revision, RevisionRange
from tests.repository.vocabulary import NS, Catalog, key, put, table


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with create("memory:") as repository:
        yield Catalog(repository)


def told(changes: list[ContentChange]) -> list[tuple[str, str]]:
    return [(change.kind.word, change.keys) for change in changes]


def test_the_changes_of_a_commit_have_contents_and_renames(catalog: Catalog) -> None:
    catalog.write("main", {"a": 1, "b": 1})
    catalog.rename("main", "a", "c", 2)
    entry = catalog.repository.commit_at("main")

    (change,) = changes_of_commit(catalog.repository, entry)

    assert (change.kind, change.old_key, change.key) == (ChangeKind.RENAMED, key("a"), key("c"))
    assert changed_labels(change) == ["key", "metadata-location", "snapshot-id"]
    assert changed_fields(change)[1] == Difference("snapshot-id", ("1", "2"))
    assert told(outline_of_commit(catalog.repository, entry)) == [("renamed", "a -> c")]
    assert tally([change]) == {"created": 0, "updated": 0, "deleted": 0, "renamed": 1}


def test_a_created_content_has_its_fields_on_one_side(catalog: Catalog) -> None:
    catalog.write("main", {"a": 1})
    (created,) = changes_of_commit(catalog.repository, catalog.repository.commit_at("main"))
    deleted = ContentChange(ChangeKind.DELETED, created.key, created.after, None)

    assert ("snapshot-id", (None, "1")) in changed_fields(created)
    assert ("snapshot-id", ("1", None)) in changed_fields(deleted)
    assert changed_labels(created) == changed_labels(deleted) == ["iceberg-table"]


def test_a_comparison_reads_each_prefix_once(catalog: Catalog) -> None:
    before = catalog.write("main", {"ns": NS, "x": 1})
    after = catalog.write("main", {"ns.a": 1, "ns.b": 1, "x": 2})
    prefixes = [key("ns"), key("ns.a"), key("ns")]

    changes = changes_between(catalog.repository, before, after, prefixes)

    assert told(list(changes)) == [("created", "ns.a"), ("created", "ns.b")]
    assert len(list(changes_between(catalog.repository, before, after))) == 3


def test_a_symmetric_range_begins_at_the_merge_base(catalog: Catalog) -> None:
    base = catalog.write("main", {"a": 1})
    catalog.branch("dev")
    catalog.write("main", {"a": 2})
    catalog.write("dev", {"b": 1})
    main, dev = Revision("main"), Revision("dev")

    plain = RevisionRange(main, dev, symmetric=False)
    symmetric = RevisionRange(main, dev, symmetric=True)

    assert ends_of(catalog.repository, plain) == (main, dev)
    assert ends_of(catalog.repository, symmetric) == (Revision(None, base), dev)


def test_the_history_of_a_key_and_the_last_change_of_each(catalog: Catalog) -> None:
    first = catalog.write("main", {"a": 1, "b": 1})
    second = catalog.rename("main", "a", "c")

    history = list(history_of_key(catalog.repository, second, key("c")))
    last = {
        str(entry.key): meta.hash
        for entry, meta in last_changes(catalog.repository, second, KeyRange())
    }

    assert [(entry.hash, change.keys) for entry, change in history] == [
        (second, "a -> c"),
        (first, "a"),
    ]
    assert last == {"b": first, "c": second}


@pytest.mark.parametrize("others", [0, 1, 150])
def test_the_history_of_keys_that_one_commit_exchanges_and_moves(
    catalog: Catalog, others: int
) -> None:
    names = [f"o{number:03}" for number in range(others)]
    catalog.write("main", {"a": 1, "b": 2, "c": 3, "d": 4, **dict.fromkeys(names, 5)})
    a, b, c, d = (catalog.repository.content("main", key(name)) for name in "abcd")
    last = catalog.commit(
        "main",
        Put(key("a"), b, a),
        Put(key("b"), a, b),
        Delete(key("c")),
        Put(key("d"), c, d),
        *(put(name, table(6, catalog.repository.content("main", key(name)).id)) for name in names),
        *(put(f"n{number}", table(7)) for number in range(others)),
    )
    newest = {
        name: next(history_of_key(catalog.repository, last, key(name)))[1].keys for name in "abcd"
    }
    assert newest == {"a": "b -> a", "b": "a -> b", "c": "c -> d", "d": "c -> d"}


def test_the_history_of_a_key_reads_no_content_of_others_that_a_commit_created(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.write("main", {"a": 1})
    last = catalog.write("main", {f"t{number}": number for number in range(300)})
    items, diff = [], LocalRepository.diff

    def recorded(repository: LocalRepository, *arguments: Any, **named: Any) -> Iterator[DiffEntry]:
        for item in diff(repository, *arguments, **named):
            items.append(item)
            yield item

    monkeypatch.setattr(LocalRepository, "diff", recorded)
    (change,) = (change for _, change in history_of_key(catalog.repository, last, key("t7")))
    assert (change.kind, len(items)) == (ChangeKind.CREATED, 1)


def test_references_by_the_commits_that_they_contain(catalog: Catalog) -> None:
    old = catalog.write("main", {"a": 1})
    catalog.branch("dev")
    new = catalog.write("dev", {"a": 2})
    repository = catalog.repository

    def names(references) -> list[str]:
        return [reference.name for reference in references]

    def listed():
        return repository.references(metadata=True)

    assert names(merged(repository, listed(), old)) == ["main"]
    assert names(merged(repository, listed(), old, are_merged=False)) == ["dev"]
    assert names(containing(repository, listed(), new)) == ["dev"]
    assert names(containing(repository, listed(), new, do_contain=False)) == ["main"]
    assert names(sort_references(listed(), "ahead", descending=True)) == ["dev", "main"]
    assert is_only_way_to(repository, new, ["dev"])
    assert not is_only_way_to(repository, old, ["main"])


def test_the_tree_has_a_row_for_a_namespace_without_a_content(catalog: Catalog) -> None:
    catalog.write("main", {"a": NS, "a.t": 1, "a.u": 1})
    rows = tree_rows(catalog.repository.entries("main", KeyRange(minimum=key("a.t"))))

    assert [(depth, name, entry and str(entry.key)) for depth, name, entry in rows] == [
        (0, "a", None),
        (1, "t", "a.t"),
        (1, "u", "a.u"),
    ]
    entry, content = entry_at(catalog.repository, catalog.repository.resolve("main"), key("a.t"))
    assert entry.content_id == content.id
