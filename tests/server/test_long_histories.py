"""Making a long history reachable: its check by rules does not stop the commits of others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

import pytest
from msgspec import structs

from nessie_cli import connect
from nessie_cli.errors import NessieError, NotAllowed, ReferenceMoved, WriteRefused
from nessie_cli.model import CommitMeta, ContentKey, Delete, IcebergTable, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import Merge, MergeOptions, RenameReference
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.group_commit import Planned
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.gate import Admission
from nessie_cli.server.auth.gate import Catalog as ServedCatalog
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.policy import Policy
from nessie_cli.server.auth.reached import (
    EARLY_DRAFTS,
    MOST_CHECKED,
    LongHistory,
    ReachedHistory,
)
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import Rules, read_rules
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.pipeline import Job
from nessie_cli.server.runtime.thread_pool import Writer as WritingThread
from tests.repository.vocabulary import Catalog
from tests.repository.vocabulary import put as put_key
from tests.repository.vocabulary import table as table_of
from tests.server.client import Answer, Client, put
from tests.server.guarding import Guarded, guarded

COMMITS, CHANGES = 30, 250
"""The commits of `dev`, and the changes of each. As many commits take the changes back."""
FEWEST = 8
"""The fewest commits of another client during a check, which takes a hundred times as long."""
EXTENDED = {"nessie-cli": "1"}
META = CommitMeta("m")
TABLE = IcebergTable(metadata_location="f")


def fill(repository: Repository) -> None:
    """Makes `dev` with a long history, which has one more key than `main` at the end.

    `side` has the first commit only.
    """
    first = repository.commit("main", [Put(ContentKey(("root",)), TABLE)], META).reference.hash
    repository.create_reference(ReferenceType.BRANCH, "side", first)
    base = repository.commit("main", [Put(ContentKey(("a",)), TABLE)], META).reference.hash
    for name in ("dev", "other", "assigned", "merged"):
        repository.create_reference(ReferenceType.BRANCH, name, base)
    for number in range(COMMITS):
        keys = [ContentKey((f"t{number}-{change}",)) for change in range(CHANGES)]
        repository.commit("dev", [Put(key, TABLE) for key in keys], META)
        repository.commit("dev", [Delete(key) for key in keys], META)
    repository.commit("dev", [Put(ContentKey(("b",)), TABLE)], META)


CALLERS = {"reader": "x", "hidden": "t0-0"}
"""The callers, and the key that each may not read on `dev`."""
RULES = [f"role == '{role}' && !(ref == 'dev' && path == '{key}')" for role, key in CALLERS.items()]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Guarded]:
    with guarded(tmp_path, *RULES) as opened:
        fill(opened.repository)
        yield opened


def create(client: Client) -> Answer:
    body = {"type": "BRANCH", "name": "dev", "hash": client.head("dev")}
    return client.send("POST", "/api/v2/trees?name=created&type=BRANCH", body)


def assign(client: Client) -> Answer:
    body = {"type": "BRANCH", "name": "dev", "hash": client.head("dev")}
    return client.send("PUT", f"/api/v2/trees/assigned@{client.head('assigned')}", body)


def merge(client: Client) -> Answer:
    body = {"fromRefName": "dev", "fromHash": client.head("dev")}
    return client.send("POST", "/api/v2/trees/merged/history/merge", body, EXTENDED)


class Writer:
    """A client that commits to a branch until it is stopped."""

    def __init__(self, client: Client, branch: str) -> None:
        self._client, self._path = client, f"/api/v2/trees/{branch}/history/commit"
        self.begun, self.stopped = threading.Event(), threading.Event()
        self.done = 0

    def run(self) -> None:
        while not self.stopped.is_set():
            body = {"commitMeta": {"message": "m"}, "operations": [put(token_hex(8))]}
            try:
                self._client.send("POST", self._path, body, EXTENDED).expect(200)
                self.done += 1
            finally:
                self.begun.set()


def commits_during(writer: Writer, send: Callable[[], Answer]) -> tuple[Answer, int]:
    """Sends a request while a writer commits. Returns the answer, and the commits meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(writer.run)
        try:
            assert writer.begun.wait(60)
            before = writer.done
            answer = send()
            during = writer.done - before
        finally:
            writer.stopped.set()
        running.result()
    return answer, during


@pytest.mark.parametrize(
    ("send", "branch"), [(create, "other"), (assign, "other"), (merge, "merged")]
)
def test_others_commit_while_a_long_history_is_checked(
    server: Guarded, send: Callable[[Client], Answer], branch: str
) -> None:
    client = server.as_("ann", "reader")
    writer = Writer(server.as_("root", "admin"), branch)
    answer, commits = commits_during(writer, lambda: send(client))
    answer.expect(200)
    assert commits >= FEWEST


def test_others_commit_while_a_long_history_is_refused(server: Guarded) -> None:
    """The caller may not read a key of the oldest commit."""
    client = server.as_("ann", "hidden")
    writer = Writer(server.as_("root", "admin"), "other")
    answer, commits = commits_during(writer, lambda: create(client))
    answer.expect(403)
    assert commits >= FEWEST


def test_a_branch_that_is_reset_all_the_time_does_not_let_others_wait(
    server: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each check counts for the states behind its own. The writing thread checks no long one."""
    repository, draft = server.repository, Job.draft
    heads = []
    for number in range(EARLY_DRAFTS):
        key = ContentKey((f"side{number}",))
        heads.append(repository.commit("side", [Put(key, TABLE)], META).reference.hash)
    left = list(heads)

    def reset_behind(job: Job, state: StoreRepository) -> Planned[Reply]:
        drafted = draft(job, state)
        head = repository.reference("merged").hash
        repository.assign_reference("merged", left.pop(), expected_hash=head)
        return drafted

    monkeypatch.setattr(Job, "draft", reset_behind)
    merge(server.as_("ann", "reader")).expect(409, "kept changing")
    assert repository.reference("merged").hash == heads[0]


# -- the state that is written ---------------------------------------------------------------------


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """`dev` has a key that callers may not read on `dev`; `target` has it, too."""
    with connect("memory:") as opened:
        catalog = Catalog(opened)
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"secret": 2})
        catalog.branch("target", "dev")
        catalog.write("dev", {"b": 3})
        yield catalog


def rules() -> Rules:
    return read_rules(b"""r = "ref != 'DETACHED' && !(ref == 'dev' && path == 'secret')" """)


def policy_of(catalog: Catalog) -> Policy:
    rights = Rights(Caller("ann"), rules(), 2)
    return Policy(rights, AuthorizedRepository(catalog.repository, rights), "main")


def merge_of_dev(catalog: Catalog) -> Merge:
    return Merge("target", Revision("dev", catalog.hash("dev")), MergeOptions())


def drafted(catalog: Catalog) -> Draft[Any]:
    return catalog.repository.draft(merge_of_dev(catalog))


def reset_to_main(catalog: Catalog, name: str) -> None:
    head = catalog.hash(name)
    catalog.repository.assign_reference(name, catalog.hash("main"), expected_hash=head)


def test_a_check_covers_later_states_of_its_target_only(catalog: Catalog) -> None:
    history = ReachedHistory()
    policy_of(catalog).on(drafted(catalog), history)
    history.most = 1
    policy_of(catalog).on(drafted(catalog), history)
    catalog.write("target", {"c": 4})
    policy_of(catalog).on(drafted(catalog), history)
    with pytest.raises(LongHistory):
        policy_of(catalog).on(drafted(catalog), limited(1))
    # Now the secret would become reachable as well.
    reset_to_main(catalog, "target")
    with pytest.raises(LongHistory):
        policy_of(catalog).on(drafted(catalog), history)
    history.most = None
    with pytest.raises(NotAllowed):
        policy_of(catalog).on(drafted(catalog), history)


def test_a_rename_is_written_through_the_reference_that_was_checked(catalog: Catalog) -> None:
    """The caller may not read all commits through the old name."""
    catalog.branch("same", "dev")
    change = RenameReference("dev", "new", catalog.hash("dev"))
    draft, history = catalog.repository.draft(change), limited(1000)
    policy_of(catalog).on(draft, history)
    history.most = 0
    policy_of(catalog).on(draft, history)


def limited(most: int) -> ReachedHistory:
    history = ReachedHistory()
    history.most = most
    return history


def test_a_draft_is_written_only_if_its_caller_still_sees_the_source(catalog: Catalog) -> None:
    history, draft = ReachedHistory(), drafted(catalog)
    policy_of(catalog).on(draft, history)
    assert policy_of(catalog).is_seen(draft, history)
    dev = catalog.hash("dev")
    reset_to_main(catalog, "dev")
    with pytest.raises(NessieError):
        policy_of(catalog).is_seen(draft, history)
    # The caller sees it through another branch now, whose rules decide.
    catalog.repository.create_reference(ReferenceType.BRANCH, "copy", dev)
    assert not policy_of(catalog).is_seen(draft, history)


def test_a_request_that_writes_files_is_checked_on_its_own_thread(catalog: Catalog) -> None:
    catalog.commit("dev", *(put_key(f"t{number}", table_of(number)) for number in range(250)))
    repository = cast(StoreRepository, catalog.repository)
    writer = WritingThread(repository)
    served = ServedCatalog(repository, "main", LogEntryCache(), writer=writer)
    call = Call(Admission(Caller("ann"), rules()).catalog(served, b"/api/v2"), {}, "", [])
    try:
        assert call.commit(merge_of_dev(catalog)).applied
        assert call.history.most == MOST_CHECKED
        reset_to_main(catalog, "target")
        with pytest.raises(WriteRefused):
            call.commit(merge_of_dev(catalog))
    finally:
        writer.close()


def test_a_preview_leaves_the_limit_of_the_writing_thread(catalog: Catalog) -> None:
    catalog.commit("dev", *(put_key(f"t{number}", table_of(number)) for number in range(250)))
    served = ServedCatalog(cast(StoreRepository, catalog.repository), "main", LogEntryCache())
    call = Call(Admission(Caller("ann"), rules()).catalog(served, b"/api/v2"), {}, "", [])
    preview = structs.replace(merge_of_dev(catalog), options=MergeOptions(dry_run=True))
    assert not call.preview(preview).applied
    assert call.history.most == MOST_CHECKED
    with pytest.raises(NotAllowed):
        call.preview(structs.replace(preview, branch="main"))
    assert call.history.most == MOST_CHECKED


class ResettingWriter(WritingThread):
    """A writing thread that has a branch reset to an older commit before each write."""

    def __init__(self, catalog: Catalog, heads: list[str]) -> None:
        super().__init__(cast(StoreRepository, catalog.repository))
        self._catalog = catalog
        self._heads = heads

    def run(self, *arguments: Any) -> Any:
        head = self._catalog.hash("target")
        self._catalog.repository.assign_reference("target", self._heads.pop(), expected_hash=head)
        return super().run(*arguments)


def test_resetting_a_branch_does_not_move_the_check_to_the_writing_thread(
    catalog: Catalog,
) -> None:
    catalog.branch("other")
    heads = [catalog.write("other", {f"d{n}": 1000 + n}) for n in range(EARLY_DRAFTS + 2)]
    catalog.commit("dev", *(put_key(f"t{number}", table_of(number)) for number in range(250)))
    writer = ResettingWriter(catalog, heads)
    served = ServedCatalog(
        cast(StoreRepository, catalog.repository), "main", LogEntryCache(), writer=writer
    )
    rules = read_rules(b"""r = "ref != 'DETACHED'" """)
    call = Call(Admission(Caller("ann"), rules).catalog(served, b"/api/v2"), {}, "", [])
    try:
        with pytest.raises(ReferenceMoved, match="kept changing"):
            call.commit(merge_of_dev(catalog))
    finally:
        writer.close()


def test_commits_that_a_check_visits_count(catalog: Catalog) -> None:
    """An old branch is merged into one that has many newer commits."""
    for number in range(200):
        catalog.write("target", {"c": number})
    policy_of(catalog).on(drafted(catalog), limited(30))
    with pytest.raises(LongHistory):
        policy_of(catalog).on(drafted(catalog), limited(10))
