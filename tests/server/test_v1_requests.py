"""Messages for v1 requests with several faults, which the original's published tests
compare."""

from typing import NamedTuple
from urllib.parse import quote

import pytest

from nessie_cli.model.references import NAME_RULE
from tests.server.client import EMPTY, namespace, put

BRANCH = "/api/v1/trees/branch/main"
RULE_OF_HASHES = "Hash must consist of the hex representation of 4-32 bytes"


class Write(NamedTuple):
    verb: str
    path: str
    method: str
    reference: str
    body: str

    @property
    def no_hash(self) -> str:
        return f"{self.method}.expectedHash: must not be null"

    @property
    def no_body(self) -> str:
        return f"{self.method}.{self.body}: must not be null"


WRITES = [
    Write("PUT", BRANCH, "assignReference", "referenceName", "assignTo"),
    Write("POST", f"{BRANCH}/commit", "commitMultipleOperations", "branchName", "operations"),
    Write("POST", f"{BRANCH}/merge", "mergeRefIntoBranch", "branchName", "merge"),
    Write(
        "POST", f"{BRANCH}/transplant", "transplantCommitsIntoBranch", "branchName", "transplant"
    ),
]
writes = pytest.mark.parametrize("write", WRITES, ids=lambda write: write.method)


def refusal(client, verb: str, path: str, body=None, raw: bytes | None = None) -> str:
    answer = client.send(verb, path, body, raw=raw)
    assert (answer.status, answer.body["errorCode"]) == (400, "BAD_REQUEST")
    message: str = answer.body["message"]
    return message


@writes
@pytest.mark.parametrize("raw", [None, b"", b"null"])
def test_a_missing_body_and_a_wrong_hash_are_reported_together(client, write, raw):
    assert refusal(client, write.verb, write.path, raw=raw) == f"{write.no_hash}, {write.no_body}"
    wrong = f"{write.method}.expectedHash: {RULE_OF_HASHES}"
    assert (
        refusal(client, write.verb, f"{write.path}?expectedHash=xyz", raw=raw)
        == f"{wrong}, {write.no_body}"
    )
    assert (
        refusal(client, write.verb, f"{write.path}?expectedHash={EMPTY}", raw=raw) == write.no_body
    )


@writes
def test_a_wrong_name_is_reported_with_other_faults(client, write):
    wrong = f"{write.method}.{write.reference}: {NAME_RULE} - but was: a..b"
    assert (
        refusal(client, write.verb, write.path.replace("main", "a..b"))
        == f"{write.no_hash}, {wrong}, {write.no_body}"
    )


@writes
def test_an_unreadable_body_is_reported_first_and_alone(client, write):
    assert refusal(client, write.verb, write.path, raw=b"{").startswith("body: is not JSON: ")
    for unread in ([], {}):
        assert "expectedHash" not in refusal(client, write.verb, write.path, unread)


def test_all_faults_of_a_deletion_are_reported_together(client):
    assert refusal(client, "DELETE", BRANCH) == "deleteReference.expectedHash: must not be null"
    both = (
        "deleteReference.expectedHash: must not be null, deleteReference.referenceName:"
        f" {NAME_RULE} - but was: a..b"
    )
    assert refusal(client, "DELETE", BRANCH.replace("main", "a..b")) == both


def test_only_the_missing_hash_is_reported_for_a_valid_body(client):
    body = {"type": "BRANCH", "name": "main", "hash": EMPTY}
    assert refusal(client, "PUT", BRANCH, body) == "assignReference.expectedHash: must not be null"


@pytest.mark.parametrize(
    ("verb", "path"), [("PUT", "/api/v1/trees/tag/hello"), ("POST", "/api/v1/trees/tree")]
)
@pytest.mark.parametrize(
    "name", ["", "abc'", ".foo", "abc'def'..'blah", "abc'de..blah", "abc'de@{blah"]
)
def test_the_message_for_a_wrong_name_in_a_reference_is_the_originals(client, verb, path, name):
    message = (
        "Cannot construct instance of `org.projectnessie.model.ImmutableTag`, problem:"
        f" {NAME_RULE} - but was: {name}\n"
    )
    assert refusal(
        client, verb, path, {"type": "TAG", "name": name, "hash": "0011223344556677"}
    ).startswith(message)


def test_the_message_for_a_wrong_hash_in_a_reference_is_the_originals(client):
    message = refusal(client, "PUT", BRANCH, {"type": "BRANCH", "name": "main", "hash": "xyz"})
    assert message.startswith(
        "Cannot construct instance of `org.projectnessie.model.ImmutableBranch`, problem: Hash"
        " with optional relative part must "
    )
    assert " - but was: xyz\n" in message


def test_the_message_for_an_unknown_reference_type_is_the_originals(client):
    message = (
        "Could not resolve type id 'FOOBAR' as a subtype of `org.projectnessie.model.Reference`"
    )
    assert message in refusal(
        client,
        "PUT",
        "/api/v1/trees/tag/hello",
        {"type": "FOOBAR", "name": "hello", "hash": "0011223344556677"},
    )


def test_missing_parts_of_a_reference_are_reported_by_parameter(client):
    assert refusal(client, "PUT", BRANCH, {"type": "BRANCH", "hash": EMPTY}) == "name: is missing"
    assert refusal(client, "PUT", BRANCH, {"name": "main"}).startswith("type: is missing")
    assert refusal(client, "PUT", BRANCH, ["main"]) == "must be an object, not a list"


def test_a_body_with_a_removed_attribute_is_accepted(client):
    for verb, merged, rule in (
        ("merge", {"fromHash": EMPTY}, "squashed"),
        ("transplant", {"hashesToTransplant": [EMPTY]}, "unsquashed"),
    ):
        body = {"fromRefName": "main", "keepIndividualCommits": verb == "merge", **merged}
        assert "expectedHash: must not be null" in refusal(client, "POST", f"{BRANCH}/{verb}", body)
        assert f"only support {rule} now" in refusal(
            client, "POST", f"{BRANCH}/{verb}?expectedHash={EMPTY}", body
        )


@pytest.mark.parametrize("query", ["", "&filter=true"])
def test_a_namespace_depth_lists_shorter_keys_and_namespaces(client, query):
    client.commit(
        "main",
        EMPTY,
        put("a", content=namespace("a")),
        put("a", "b", content=namespace("a", "b")),
        put("a", "b", "t"),
        put("a", "b", "u"),
        put("a", "t"),
        put("a", "v", content=namespace("a", "v")),
        put("z"),
    )

    def found(depth, more=""):
        entries = client.get(
            f"/api/v1/trees/tree/main/entries?namespaceDepth={depth}{query}{more}"
        ).body["entries"]
        return [(".".join(entry["name"]["elements"]), entry["type"]) for entry in entries]

    whole = found(0)
    assert whole == found(-1)
    assert [name for name, _ in whole] == ["a", "a.b", "a.b.t", "a.b.u", "a.t", "a.v", "z"]
    assert found(1) == [("a", "NAMESPACE"), ("z", "ICEBERG_TABLE")]
    assert found(2) == [("a.b", "NAMESPACE"), ("a.t", "ICEBERG_TABLE"), ("a.v", "NAMESPACE")]
    assert found(3) == [("a.b.t", "ICEBERG_TABLE"), ("a.b.u", "ICEBERG_TABLE")]
    assert found(4) == []
    assert found(2, "&maxRecords=2") == found(2)[:2]


def test_a_namespace_is_listed_once_for_the_first_matching_entry(client):
    client.commit(
        "main",
        EMPTY,
        put("a", content=namespace("a")),
        *(put("a", name) for name in "bcd"),
        put("e"),
    )
    for condition, wanted in (
        ("entry.name in ['b', 'd']", ["a"]),
        ("entry.name in ['d', 'e']", ["a", "e"]),
        ("entry.name == 'x'", []),
    ):
        answer = client.get(
            f"/api/v1/trees/tree/main/entries?namespaceDepth=1&filter={quote(condition)}"
        )
        assert [entry["name"]["elements"][0] for entry in answer.body["entries"]] == wanted


def test_a_filter_of_a_diff_is_applied(client):
    client.commit("main", EMPTY, put("a"), put("b"))
    condition = quote("key.key == 'b'")
    diffs = client.get(f"/api/v1/diffs/*{EMPTY}...main?filter={condition}").body["diffs"]
    assert [entry["key"]["elements"] for entry in diffs] == [["b"]]


def test_a_missing_namespace_is_not_found(client):
    client.commit(
        "main",
        EMPTY,
        put("a", content=namespace("a")),
        put("a", "b", content=namespace("a", "b")),
        put("a", "b", "t"),
    )
    head = client.head()
    for name, status in (
        ("a", 200),
        ("a.b", 200),
        ("a.b.t", 404),
        ("nosuch", 404),
        ("a.nosuch", 404),
        ("a.b.t.x", 404),
        ("a.bb", 404),
    ):
        answer = client.get(f"/api/v1/namespaces/namespace/main/{name}")
        assert answer.status == status, name
        assert status == 200 or answer.body["errorCode"] == "NAMESPACE_NOT_FOUND"
        if status == 404 and name != "a.b.t":
            assert client.send("DELETE", f"/api/v1/namespaces/namespace/main/{name}").status == 404
            changed = client.send(
                "POST", f"/api/v1/namespaces/namespace/main/{name}", {"propertyUpdates": {"x": "y"}}
            )
            assert (changed.status, changed.body["errorCode"]) == (404, "NAMESPACE_NOT_FOUND"), name
    assert client.head() == head
