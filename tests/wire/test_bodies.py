"""Bodies of references, merges, transplants and multi-gets."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
    ReferenceType,
)
from nessie_cli.wire.decode import (
    MergeBody,
    ReferenceBody,
    TransplantBody,
    decode_merge,
    decode_reference,
    decode_requested_keys,
    decode_transplant,
)

HASH = "c6c61cccc743469de68a0ffe037874e288fecf6740a321ca481af457b423e938"
KEY = {"elements": ["t"]}
TABLE = {
    "type": "ICEBERG_TABLE",
    "id": "i",
    "metadataLocation": "f",
    "snapshotId": 1,
    "schemaId": 0,
    "specId": 0,
    "sortOrderId": 0,
}
MERGE = {"fromRefName": "dev", "fromHash": HASH}
TRANSPLANT = {"fromRefName": "dev", "hashesToTransplant": [HASH, f"{HASH}~1"]}


def message_of(decode, body):
    with pytest.raises(InvalidInput) as caught:
        decode(body)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_references_of_each_kind_are_read():
    assert decode_reference({"type": "BRANCH", "name": "a/b", "hash": HASH}) == ReferenceBody(
        ReferenceType.BRANCH, "a/b", HASH
    )
    assert decode_reference(
        {"type": "TAG", "name": "v1", "hash": None, "metadata": None}
    ) == ReferenceBody(ReferenceType.TAG, "v1", None)
    assert decode_reference({"type": "BRANCH", "name": "-"}).name == "-"
    for hash_ in ("~1", f"{HASH}*2020-01-01T00:00:00.123456789Z^2", "cafebabe*1600000000000"):
        assert decode_reference({"type": "DETACHED", "hash": hash_}) == ReferenceBody(
            ReferenceType.DETACHED, "", hash_
        )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "main", "hash": HASH}, "type: is missing (BRANCH, TAG, DETACHED)"),
        (
            {"type": "branch", "name": "main"},
            'type: "branch" is not a type of reference (BRANCH, TAG, DETACHED)',
        ),
        ({"type": 1, "name": "main"}, "type: must be a string, not 1"),
        ({"type": "TAG", "hash": HASH}, "name: is missing"),
        ({"type": "TAG", "name": 7}, "name: must be a string, not 7"),
        ({"type": "DETACHED", "hash": None}, "hash: is missing"),
        ({"type": "TAG", "name": "main", "hash": 7}, "hash: must be a string, not 7"),
        ("main", 'must be an object, not "main"'),
    ],
)
def test_an_invalid_reference_is_refused(body, message):
    assert message_of(decode_reference, body) == message


@pytest.mark.parametrize(
    "name", ["", " ", "a..b", "a/", "a.", "1a", "a b", "ä", "a@b", "a~1", "--"]
)
def test_the_message_for_a_malformed_name_has_the_rule(name):
    assert message_of(decode_reference, {"type": "TAG", "name": name}).startswith(
        "name: Reference name must start with a letter"
    )


LONG_NAME, LONG_HASH = "a-" * 1_000_000 + "a", HASH + "~1" * 1_000_000


@pytest.mark.parametrize(
    ("decode", "body", "place"),
    [
        (decode_reference, {"type": "TAG", "name": LONG_NAME, "hash": HASH}, "name"),
        (decode_reference, {"type": "TAG", "name": "t", "hash": LONG_HASH}, "hash"),
        (decode_merge, MERGE | {"fromRefName": LONG_NAME}, "fromRefName"),
        (decode_merge, MERGE | {"fromHash": LONG_HASH}, "fromHash"),
        (decode_transplant, TRANSPLANT | {"fromRefName": LONG_NAME}, "fromRefName"),
        (
            decode_transplant,
            TRANSPLANT | {"hashesToTransplant": [HASH, LONG_HASH]},
            "hashesToTransplant[1]",
        ),
        (
            decode_transplant,
            TRANSPLANT | {"hashesToTransplant": [HASH + "~1" * 101]},
            "hashesToTransplant[0]",
        ),
    ],
)
def test_names_and_hashes_that_are_too_large_are_refused(decode, body, place):
    message = message_of(decode, body)
    assert message.startswith(f"{place}: ")
    assert "max allowed" in message
    assert len(message) < 200


@pytest.mark.parametrize(
    "hash_",
    [
        "",
        "xyz",
        "cafe",
        HASH + "0",
        f"{HASH}~",
        f"{HASH}~x",
        f"{HASH}*yesterday",
        f" {HASH}",
        f"{HASH}\n",
    ],
)
def test_the_message_for_a_malformed_hash_has_the_rule(hash_):
    assert "hash: Hash with optional relative part must consist of" in message_of_any_line(
        decode_reference, {"type": "TAG", "name": "t", "hash": hash_}
    )


def message_of_any_line(decode, body):
    with pytest.raises(InvalidInput) as caught:
        decode(body)
    return caught.value.message


def test_a_merge_with_all_attributes_is_read():
    modes = [
        {"key": KEY, "mergeBehavior": "FORCE", "expectedTargetDocumentation": None, "metadata": []},
        {
            "key": {"elements": ["u"]},
            "mergeBehavior": "NORMAL",
            "expectedTargetContent": TABLE,
            "resolvedContent": TABLE | {"snapshotId": 2},
        },
    ]
    body = MERGE | {
        "commitMeta": {"message": "m", "authors": ["a"]},
        "keyMergeModes": modes,
        "defaultKeyMergeMode": "DROP",
        "isReturnConflictAsResult": True,
    }
    table = IcebergTable(id="i", metadata_location="f", snapshot_id=1)
    resolved = IcebergTable(id="i", metadata_location="f", snapshot_id=2)
    assert decode_merge(body) == MergeBody(
        source="dev",
        source_hash=HASH,
        meta=CommitMeta("m", ("a",)),
        behaviors=(
            KeyBehavior(ContentKey(("t",)), MergeBehavior.FORCE),
            KeyBehavior(ContentKey(("u",)), MergeBehavior.NORMAL, table, resolved),
        ),
        default_behavior=MergeBehavior.DROP,
        dry_run=False,
        conflict_as_result=True,
    )
    assert decode_merge({"fromRefName": "dev"}) == MergeBody(source="dev", source_hash=None)


@pytest.mark.parametrize("decode", [decode_merge, decode_transplant])
@pytest.mark.parametrize("flag", ["isDryRun", "dryRun"])
def test_both_spellings_of_dry_run_are_accepted(decode, flag):
    body = MERGE | TRANSPLANT
    assert decode(body | {flag: True}).dry_run
    assert not decode(body | {flag: False}).dry_run
    assert not decode(body | {flag: None}).dry_run
    assert decode(body | {"isDryRun": False, "dryRun": False, flag: True}).dry_run
    assert message_of(decode, body | {flag: "true"}) == f'{flag}: must be true or false, not "true"'
    assert message_of(decode, body | {flag: 1}) == f"{flag}: must be true or false, not 1"


@pytest.mark.parametrize("decode", [decode_merge, decode_transplant])
@pytest.mark.parametrize("flag", ["isReturnConflictAsResult", "returnConflictAsResult"])
def test_both_spellings_of_conflicts_as_result_are_accepted(decode, flag):
    assert decode(MERGE | TRANSPLANT | {flag: True}).conflict_as_result


def test_commit_metadata_overrides_the_message_of_a_merge():
    assert decode_merge(MERGE | {"message": "x"}).meta == CommitMeta("x")
    assert decode_merge(
        MERGE | {"message": "x", "commitMeta": {"message": "m", "authors": ["a"]}}
    ).meta == CommitMeta("m", ("a",))
    assert decode_merge(
        MERGE | {"message": "x", "commitMeta": {"message": "", "authors": ["a"]}}
    ).meta == CommitMeta("x", ("a",))
    assert decode_merge(MERGE).meta is None


def test_a_transplant_is_read():
    assert decode_transplant(TRANSPLANT | {"message": "m", "later": 1}) == TransplantBody(
        source="dev", hashes=(HASH, f"{HASH}~1"), message="m"
    )


SHARED_FAULTS = [
    ({"fromRefName": None}, "fromRefName: must be a string, not null"),
    ({"message": ""}, "message: must not be empty"),
    (
        {"defaultKeyMergeMode": "force"},
        'defaultKeyMergeMode: "force" is not a merge behavior (NORMAL, FORCE, DROP)',
    ),
    ({"keyMergeModes": {}}, "keyMergeModes: must be a list, not an object"),
    ({"keyMergeModes": [None]}, "keyMergeModes[0]: must be an object, not null"),
    ({"keyMergeModes": [{"key": KEY}]}, "keyMergeModes[0].mergeBehavior: is missing"),
    ({"keyMergeModes": [{"mergeBehavior": "DROP"}]}, "keyMergeModes[0].key: is missing"),
    (
        {"keyMergeModes": [{"key": {"elements": []}, "mergeBehavior": "DROP"}]},
        "keyMergeModes[0].key: Content key must not be empty",
    ),
    (
        {
            "keyMergeModes": [
                {
                    "key": KEY,
                    "mergeBehavior": "NORMAL",
                    "resolvedContent": TABLE | {"schemaId": "0"},
                }
            ]
        },
        'keyMergeModes[0].resolvedContent.schemaId: must be an integer, not "0"',
    ),
    (
        {
            "keyMergeModes": [
                {"key": KEY, "mergeBehavior": "NORMAL"},
                {"key": KEY, "mergeBehavior": "DROP"},
            ]
        },
        "keyMergeModes[1]: the key t occurs twice",
    ),
]


@pytest.mark.parametrize("decode", [decode_merge, decode_transplant])
@pytest.mark.parametrize(
    ("change", "message"), SHARED_FAULTS, ids=[m[:40] for _, m in SHARED_FAULTS]
)
def test_an_invalid_merge_or_transplant_is_refused(decode, change, message):
    assert message_of(decode, MERGE | TRANSPLANT | change) == message


def test_attributes_of_only_one_of_them_are_checked():
    assert (
        message_of(decode_merge, MERGE | {"commitMeta": []})
        == "commitMeta: must be an object, not a list"
    )
    assert message_of(
        decode_merge, MERGE | {"commitMeta": {"message": "m", "committer": "me"}}
    ) == ("Cannot set the committer on the client side. It is set by the server.")
    assert message_of(decode_merge, MERGE | {"fromHash": "xyz"}).startswith(
        "fromHash: Hash with optional relative part"
    )
    assert message_of(
        decode_transplant, TRANSPLANT | {"hashesToTransplant": [HASH, "zz"]}
    ).startswith("hashesToTransplant[1]: Hash with")
    assert message_of(decode_transplant, TRANSPLANT | {"hashesToTransplant": []}).startswith(
        "hashesToTransplant: "
    )
    assert message_of(decode_transplant, TRANSPLANT | {"hashesToTransplant": HASH}).startswith(
        "hashesToTransplant: must be a list"
    )
    assert message_of(decode_merge, []) == "must be an object, not a list"


def test_requested_keys_are_read():
    assert decode_requested_keys({"requestedKeys": [KEY, {"elements": ["a", "b"]}]}) == [
        ContentKey(("t",)),
        ContentKey(("a", "b")),
    ]
    assert decode_requested_keys({"requestedKeys": [{}, {"elements": []}]}) == [
        ContentKey(()),
        ContentKey(()),
    ]
    assert message_of(
        decode_requested_keys, {"requestedKeys": [KEY, {"elements": [""]}]}
    ).startswith("requestedKeys[1]: Content key")
    assert message_of(decode_requested_keys, {}) == "requestedKeys: is missing"
    assert message_of(decode_requested_keys, {"requestedKeys": []}).startswith("requestedKeys: ")
