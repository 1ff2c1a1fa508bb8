"""Behaviour of the API that does not depend on recordings of the original server."""

import pytest

from tests.server.client import EMPTY, delete, namespace, put, table


def test_conflict_details_are_sent_only_to_clients_that_support_them(client):
    client.commit("main", EMPTY, put("a"))
    body = {"commitMeta": {"message": "m"}, "operations": [put("a")]}
    for spec, shown in (
        ("2", True),
        ("2.2.0", True),
        ("3", True),
        ("1", False),
        ("x", False),
        ("", False),
        ("9" * 40, False),
    ):
        answer = client.send(
            "POST",
            f"/api/v2/trees/main@{EMPTY}/history/commit",
            body,
            headers={"nessie-client-spec": spec},
        )
        assert answer.status == 409
        assert ("errorDetails" in answer.body) is shown, spec


def test_a_page_token_remains_valid_after_its_reference_is_deleted(client):
    for name in ("v1", "v2", "v3"):
        client.send(
            "POST",
            f"/api/v2/trees?name={name}&type=TAG",
            {"type": "BRANCH", "name": "main", "hash": EMPTY},
        )
    first = client.get("/api/v2/trees?max-records=2").body
    assert [reference["name"] for reference in first["references"]] == ["main", "v1"]
    client.send("DELETE", f"/api/v2/trees/v2@{EMPTY}")
    second = client.get(f"/api/v2/trees?max-records=2&page-token={first['token']}").body
    assert [reference["name"] for reference in second["references"]] == ["v3"]
    assert not second["hasMore"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "prefix-key=n&",
        "min-key=n&",
        "max-key=z&",
        "filter=entry.contentType%20!%3D%20'NAMESPACE'&",
        "filter=entry.namespace%3D%3D'n'&",
        "filter=entry.encodedKey.startsWith('n.t')&",
    ],
)
def test_the_pages_together_are_the_whole_listing(client, query):
    operations = [
        put("n", content=namespace("n")),
        *(put("n", f"t{number:02}") for number in range(23)),
        put("a"),
        put("z"),
    ]
    client.commit("main", EMPTY, *operations)
    whole = client.get(f"/api/v2/trees/main/entries?{query}").body["entries"]
    assert len(whole) > 20
    pages, token = [], ""
    while token is not None:
        page = client.get(
            f"/api/v2/trees/main/entries?{query}max-records=4&page-token={token}"
        ).body
        assert page["hasMore"] is (page["token"] is not None)
        pages += page["entries"]
        token = page["token"]
    assert pages == whole


@pytest.mark.parametrize("more", ["%26%26entry.namespace%3D%3D'a'", "&prefix-key=a"])
def test_a_filter_that_contradicts_itself_or_the_range_matches_nothing(client, more):
    client.commit("main", EMPTY, put("n", content=namespace("n")), put("n", "t"), put("a"))
    page = client.get(f"/api/v2/trees/main/entries?filter=entry.namespace%3D%3D'n'{more}").body
    assert (page["entries"], page["hasMore"]) == ([], False)


def test_a_page_of_the_log_has_at_most_250_commits(client):
    head = EMPTY
    for number in range(255):
        head = client.commit("main", head, put(f"t{number}")).body["targetBranch"]["hash"]
    for query in ("", "?max-records=0", "?max-records=-1", "?max-records=1000"):
        page = client.get(f"/api/v2/trees/main/history{query}").body
        assert (len(page["logEntries"]), page["hasMore"]) == (250, True), query
    rest = client.get(f"/api/v2/trees/main/history?page-token={page['token']}").body
    assert (len(rest["logEntries"]), rest["hasMore"]) == (5, False)


def test_the_oldest_commit_may_be_the_first_of_a_page(client):
    head = EMPTY
    hashes = []
    for number in range(6):
        head = client.commit("main", head, put(f"t{number}")).body["targetBranch"]["hash"]
        hashes.insert(0, head)
    first = client.get(f"/api/v2/trees/main/history?limit-hash={hashes[3]}&max-records=3").body
    assert first["hasMore"]
    second = client.get(
        f"/api/v2/trees/main/history?limit-hash={hashes[3]}&max-records=3&page-token={first['token']}"
    ).body
    assert [entry["commitMeta"]["hash"] for entry in second["logEntries"]] == [hashes[3]]
    assert not second["hasMore"]


def test_a_misspelt_dry_run_flag_never_merges(client):
    client.commit("main", EMPTY, put("a"))
    client.send(
        "POST",
        "/api/v2/trees?name=dev&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": client.head()},
    )
    client.commit("dev", client.head("dev"), put("b"))
    before = client.head()
    body = {"fromRefName": "dev", "fromHash": client.head("dev")}
    refused = client.send(
        "POST", f"/api/v2/trees/main@{before}/history/merge", body | {"dryRun": True}
    )
    refused.expect(400, "isDryRun")
    assert client.head() == before
    assert not client.send(
        "POST", f"/api/v2/trees/main@{before}/history/merge", body | {"isDryRun": True}
    ).body["wasApplied"]
    assert client.head() == before


def test_slashes_in_names_may_be_literal_or_encoded(client):
    client.send(
        "POST",
        "/api/v2/trees?name=a/b/c&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": EMPTY},
    )
    for path in ("a%2Fb%2Fc", "a/b/c@", "a%2Fb%2Fc@", f"a/b/c@{EMPTY}"):
        answer = client.get(f"/api/v2/trees/{path}/entries")
        assert answer.body["effectiveReference"]["name"] == "a/b/c", path


def test_both_versions_of_the_api_show_the_same_catalog(client):
    head = client.commit("main", EMPTY, put("n", content=namespace("n")), put("n", "t")).body[
        "targetBranch"
    ]["hash"]
    old = client.commit("main", head, put("x"), version=1)
    assert old.body == {"type": "BRANCH", "name": "main", "hash": client.head()}
    v1, v2 = (
        client.get("/api/v1/trees/tree/main/entries").body,
        client.get("/api/v2/trees/main/entries").body,
    )
    assert [e["name"] for e in v1["entries"]] == [e["name"] for e in v2["entries"]]
    assert set(v1["entries"][0]) == {"type", "name"}
    log = client.get("/api/v1/trees/tree/main/log").body["logEntries"][0]["commitMeta"]
    assert not {"authors", "allSignedOffBy", "allProperties", "parentCommitHashes"} & set(log)
    assert set(client.get("/api/v1/config").body) == {"defaultBranch", "maxSupportedApiVersion"}


def test_a_request_without_an_id_gets_one(client):
    assert (
        client.get("/api/v2/config", **{"x-request-id": "job-17"}).headers["x-request-id"]
        == "job-17"
    )
    for given in ("", "bad id", "x" * 65):
        assert (
            len(client.get("/api/v2/config", **{"x-request-id": given}).headers["x-request-id"])
            == 16
        )


def test_other_scalars_are_converted_before_they_are_stored(client):
    content = table() | {
        "snapshotId": "17",
        "schemaId": 1.5,
        "specId": None,
        "metadataLocation": 12,
    }
    assert client.commit("main", EMPTY, put("a", content=content)).status == 200
    stored = client.get("/api/v2/trees/main/contents/a").body["content"]
    assert (
        stored["snapshotId"],
        stored["schemaId"],
        stored["specId"],
        stored["metadataLocation"],
    ) == (17, 1, 0, "12")
    for wrong in (True, "x", [], {}):
        answer = client.commit(
            "main", client.head(), put("b", content=table() | {"snapshotId": wrong})
        )
        answer.expect(400, "operations[0].content.snapshotId")


def test_errors_distinguish_missing_references_commits_and_contents(client):
    client.commit("main", EMPTY, put("a"))
    other = "ab" * 32
    for path, code, name in (
        ("/api/v2/trees/nosuch/entries", "REFERENCE_NOT_FOUND", "nosuch"),
        (f"/api/v2/trees/main@{other}/entries", "REFERENCE_NOT_FOUND", other),
        ("/api/v2/trees/main/contents/x.y", "CONTENT_NOT_FOUND", "x.y"),
    ):
        answer = client.get(path)
        assert (answer.status, answer.body["errorCode"]) == (404, code)
        assert name in answer.body["message"]


def test_a_filter_is_compiled_even_if_there_is_nothing_to_filter(client):
    for path in (
        "trees?filter=nonsense",
        "trees/main/entries?filter=entry.nosuch%3D%3D1",
        "trees/main/history?filter=(",
        "trees/main/diff/main?filter=entry.key",
    ):
        assert client.get(f"/api/v2/{path}").status == 400, path


def test_a_namespace_with_contents_is_not_deleted(client):
    client.commit("main", EMPTY, put("n", content=namespace("n")), put("n", "t"))
    answer = client.commit("main", client.head(), delete("n"))
    assert [conflict["conflictType"] for conflict in answer.body["errorDetails"]["conflicts"]] == [
        "NAMESPACE_NOT_EMPTY"
    ]


def test_a_missing_branch_is_reported_before_other_faults_of_a_commit(client):
    client.send(
        "POST",
        "/api/v2/trees?name=tagged&type=TAG",
        {"type": "BRANCH", "name": "main", "hash": EMPTY},
    )
    body = {"commitMeta": {"message": "m"}, "operations": [put("a")]}
    unknown = "1" * 64
    for where in ("", f"@{EMPTY}", f"@{unknown}", "@123456789"):
        answer = client.send("POST", f"/api/v2/trees/missing{where}/history/commit", body)
        assert (answer.status, answer.body["errorCode"]) == (404, "REFERENCE_NOT_FOUND"), where
        assert "'missing'" in answer.body["message"], where
        answer = client.send("POST", f"/api/v2/trees/tagged{where}/history/commit", body)
        assert (answer.status, answer.body["message"]) == (
            400,
            "Reference to commit into must be a branch.",
        ), where
    for where in (EMPTY, unknown):
        assert "'missing'" in client.commit("missing", where, put("a"), version=1).body["message"]
        assert (
            client.commit("tagged", where, put("a"), version=1).body["message"]
            == "Reference to commit into must be a branch."
        )
    # If the branch exists, faults of the body are reported.
    assert (
        client.send("POST", "/api/v2/trees/main/history/commit", body).body["message"]
        == "Expected hash must be provided."
    )
    assert client.send("POST", f"/api/v2/trees/main@{unknown}/history/commit", body).status == 404


OF_HEADERS = [
    ({}, {}),
    ({"nessie-commit-message": "said"}, {"message": "said"}),
    ({"nessie-commit-message": " "}, {}),
    ({"nessie-commit-authors": "bob, eve"}, {"authors": ["ada", "bob", "eve"]}),
    ({"nessie-commit-authors": " , "}, {}),
    ({"nessie-commit-signedoffby": "bob"}, {"allSignedOffBy": ["bob"]}),
    ({"nessie-commit-property-job": "7"}, {"allProperties": {"job": ["7"]}}),
    ({"nessie-commit-property-job": ""}, {}),
]


@pytest.mark.parametrize(("headers", "wanted"), OF_HEADERS)
def test_headers_add_to_the_commit_metadata(client, headers, wanted):
    body = {"commitMeta": {"message": "m", "authors": ["ada"]}, "operations": [put("a")]}
    assert (
        client.send(
            "POST", f"/api/v2/trees/main@{EMPTY}/history/commit", body, headers=headers
        ).status
        == 200
    )
    found = client.get("/api/v2/trees/main/history").body["logEntries"][0]["commitMeta"]
    plain = {"message": "m", "authors": ["ada"], "allSignedOffBy": [], "allProperties": {}}
    assert {name: found.get(name, {}) for name in plain} == plain | wanted
