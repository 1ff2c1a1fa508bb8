"""Rules by the type of a content hide its key, also where an answer names no type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.client import Answer, delete, namespace, put, table
from tests.server.guarding import Guarded, TokenClient, guarded

OURS = {"nessie-cli": "1"}
NO_VIEWS = "user == 'ada' && contentType != 'ICEBERG_VIEW'"
TABLES = "user == 'ada' && (path == '' || contentType in ['ICEBERG_TABLE', 'NAMESPACE'])"


class World:
    """A server whose `main` and `dev` have the table `db.t` and the view `db.view`.

    `ada` may do everything, but know views.
    """

    def __init__(self, server: Guarded) -> None:
        self.admin, self.ada = server.as_("root", "admin"), server.as_("ada")
        view = {"type": "ICEBERG_VIEW", "metadataLocation": "file:/v", "versionId": 1}
        view |= {"schemaId": 0, "dialect": "d", "sqlText": "s"}
        created = (
            put("db", content=namespace("db")),
            put("db", "t"),
            put("db", "view", content=view),
        )
        self.commit("main", *created)
        body = {"type": "BRANCH", "name": "main", "hash": self.admin.head()}
        assert self.admin.send("POST", "/api/v2/trees?name=dev&type=BRANCH", body).status == 200

    def commit(self, branch: str, *operations: Any) -> str:
        answer = self.admin.commit(branch, self.admin.head(branch), *operations)
        answer.expect(200)
        head: str = answer.body["targetBranch"]["hash"]
        return head

    def copies(self, client: TokenClient, commit: str) -> Iterator[Answer]:
        """Yields the answers to transplants of a commit of `dev` into `main`, by all APIs."""
        body = {"fromRefName": "dev", "hashesToTransplant": [commit], "isDryRun": True}
        path = f"/api/v2/trees/main@{client.head()}/history/transplant"
        for as_result in (False, True):
            given = {**body, "isReturnConflictAsResult": as_result}
            yield client.send("POST", path, given)
            yield client.send("POST", path, {**given, "perContent": True}, OURS)

    def merges(self, client: TokenClient) -> Iterator[Answer]:
        """Yields the answers to merges of `dev` into `main`, by all APIs."""
        body = {"fromRefName": "dev", "fromHash": self.admin.head("dev"), "isDryRun": True}
        path = f"/api/v2/trees/main@{client.head()}/history/merge"
        for as_result in (False, True):
            given = {**body, "isReturnConflictAsResult": as_result}
            yield client.send("POST", path, given)
            yield client.send("POST", path, {**given, "perContent": True}, OURS)


@pytest.fixture(params=[NO_VIEWS, TABLES])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with guarded(tmp_path, request.param) as server:
        yield World(server)


def named(*answers: Answer) -> str:
    return " ".join(json.dumps(answer.body) for answer in answers)


def test_a_log_shows_the_deletions_of_those_types_that_the_caller_may_know(world: World) -> None:
    world.commit("main", delete("db", "view"), delete("db", "t"))
    for path in (
        "/api/v2/trees/main/history?fetch=ALL",
        "/api/v1/trees/tree/main/log?fetch=ALL",
        "/api/v2/trees/main/history?fetch=ALL&filter=operations.exists(o,o.key=='db.view')",
    ):
        seen, whole = world.ada.get(path), world.admin.get(path)
        assert seen.status == whole.status == 200
        assert "view" not in named(seen)
        assert "view" in named(whole)
        assert ("DELETE" in named(seen)) == ("filter" not in path)


def test_a_log_of_a_key_shows_the_changes_of_known_types(world: World) -> None:
    head = world.commit("main", delete("db", "view"), delete("db", "t"))
    first = world.admin.get("/api/v2/trees/main/history").body["logEntries"][1]
    for key, hashes in (("t", [head, first["commitMeta"]["hash"]]), ("view", []), ("none", [])):
        path = f"/api/v2/trees/main/history?key=db.{key}"
        log = world.ada.get(path, **OURS).body["logEntries"]
        assert [entry["commitMeta"]["hash"] for entry in log] == hashes, key
        assert all("operations" not in entry or not entry["operations"] for entry in log)
    world.commit("main", put("db", "view", content=table(3)))
    log = world.ada.get("/api/v2/trees/main/history?key=db.view", **OURS).body["logEntries"]
    assert len(log) == 1, "it is a table now"


def test_no_answer_to_a_merge_names_a_key_of_a_hidden_type(world: World) -> None:
    deletion = world.commit("dev", delete("db", "view"))
    answers = [*world.copies(world.ada, deletion), *world.merges(world.ada)]
    assert {answer.status for answer in answers} == {403}
    assert "view" not in named(*answers)
    # Without the view, it is a conflict on the target for those who may know it.
    world.commit("main", delete("db", "view"))
    assert "view" not in named(*world.copies(world.ada, deletion), *world.merges(world.ada))
    assert "view" in named(*world.copies(world.admin, deletion))


def test_a_deletion_of_a_known_type_can_be_merged(world: World) -> None:
    deletion = world.commit("dev", delete("db", "t"))
    for answer in (*world.copies(world.ada, deletion), *world.merges(world.ada)):
        answer.expect(200)
        assert {"elements": ["db", "t"]} in [each["key"] for each in answer.body["details"]]


def test_the_result_of_a_request_names_no_key_of_a_hidden_type(world: World) -> None:
    """Callers find the ids of the requests of others in the reflog."""
    view = {"type": "ICEBERG_VIEW", "metadataLocation": "file:/w", "versionId": 1}
    view |= {"schemaId": 0, "dialect": "d", "sqlText": "s"}
    world.commit("main", put("db", "u"), put("db", "hidden", content=view))
    [newest, *_] = world.ada.get("/api/v2/reflog", **OURS).body["reflog"]
    answer = world.ada.get(f"/api/v2/requests/{newest['requestId']}", **OURS)
    answer.expect(200)
    added = [each["key"]["elements"] for each in answer.body["result"]["addedContents"]]
    assert added == [["db", "u"]]
