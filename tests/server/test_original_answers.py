"""Answers that agree with the original server's, in cases without a recording."""

from __future__ import annotations

import pytest

from nessie_cli.wire.extensions import HEADER
from tests.server.client import EMPTY, Answer, Client, delete, namespace, put, table

NAMESPACE = "/api/v1/namespaces/namespace"
UPDATE = {"propertyUpdates": {"a": "b"}, "propertyRemovals": []}
ASSIGN_TO_ALIAS = {"type": "BRANCH", "name": "-", "hash": EMPTY}


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.body["errorCode"]


def content(client: Client, name: str) -> dict:
    return client.get(f"/api/v2/trees/main/contents/{name}").body["content"]


def commit(client: Client, *operations: dict) -> Answer:
    return client.commit("main", client.head(), *operations)


@pytest.mark.parametrize(
    "elements", [["a", ""], [""], ["a\x01"], ["a\x7f"], ["a" * 501], ["a"] * 21]
)
def test_a_namespace_has_the_elements_of_a_key(client, elements):
    content = {"type": "NAMESPACE", "elements": elements}
    answer = client.commit(
        "main", EMPTY, {"type": "PUT", "key": {"elements": ["n"]}, "content": content}
    )
    assert refused(answer) == (400, "BAD_REQUEST")
    assert answer.body["message"].startswith("operations[0].content.elements: ")
    assert client.head() == EMPTY
    # This is reported before the branch is looked up.
    assert (
        client.commit(
            "nosuch", EMPTY, {"type": "PUT", "key": {"elements": ["n"]}, "content": content}
        ).status
        == 400
    )
    assert refused(client.send("PUT", f"{NAMESPACE}/main/n", content)) == (400, "BAD_REQUEST")


def test_names_of_properties_are_lower_case(client):
    meta = {"message": "m", "allProperties": {"A": ["1"], "a": ["2", "3"], "B-c": ["4"]}}
    sent = {"nessie-commit-property-D": "5"}
    body = {"commitMeta": meta, "operations": [put("t")]}
    assert (
        client.send("POST", f"/api/v2/trees/main@{EMPTY}/history/commit", body, headers=sent).status
        == 200
    )
    (entry,) = client.get("/api/v2/trees/main/history").body["logEntries"]
    assert entry["commitMeta"]["allProperties"] == {"a": ["1", "2", "3"], "b-c": ["4"], "d": ["5"]}
    (old,) = client.get("/api/v1/trees/tree/main/log").body["logEntries"]
    assert old["commitMeta"]["properties"] == {"a": "1", "b-c": "4", "d": "5"}
    for text, found in (
        ("'A'%20in%20commit.properties", 0),
        ("commit.properties['a']%20%3D%3D%20'1'", 1),
    ):
        assert (
            len(client.get(f"/api/v2/trees/main/history?filter={text}").body["logEntries"]) == found
        )


def test_a_namespace_is_not_written_on_a_tag(client):
    client.commit("main", EMPTY, put("n", content=namespace("n")))
    client.send(
        "POST",
        "/api/v2/trees?name=v1&type=TAG",
        {"type": "BRANCH", "name": "main", "hash": client.head()},
    )
    for method, name, body in (
        ("PUT", "new", namespace("new")),
        ("DELETE", "n", None),
        ("POST", "n", UPDATE),
    ):
        answer = client.send(method, f"{NAMESPACE}/v1/{name}", body)
        assert refused(answer) == (404, "REFERENCE_NOT_FOUND"), method
        assert answer.body["message"] == "Named reference 'v1' not found"
    # Faults of the namespace itself are reported first.
    assert refused(client.send("PUT", f"{NAMESPACE}/v1/n", namespace("n"))) == (
        409,
        "NAMESPACE_ALREADY_EXISTS",
    )
    assert refused(client.send("DELETE", f"{NAMESPACE}/v1/nosuch")) == (404, "NAMESPACE_NOT_FOUND")
    assert refused(client.send("DELETE", f"{NAMESPACE}/DETACHED/n")) == (400, "BAD_REQUEST")


def test_a_reference_is_not_assigned_by_the_alias_of_the_default_branch(client):
    client.commit("main", EMPTY, put("t"))
    head = client.head()
    for method, path in (
        ("PUT", f"/api/v2/trees/main@{head}"),
        ("PUT", f"/api/v1/trees/branch/main?expectedHash={head}"),
    ):
        answer = client.send(method, path, ASSIGN_TO_ALIAS)
        assert refused(answer) == (404, "REFERENCE_NOT_FOUND"), path
        assert answer.body["message"] == "Named reference '-' not found"
    assert client.head() == head
    # A creation accepts it.
    assert client.send("POST", "/api/v2/trees?name=new&type=BRANCH", ASSIGN_TO_ALIAS).status == 200


def test_a_put_cannot_change_the_type_of_a_content(client):
    client.commit("main", EMPTY, put("t"))
    head = client.head()
    changed = {
        "type": "ICEBERG_VIEW",
        "id": content(client, "t")["id"],
        "metadataLocation": "v",
        "versionId": 1,
        "schemaId": 1,
    }
    assert refused(commit(client, put("t", content=changed))) == (400, "BAD_REQUEST")
    # It is not a conflict either if the key has changed since: the client must not retry.
    assert commit(client, put("t", content=content(client, "t") | {"snapshotId": 7})).status == 200
    assert refused(client.commit("main", head, put("t", content=changed))) == (400, "BAD_REQUEST")


def test_a_key_that_was_renamed_is_not_created_again_in_the_same_commit(client):
    client.commit("main", EMPTY, put("x"))
    moved, head = put("y", content=content(client, "x")), client.head()
    answer = commit(client, delete("x"), moved, put("x"))
    assert refused(answer) == (400, "BAD_REQUEST")
    assert answer.body["message"] == "New value to update existing key 'x' has no content ID"
    assert refused(commit(client, moved, delete("x"), put("x"))) == (400, "BAD_REQUEST")
    assert client.head() == head
    # Once the key is created again, the content may use another key.
    assert commit(client, delete("x"), put("x"), moved).status == 200
    assert content(client, "y") == moved["content"]
    assert content(client, "x")["id"] != moved["content"]["id"]


@pytest.mark.parametrize(
    "accept", ["application/json;q=0", "*/*;q=0.0", "application/xml, application/*;q=0"]
)
def test_json_with_weight_zero_is_accepted(client, accept):
    assert client.get("/api/v2/config", accept=accept).status == 200


@pytest.mark.parametrize("pattern", ["(", "*", "(?<name>x)"])
def test_patterns_in_the_repository_configuration_are_stored_unchecked(client, pattern):
    config = {
        "type": "GARBAGE_COLLECTOR",
        "perRefCutoffPolicies": [{"referenceNamePattern": pattern, "policy": "NONE"}],
    }
    assert client.send("POST", "/api/v2/config/repository", {"config": config}).status == 200
    assert client.get("/api/v2/config/repository?type=GARBAGE_COLLECTOR").body == {
        "configs": [config]
    }


@pytest.mark.parametrize("path", ["/q/health", "/q/health/live", "/q/health/ready", "/q/metrics"])
def test_health_and_metrics_accept_a_final_slash(client, path):
    assert client.get(f"{path}/").status == 200


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("1 == 1.0", 200),
        ("commit.author == 1", 200),
        ("commit.author == null", 200),
        ("has(ref.metadata)", 200),
        ("ref.metadata.numTotalCommits == 1", 400),
    ],
)
def test_filters_of_references(client, text, status):
    answer = client.get(f"/api/v2/trees?filter={text.replace(' ', '%20').replace('=', '%3D')}")
    assert answer.status == status
    if status == 200:
        assert len(answer.body["references"]) == (
            0 if text.startswith(("has", "commit.author == 1")) else 1
        )


def test_an_expected_content_never_lets_a_table_replace_a_view(client):
    view = {"type": "ICEBERG_VIEW", "metadataLocation": "v", "versionId": 1, "schemaId": 1}
    client.send(
        "POST",
        "/api/v2/trees?name=dev&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": EMPTY},
    )
    commit(client, put("aside"))
    client.send(
        "PUT",
        f"/api/v2/trees/dev@{EMPTY}",
        {"type": "BRANCH", "name": "main", "hash": client.head()},
    )
    commit(client, put("k", content=view))
    client.commit("dev", client.head("dev"), put("k", content=table()))
    behavior = {
        "key": {"elements": ["k"]},
        "mergeBehavior": "FORCE",
        "expectedTargetContent": content(client, "k"),
    }
    body = {"fromRefName": "dev", "fromHash": client.head("dev"), "keyMergeModes": [behavior]}
    answer = client.send("POST", f"/api/v2/trees/main@{client.head()}/history/merge", body)
    assert refused(answer) == (409, "REFERENCE_CONFLICT")
    (conflict,) = answer.body["errorDetails"]["conflicts"]
    assert conflict["conflictType"] == "PAYLOAD_DIFFERS"
    answer = client.send(
        "POST",
        f"/api/v2/trees/main@{client.head()}/history/merge",
        body | {"isReturnConflictAsResult": True},
    )
    assert (answer.status, answer.body["wasSuccessful"]) == (200, False)


def test_the_same_change_on_both_sides_merges(client):
    commit(client, put("k"))
    client.send(
        "POST",
        "/api/v2/trees?name=dev&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": client.head()},
    )
    changed = content(client, "k") | {"snapshotId": 7}
    picked = client.commit("dev", client.head("dev"), put("k", content=changed)).body[
        "targetBranch"
    ]["hash"]
    pick = {"fromRefName": "dev", "hashesToTransplant": [picked]}
    assert (
        client.send("POST", f"/api/v2/trees/main@{client.head()}/history/transplant", pick).status
        == 200
    )
    head = client.head()
    answer = client.send(
        "POST",
        f"/api/v2/trees/main@{head}/history/merge",
        {"fromRefName": "dev", "fromHash": picked},
    )
    assert (
        answer.status,
        answer.body["wasApplied"],
        answer.body["resultantTargetHash"],
        answer.body["details"],
    ) == (200, False, head, [])


@pytest.mark.parametrize("text", ["{", "", "null", "1", "[]", "{}", "[" * 100_000, "9" * 5_000])
def test_a_setting_that_is_no_object_is_as_good_as_none(client, text):
    """`nessie config set repository-config.GARBAGE_COLLECTOR` takes any text."""
    path = "/api/v2/config/repository"
    settings = {"repository-config.GARBAGE_COLLECTOR": text}
    given = {"config": {"type": "NESSIE_CLI_SETTINGS", "settings": settings}}
    assert client.send("POST", path, given, headers={HEADER: "1"}).status == 200
    assert client.get(f"{path}?type=GARBAGE_COLLECTOR").body == {}
    config = {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": "P30D"}
    answer = client.send("POST", path, {"config": config})
    assert (answer.status, answer.body) == (200, {"previous": None})
    assert client.get(f"{path}?type=GARBAGE_COLLECTOR").body == {"configs": [config]}
