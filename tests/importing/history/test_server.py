"""Histories of servers: everything arrives, key by key at every commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from nessie_cli.errors import AlreadyExists, InvalidInput
from nessie_cli.importing.history.server import ServerHistory
from nessie_cli.model import NO_ANCESTOR, LogEntry, Reference, ReferenceType
from nessie_cli.model.progress import Progress
from nessie_cli.repository.opening import connect, create
from nessie_cli.repository.store_repository import StoreRepository
from tests.importing.history.histories import assert_same, imported, write_varied_history
from tests.repository.servers import Servers
from tests.repository.vocabulary import NOBODY, NS, Catalog
from tests.store.postgres_server import new_url


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Catalog]:
    with create(str(tmp_path / "source.sqlite"), who="ann") as repository:
        yield Catalog(repository)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[StoreRepository]:
    with create(str(tmp_path / "target.sqlite"), who="importer") as repository:
        yield repository


def test_a_history_comes_from_a_server(
    servers: Servers, source: Catalog, target: StoreRepository
) -> None:
    write_varied_history(source)
    with servers.serving(source.repository.url) as address, connect(address) as remote:
        result = imported(target, ServerHistory(remote, address))
    assert assert_same(source.repository, target) == result.commits == 13
    assert result.contents == {
        "DELTA_LAKE_TABLE": 1,
        "ICEBERG_TABLE": 64,
        "ICEBERG_VIEW": 1,
        "NAMESPACE": 3,
        "UDF": 1,
    }
    assert (result.cut, result.unreferenced, result.left_out) == ([], 0, {})
    assert result.adjustments.raised_times == 0
    assert [r.name for r in result.references if r.type is ReferenceType.TAG] == ["v1", "v2"]


def test_a_history_goes_to_postgresql(source: Catalog) -> None:
    write_varied_history(source)
    with new_url() as url, create(url, who="importer") as target:
        imported(target, ServerHistory(source.repository, "source"))
        assert_same(source.repository, target)


def test_imported_branches_are_merged_and_compared(
    source: Catalog, target: StoreRepository
) -> None:
    source.write("main", {"a": 1, "b": 1})
    source.branch("dev")
    source.write("dev", {"a": 2})
    source.merge("dev")
    source.write("dev", {"b": 3})
    source.write("main", {"c": 4})
    imported(target, ServerHistory(source.repository, "source"))
    ours = Catalog(target)
    # The merge base is the second parent of the merge, so only the later change differs.
    assert target.commit_at(target.merge_base("main", "dev")).meta.message == "write a"
    assert [str(change.key) for change in target.diff("main", "dev")] == ["b", "c"]
    ours.merge_contents("dev")
    assert ours.numbers() == {"a": 2, "b": 3, "c": 4}
    assert [entry.meta.subject for entry in ours.log()][1:] == [
        "write c",
        *[entry.meta.subject for entry in source.log("main")[1:]],
    ]


def test_the_reflog_has_one_operation_for_each_reference(
    source: Catalog, target: StoreRepository
) -> None:
    write_varied_history(source)
    imported(target, ServerHistory(source.repository, "source"))
    moves = [entry for entry in target.reflog() if entry.operation == "import"]
    names = {entry.reference for entry in moves}
    assert names == {reference.name for reference in source.repository.references()}
    assert {entry.who for entry in moves} == {"importer"}
    assert [entry.before for entry in moves if entry.reference == "main"] == [NO_ANCESTOR]


def test_names_that_exist_are_refused_together_before_anything_is_read(
    source: Catalog, target: StoreRepository
) -> None:
    write_varied_history(source)
    ours = Catalog(target)
    ours.write("main", {"mine": 1})
    ours.tag("v2")
    before = ours.everything()
    with pytest.raises(AlreadyExists, match=r"taken in this store: 'main', 'v2'"):
        imported(target, ServerHistory(source.repository, "source"))
    assert ours.everything() == before


def test_a_history_comes_beside_other_references(source: Catalog, target: StoreRepository) -> None:
    source.write("main", {"a": 1})
    ours = Catalog(target)
    ours.repository.create_reference(ReferenceType.BRANCH, "mine", NO_ANCESTOR)
    ours.write("mine", {"mine": 1})
    imported(target, ServerHistory(source.repository, "source"))
    assert (ours.numbers("main"), ours.numbers("mine")) == ({"a": 1}, {"mine": 1})


def test_an_interrupted_import_leaves_the_target_unchanged(
    source: Catalog, target: StoreRepository
) -> None:
    write_varied_history(source)
    ours = Catalog(target)
    before = ours.everything()

    class Interrupted(ServerHistory):
        def state(self, hash_: str) -> None:
            # States are compared after all commits are written.
            if hash_ == source.head("main"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imported(target, Interrupted(source.repository, "source"))
    assert ours.everything() == before
    assert list(target.check()) == []
    imported(target, ServerHistory(source.repository, "source"))
    assert_same(source.repository, target)


def test_maintenance_deletes_the_commits_of_an_interrupted_import(
    source: Catalog, tmp_path: Path
) -> None:
    write_varied_history(source)

    class Interrupted(ServerHistory):
        def state(self, hash_: str) -> None:
            if hash_ == source.head("main"):
                raise KeyboardInterrupt

    ahead = [timedelta()]

    def clock() -> int:
        return time.time_ns() // 1000 + ahead[0] // timedelta(microseconds=1)

    with create(str(tmp_path / "target.sqlite"), clock=clock) as target:
        with pytest.raises(KeyboardInterrupt):
            imported(target, Interrupted(source.repository, "source"))
        # The newest commit stays with its ancestors, whether something refers to it or not.
        Catalog(target).branch("other")
        Catalog(target).write("other", {"mine": 1})
        ahead[0] = timedelta(days=3)
        assert target.maintain().reclaimed["commit"].objects == 13
        assert list(target.check()) == []
        imported(target, ServerHistory(source.repository, "source"))
        assert Catalog(target).numbers("main") == source.numbers("main")


def test_a_dry_run_counts_and_writes_nothing(source: Catalog, target: StoreRepository) -> None:
    write_varied_history(source)
    before = Catalog(target).everything()
    planned = imported(target, ServerHistory(source.repository, "source"), dry_run=True)
    assert Catalog(target).everything() == before
    assert list(target.check()) == []
    result = imported(target, ServerHistory(source.repository, "source"))
    assert (planned.commits, planned.contents) == (result.commits, result.contents)
    assert planned.dry_run
    assert not result.dry_run


def test_an_import_of_an_import_keeps_both_hashes(
    source: Catalog, target: StoreRepository, tmp_path: Path
) -> None:
    first = source.write("main", {"a": 1})
    imported(target, ServerHistory(source.repository, "source"))
    second = target.reference("main").hash
    with create(str(tmp_path / "third.sqlite")) as third:
        imported(third, ServerHistory(target, "target"))
        properties = third.commit_at("main").meta.properties
    assert properties == {"nessie.imported-hash": (second, first)}


def test_later_commits_follow_imported_ones(source: Catalog, target: StoreRepository) -> None:
    source.write("main", {"a": 1})
    imported(target, ServerHistory(source.repository, "source"))
    content = target.content("main", Catalog(target).top().operations[0].key)
    assert content.id == source.id("main", "a")
    Catalog(target).write("main", {"a": 2})
    assert Catalog(target).numbers() == {"a": 2}
    assert list(target.check()) == []


@pytest.mark.parametrize("commits", [1, 7, 8, 9, 30])
def test_branches_of_any_length_arrive(
    source: Catalog, target: StoreRepository, commits: int
) -> None:
    """The first commits of a branch are read one by one, and the others by pages."""
    source.write("main", {"a": 0})
    source.branch("zero")
    for number in range(commits):
        source.write("zero", {"a": number + 1})
    source.write("main", {"b": 0})
    imported(target, ServerHistory(source.repository, "source"))
    assert assert_same(source.repository, target) == commits + 2


def test_messages_of_tags_are_kept(
    servers: Servers, source: Catalog, target: StoreRepository
) -> None:
    head = source.write("main", {"a": 1})
    source.repository.create_reference(ReferenceType.TAG, "v1", head, message="for the audit")
    source.tag("v2")
    with servers.serving(source.repository.url) as address, connect(address) as remote:
        imported(target, ServerHistory(remote, address))
    assert target.messages(["v1", "v2"]) == {"v1": "for the audit"}


def test_a_commit_that_the_server_no_longer_has_has_no_line(
    servers: Servers, source: Catalog
) -> None:
    head = source.write("main", {"a": 1})
    with servers.serving(source.repository.url) as address, connect(address) as remote:
        history = ServerHistory(remote, address)
        at = [
            Reference(ReferenceType.BRANCH, name, hash_)
            for name, hash_ in (("x", NOBODY), ("y", head), ("z", NOBODY))
        ]
        assert [entry.hash for entry in history.commits(at, lambda _done, _total: None)] == [head]


def test_contents_of_a_history_that_was_cut_off_come_with_its_first_commit(
    source: Catalog, target: StoreRepository
) -> None:
    source.write("main", {"ns": NS, "ns.a": 1, "b": 1, "c": 1})
    source.write("main", {"ns.a": 2})
    cut_at = source.write("main", {"b": 2})
    source.write("main", {"c": None})

    class Cut(ServerHistory):
        """The server after `nessie-server-admin-tool cut-history` at a commit."""

        def commits(
            self, references: Sequence[Reference], progress: Progress
        ) -> Iterator[LogEntry]:
            for entry in super().commits(references, progress):
                if entry.hash == cut_at:
                    yield structs.replace(
                        entry, meta=structs.replace(entry.meta, parents=(NO_ANCESTOR,))
                    )
                    return
                yield entry

    result = imported(target, Cut(source.repository, "source"))
    assert (result.cut, result.commits) == ([cut_at], 2)
    ours = Catalog(target)
    for revision in ("main", "main~1"):
        assert ours.numbers(revision) == source.numbers(revision)
    assert ours.id("main", "ns.a") == source.id("main", "ns.a")
    assert list(target.check()) == []


def test_a_state_that_does_not_follow_from_the_history_is_refused(
    source: Catalog, target: StoreRepository
) -> None:
    source.write("main", {"a": 1})
    source.write("main", {"b": 1})

    class Incomplete(ServerHistory):
        """A server that omits the operations of a commit."""

        def commits(
            self, references: Sequence[Reference], progress: Progress
        ) -> Iterator[LogEntry]:
            for entry in super().commits(references, progress):
                has_parent = entry.parent != NO_ANCESTOR
                yield structs.replace(entry, operations=()) if has_parent else entry

    before = Catalog(target).everything()
    with pytest.raises(InvalidInput, match="1 keys differ, such as b"):
        imported(target, Incomplete(source.repository, "source"))
    assert Catalog(target).everything() == before


def test_an_empty_source_imports_nothing(source: Catalog, target: StoreRepository) -> None:
    result = imported(target, ServerHistory(source.repository, "source"))
    assert (result.commits, result.contents) == (0, {})
    assert target.reference("main").hash == NO_ANCESTOR
