"""The writing thread drafts no large change, also for requests that write files."""

from __future__ import annotations

from collections.abc import Iterator
from threading import current_thread
from typing import Any, cast

import pytest

from nessie_cli import connect
from nessie_cli.kernel import commits
from nessie_cli.model import CommitMeta
from nessie_cli.repository import transplants
from nessie_cli.repository.changes import Change, Commit, Merge, MergeOptions, Transplant
from nessie_cli.repository.draft import ChangeSubmission, Draft, LargeMerge
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.gate import Catalog as ServedCatalog
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.policy import Policy
from nessie_cli.server.auth.reached import MOST_CHECKED, LongHistory, ReachedHistory
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import read_rules
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.drafting import MOST_CHANGES
from nessie_cli.server.runtime.thread_pool import Writer
from tests.repository.vocabulary import Catalog, delete, put, table

KEYS = [f"t{number:05}" for number in range(2 * MOST_CHANGES)]


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """`dev` has one large commit, `small` a small one; `main` has a commit of its own."""
    with connect("memory:") as opened:
        catalog = Catalog(opened)
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.branch("small")
        catalog.commit("dev", *(put(key, table(n)) for n, key in enumerate(KEYS)))
        catalog.write("small", {"s": -2})
        catalog.write("main", {"b": -1})
        yield catalog


def merge(catalog: Catalog, source: str, *, per_key: bool = False) -> Change[Any]:
    return Merge("main", Revision(source, catalog.hash(source)), MergeOptions(per_key=per_key))


def transplant(catalog: Catalog, source: str) -> Change[Any]:
    return Transplant("main", [catalog.hash(source)], MergeOptions())


def revert(_: Catalog, source: str) -> Change[Any]:
    return Commit(source, list(map(delete, KEYS)), CommitMeta("m"))


@pytest.mark.parametrize("change", [merge, transplant, revert])
def test_a_request_that_writes_files_drafts_large_changes_itself(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    threads, submit = [], Call.submit

    def recorded(call: Call, *arguments: Any) -> Any:
        answer = submit(call, *arguments)
        threads.append(current_thread())
        return answer

    monkeypatch.setattr(Call, "submit", recorded)
    repository = cast(StoreRepository, catalog.repository)
    writer = Writer(repository)
    served = ServedCatalog(repository, "main", LogEntryCache(), writer=writer)
    try:
        Call(served, {}, "", []).commit(change(catalog, "dev"))
        assert threads == [current_thread()]
        Call(served, {}, "", []).commit(merge(catalog, "small"))
        assert [each.name for each in threads[1:]] == ["writer"]
    finally:
        writer.close()
    assert {"a", "b", "s"} <= catalog.numbers("main").keys()
    assert (KEYS[0] in catalog.numbers("main")) == (change is not revert)


# -- one commit with very many changes -------------------------------------------------------------


def test_the_check_of_a_large_commit_ends_at_the_limit(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, changes_of = [], Draft.changes_of

    def recorded(draft: Draft[Any], *arguments: Any, **named: Any) -> Any:
        changes = changes_of(draft, *arguments, **named)
        sizes.append(len(changes))
        return changes

    monkeypatch.setattr(Draft, "changes_of", recorded)
    rights = Rights(Caller("ann"), read_rules(b"""r = "ref != 'DETACHED'" """), 2)
    policy = Policy(rights, AuthorizedRepository(catalog.repository, rights), "main")
    history, draft = ReachedHistory(), catalog.repository.draft(merge(catalog, "dev"))
    with pytest.raises(LongHistory):
        policy.on(draft, history)
    assert sizes[0] <= MOST_CHECKED + 1
    history.most = None
    policy.on(draft, history)
    assert sizes[1] == len(KEYS)


def test_the_transplant_of_a_large_commit_ends_at_the_limit(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, operations_of = [], commits.operations_of

    def recorded(*arguments: Any) -> Any:
        operations = operations_of(*arguments)
        sizes.append(len(operations))
        return operations

    monkeypatch.setattr(transplants, "operations_of", recorded)
    repository = cast(Any, catalog.repository)
    with pytest.raises(LargeMerge):
        repository.draft(transplant(catalog, "dev"), ChangeSubmission(most_changes=MOST_CHANGES))
    assert sizes == [MOST_CHANGES + 1]
