"""Making commits reachable requires the right to read their changes; a refused write changes
nothing."""

from __future__ import annotations

import pytest

from tests.server.client import EMPTY, put, table
from tests.server.guarding import guarded

ADA = "ref == 'main' && role == 'ada'"
SEES_SECRET = (
    "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'LIST_COMMIT_LOG'] && ref == 'secret' && role =="
    " 'ada'"
)
READS_PLAN = (
    "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && ref == 'secret' && path == 'plan' && role"
    " == 'ada'"
)
DROP_THE_REST = {
    "defaultKeyMergeMode": "DROP",
    "keyMergeModes": [{"key": {"elements": ["plan"]}, "mergeBehavior": "NORMAL"}],
}


@pytest.fixture
def server(tmp_path):
    """On `secret` are salaries and a plan. Ada may do everything on `main`, and read only the
    plan on `secret`."""
    with guarded(tmp_path, ADA, SEES_SECRET, READS_PLAN) as found:
        found.admin = found.as_("root", "admin")
        found.main = found.admin.commit("main", EMPTY, put("t")).body["targetBranch"]["hash"]
        found.admin.send(
            "POST",
            "/api/v2/trees?name=secret&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": found.main},
        )
        with_salaries = found.admin.commit(
            "secret", found.main, put("salaries", content=table(7))
        ).body["targetBranch"]["hash"]
        found.secret = found.admin.commit(
            "secret", with_salaries, put("plan", content=table(8))
        ).body["targetBranch"]["hash"]
        found.ada = found.as_("ada", "ada")
        yield found


def salaries(server, branch: str = "main"):
    return server.ada.get(f"/api/v2/trees/{branch}@{server.secret}/contents/salaries")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/trees/main@{main}/history/merge",
        "/api/v1/trees/branch/main/merge?expectedHash={main}",
    ],
)
def test_a_merge_cannot_expose_contents_that_the_caller_may_not_read(server, path):
    assert salaries(server).status == 403
    body = {"fromRefName": "secret", "fromHash": server.secret, **DROP_THE_REST}
    answer = server.ada.send("POST", path.format(main=server.main), body)
    assert answer.status == 403, answer
    assert "salaries" not in answer.raw.decode()
    assert server.admin.head("main") == server.main
    assert salaries(server).status == 403


def test_a_merge_is_allowed_if_the_caller_may_read_all_of_it(server):
    server.rule(
        ADA,
        SEES_SECRET,
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && ref == 'secret' && role == 'ada'",
    )
    body = {"fromRefName": "secret", "fromHash": server.secret, **DROP_THE_REST}
    answer = server.ada.send("POST", f"/api/v2/trees/main@{server.main}/history/merge", body)
    assert answer.status == 200
    assert salaries(server).status == 200


@pytest.mark.parametrize("way", ["create", "assign"])
def test_a_reference_cannot_expose_contents_that_the_caller_may_not_read(server, way):
    mine = "ref.startsWith('mine') && role == 'ada'"
    server.rule(ADA, SEES_SECRET, READS_PLAN, mine)
    body = {"type": "BRANCH", "name": "secret", "hash": server.secret}
    if way == "create":
        answer = server.ada.send("POST", "/api/v2/trees?name=mine&type=BRANCH", body)
    else:
        server.ada.send(
            "POST",
            "/api/v2/trees?name=mine&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": server.main},
        )
        answer = server.ada.send("PUT", f"/api/v2/trees/mine@{server.main}", body)
    assert answer.status == 403, answer
    assert salaries(server, "mine").status in (403, 404)


def test_read_rights_are_checked_again_after_the_rules_change(server):
    mine = "ref.startsWith('mine') && role == 'ada'"
    server.rule(
        mine,
        SEES_SECRET,
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && ref == 'secret' && role == 'ada'",
    )
    body = {"type": "BRANCH", "name": "secret", "hash": server.secret}
    assert server.ada.send("POST", "/api/v2/trees?name=mine1&type=BRANCH", body).status == 200
    server.rule(mine, SEES_SECRET, READS_PLAN)
    assert server.ada.send("POST", "/api/v2/trees?name=mine2&type=BRANCH", body).status == 403


def test_a_write_answered_with_403_changes_nothing(server):
    """Ada may merge, but not list the entries for the answer, which were once read after the
    commit."""
    server.rule(
        ADA,
        SEES_SECRET.replace("'READ_ENTRIES', ", ""),
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && ref == 'secret' && role == 'ada'",
    )
    body = {"fromRefName": "secret", "fromHash": server.secret, **DROP_THE_REST}
    answer = server.ada.send("POST", f"/api/v2/trees/main@{server.main}/history/merge", body)
    assert (answer.status, server.admin.head("main")) == (403, server.main)


def test_rules_of_the_default_branch_apply_to_dash(server):
    server.rule(
        "op in ['VIEW_REFERENCE', 'COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY',"
        " 'UPDATE_ENTITY'] && ref == '-' && role == 'ada'"
    )
    answer = server.ada.commit("-", server.main, put("stolen"))
    assert answer.status == 403, answer
    assert server.admin.head("main") == server.main
    server.rule(ADA)
    assert server.ada.commit("-", server.main, put("allowed")).status == 200
