"""Merges and transplants as other clients request them: flags of v1, overridden metadata,
unused drops."""

from urllib.parse import quote

import pytest

from nessie_cli.model.conflicts import MOST_REPORTED
from tests.server.client import EMPTY, put, table

OURS = {"nessie-cli": "1"}


@pytest.fixture
def work(client):
    """A branch with one commit that main does not have, and one that is on both."""
    base = client.commit("main", EMPTY, put("base")).body["targetBranch"]["hash"]
    client.send(
        "POST",
        "/api/v2/trees?name=work&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": base},
    )
    body = {
        "commitMeta": {
            "message": "of work",
            "authors": ["ada"],
            "allSignedOffBy": ["bob"],
            "allProperties": {"job": ["7"]},
            "authorTime": TIME,
        },
        "operations": [put("a"), put("b", content=table(2))],
    }
    client.work = client.send("POST", f"/api/v2/trees/work@{base}/history/commit", body).body[
        "targetBranch"
    ]["hash"]
    client.base = client.commit("main", base, put("main")).body["targetBranch"]["hash"]
    return client


TIME = "2026-01-02T03:04:05Z"
GIVEN = {
    "message": "given",
    "authors": ["eve"],
    "allSignedOffBy": ["dan"],
    "allProperties": {"job": ["8"]},
    "authorTime": "2026-02-02T03:04:05Z",
}


@pytest.mark.parametrize(("kept", "status"), [(None, 200), (False, 200), (True, 400)])
def test_v1_merges_into_one_commit(work, kept, status):
    body = {"fromRefName": "work", "fromHash": work.work} | (
        {} if kept is None else {"keepIndividualCommits": kept}
    )
    assert (
        work.send("POST", f"/api/v1/trees/branch/main/merge?expectedHash={work.base}", body).status
        == status
    )
    assert (work.head() == work.base) == (status != 200)


@pytest.mark.parametrize(("kept", "status"), [(None, 200), (True, 200), (False, 400)])
def test_v1_transplants_commit_by_commit(work, kept, status):
    body = {"fromRefName": "work", "hashesToTransplant": [work.work]} | (
        {} if kept is None else {"keepIndividualCommits": kept}
    )
    assert (
        work.send(
            "POST", f"/api/v1/trees/branch/main/transplant?expectedHash={work.base}", body
        ).status
        == status
    )
    assert (work.head() == work.base) == (status != 200)


@pytest.mark.parametrize(
    "given",
    [[], *([name] for name in GIVEN), list(GIVEN)],
    ids=lambda names: ",".join(names) or "none",
)
def test_a_transplanted_commit_keeps_metadata_that_is_not_overridden(work, given):
    meta = {"message": ""} | {name: GIVEN[name] for name in given}
    body = {"fromRefName": "work", "hashesToTransplant": [work.work], "commitMeta": meta}
    assert (
        work.send("POST", f"/api/v2/trees/main@{work.base}/history/transplant", body).status == 200
    )
    entries = work.get("/api/v2/trees/main/history").body["logEntries"]
    before = work.get("/api/v2/trees/work/history").body["logEntries"][0]["commitMeta"]
    for name, value in GIVEN.items():
        assert entries[0]["commitMeta"][name] == (value if name in given else before[name]), name


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [("nosuch", {}, 400), ("nosuch", OURS, 400), ("a", {}, 200), (None, {}, 200)],
)
def test_an_unused_drop_is_an_error(work, key, headers, status):
    drops = [{"key": {"elements": [key]}, "mergeBehavior": "DROP"}] if key else []
    body = {"fromRefName": "work", "fromHash": work.work, "keyMergeModes": drops}
    answer = work.send(
        "POST", f"/api/v2/trees/main@{work.base}/history/merge", body, headers=headers
    )
    assert answer.status == status, answer
    if status == 400:
        assert answer.body["message"].endswith("not used: [nosuch]")
        assert work.head() == work.base
    else:
        found = {
            key: work.get(f"/api/v2/trees/main/contents/{quote(key)}").status
            for key in ("a", "b", "main")
        }
        assert found == {"a": 404 if key == "a" else 200, "b": 200, "main": 200}


def test_a_refused_merge_lists_the_first_of_many_conflicts(client):
    names = [f"t{number:04}" for number in range(MOST_REPORTED + 5)]
    base = client.commit("main", EMPTY, put("base")).body["targetBranch"]["hash"]
    body = {"type": "BRANCH", "name": "main", "hash": base}
    client.send("POST", "/api/v2/trees?name=work&type=BRANCH", body)
    commits = {}
    for branch, number in (("main", 1), ("work", 2)):
        operations = [put(name, content=table(number)) for name in names]
        commit = {"commitMeta": {"message": "m"}, "operations": operations}
        answer = client.send("POST", f"/api/v2/trees/{branch}@{base}/history/commit", commit)
        commits[branch] = answer.body["targetBranch"]["hash"]
    merge = {"fromRefName": "work", "fromHash": commits["work"]}
    path = f"/api/v2/trees/main@{commits['main']}/history/merge"
    refused = client.send("POST", path, merge, headers={"nessie-client-spec": "2"})
    assert refused.status == 409
    assert refused.body["message"].endswith("'t0999', and 5 more")
    conflicts = refused.body["errorDetails"]["conflicts"]
    assert [each["key"]["elements"][0] for each in conflicts] == names[:MOST_REPORTED]
