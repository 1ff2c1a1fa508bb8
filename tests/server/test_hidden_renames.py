"""A rename from or to a key that the caller may not read is not taken for half of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.cli.main import run
from nessie_cli.model import CommitMeta, ContentKey, Delete, Put, RestoredFrom
from tests.repository.vocabulary import table
from tests.server.guarding import Guarded, guarded

META = CommitMeta(message="change")
EVERYTHING_BUT_SECRET = "'eve' in roles && !path.startsWith('secret')"


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Guarded]:
    """`eve` may do everything except with keys that begin with `secret`."""
    with guarded(tmp_path, EVERYTHING_BUT_SECRET) as found:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NESSIE_AUTHOR", "eve")
        monkeypatch.setenv("NESSIE_AUTH_TOKEN", found.as_("eve", "eve").token)
        yield found


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
    server: Guarded, capsys, verb: str, old: str, new: str
) -> None:
    before, after = rename(server, old, new)
    url = f"{server.url}/api/v2"
    shown = keys(server)
    if verb == "revert":
        code = run(["revert", after, "--store", url])
    else:
        name = old if new == "secret" else new
        run(["init", "--store", url, "-q"])
        code = run(["restore", name, "--at", before, "-m", "restore"])
    assert "renamed from or to a key that you may not read" in capsys.readouterr().err
    assert (code, keys(server)) == (6, shown)


def test_other_hidden_changes_do_not_matter(server: Guarded) -> None:
    repository = server.repository
    names = ("pub", "secret")
    repository.commit("main", [Put(ContentKey((name,)), table(1)) for name in names], META)
    before = repository.reference("main").hash
    operations = [Delete(ContentKey((name,))) for name in names]
    repository.commit("main", operations, META)
    run(["init", "--store", f"{server.url}/api/v2", "-q"])
    assert run(["restore", "pub", "--at", before, "-m", "restore"]) == 0
    assert keys(server) == ["pub"]


def test_a_staged_change_of_a_content_that_got_a_hidden_key_is_not_a_creation(
    server: Guarded, capsys
) -> None:
    repository = server.repository
    repository.commit("main", [Put(ContentKey(("b",)), table(1))], META)
    run(["init", "--store", f"{server.url}/api/v2", "-q"])
    assert run(["content", "put", "b", "--snapshot-id", "6"]) == 0
    content = repository.content("main", ContentKey(("b",)))
    renaming = [Delete(ContentKey(("b",))), Put(ContentKey(("secret",)), content)]
    repository.commit("main", renaming, META)
    for argv in (["commit", "-m", "m"], ["resolve", "--proposed", "b", "-m", "m"]):
        assert run(argv) == 6
        assert "renamed from or to a key that you may not read" in capsys.readouterr().err
    assert keys(server) == ["secret"]
    assert run(["status"]) == 0
    assert run(["reset", "b"]) == 0


def test_a_restored_content_that_has_a_hidden_key_is_a_conflict_that_does_not_name_it(
    server: Guarded, capsys
) -> None:
    repository = server.repository
    repository.commit("main", [Put(ContentKey(("b",)), table(1))], META)
    before = repository.reference("main").hash
    content = repository.content("main", ContentKey(("b",)))
    repository.commit("main", [Delete(ContentKey(("b",)))], META)
    run(["init", "--store", f"{server.url}/api/v2", "-q"])
    assert run(["restore", "b", "--at", before]) == 0
    place = RestoredFrom(before, ContentKey(("b",)))
    put = Put(ContentKey(("secret",)), content, restored_from=place)
    repository.commit("main", [put], META)
    capsys.readouterr()
    assert run(["commit", "-m", "m"]) == 3
    told = capsys.readouterr()
    assert "secret" not in told.out + told.err
    assert keys(server) == ["secret"]
