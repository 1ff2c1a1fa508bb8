"""A rename from or to a key that the caller may not read is not taken for half of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.model import CommitMeta, ContentKey, Delete, Put, RestoredFrom
from tests.command.in_process import InProcess
from tests.repository.vocabulary import table
from tests.server.guarding import Guarded, guarded

META = CommitMeta(message="change")
EVERYTHING_BUT_SECRET = "'eve' in roles && !path.startsWith('secret')"


@pytest.fixture
def server(tmp_path) -> Iterator[Guarded]:
    """`eve` may do everything except with keys that begin with `secret`."""
    with guarded(tmp_path, EVERYTHING_BUT_SECRET) as guard:
        yield guard


@pytest.fixture
def nessie(server: Guarded, tmp_path, monkeypatch, capsys) -> InProcess:
    """The command of `eve`."""
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", server.as_("eve", "eve").token)
    return InProcess(tmp_path, "eve", monkeypatch, capsys)


def rename(server: Guarded, old: str, new: str) -> tuple[str, str]:
    """Commits tables and renames one; returns the hashes before and after."""
    repository = server.repository
    contents = [Put(ContentKey((name,)), table(1)) for name in (old, "pub_other", "secret_other")]
    repository.commit("main", contents, META)
    before = repository.reference("main").hash
    content = repository.content("main", ContentKey((old,)))
    repository.commit("main", [Delete(ContentKey((old,))), Put(ContentKey((new,)), content)], META)
    return before, repository.reference("main").hash


def keys(server: Guarded) -> list[str]:
    return [str(entry.key) for entry in server.repository.entries("main")]


@pytest.mark.parametrize(("old", "new"), [("secret", "pub"), ("a", "secret")])
@pytest.mark.parametrize("verb", ["revert", "restore"])
def test_it_is_neither_reverted_nor_restored(
    server: Guarded, nessie: InProcess, verb: str, old: str, new: str
) -> None:
    before, after = rename(server, old, new)
    url = f"{server.url}/api/v2"
    shown = keys(server)
    if verb == "revert":
        ran = nessie("revert", after, "--store", url)
    else:
        name = old if new == "secret" else new
        nessie("init", "--store", url, "-q")
        ran = nessie("restore", name, "--at", before, "-m", "restore")
    ran.expect(6, "renamed from or to a key that you may not read")
    assert keys(server) == shown


def test_other_hidden_changes_do_not_matter(server: Guarded, nessie: InProcess) -> None:
    repository = server.repository
    names = ("pub", "secret")
    repository.commit("main", [Put(ContentKey((name,)), table(1)) for name in names], META)
    before = repository.reference("main").hash
    operations = [Delete(ContentKey((name,))) for name in names]
    repository.commit("main", operations, META)
    nessie("init", "--store", f"{server.url}/api/v2", "-q")
    nessie("restore", "pub", "--at", before, "-m", "restore").expect(0)
    assert keys(server) == ["pub"]


def test_a_staged_change_of_a_content_that_got_a_hidden_key_is_not_a_creation(
    server: Guarded, nessie: InProcess
) -> None:
    repository = server.repository
    repository.commit("main", [Put(ContentKey(("b",)), table(1))], META)
    nessie("init", "--store", f"{server.url}/api/v2", "-q")
    nessie("content", "put", "b", "--snapshot-id", "6").expect(0)
    content = repository.content("main", ContentKey(("b",)))
    renaming = [Delete(ContentKey(("b",))), Put(ContentKey(("secret",)), content)]
    repository.commit("main", renaming, META)
    for argv in (["commit", "-m", "m"], ["resolve", "--proposed", "b", "-m", "m"]):
        nessie(*argv).expect(6, "renamed from or to a key that you may not read")
    assert keys(server) == ["secret"]
    nessie("status").expect(0)
    nessie("reset", "b").expect(0)


def test_a_restored_content_that_has_a_hidden_key_is_a_conflict_that_does_not_name_it(
    server: Guarded, nessie: InProcess
) -> None:
    repository = server.repository
    repository.commit("main", [Put(ContentKey(("b",)), table(1))], META)
    before = repository.reference("main").hash
    content = repository.content("main", ContentKey(("b",)))
    repository.commit("main", [Delete(ContentKey(("b",)))], META)
    nessie("init", "--store", f"{server.url}/api/v2", "-q")
    nessie("restore", "b", "--at", before).expect(0)
    place = RestoredFrom(before, ContentKey(("b",)))
    put = Put(ContentKey(("secret",)), content, restored_from=place)
    repository.commit("main", [put], META)
    told = nessie("commit", "-m", "m").expect(3)
    assert "secret" not in told.out + told.err
    assert keys(server) == ["secret"]
