"""Abbreviated hashes and history on a server: REST v2 cannot look up either."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from nessie_cli import connect
from nessie_cli.errors import CommitNotFound
from nessie_cli.model import (
    NO_ANCESTOR,
    AheadBehind,
    CommitMeta,
    ContentKey,
    LogEntry,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.remote import ancestry, revisions, session
from nessie_cli.repository.remote.ancestry import Ancestry
from tests.repository.plain_remote import plain


@pytest.fixture
def commits(repository: Repository) -> list[str]:
    """Returns six commits, the oldest first."""
    names = "abcdef"
    return [
        repository.commit(
            "main", [Put(ContentKey((name,)), Namespace(elements=(name,)))], CommitMeta(name)
        ).reference.hash
        for name in names
    ]


@pytest.fixture(params=["ours", "others"])
def client(server: str, request: pytest.FixtureRequest) -> Iterator[Repository]:
    address = f"{server}/api/v2"
    with connect(address) if request.param == "ours" else plain(address) as found:
        yield found


def test_an_old_commit_requires_its_full_hash(
    commits: list[str], client: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revisions, "_SEARCHED", 3)
    assert client.resolve(commits[3][:12]).hash == commits[3]
    with pytest.raises(CommitNotFound, match="not found among the newest 3; write the whole hash"):
        client.resolve(commits[2][:12])
    assert client.resolve(commits[2]).hash == commits[2]


def test_only_commits_since_an_ancestor_are_read(
    commits: list[str], repository: Repository, server: str
) -> None:
    repository.create_reference(ReferenceType.BRANCH, "work", commits[3])
    aside = repository.commit(
        "work", [Put(ContentKey(("w",)), Namespace(elements=("w",)))], CommitMeta("w")
    ).reference.hash
    with connect(f"{server}/api/v2") as client:
        assert client.is_ancestor(commits[3], "work")
        assert client.is_ancestor(NO_ANCESTOR, "work")
        assert not client.is_ancestor(aside, "main")
        assert client.ahead_behind("work", "main") == AheadBehind(1, 2, commits[3])
        assert client.ahead_behind("work", NO_ANCESTOR) == AheadBehind(5, 0, NO_ANCESTOR)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Clients that cache few commits, and request few at once."""
    for module, name, number in (
        (session, "MOST_COMMITS", 3),
        (session, "MOST_HASHES", 3),
        (ancestry, "MOST_COMMITS", 3),
        (ancestry, "PAGE", 2),
    ):
        monkeypatch.setattr(module, name, number)
    return 3


def test_a_client_caches_a_limited_number_of_commits(
    small: int, commits: list[str], repository: Repository, client: Repository
) -> None:
    repository.create_reference(ReferenceType.BRANCH, "work", commits[1])
    aside = repository.commit(
        "work", [Put(ContentKey(("w",)), Namespace(elements=("w",)))], CommitMeta("w")
    ).reference.hash
    for _ in range(2):
        assert client.merge_base("work", "main") == commits[1]
        assert client.ahead_behind("work", "main") == AheadBehind(1, 4, commits[1])
        assert client.is_ancestor(commits[0], "main")
        assert not client.is_ancestor(aside, "main")
        assert [entry.hash for entry in client.log("main", all_parents=True)] == commits[::-1]
        assert [client.resolve(f"@{hash_}").hash for hash_ in commits] == commits
    found = client._session  # type: ignore[attr-defined]
    assert len(found.commits) <= small
    assert len(found.hashes) <= small


def test_a_wrong_clock_hides_no_merge_base(
    commits: list[str], repository: Repository, server: str
) -> None:
    """The other server returns commits of a branch whose times are before those of their
    parents."""
    repository.create_reference(ReferenceType.BRANCH, "work", commits[3])
    aside = repository.commit(
        "work", [Put(ContentKey(("w",)), Namespace(elements=("w",)))], CommitMeta("w")
    ).reference.hash
    with plain(f"{server}/api/v2") as client:
        graph = Ancestry(client._session)  # type: ignore[attr-defined]
        for hash_ in (aside, *commits):
            graph.commit(hash_)
        slow = graph.commit(aside)
        graph._commits[aside] = _earlier(slow, timedelta(hours=5))
        assert client.merge_base(commits[3], aside) == commits[3]
        assert client.merge_base("main", aside) == commits[3]
        assert client.is_ancestor(commits[3], aside)


def _earlier(entry: LogEntry, by: timedelta) -> LogEntry:
    from msgspec import structs

    assert entry.meta.commit_time is not None
    return structs.replace(
        entry, meta=structs.replace(entry.meta, commit_time=entry.meta.commit_time - by)
    )
