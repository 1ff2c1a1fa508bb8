"""Shapes of REST v2: null values, omitted values, names of attributes."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec import json, to_builtins

from nessie_cli.errors import (
    AlreadyExists,
    ContentNotFound,
    InvalidInput,
    MergeConflict,
    ReferenceConflict,
    ReferenceMoved,
    StoreUnavailable,
)
from nessie_cli.model import (
    NO_ANCESTOR,
    UDF,
    CommitMeta,
    CommitResult,
    Conflict,
    ConflictType,
    ContentKey,
    Delete,
    DeltaLakeTable,
    DiffEntry,
    Entry,
    IcebergTable,
    IcebergView,
    LogEntry,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Namespace,
    Put,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    RepositoryConfig,
    Unchanged,
    UnknownContent,
)
from nessie_cli.server.http.messages import encoded
from nessie_cli.server.http.streams import listing
from nessie_cli.wire import commits, entries, errors, merges, references, rest
from nessie_cli.wire.bodies import encode_operation
from nessie_cli.wire.contents import content_json, content_struct
from nessie_cli.wire.references import reference_struct
from nessie_cli.wire.scalars import instant

KEY = ContentKey(("db", "order.lines"))
KEY_JSON = {"elements": ["db", "order.lines"]}
TABLE = IcebergTable(
    id="i",
    metadata_location="s3://b/1.json",
    snapshot_id=2**63 - 1,
    schema_id=1,
    spec_id=2,
    sort_order_id=3,
)
TABLE_JSON = {
    "type": "ICEBERG_TABLE",
    "id": "i",
    "metadataLocation": "s3://b/1.json",
    "snapshotId": 9223372036854775807,
    "schemaId": 1,
    "specId": 2,
    "sortOrderId": 3,
}
MAIN = Reference(ReferenceType.BRANCH, "main", "aa")
MAIN_JSON = {"type": "BRANCH", "name": "main", "hash": "aa"}
WHEN = datetime(2026, 1, 31, 12, 0, 0, 120, tzinfo=UTC)

CONTENTS = [
    (TABLE, TABLE_JSON),
    (
        IcebergView(metadata_location="f", version_id=1, schema_id=2),
        {
            "type": "ICEBERG_VIEW",
            "id": None,
            "metadataLocation": "f",
            "versionId": 1,
            "schemaId": 2,
        },
    ),
    (
        IcebergView(
            id="i", metadata_location="f", version_id=1, schema_id=2, sql_text="-", dialect="-"
        ),
        {
            "type": "ICEBERG_VIEW",
            "id": "i",
            "metadataLocation": "f",
            "versionId": 1,
            "schemaId": 2,
            "sqlText": "-",
            "dialect": "-",
        },
    ),
    (
        DeltaLakeTable(id="i"),
        {
            "type": "DELTA_LAKE_TABLE",
            "id": "i",
            "metadataLocationHistory": [],
            "checkpointLocationHistory": [],
            "lastCheckpoint": None,
        },
    ),
    (Namespace(id="i", elements=("a",)), {"type": "NAMESPACE", "id": "i", "elements": ["a"]}),
    (
        Namespace(elements=(), properties={"a": ""}),
        {"type": "NAMESPACE", "id": None, "elements": [], "properties": {"a": ""}},
    ),
    (UDF(id="i"), {"type": "UDF", "id": "i"}),
    (
        UDF(
            id="i",
            sql_text="x",
            dialect="d",
            version_id="1",
            signature_id="s",
            metadata_location="f",
        ),
        {
            "type": "UDF",
            "id": "i",
            "sqlText": "x",
            "dialect": "d",
            "versionId": "1",
            "signatureId": "s",
            "metadataLocation": "f",
        },
    ),
    (
        UnknownContent(
            id="i",
            foreign_type="HUDI",
            foreign_attributes={"sqlText": None, "properties": {}, "x": [1, {"y": None}]},
        ),
        {"type": "HUDI", "id": "i", "sqlText": None, "properties": {}, "x": [1, {"y": None}]},
    ),
]


def plain(of, value):
    """Returns the JSON of the struct of a value."""
    return to_builtins(of(value))


def page(struct, items, token, *effective):
    return json.decode(encoded(listing(struct, items, lambda: token, *effective).opened()))


@pytest.mark.parametrize(("content", "body"), CONTENTS, ids=[c.type_name for c, _ in CONTENTS])
def test_a_content_has_its_type_first_and_the_original_nulls(content, body):
    assert content_json(content) == body
    assert list(content_json(content))[:2] == ["type", "id"]


@pytest.mark.parametrize(
    ("microsecond", "fraction"),
    [
        (0, ""),
        (500_000, ".500"),
        (120_000, ".120"),
        (1, ".000001"),
        (120, ".000120"),
        (999_999, ".999999"),
    ],
)
def test_an_instant_has_as_many_digits_as_its_value(microsecond, fraction):
    when = datetime(2020, 2, 3, 4, 5, 6, microsecond, tzinfo=UTC)
    assert instant(when) == f"2020-02-03T04:05:06{fraction}Z"


def test_an_instant_is_in_utc_and_absent_ones_are_null():
    assert (
        instant(datetime(2020, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2))))
        == "2020-02-03T02:05:06Z"
    )
    assert instant(None) is None


def test_operations_have_expected_contents_only_if_set():
    assert encode_operation(Put(KEY, TABLE)) == {
        "type": "PUT",
        "key": KEY_JSON,
        "content": TABLE_JSON,
    }
    assert encode_operation(Put(KEY, TABLE, TABLE))["expectedContent"] == TABLE_JSON
    assert encode_operation(Delete(KEY)) == {"type": "DELETE", "key": KEY_JSON}
    assert encode_operation(Unchanged(KEY)) == {"type": "UNCHANGED", "key": KEY_JSON}


def test_commit_metadata_uses_plural_names_and_omits_empty_values():
    assert plain(commits.CommitMeta.of, CommitMeta("m")) == {
        "hash": None,
        "committer": None,
        "authors": [],
        "allSignedOffBy": [],
        "message": "m",
        "commitTime": None,
        "authorTime": None,
    }
    meta = CommitMeta("m", ("a",), ("s",), WHEN, {"p": ("1", "2")}, "", WHEN, "aa", (NO_ANCESTOR,))
    assert plain(commits.CommitMeta.of, meta) == {
        "hash": "aa",
        "committer": "",
        "authors": ["a"],
        "allSignedOffBy": ["s"],
        "message": "m",
        "commitTime": "2026-01-31T12:00:00.000120Z",
        "authorTime": "2026-01-31T12:00:00.000120Z",
        "allProperties": {"p": ["1", "2"]},
        "parentCommitHashes": [NO_ANCESTOR],
    }


def test_a_detached_reference_has_no_name_and_unknown_metadata_is_omitted():
    assert plain(reference_struct, Reference(ReferenceType.DETACHED, "", "aa")) == {
        "type": "DETACHED",
        "hash": "aa",
    }
    assert plain(reference_struct, MAIN) == MAIN_JSON
    tag = Reference(ReferenceType.TAG, "v1", "aa", ReferenceMetadata(CommitMeta("m", hash="aa"), 3))
    assert plain(rest.SingleReference.of, tag)["reference"]["metadata"] == {
        "numCommitsAhead": None,
        "numCommitsBehind": None,
        "commitMetaOfHEAD": plain(commits.CommitMeta.of, CommitMeta("m", hash="aa")),
        "commonAncestorHash": None,
        "numTotalCommits": 3,
    }


def test_a_log_entry_has_its_parent_and_no_empty_list_of_operations():
    first = LogEntry(CommitMeta("m", hash="aa", parents=(NO_ANCESTOR,)), 1, ())
    second = LogEntry(
        CommitMeta("m", hash="bb", parents=("aa", "cc")), 2, (Delete(KEY), Put(KEY, TABLE, TABLE))
    )
    body = page(rest.LogResponse, map(commits.BareLogEntry.of, [second, first]), "aa")
    assert (body["hasMore"], body["token"]) == (True, "aa")
    assert [(e["parentCommitHash"], e["operations"]) for e in body["logEntries"]] == [
        (
            "aa",
            [
                {"type": "DELETE", "key": KEY_JSON},
                {"type": "PUT", "key": KEY_JSON, "content": TABLE_JSON, "documentation": None},
            ],
        ),
        (NO_ANCESTOR, None),
    ]


def test_pages_have_their_reference():
    entry = Entry(KEY, "ICEBERG_TABLE", "i", "ff")
    assert page(rest.EntriesResponse, [entries.BareEntry.of(entry)], None, MAIN) == {
        "hasMore": False,
        "token": None,
        "entries": [{"type": "ICEBERG_TABLE", "name": KEY_JSON, "contentId": "i", "content": None}],
        "effectiveReference": MAIN_JSON,
    }
    assert page(
        rest.DiffResponse,
        [entries.BareDiffEntry.of(DiffEntry(KEY, None, TABLE))],
        "00",
        MAIN,
        MAIN,
    ) == {
        "hasMore": True,
        "token": "00",
        "diffs": [{"key": KEY_JSON, "from": None, "to": TABLE_JSON}],
        "effectiveFromReference": MAIN_JSON,
        "effectiveToReference": MAIN_JSON,
    }
    assert page(rest.ReferencesResponse, [reference_struct(MAIN)], None) == {
        "hasMore": False,
        "token": None,
        "references": [MAIN_JSON],
    }


def test_answers_of_contents_and_commits_are_encoded():
    response = rest.ContentResponse(content_struct(TABLE), reference_struct(MAIN))
    assert to_builtins(response) == {
        "content": TABLE_JSON,
        "effectiveReference": MAIN_JSON,
    }
    several = rest.GetMultipleContentsResponse(
        [rest.ContentOfKey.of(KEY, TABLE)], reference_struct(MAIN)
    )
    assert to_builtins(several) == {
        "contents": [{"key": KEY_JSON, "content": TABLE_JSON}],
        "effectiveReference": MAIN_JSON,
    }
    assert plain(references.BareCommit.of, CommitResult(MAIN)) == {
        "targetBranch": MAIN_JSON,
        "addedContents": None,
    }
    assert plain(references.BareCommit.of, CommitResult(MAIN, {KEY: "i"}))["addedContents"] == [
        {"key": KEY_JSON, "contentId": "i"}
    ]


def test_the_configuration_announces_both_versions_of_the_api():
    created = datetime(2026, 1, 1, tzinfo=UTC)
    body = plain(rest.NessieConfiguration.of, RepositoryConfig("trunk", created, "1"))
    assert body == {
        "defaultBranch": "trunk",
        "minSupportedApiVersion": 1,
        "maxSupportedApiVersion": 2,
        "actualApiVersion": 2,
        "specVersion": "2.2.0",
        "noAncestorHash": NO_ANCESTOR,
        "repositoryCreationTimestamp": "2026-01-01T00:00:00Z",
        "oldestPossibleCommitTimestamp": "2026-01-01T00:00:00Z",
    }
    assert "repositoryCreationTimestamp" not in plain(
        rest.NessieConfiguration.of, RepositoryConfig("trunk", None, "1")
    )


# -- merges and errors ---------------------------------------------------------------------------
CONFLICT = Conflict(ConflictType.VALUE_DIFFERS, KEY, "values differ", TABLE, TABLE, None)
CONFLICT_JSON = {"conflictType": "VALUE_DIFFERS", "key": KEY_JSON, "message": "values differ"}
OTHER = ContentKey(("x",))
FAILED = MergeResult(
    "main",
    "aa",
    None,
    "bb",
    "aa",
    applied=False,
    successful=False,
    details=(
        MergeDetail(KEY, MergeBehavior.NORMAL, CONFLICT, TABLE, TABLE),
        MergeDetail(OTHER, MergeBehavior.DROP),
    ),
)


def test_a_merge_answer_has_no_conflict_for_a_clean_key():
    assert plain(merges.BareMerge.of, FAILED) == {
        "wasApplied": False,
        "wasSuccessful": False,
        "resultantTargetHash": None,
        "commonAncestor": "bb",
        "targetBranch": "main",
        "effectiveTargetHash": "aa",
        "expectedHash": "aa",
        "details": [
            {"key": KEY_JSON, "mergeBehavior": "NORMAL", "conflict": CONFLICT_JSON},
            {"key": {"elements": ["x"]}, "mergeBehavior": "DROP"},
        ],
    }


def test_the_error_of_a_failed_merge_also_lists_clean_keys():
    body = plain(errors.NessieError.of, MergeConflict("m", [CONFLICT], FAILED))
    clean = {"conflictType": "KEY_CONFLICT", "key": {"elements": ["x"]}, "message": "UNKNOWN"}
    assert body["errorDetails"] == {
        "type": "REFERENCE_CONFLICTS",
        "conflicts": [CONFLICT_JSON, clean],
    }


@pytest.mark.parametrize(
    ("error", "status", "reason", "code", "details"),
    [
        (InvalidInput("m"), 400, "Bad Request", "BAD_REQUEST", None),
        (AlreadyExists("m", "dev"), 409, "Conflict", "REFERENCE_ALREADY_EXISTS", None),
        (
            ContentNotFound("m", KEY),
            404,
            "Not Found",
            "CONTENT_NOT_FOUND",
            {"type": "CONTENT_KEY", "contentKey": KEY_JSON},
        ),
        (ReferenceConflict("m"), 409, "Conflict", "REFERENCE_CONFLICT", None),
        (
            ReferenceConflict("m", [CONFLICT]),
            409,
            "Conflict",
            "REFERENCE_CONFLICT",
            {"type": "REFERENCE_CONFLICTS", "conflicts": [CONFLICT_JSON]},
        ),
        (
            ReferenceMoved("m", [Conflict(ConflictType.UNEXPECTED_HASH, None, "moved")]),
            409,
            "Conflict",
            "REFERENCE_CONFLICT",
            {
                "type": "REFERENCE_CONFLICTS",
                "conflicts": [{"conflictType": "UNEXPECTED_HASH", "key": None, "message": "moved"}],
            },
        ),
        (StoreUnavailable("m"), 503, "Service Unavailable", "SERVICE_UNAVAILABLE", None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_body_has_details_only_if_there_are_any(error, status, reason, code, details):
    whole = {
        "status": status,
        "reason": reason,
        "message": "m",
        "errorCode": code,
        "serverStackTrace": None,
    }
    assert to_builtins(errors.NessieError.of(error, details=False)) == whole
    assert plain(errors.NessieError.of, error) == whole | (
        {"errorDetails": details} if details else {}
    )


def test_encoding_loads_no_large_library():
    code = (
        "import sys, nessie_cli.wire.documents\n"
        "print([m for m in ('pydantic', 'requests', 'rich', 'json', 'http') if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert answer.strip() == "[]"
