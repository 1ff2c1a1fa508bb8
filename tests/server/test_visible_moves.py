"""Whatever makes commits reachable under a name is judged like a creation of that name.

Each verb is tried on both versions of the API, with each set of rights on the source.
"""

from __future__ import annotations

import pytest

from tests.server.client import EMPTY, delete, put, table
from tests.server.guarding import guarded

OURS = {"nessie-cli": "1"}
OWN = "role == 'mal' && ref.startsWith('users/mal/')"
SEES_MAIN = "role == 'mal' && ref == 'main' && op != 'COMMIT_CHANGE_AGAINST_REFERENCE'"
ALL = ("VIEW_REFERENCE", "LIST_COMMIT_LOG", "READ_ENTRIES", "READ_CONTENT_KEY", "READ_ENTITY_VALUE")
LEVELS = {
    "nothing": (),
    "view": ALL[:1],
    "log": ALL[:2],
    "entries": ALL[:3],
    "keys": ALL[:4],
    "no log": tuple(op for op in ALL if op != "LIST_COMMIT_LOG"),
    "no entries": tuple(op for op in ALL if op != "READ_ENTRIES"),
    "all": ALL,
}
"""What the caller may do on the source, besides deleting it."""


@pytest.fixture
def server(tmp_path):
    """`stage/x` has a secret since its first commit, and a plan since its second.

    Mal may do everything below `users/mal/`, and read `main`.
    """
    with guarded(tmp_path) as found:
        admin = found.admin = found.as_("root", "admin")
        found.main = admin.commit("main", EMPTY, put("t")).body["targetBranch"]["hash"]
        branch(admin, "stage/x", found.main)
        branch(admin, "users/mal/mine", found.main)
        found.secret = head_after(
            admin.commit("stage%2Fx", found.main, put("secret", content=table(7)))
        )
        found.stage = head_after(
            admin.commit("stage%2Fx", found.secret, put("plan", content=table(8)))
        )
        found.mal = found.as_("mal", "mal")
        yield found


def branch(client, name, hash_, kind="BRANCH"):
    body = {"type": "BRANCH", "name": "main", "hash": hash_}
    return client.send("POST", f"/api/v2/trees?name={name}&type={kind}", body)


def head_after(answer):
    return answer.body["targetBranch"]["hash"]


def allow(server, level, *more):
    ops = [*LEVELS[level], "DELETE_REFERENCE"]
    server.rule(OWN, SEES_MAIN, f"role == 'mal' && ref.startsWith('stage/') && op in {ops}", *more)


def readable(server, name):
    """Whether mal, without rights on `stage/x`, reads the secret through another reference.

    It may be in its HEAD, in its log, or in a commit that it reaches.
    """
    allow(server, "nothing")
    path = f"/api/v2/trees/{name.replace('/', '%2F')}"
    log = server.mal.get(f"{path}/history?fetch=ALL")
    return server.secret in log.raw.decode() or any(
        server.mal.get(f"{at}/contents/secret").status == 200
        for at in (path, f"{path}@{server.stage}")
    )


# -- the verbs: each returns the answer to the request that makes `server.stage` or `server.secret`
# reachable from `users/mal/...` --


def create_v2(kind, name="stage/x", relative=""):
    def act(server):
        type_ = "DETACHED" if name == "DETACHED" else "BRANCH"
        return server.mal.send(
            "POST",
            f"/api/v2/trees?name=users/mal/new&type={kind}",
            {"type": type_, "name": name, "hash": server.stage + relative},
        )

    return act


def create_v1(kind, source="?sourceRefName=stage/x"):
    def act(server):
        body = {"type": kind, "name": "users/mal/new", "hash": server.stage}
        return server.mal.send("POST", f"/api/v1/trees/tree{source}", body)

    return act


def assign_v2(name="stage/x", relative=""):
    def act(server):
        type_ = "DETACHED" if name == "DETACHED" else "BRANCH"
        body = {"type": type_, "name": name, "hash": server.stage + relative}
        return server.mal.send("PUT", f"/api/v2/trees/users%2Fmal%2Fmine@{server.main}", body)

    return act


def assign_v1(server):
    body = {"type": "BRANCH", "name": "stage/x", "hash": server.stage}
    path = f"/api/v1/trees/branch/users%2Fmal%2Fmine?expectedHash={server.main}"
    return server.mal.send("PUT", path, body)


def rename(server):
    path = f"/api/v2/trees/stage%2Fx@{server.stage}/rename?name=users/mal/new"
    return server.mal.send("POST", path, {}, headers=OURS)


def merge(path, drop):
    def act(server):
        body = {"fromRefName": "stage/x", "fromHash": server.stage}
        if drop:
            keep = [{"key": {"elements": ["plan"]}, "mergeBehavior": "NORMAL"}]
            body |= {"defaultKeyMergeMode": "DROP", "keyMergeModes": keep}
        return server.mal.send("POST", path.format(main=server.main), body)

    return act


def transplant(path):
    def act(server):
        body = {"fromRefName": "stage/x", "hashesToTransplant": [server.secret, server.stage]}
        return server.mal.send("POST", path.format(main=server.main), body)

    return act


V1 = "/api/v1/trees/branch/users%2Fmal%2Fmine/{verb}?expectedHash={{main}}"
V2 = "/api/v2/trees/users%2Fmal%2Fmine@{{main}}/history/{verb}"
VERBS = {
    "create a branch v2": create_v2("BRANCH"),
    "create a tag v2": create_v2("TAG"),
    "create from a bare hash v2": create_v2("BRANCH", "DETACHED"),
    "create from a parent v2": create_v2("BRANCH", relative="~1"),
    "create from a parent of a bare hash v2": create_v2("TAG", "DETACHED", "^1"),
    "create a branch v1": create_v1("BRANCH"),
    "create a tag v1": create_v1("TAG"),
    "create from a bare hash v1": create_v1("BRANCH", ""),
    "create from a wrong source v1": create_v1("BRANCH", "?sourceRefName=main"),
    "assign v2": assign_v2(),
    "assign to a bare hash v2": assign_v2("DETACHED"),
    "assign to a parent v2": assign_v2(relative="~1"),
    "assign v1": assign_v1,
    "rename v2": rename,
    "merge v2": merge(V2.format(verb="merge"), drop=False),
    "merge a part v2": merge(V2.format(verb="merge"), drop=True),
    "merge v1": merge(V1.format(verb="merge"), drop=False),
    "merge a part v1": merge(V1.format(verb="merge"), drop=True),
    "transplant v2": transplant(V2.format(verb="transplant")),
    "transplant v1": transplant(V1.format(verb="transplant")),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_needs_every_right_to_read_what_becomes_reachable(server, verb):
    for level in LEVELS:
        allow(server, level)
        before = server.admin.get("/api/v2/trees").body["references"]
        answer = VERBS[verb](server)
        # Copied commits need no right to list the keys of their source.
        copies = verb.startswith("transplant") and level == "no entries"
        if level == "all" or copies:
            assert answer.status in (200, 204), (level, answer)
            assert readable(server, "users/mal/new") or readable(server, "users/mal/mine")
            break
        assert answer.status == 403, (level, answer)
        assert "plan" not in answer.raw.decode()
        assert server.admin.get("/api/v2/trees").body["references"] == before
        assert not readable(server, "users/mal/mine")


@pytest.mark.parametrize("level", ["view", "keys"])
def test_a_deleted_reference_cannot_be_restored_elsewhere(server, level):
    allow(server, level)
    assert server.mal.send("DELETE", f"/api/v2/trees/stage%2Fx@{server.stage}").status == 200
    for verb in ("create a branch v2", "create from a bare hash v2", "create from a bare hash v1"):
        assert VERBS[verb](server).status in (403, 404), verb
    assert not readable(server, "users/mal/new")


def test_a_tag_of_a_hidden_commit_is_refused_although_its_ancestors_are_readable(server):
    """Rights by key: the newest commit is readable, the one before is not."""
    plan = "role == 'mal' && ref == 'stage/x' && op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE']"
    allow(server, "entries", f"{plan} && path == 'plan'")
    for verb, act in VERBS.items():
        answer = act(server)
        assert answer.status == 403, (verb, answer)
        assert "secret" not in answer.raw.decode(), verb


def test_a_rename_is_allowed_if_another_visible_reference_is_readable(server):
    """The new name could be created through that reference."""
    allow(server, "view", "role == 'mal' && ref == 'z'")
    assert rename(server).status == 403
    branch(server.admin, "z", server.stage)
    assert rename(server).status == 200


def test_a_rename_to_an_existing_name_reveals_no_more_than_a_creation(server):
    branch(server.admin, "users/mal/new", server.main)
    for level, status in (("keys", 403), ("all", 409)):
        allow(server, level)
        assert rename(server).status == create_v2("BRANCH")(server).status == status


def test_checked_commits_do_not_vouch_for_commits_that_the_target_had_before(server):
    """A merge into `main` checks only what is new to `main`. What `main` had stays unchecked."""
    admin = server.admin
    hidden = head_after(admin.commit("main", server.main, put("salaries", content=table(9))))
    branch(admin, "dev", hidden)
    dev = head_after(admin.commit("dev", hidden, put("plan", content=table(8))))
    server.rule(
        OWN,
        "role == 'mal' && ref == 'main' && op in ['VIEW_REFERENCE', 'CREATE_ENTITY',"
        " 'COMMIT_CHANGE_AGAINST_REFERENCE']",
        f"role == 'mal' && ref == 'dev' && op in {list(ALL[:3])}",
        "role == 'mal' && ref == 'dev' && op.startsWith('READ_') && path == 'plan'",
    )
    body = {"fromRefName": "dev", "fromHash": dev}
    merged = server.mal.send("POST", f"/api/v2/trees/main@{hidden}/history/merge", body)
    assert merged.status == 200, merged
    answer = branch(server.mal, "users/mal/new", dev)
    assert answer.status == 403
    new = server.mal.get("/api/v2/trees/users%2Fmal%2Fnew/contents/salaries")
    assert new.status == 404


def test_each_transplanted_commit_is_judged_where_it_is_visible(server):
    """The last commit is readable, and the first is on another branch, whose log is visible."""
    admin = server.admin
    branch(admin, "open", server.main)
    last = head_after(admin.commit("open", server.main, put("o", content=table(9))))
    allow(server, "keys", "role == 'mal' && ref == 'open'")
    body = {
        "fromRefName": "open",
        "hashesToTransplant": [server.secret, last],
        "anyOrder": True,
    }
    path = f"/api/v2/trees/users%2Fmal%2Fmine@{server.main}/history/transplant"
    answer = server.mal.send("POST", path, body, headers=OURS)
    assert answer.status == 403, answer
    assert not readable(server, "users/mal/mine")
    allow(server, "all", "role == 'mal' && ref == 'open'")
    assert server.mal.send("POST", path, body, headers=OURS).status == 200


def test_a_transplant_that_undoes_a_secret_again_still_copies_it(server):
    """The last commit deletes the secret, but the commit before it would be on the branch."""
    removed = head_after(server.admin.commit("stage%2Fx", server.stage, delete("secret")))
    deletes = "role == 'mal' && ref == 'stage/x' && path == 'plan'"
    allow(server, "entries", deletes)
    body = {
        "fromRefName": "stage/x",
        "hashesToTransplant": [server.secret, server.stage, removed],
    }
    path = f"/api/v2/trees/users%2Fmal%2Fmine@{server.main}/history/transplant"
    assert server.mal.send("POST", path, body).status == 403


def test_rights_of_one_version_of_the_api_do_not_count_for_the_other(server):
    allow(server, "view", "role == 'mal' && ref == 'stage/x' && api['apiVersion'] == 1")
    assert create_v1("BRANCH")(server).status == 200
    answer = branch(server.mal, "users/mal/other", server.stage)
    assert answer.status == 403, answer
