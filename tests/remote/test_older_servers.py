"""Servers with parts of v2: each missing operation is reported in one line, and the rest
works."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from tests.command.process import Nessie
from tests.remote.listening import Answer, Request, forward, listening

MISSING = ("/recent-changes", "/config/repository")


def older(server: str, request: Request) -> Answer:
    """Answers as a server without our extensions, the newest paths and a specification version."""
    if any(path in request.path for path in MISSING):
        return Answer(
            404,
            b"<html>RESTEASY003210: Could not find resource</html>",
            {"Content-Type": "text/html"},
        )
    answer = forward(server, request, ("nessie-cli",))
    if request.path.endswith("/config"):
        shown = {
            name: value
            for name, value in json.loads(answer.body).items()
            if name not in ("specVersion", "repositoryCreationTimestamp")
        }
        return answer._replace(body=json.dumps(shown).encode())
    return answer


@pytest.fixture
def at_server(nessie: Nessie, server: str) -> Iterator[Nessie]:
    with listening(lambda request: older(server, request)) as url:
        nessie.ok("init", "--store", url)
        yield nessie


REFUSED = {
    "reflog": ("reflog",),
    "undo": ("undo",),
    "unrelated": ("merge", "work", "--unrelated"),
    "settings": ("config", "set", "require-expected-content", "true", "--repository"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_missing_operations_of_a_server_are_reported_in_one_line(
    at_server: Nessie, name: str
) -> None:
    at_server.ok("branch", "work")
    outcome = at_server(*REFUSED[name])
    assert outcome.code == 6
    assert len(outcome.err.splitlines()) == 1
    assert "server" in outcome.err


def test_only_consecutive_commits_can_be_transplanted(
    at_server: Nessie,
) -> None:
    at_server.ok("branch", "work")
    for name in ("a", "b", "c"):
        at_server.ok("content", "put", name, "--type", "namespace", "-m", name, "--ref", "work")
    outcome = at_server("cherry-pick", "work~2", "work")
    outcome.expect(6, "not neighbours")
    at_server.ok("cherry-pick", "work~1", "work")
    assert at_server.messages() == ["c", "b"]


def test_a_decision_about_a_transplant_says_that_it_is_for_all_commits(
    at_server: Nessie,
) -> None:
    at_server.table("a", 1, "-m", "first")
    at_server.ok("branch", "work")
    at_server.table("a", 2, "-m", "second", "--ref", "work")
    at_server.table("a", 3, "-m", "third", "--ref", "work")
    at_server.table("a", 9, "-m", "other")
    outcome = at_server("transplant", "main..work")
    assert outcome.code == 3
    assert outcome.err.count("(in all 2 commits)") == 2
    assert "in all" not in at_server("transplant", "work").err


OTHERS = {
    "changed": lambda other: other.table("a", 9, "-m", "other"),
    "deleted": lambda other: other.ok("content", "delete", "a", "-m", "other"),
    "renamed": lambda other: other.ok("content", "rename", "a", "c", "-m", "other"),
}
"""What another client does to a table."""
THEIRS = {
    "change": lambda nessie: nessie.table("a", 3, "-m", "theirs", "--ref", "work"),
    "deletion": lambda nessie: nessie.ok("content", "delete", "a", "-m", "theirs", "--ref", "work"),
}


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("verb", ["merge", "transplant"])
def test_a_decision_overwrites_nothing_that_is_written_after_its_check(
    nessie: Nessie, server: str, verb: str, others: str, theirs: str
) -> None:
    waiting = []

    def racing(request: Request) -> Answer:
        if waiting and request.path.endswith(f"/history/{verb}"):
            OTHERS[others](waiting.pop())
        return older(server, request)

    with listening(racing) as url:
        nessie.ok("init", "--store", url)
        nessie.table("a", 1, "-m", "first")
        nessie.ok("branch", "work")
        nessie.table("a", 2, "-m", "ours")
        THEIRS[theirs](nessie)
        waiting.append(nessie)
        outcome = nessie(verb, "work", "--theirs", "a")
        assert not waiting
        assert nessie.messages() == ["other", "ours", "first"]
    outcome.expect(3, "a")


def test_common_commands_work(at_server: Nessie) -> None:
    at_server.ok("content", "put", "db", "--type", "namespace", "-m", "add db")
    at_server.table("db.order lines", 1, "-m", "first")
    at_server.ok("branch", "work")
    at_server.table("db.order lines", 2, "-m", "second", "--ref", "work")
    at_server.ok("diff", "main", "work")
    at_server.ok("merge", "work")
    at_server.ok("tag", "v1")
    assert at_server.snapshot('db."order lines"') == 2
    assert at_server.messages()[1:] == ["second", "first", "add db"]
    at_server.ok("tag", "-d", "v1")
    at_server.ok("status")
    at_server.ok("log", "--graph", "--all")


def test_a_pick_that_no_decision_can_carry_out_has_no_line(at_server: Nessie) -> None:
    at_server.table("a", 1, "-m", "first")
    at_server.ok("branch", "work")
    at_server.ok("content", "rename", "a", "c", "-m", "theirs", "--ref", "work")
    at_server.ok("content", "delete", "a", "-m", "ours")
    outcome = at_server("transplant", "work")
    outcome.expect(3, "c was deleted on main", without=("start", "--theirs", "--ours"))
    outcome = at_server("merge", "work")
    outcome.expect(3, "--ours c", without=("--theirs",))
    assert at_server.messages() == ["ours", "first"]


def test_a_rename_to_make_first_names_the_store(nessie: Nessie, server: str) -> None:
    with listening(lambda request: older(server, request)) as url:
        store = ("--store", url)
        nessie.table("a", 1, "-m", "first", *store)
        nessie.ok(*store, "branch", "work")
        nessie.ok(*store, "content", "rename", "a", "b", "-m", "theirs", "--ref", "work")
        outcome = nessie(*store, "merge", "work")
    outcome.expect(3, f"`nessie --store {url} --ref main content rename a b ")


def test_a_table_that_both_branches_renamed_is_renamed_first(at_server: Nessie) -> None:
    """A server that merges key by key can take neither side in a transplant."""
    table = ("--type", "iceberg-table", "--metadata-location", "s3://moved")
    at_server.ok("content", "put", "moved", *table, "-m", "create")
    at_server.ok("branch", "work")
    at_server.ok("--ref", "work", "content", "rename", "moved", "theirs", "-m", "rename")
    at_server.ok("--ref", "main", "content", "rename", "moved", "ours", "-m", "rename")
    refused = at_server("transplant", "work", "--onto", "main", "--json")
    assert refused.code == 3
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    (line,) = conflict["resolutions"]
    assert "content rename ours theirs" in line
    assert "nessie resolve" not in at_server("transplant", "work", "--onto", "main").err
    at_server.ok(*shlex.split(line)[1:])
    at_server.ok("transplant", "work", "--onto", "main")
    keys = at_server.ok("--ref", "main", "content", "list").out
    assert ("theirs" in keys, "ours" in keys) == (True, False)


RENAME = ("rename", "a", "b")
TYPED = ("put", "b", "--type", "iceberg-view", "--metadata-location", "s3://v", "--version-id", "1")


@pytest.mark.parametrize("staged", [RENAME, (*TYPED, "--schema-id", "1")], ids=["rename", "type"])
def test_no_line_stages_what_such_a_server_cannot_commit(
    at_server: Nessie, server: str, staged: tuple[str, ...]
) -> None:
    """Another client has put a table at the key."""
    at_server.table("a", 1, "-m", "first")
    at_server.ok("content", *staged)
    with connect(f"{server}/api/v2") as other:
        table = IcebergTable(metadata_location="s3://lake/9.json", snapshot_id=9)
        other.commit("main", [Put(ContentKey(("b",)), table)], CommitMeta("other"))
    refused = at_server("commit", "-m", "mine")
    refused.expect(3, "b was created on main and ")
    lines = [line.partition("nessie ")[2] for line in refused.err.splitlines()]
    assert [line for line in lines if line] == ["resolve   # one by one", "reset b"]
