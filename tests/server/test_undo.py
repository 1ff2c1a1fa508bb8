"""`nessie undo` on a server with authentication undoes for the authenticated caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.command.in_process import InProcess
from tests.command.outcome import Outcome
from tests.server.client import EMPTY, put
from tests.server.guarding import Guarded, guarded

OURS = {"nessie-cli": "1"}
Undo = Callable[..., Outcome]


@pytest.fixture
def server(tmp_path) -> Iterator[Guarded]:
    """The boss and Nina are callers. All commits have the author Nina."""
    with guarded(tmp_path, "'writer' in roles") as found:
        found.boss, found.nina = found.as_("boss", "writer"), found.as_("nina", "writer")
        yield found


@pytest.fixture
def undo(server: Guarded, tmp_path, monkeypatch, capsys) -> Undo:
    """Runs the command as a user whose local author is Nina, with the token of a client."""
    nessie = InProcess(tmp_path, "nina", monkeypatch, capsys)
    return lambda client, *args: nessie(
        "undo", "--store", f"{server.url}/api/v2", *args, NESSIE_AUTH_TOKEN=client.token
    )


def commit(client, name: str) -> str:
    head = client.head()
    body = {
        "commitMeta": {"message": f"add {name}", "authors": ["nina"]},
        "operations": [put(name)],
    }
    answer = client.send("POST", f"/api/v2/trees/main@{head}/history/commit", body)
    hash_: str = answer.body["targetBranch"]["hash"]
    return hash_


def test_the_server_tells_callers_their_names(server: Guarded) -> None:
    for client, name in ((server.boss, "boss"), (server.nina, "nina"), (server.boss, "boss")):
        assert client.get("/api/v2/caller", **OURS).body == {"name": name}
    assert server.boss.get("/api/v2/caller").status == 404


def test_without_rules_callers_are_not_mistaken_for_each_other(tmp_path) -> None:
    with guarded(tmp_path, with_rules=False, anonymous=True) as server:
        one, two, nobody = server.as_("one"), server.as_("two"), server.as_("")
        for client, name in ((one, "one"), (two, "two"), (nobody, ""), (one, "one")):
            assert client.get("/api/v2/caller", **OURS).body == {"name": name}


def test_undo_takes_back_the_operation_of_the_authenticated_caller(
    server: Guarded, undo: Undo
) -> None:
    """Nina's token counts, whatever the local author is."""
    commit(server.boss, "a")
    server.nina.send(
        "POST",
        "/api/v2/trees?name=ninas&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": server.nina.head()},
    )
    theirs = commit(server.boss, "b")
    code, out, err = undo(server.nina)
    assert (code, out.partition(" (")[0]) == (0, "deleted branch ninas"), err
    assert server.nina.head() == theirs


def test_the_operation_of_another_caller_is_not_taken_back_unasked(
    server: Guarded, undo: Undo
) -> None:
    """The local author and the author of the commit are Nina; its caller was the boss."""
    head = commit(server.boss, "a")
    for argv in ((), ("--dry-run",)):
        code, out, err = undo(server.nina, *argv)
        assert (code, out) == (2, ""), err
        assert "no operation of nina" in err
    refused = undo(server.nina, "main").expect(2, "by boss, not by you")
    assert server.boss.head() == head
    assert "by boss, " in refused.err.splitlines()[0]
    code, _, err = undo(server.boss)
    assert (code, server.boss.head()) == (0, EMPTY), err


def branch(client, name: str) -> None:
    body = {"type": "BRANCH", "name": "main", "hash": client.head()}
    assert client.send("POST", f"/api/v2/trees?name={name}&type=BRANCH", body).status == 200


def rename(client, old: str, new: str) -> None:
    path = f"/api/v2/trees/{old}@{client.head(old)}/rename?name={new}"
    assert client.send("POST", path, None, OURS).status == 200


def delete(client, name: str) -> None:
    assert client.send("DELETE", f"/api/v2/trees/{name}@{client.head(name)}").status == 200


def commit_to(client, name: str) -> None:
    assert client.commit(name, client.head(name), put(f"on-{name}")).status == 200


def references(client) -> dict[str, str]:
    found = client.get("/api/v2/trees").body["references"]
    return {one["name"]: one["hash"] for one in found}


def replace(client, name: str) -> None:
    delete(client, name)
    branch(client, name)


def rename_on(client, name: str) -> None:
    rename(client, name, "further")
    branch(client, name)


def replace_by_another(client, name: str) -> None:
    branch(client, "other")
    delete(client, name)
    rename(client, "other", name)


@pytest.mark.parametrize("named", [(), ("old",), ("old", "--yes"), ("old", "--dry-run")])
@pytest.mark.parametrize(
    "change", [commit_to, delete, replace, rename_on, replace_by_another], ids=lambda f: f.__name__
)
def test_a_rename_is_not_undone_if_the_new_name_has_changed(
    server: Guarded, undo: Undo, change: Callable[..., None], named: tuple[str, ...]
) -> None:
    """The boss has changed it, and it may be another branch now."""
    commit(server.boss, "a")
    branch(server.nina, "old")
    rename(server.nina, "old", "new")
    change(server.boss, "new")
    before = references(server.boss)
    refused = undo(server.nina, *named).expect(5, "'old' was renamed to 'new', and 'new' has")
    assert "by boss)" in refused.err
    assert ("branch -m new old" in refused.err) == ("new" in before)
    assert references(server.boss) == before


def test_a_rename_of_a_branch_with_commits_of_others_is_undone(server: Guarded, undo: Undo) -> None:
    branch(server.nina, "old")
    commit_to(server.boss, "old")
    head = server.boss.head("old")
    rename(server.nina, "old", "new")
    for name in ("old", "new"):
        code, _, err = undo(server.nina)
        assert (code, references(server.boss).get(name)) == (0, head), err


def test_operations_under_an_earlier_name_are_not_taken_back_unasked(
    server: Guarded, undo: Undo
) -> None:
    branch(server.nina, "a")
    number = str(next(server.repository.reflog()).number)
    for old, new in (("a", "b"), ("b", "c")):
        rename(server.nina, old, new)
    commit_to(server.boss, "c")
    rename(server.nina, "c", "a")
    head = server.boss.head("a")
    for argv in (("--to", number), ("a", "--to", number)):
        undo(server.nina, *argv).expect(2, "by boss, not by you")
        assert server.boss.head("a") == head
    assert undo(server.nina, "--to", number, "--yes").code == 0
    assert server.boss.head("a") != head


def test_an_anonymous_caller_has_no_name(tmp_path, monkeypatch, capsys) -> None:
    """Operations of a caller named like the local author are not those of an anonymous one."""
    nessie = InProcess(tmp_path, "nina", monkeypatch, capsys)
    with guarded(tmp_path, "true", anonymous=True) as server:
        head = commit(server.as_("nina"), "a")
        # What nobody is recorded for may be theirs: the creation of `main`, but not the last of it.
        nessie("undo", "--store", f"{server.url}/api/v2").expect(5)
        assert server.as_("nina").head() == head
        commit(server.as_(""), "b")
        nessie("undo", "--store", f"{server.url}/api/v2").expect(2, "did not record a user")


def test_values_of_settings_need_the_right_to_read_them(server: Guarded) -> None:
    server.repository.put_setting("protect.secret-plan", "no-delete")
    server.repository.put_setting("repository-config.GARBAGE_COLLECTOR", "{}")
    path = "/api/v2/reflog"

    def names() -> set[str]:
        entries = server.nina.get(path, **OURS).body["reflog"]
        return {one["reference"] for one in entries if one["type"] == "SETTING"}

    config = "'writer' in roles && op == 'READ_REPOSITORY_CONFIG'"
    server.rule("'writer' in roles && op != 'READ_REPOSITORY_CONFIG'")
    assert names() == set()
    named = server.nina.get(f"{path}?ref=setting:protect.secret-plan", **OURS)
    assert named.body["reflog"] == []
    assert "secret-plan" not in server.nina.get(path, **OURS).raw.decode()
    server.rule(f"{config} && type == 'GARBAGE_COLLECTOR'")
    assert names() == {"setting:repository-config.GARBAGE_COLLECTOR"}
    server.rule(f"{config} && type == 'NESSIE_CLI_SETTINGS'")
    assert names() == {"setting:protect.secret-plan"}


def test_undoing_a_setting_needs_the_right_to_change_it(server: Guarded, undo: Undo) -> None:
    server.nina.send(
        "POST",
        "/api/v2/config/repository",
        {"config": {"type": "NESSIE_CLI_SETTINGS", "settings": {"protect.main": "no-delete"}}},
        OURS,
    )
    server.rule("'writer' in roles && op != 'UPDATE_REPOSITORY_CONFIG'")
    undo(server.nina).expect(6, "UPDATE_REPOSITORY_CONFIG")
    assert server.repository.config().settings["protect.main"] == "no-delete"
    server.rule("'writer' in roles")
    assert undo(server.nina)[:2] == (0, "removed setting protect.main\n")
    entry = next(server.repository.reflog())
    assert (entry.who, entry.value_before, entry.value_after) == ("nina", "no-delete", None)


@pytest.fixture
def config(server: Guarded, tmp_path, monkeypatch, capsys) -> Undo:
    """Runs `nessie config` with the token of a client."""
    nessie = InProcess(tmp_path, "nina", monkeypatch, capsys)
    return lambda client, *args: nessie(
        "config",
        *args,
        "--repository",
        "--store",
        f"{server.url}/api/v2",
        NESSIE_AUTH_TOKEN=client.token,
    )


def test_a_setting_that_somebody_else_changed_since_has_its_own_advice(
    server: Guarded, undo: Undo, config: Undo
) -> None:
    assert config(server.boss, "set", "protect.a", "no-delete").code == 0
    assert config(server.nina, "set", "protect.a", "merge-only").code == 0
    refused = undo(server.boss)
    assert "'setting:protect.a' has moved since (settings by nina)" in refused.err
    assert "nessie revert" not in refused.err
    assert "`nessie config set protect.a VALUE --repository`" in refused.err
    assert undo(server.boss, "setting:protect.a", "--yes").code == 0
    assert config(server.boss, "get", "protect.a").out == "no-delete\n"


def test_a_setting_that_the_caller_may_not_read_is_not_called_unset(
    server: Guarded, config: Undo
) -> None:
    assert config(server.boss, "set", "protect.a", "no-delete").code == 0
    server.rule("op != 'READ_REPOSITORY_CONFIG'")
    for verb in ("get", "unset"):
        refused = config(server.nina, verb, "protect.a")
        assert refused.code == 4
        assert "not set, or you may not read it (READ_REPOSITORY_CONFIG)" in refused.err
    assert config(server.as_("root", "admin"), "get", "protect.a").out == "no-delete\n"
