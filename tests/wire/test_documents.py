"""Additions of the command line's JSON: attributes are added to the structs of REST v2."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec import to_builtins

from nessie_cli.cli.store import fsck
from nessie_cli.errors import (
    AmbiguousHash,
    ContentNotFound,
    DamagedObject,
    InvalidInput,
    MergeConflict,
    OutcomeUnknown,
    ReferenceConflict,
    ReferenceNotFound,
    Resolution,
    WaysOut,
)
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Conflict,
    ConflictType,
    ContentKey,
    IcebergTable,
    LogEntry,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Problem,
    ProblemKind,
    Reference,
    ReferenceType,
    ReflogEntry,
    Rename,
)
from nessie_cli.wire import commits, documents, errors, merges, references
from nessie_cli.wire.contents import content_json

KEY = ContentKey(("t",))
NEW = ContentKey(("u",))
MAIN = Reference(ReferenceType.BRANCH, "main", "aa")
BY = CommitMeta("nightly load", ("etl",), hash="8f31")


def plain(of, *values):
    """Returns the JSON of the struct of a value."""
    return to_builtins(of(*values))


def table(snapshot: int) -> IcebergTable:
    return IcebergTable(id="i", metadata_location="f", snapshot_id=snapshot)


CONFLICT = Conflict(
    ConflictType.VALUE_DIFFERS, KEY, "values differ", table(1), table(2), table(3), BY
)


def contains(whole: object, part: object) -> bool:
    """Returns whether every attribute of `part` is in `whole`, at every depth."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


def test_a_conflict_has_the_three_states_the_commit_and_resolutions():
    body = plain(documents.Conflict.of, CONFLICT, [Resolution("nessie reset t", "deletes t")])
    assert body == {
        "conflictType": "VALUE_DIFFERS",
        "key": {"elements": ["t"]},
        "message": "values differ",
        "expected": content_json(table(1)),
        "actual": content_json(table(2)),
        "proposed": content_json(table(3)),
        "changedBy": plain(commits.CommitMeta.of, BY),
        "resolutions": ["nessie reset t"],
        "effects": ["deletes t"],
    }


def test_a_merge_conflict_names_its_states_base_ours_and_theirs():
    body = plain(documents.Conflict.of_merge, CONFLICT)
    assert [body["base"], body["ours"], body["theirs"]] == [
        body["expected"],
        body["actual"],
        body["proposed"],
    ]
    assert body["base"] == content_json(table(1))


def test_a_rename_is_included_only_if_there_is_one():
    renamed = Conflict(
        ConflictType.KEY_CONFLICT,
        KEY,
        "m",
        source_rename=Rename(KEY, NEW, BY),
        target_rename=Rename(KEY, NEW),
    )
    body = plain(documents.Conflict.of, renamed)
    assert body["sourceRename"] == {
        "from": {"elements": ["t"]},
        "to": {"elements": ["u"]},
        "by": plain(commits.CommitMeta.of, BY),
    }
    assert body["targetRename"]["by"] is None
    assert (body["expected"], body["changedBy"], body["resolutions"]) == (None, None, [])
    assert "sourceRename" not in plain(documents.Conflict.of, CONFLICT)


class Fixes(WaysOut):
    def of(self, conflict):
        return [Resolution(f"fix {conflict.key}")]


def test_a_conflict_error_has_its_branch_and_resolutions():
    error = ReferenceConflict("m", [CONFLICT], reference="main", head="8f31", expected_hash="51b0")
    error.ways_out = Fixes()
    details = plain(documents.Error.of, error)["errorDetails"]
    assert (details["reference"], details["hash"], details["expectedHash"]) == (
        "main",
        "8f31",
        "51b0",
    )
    assert [c["resolutions"] for c in details["conflicts"]] == [["fix t"]]
    assert contains(details, plain(errors.NessieError.of, error)["errorDetails"])


def test_a_failed_merge_lists_conflicts_and_the_whole_result():
    result = MergeResult(
        "main", "aa", None, "bb", "aa", applied=False, successful=False,
        details=(MergeDetail(KEY, MergeBehavior.NORMAL, CONFLICT, table(3), table(2)), MergeDetail(NEW, MergeBehavior.NORMAL)),
    )  # fmt: skip
    details = plain(documents.Error.of, MergeConflict("m", [CONFLICT], result))["errorDetails"]
    assert [c["key"]["elements"] for c in details["conflicts"]] == [["t"]]
    assert details["mergeResult"] == plain(merges.BareMerge.of, result)
    body = plain(documents.DetailedMerge.of, result)
    assert contains(body, plain(merges.BareMerge.of, result))
    assert body["details"][0]["source"] == content_json(table(3))
    assert body["details"][0]["conflict"] == plain(documents.Conflict.of_merge, CONFLICT)
    assert "conflict" not in body["details"][1]


@pytest.mark.parametrize(
    ("error", "details"),
    [
        (InvalidInput("m"), None),
        (ReferenceConflict("m"), None),
        (AmbiguousHash("m", [("2e1c00", "first"), ("2e1cff", "second")]),
         {"type": "HASH_CANDIDATES", "candidates": [{"hash": "2e1c00", "message": "first"}, {"hash": "2e1cff", "message": "second"}]}),
        (OutcomeUnknown("m", "r1"), {"type": "REQUEST", "requestId": "r1"}),
        (DamagedObject("m", "ab"), {"type": "OBJECT", "objectId": "ab"}),
        (DamagedObject("m"), None),
        (ReferenceNotFound("m", "dev"), {"type": "NAME", "name": "dev"}),
        (ContentNotFound("m", KEY), {"type": "CONTENT_KEY", "contentKey": {"elements": ["t"]}}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_an_error_has_the_facts_of_its_kind(error, details):
    body = plain(documents.Error.of, error)
    assert body == to_builtins(errors.ErrorLine(**errors.error_line(error))) | (
        {"errorDetails": details} if details else {}
    )


def test_other_shapes_only_gain_attributes():
    result = CommitResult(MAIN, {KEY: "i"}, applied=False)
    assert plain(references.CommitOutcome.of, result) == plain(references.BareCommit.of, result) | {
        "wasApplied": False
    }
    logged = LogEntry(BY, 7)
    assert plain(commits.LogEntry.of, logged) == plain(commits.BareLogEntry.of, logged) | {
        "height": 7
    }


def test_the_reflog_and_problems_have_plain_shapes():
    moved = ReflogEntry(
        4,
        "main",
        ReferenceType.BRANCH,
        None,
        "aa",
        datetime(2026, 1, 1, tzinfo=UTC),
        "me",
        "create",
        "m",
        "r1",
    )
    assert plain(references.ReflogEntry.of, moved) == {
        "number": 4,
        "reference": "main",
        "type": "BRANCH",
        "before": None,
        "after": "aa",
        "time": "2026-01-01T00:00:00Z",
        "who": "me",
        "operation": "create",
        "message": "m",
        "requestId": "r1",
    }
    assert plain(fsck.Problem.of, Problem(ProblemKind.MISSING, "aa", "m")) == {
        "kind": "MISSING",
        "where": "aa",
        "message": "m",
    }
