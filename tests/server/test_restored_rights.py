"""A content comes back under its id only for callers who may read it where it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from msgspec import structs

from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    ContentKey,
    Delete,
    Put,
    ReferenceType,
    RestoredFrom,
)
from nessie_cli.repository.changes import Commit
from nessie_cli.server.auth import reached
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.policy import Policy
from nessie_cli.server.auth.reached import LongHistory, ReachedHistory
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import read_rules
from tests.repository.vocabulary import table
from tests.server.client import Answer, put
from tests.server.guarding import Guarded, guarded

META = CommitMeta(message="change")
READS_MAIN = "'eve' in roles && ref == 'main' && !path.startsWith('secret')"
OWNS_HERS = "'eve' in roles && ref.startsWith('eve')"


@pytest.fixture
def server(tmp_path) -> Iterator[Guarded]:
    """`eve` may not read `secret` on `main`, nor the branch `hidden`, and owns `eve`."""
    with guarded(tmp_path, READS_MAIN, OWNS_HERS) as guard:
        for name in ("eve", "hidden"):
            guard.repository.create_reference(ReferenceType.BRANCH, name, NO_ANCESTOR)
        yield guard


def created(server: Guarded, branch: str, name: str) -> tuple[str, str]:
    """Commits a table; returns the hash and the content id."""
    key = ContentKey((name,))
    server.repository.commit(branch, [Put(key, table(1))], META)
    content_id = server.repository.content(branch, key).id
    assert content_id is not None
    return server.repository.reference(branch).hash, content_id


def restored(server: Guarded, content_id: str, hash_: str, name: str) -> Answer:
    """The answer to a commit of `eve` that brings a content back under another key."""
    operation = put("mine")
    operation["content"]["id"] = content_id
    operation["restoredFrom"] = {"hash": hash_, "key": {"elements": [name]}}
    eve = server.as_("eve", "eve")
    return eve.commit("eve", server.repository.reference("eve").hash, operation)


@pytest.mark.parametrize(("branch", "name"), [("hidden", "pub"), ("main", "secret")])
def test_a_hidden_content_does_not_come_back_elsewhere(
    server: Guarded, branch: str, name: str
) -> None:
    hash_, content_id = created(server, branch, name)
    answer = restored(server, content_id, hash_, name)
    assert answer.status == 403, answer.body
    assert list(server.repository.entries("eve")) == []


@pytest.mark.parametrize("branch", ["hidden", "main"])
def test_the_refusal_does_not_show_what_was_there(server: Guarded, branch: str) -> None:
    hash_, content_id = created(server, branch, "secret")
    other = "12345678-1234-4234-8234-123456789abc"
    answers = [restored(server, id_, hash_, "secret") for id_ in (content_id, other)]
    assert [answer.status for answer in answers] == [403, 403]
    assert answers[0].body == answers[1].body
    absent = restored(server, content_id, hash_, "secret.absent")
    assert absent.status == 403


@pytest.mark.parametrize("hash_", ["ab" * 32, "abcd", "HEAD", "main"])
def test_without_such_a_commit_the_commit_is_refused(server: Guarded, hash_: str) -> None:
    _, content_id = created(server, "main", "pub")
    answer = restored(server, content_id, hash_, "pub")
    assert answer.status in (400, 404), answer.body


def test_a_content_that_the_caller_may_read_comes_back(server: Guarded) -> None:
    hash_, content_id = created(server, "main", "pub")
    server.repository.commit("main", [Delete(ContentKey(("pub",)))], META)
    assert restored(server, content_id, hash_, "pub").status == 200
    assert server.repository.content("eve", ContentKey(("mine",))).id == content_id


@pytest.mark.parametrize("ours", [{}, {"nessie-cli": "1"}])
def test_under_another_key_it_needs_the_right_to_rename_it(
    server: Guarded, ours: dict[str, str]
) -> None:
    """Otherwise a caller who may only read a table could write to its folder."""
    hash_, content_id = created(server, "main", "pub")
    server.repository.commit("main", [Delete(ContentKey(("pub",)))], META)
    reads = "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'LIST_COMMIT_LOG', 'READ_CONTENT_KEY',"
    reads += " 'READ_ENTITY_VALUE', 'COMMIT_CHANGE_AGAINST_REFERENCE']"
    owns = "path.startsWith('mine') || (path == 'pub' && op == 'CREATE_ENTITY')"
    server.rule(f"'eve' in roles && ({reads} || {owns})")
    eve = server.as_("eve", "eve")

    def restore(name: str, branch: str = "main") -> Answer:
        operation = put(name)
        operation["content"]["id"] = content_id
        operation["restoredFrom"] = {"hash": hash_, "key": {"elements": ["pub"]}}
        body = {"commitMeta": {"message": "x"}, "operations": [operation]}
        path = f"/api/v2/trees/{branch}@{eve.head()}/history/commit"
        return eve.send("POST", path, body, ours)

    for branch in ("main", "-"):
        refused = restore("mine", branch)
        assert refused.status == 403
        assert "'DELETE_ENTITY' is not allowed" in refused.body["message"]
    assert eve.head() != hash_
    server.rule(f"'eve' in roles && ({reads} || {owns} || path == 'pub' && op == 'DELETE_ENTITY')")
    assert restore("mine").status == 200
    server.repository.commit("main", [Delete(ContentKey(("mine",)))], META)
    # Under its own key, it is a creation.
    server.rule(f"'eve' in roles && ({reads} || {owns})")
    assert restore("pub").status == 200


@pytest.mark.parametrize("reused", [False, True])
def test_under_its_first_key_it_needs_the_right_at_its_last_one(
    server: Guarded, reused: bool
) -> None:
    """It was renamed out of the caller's reach, and deleted there."""
    hash_, content_id = created(server, "main", "pub")
    first, middle, last = (ContentKey((name,)) for name in ("pub", "middle", "secret"))
    for old, new in ((first, middle), (middle, last)):
        content = server.repository.content("main", old)
        server.repository.commit("main", [Delete(old), Put(new, content)], META)
    if reused:
        server.repository.commit("main", [Put(first, table(7))], META)
        server.repository.commit("main", [Delete(first)], META)
    server.repository.commit("main", [Delete(last)], META)
    own = "'eve' in roles && !path.startsWith('secret')"
    server.rule(own)
    eve = server.as_("eve", "eve")
    operation = put("pub")
    operation["content"]["id"] = content_id
    operation["restoredFrom"] = {"hash": hash_, "key": {"elements": ["pub"]}}
    refused = eve.commit("main", eve.head(), operation)
    assert refused.status == 403
    assert "'DELETE_ENTITY' is not allowed" in refused.body["message"]
    assert "secret" not in refused.body["message"]
    assert list(server.repository.entries("main")) == []
    server.rule(f"{own} || 'eve' in roles && op == 'DELETE_ENTITY'")
    assert eve.commit("main", eve.head(), operation).status == 200
    assert server.repository.content("main", first).id == content_id


# -- long histories --------------------------------------------------------------------------------


@pytest.fixture
def long_key(server: Guarded) -> Put:
    """The restoration of a table whose key on `main` had many other states afterwards."""
    hash_, content_id = created(server, "main", "pub")
    key, repository = ContentKey(("pub",)), server.repository
    repository.commit("main", [Delete(key)], META)
    for number in range(30):
        repository.commit("main", [Put(key, table(number))], META)
        repository.commit("main", [Delete(key)], META)
    server.rule("'eve' in roles")
    origin = RestoredFrom(hash_, key)
    return Put(key, structs.replace(table(1), id=content_id), restored_from=origin)


def test_the_writing_thread_reads_few_commits(server: Guarded, long_key: Put) -> None:
    rules = read_rules(b"everything = 'true'")
    rights = Rights(Caller("eve"), rules, 2)
    policy = Policy(rights, AuthorizedRepository(server.repository, rights), "main")
    change, history = Commit("main", [long_key], META), ReachedHistory()
    history.most = 10
    with pytest.raises(LongHistory):
        policy.before(change, history)
    history.most = None
    policy.before(change, history)
    history.most = 0
    policy.before(change, history)
    server.repository.commit("main", [Put(ContentKey(("other",)), table(2))], META)
    with pytest.raises(LongHistory):
        policy.before(change, history)


def test_a_content_comes_back_after_a_long_history(
    server: Guarded, long_key: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reached, "_READ", reached.MOST_CHECKED)
    readers = []
    read = ReachedHistory.read

    def recorded(history: ReachedHistory, number: int) -> None:
        read(history, number)
        readers.append(threading.current_thread().name)

    monkeypatch.setattr(ReachedHistory, "read", recorded)
    origin, eve = long_key.restored_from, server.as_("eve", "eve")
    assert origin is not None
    operation = put("pub")
    operation["content"]["id"] = long_key.content.id
    operation["restoredFrom"] = {"hash": origin.hash, "key": {"elements": ["pub"]}}
    assert eve.commit("main", eve.head(), operation).status == 200
    assert server.repository.content("main", long_key.key).id == long_key.content.id
    assert len(readers) > 60
    assert readers.count("writer") <= 1
