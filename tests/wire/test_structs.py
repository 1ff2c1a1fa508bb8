"""The structs of the JSON: output, schemas and readers agree with them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from jsonschema import Draft202012Validator
from msgspec import Struct, json, to_builtins

from nessie_cli.cli.store import fsck, maintain
from nessie_cli.errors import (
    AmbiguousHash,
    ContentNotFound,
    DamagedObject,
    InvalidInput,
    MergeConflict,
    NotFound,
    OutcomeUnknown,
    ReferenceConflict,
    Resolution,
)
from nessie_cli.model import (
    CONTENT_TYPES,
    UDF,
    CollidingFile,
    Collision,
    CombinedTable,
    CommitMeta,
    CommitResult,
    Conflict,
    ConflictType,
    ContentKey,
    ContentPlace,
    Delete,
    DeltaLakeTable,
    DiffEntry,
    Entry,
    IcebergTable,
    IcebergView,
    LogEntry,
    MaintenanceReport,
    MergeBehavior,
    MergeDetail,
    MergeOption,
    MergeResult,
    Namespace,
    Problem,
    ProblemKind,
    Put,
    Reclaimed,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
    Rename,
    RepositoryConfig,
    RestoredFrom,
    TableCombination,
    Tag,
    Unchanged,
    UnknownContent,
)
from nessie_cli.server.http.messages import encoded
from nessie_cli.server.http.streams import listing
from nessie_cli.wire import (
    answers,
    bodies,
    commits,
    contents,
    documents,
    entries,
    errors,
    merges,
    references,
    rest,
    schemas,
)
from nessie_cli.wire.bodies import encode_operation
from nessie_cli.wire.contents import content_json, content_struct
from nessie_cli.wire.decode import decode_content_value, decode_operation
from nessie_cli.wire.references import reference_struct, reference_struct_v1

HASH, OTHER = "ab" * 32, "cd" * 32
KEY, NEW = ContentKey(("db", "t")), ContentKey(("db", "u"))
WHEN = datetime(2026, 1, 31, 12, 0, 0, 120, tzinfo=UTC)
TABLE = IcebergTable(id="i", metadata_location="f", snapshot_id=1)
CONTENTS = [
    TABLE,
    IcebergView(metadata_location="f", version_id=1, schema_id=2, sql_text="x", dialect="d"),
    DeltaLakeTable(id="i", metadata_location_history=("a",), last_checkpoint="c"),
    Namespace(id="i", elements=("a",), properties={"a": "b"}),
    UDF(id="i", sql_text="x", dialect="d", version_id="1", signature_id="s", metadata_location="f"),
    UnknownContent(id="i", foreign_type="HUDI", foreign_attributes={"x": [1]}),
]
NEW_COMMIT = CommitMeta("m")
META = CommitMeta("m", ("a",), ("s",), WHEN, {"p": ("1", "2")}, "c", WHEN, HASH, (OTHER,))
METADATA = ReferenceMetadata(META, 3, 1, 2, OTHER)
MAIN = Reference(ReferenceType.BRANCH, "main", HASH, METADATA)
BARE = Reference(ReferenceType.BRANCH, "main", HASH, ReferenceMetadata())
DETACHED = Reference(ReferenceType.DETACHED, "", HASH)
LOGGED = LogEntry(META, 2, (Delete(NEW), Put(KEY, TABLE)))
ENTRY = Entry(KEY, "ICEBERG_TABLE", "i", OTHER, TABLE)
CONFLICT = Conflict(
    ConflictType.VALUE_DIFFERS,
    KEY,
    "m",
    TABLE,
    None,
    TABLE,
    META,
    Rename(KEY, NEW, META),
    Rename(KEY, NEW),
)
DETAILS = (
    MergeDetail(KEY, MergeBehavior.NORMAL, CONFLICT, TABLE),
    MergeDetail(NEW, MergeBehavior.DROP),
)
MERGE = MergeResult(
    "main",
    HASH,
    None,
    OTHER,
    HASH,
    applied=False,
    successful=False,
    details=DETAILS,
    decided=MergeOption(MergeBehavior.NORMAL, (KEY,), ((KEY, KEY),), (KEY,)),
)
COMMIT = CommitResult(MAIN, {KEY: "i"})
CONFIG = RepositoryConfig("main", WHEN, "1")
MOVE = ReflogEntry(1, "main", ReferenceType.BRANCH, None, HASH, WHEN, "w", "create", "m", "r")
PAIRS = [rest.ContentOfKey.of(KEY, TABLE)]
REPORT = MaintenanceReport(
    1,
    2,
    {kind: Reclaimed(3, 4) for kind in ("commit", "node", "value")},
    5,
    6,
    7,
    None,
    True,
)
PLACED = MergeDetail(
    KEY,
    MergeBehavior.NORMAL,
    source_at=ContentPlace(HASH, NEW),
    result_at=ContentPlace(HASH, KEY),
)

FILE = CollidingFile("f.parquet", "p=1", 1)
ENCODED = [
    (merges.CombinedTable, CombinedTable(TABLE, TableCombination(1, 0, 1, 0, ("note",)))),
    (merges.CombinedTable, CombinedTable(collisions=(Collision("why", (FILE,)),))),
    *((contents.CONTENTS[content.type_name], content) for content in CONTENTS[:-1]),
    (contents.Key, KEY),
    (contents.RestoredFrom, RestoredFrom("ab" * 32, KEY)),
    (commits.CommitMeta, NEW_COMMIT),
    (commits.CommitMeta, META),
    (commits.CommitMetaV1, NEW_COMMIT),
    (commits.CommitMetaV1, META),
    (commits.BareLogEntry, LOGGED),
    (commits.BareLogEntry, LogEntry(META, 2)),
    (commits.LogEntry, LOGGED),
    (commits.LogEntryV1, LOGGED),
    (references.NamedReference, BARE),
    (references.NamedReference, MAIN),
    (references.Tag, Tag(ReferenceType.TAG, "v1", HASH, message="m")),
    (references.ReflogEntry, MOVE),
    (references.BareCommit, COMMIT),
    (references.BareCommit, CommitResult(MAIN)),
    (references.CommitOutcome, COMMIT),
    (entries.BareEntry, ENTRY),
    (entries.Entry, ENTRY),
    (entries.EntryV1, ENTRY),
    (entries.BareDiffEntry, DiffEntry(KEY, None, TABLE)),
    (merges.BareConflict, CONFLICT),
    (merges.ConflictOfOurs, CONFLICT),
    (merges.BareMergeDetail, DETAILS[0]),
    (merges.BareMergeDetail, DETAILS[1]),
    (merges.MergeDetailOfOurs, PLACED),
    (merges.BareMerge, MERGE),
    (merges.MergeOfOurs, MERGE),
    (merges.MergeResponseV1, MERGE),
    (rest.NessieConfiguration, CONFIG),
    (rest.NessieConfiguration, RepositoryConfig("main", None, "1")),
    (rest.SingleReference, MAIN),
    *(
        (errors.NessieError, error)
        for error in (
            InvalidInput("m"),
            ContentNotFound("m", KEY),
            MergeConflict("m", [CONFLICT], MERGE),
        )
    ),
    (documents.Conflict, CONFLICT),
    (documents.MergeDetail, DETAILS[0]),
    (documents.DetailedMerge, MERGE),
    (fsck.Problem, Problem(ProblemKind.DAMAGED, "w", "m")),
    (maintain.Maintenance, REPORT),
    *(
        (documents.Error, error)
        for error in (
            InvalidInput("m"),
            NotFound("m", "n"),
            ContentNotFound("m", KEY),
            ReferenceConflict("m", [CONFLICT]),
            MergeConflict("m", [CONFLICT], MERGE),
            AmbiguousHash("m", [(HASH, "m")]),
            OutcomeUnknown("m", "r"),
            DamagedObject("m", "ab"),
        )
    ),
]
"""Values of the model, each with its struct."""


def page(struct, items, *effective, token=None):
    return struct, listing(struct, items, lambda: token, *effective).opened()


WRITTEN = [
    *((struct, to_builtins(struct.of(value))) for struct, value in ENCODED),
    *(
        (type(struct), to_builtins(struct))
        for struct in (
            reference_struct(DETACHED),
            reference_struct_v1(MAIN),
            rest.ContentResponse(content_struct(TABLE), reference_struct(MAIN)),
            rest.GetMultipleContentsResponse(PAIRS, reference_struct(MAIN)),
            rest.GetMultipleContentsResponseV1(PAIRS),
            rest.NessieConfigurationV1("main", 2),
            documents.Conflict.of(CONFLICT, [Resolution("nessie reset")]),
            documents.Conflict.of_merge(CONFLICT),
            documents.FailedRun("20261130-021500-1f2e3d", "run/20261130-021500-1f2e3d", "conflict"),
        )
    ),
    *(
        (struct, json.decode(encoded(body)))
        for struct, body in (
            page(rest.LogResponse, [commits.BareLogEntry.of(LOGGED)], token=HASH),
            page(rest.LogResponseOfOurs, [commits.LogEntry.of(LOGGED)]),
            page(rest.LogResponseV1, [commits.LogEntryV1.of(LOGGED)]),
            page(rest.ReferencesResponse, [reference_struct(MAIN)]),
            page(rest.ReferencesResponseV1, [reference_struct_v1(MAIN)]),
            page(rest.ReflogResponse, [references.ReflogEntry.of(MOVE)]),
            page(rest.EntriesResponse, [entries.BareEntry.of(ENTRY)], MAIN),
            page(rest.EntriesResponseV1, [entries.EntryV1.of(ENTRY)]),
            page(rest.DiffResponse, [], MAIN, DETACHED),
            page(rest.DiffResponseV1, []),
        )
    ),
]
"""Output for each struct."""


def named(*modules):
    return [
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__
    ]


MODULES = (commits, contents, documents, entries, errors, merges, references, rest)
STRUCTS = [
    struct
    for struct in named(*MODULES)
    if issubclass(struct, Struct) and not struct.__name__.startswith("_")
]


def closed(schema):
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(value) for name, value in schema.items()}
    return (
        {"additionalProperties": False} | found
        if "properties" in found and found.get("type") == "object"
        else found
    )


@pytest.mark.parametrize(("shape", "body"), WRITTEN, ids=[shape.__name__ for shape, _ in WRITTEN])
def test_output_conforms_to_its_shape_without_additional_attributes(shape, body):
    schema = {"$ref": f"#/$defs/{shape.__name__}", "$defs": closed(schemas.definitions([shape]))}
    assert [error.message for error in Draft202012Validator(schema).iter_errors(body)] == []


def test_every_struct_of_an_answer_is_checked_against_output():
    written = {name for struct, _ in WRITTEN for name in schemas.definitions([struct])}
    by_hand = {
        # Base classes, and structs that other modules fill.
        "BarePage", "ErrorAnswer", "ErrorLine", "CleanMergeDetail", "MergeOutcome",
        "NamespacesResponse", "ReferenceState",
        "ReferenceHistoryResponse", "RepositoryConfigResponse", "UpdateRepositoryConfigResponse",
    }  # fmt: skip
    assert {struct.__name__ for struct in STRUCTS} - written == by_hand


def test_names_of_structs_are_unique():
    names = [struct.__name__ for struct in STRUCTS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.type_name)
def test_a_content_type_has_the_fields_of_its_struct(content):
    assert decode_content_value(content_json(content), allow_unknown=True) == content
    assert answers.decode_content(content_json(content)) == content
    if content.type_name in CONTENT_TYPES:
        struct = contents.CONTENTS[content.type_name]
        assert struct.__struct_fields__ == type(content).__struct_fields__


def test_every_content_type_has_a_struct():
    assert contents.CONTENTS.keys() == CONTENT_TYPES.keys()


OPERATIONS = [Put(KEY, TABLE, TABLE), Put(KEY, TABLE), Delete(KEY), Unchanged(KEY)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_can_be_read_after_writing(operation):
    assert decode_operation(encode_operation(operation)) == operation


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_conforms_to_the_description_of_requests(operation):
    body = {"commitMeta": {"message": "m"}, "operations": [encode_operation(operation)]}
    schema = {"$ref": "#/components/schemas/Operations", "components": {"schemas": COMPONENTS}}
    assert [error.message for error in Draft202012Validator(schema).iter_errors(body)] == []


COMPONENTS = schemas.schemas()


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_are_valid_schemas(name):
    Draft202012Validator.check_schema(COMPONENTS[name])


@pytest.mark.parametrize(
    ("of", "decode", "value"),
    [
        (commits.CommitMeta.of, answers.decode_meta, META),
        (commits.CommitMeta.of, answers.decode_meta, NEW_COMMIT),
        (reference_struct, answers.decode_reference, MAIN),
        (reference_struct, answers.decode_reference, DETACHED),
        (commits.LogEntry.of, answers.decode_log_entry, LOGGED),
        (commits.LogEntry.of, answers.decode_log_entry, LogEntry(META, 2)),
        (references.ReflogEntry.of, answers.decode_reflog_entry, MOVE),
    ],
)
def test_a_client_can_read_the_output_of_a_server(of, decode, value):
    assert decode(to_builtins(of(value))) == value


def test_a_client_reads_conflicts_and_merges():
    conflict = answers.decode_conflict(to_builtins(merges.ConflictOfOurs.of(CONFLICT)))
    assert (conflict.type, conflict.key, conflict.source_rename) == (
        CONFLICT.type,
        CONFLICT.key,
        CONFLICT.source_rename,
    )
    merge = answers.decode_merge(to_builtins(merges.BareMerge.of(MERGE)))
    assert (
        merge.target_branch,
        merge.common_ancestor,
        [(detail.key, detail.behavior) for detail in merge.details],
    ) == (
        "main",
        OTHER,
        [(KEY, MergeBehavior.NORMAL), (NEW, MergeBehavior.DROP)],
    )


@pytest.mark.parametrize(
    ("decode", "data", "message"),
    [
        (
            answers.decode_reference,
            {"type": "BRANCH", "name": "main"},
            "reference.hash: is missing",
        ),
        (
            answers.decode_reference,
            {"type": "BRANCH", "name": 7, "hash": HASH},
            "reference.name: must be a string, not 7",
        ),
        (
            answers.decode_meta,
            {"message": "", "authors": ["a", 7]},
            "commitMeta.authors[1]: must be a string, not 7",
        ),
        (
            answers.decode_log_entry,
            {"commitMeta": {"message": True}},
            "logEntries.commitMeta.message: must be a string, not true",
        ),
        (
            answers.decode_content,
            {"type": "ICEBERG_TABLE", "metadataLocation": "f"},
            "content.snapshotId: is missing",
        ),
        (
            answers.decode_content,
            {"type": "HUDI", "id": 7},
            "content.id: must be a string, not 7",
        ),
        (answers.decode_content, [], "content: must be an object, not a list"),
    ],
)
def test_the_error_for_an_invalid_answer_names_the_place(decode, data, message):
    with pytest.raises(InvalidInput) as raised:
        decode(data)
    assert raised.value.message == message


def test_a_commit_is_described_by_the_attributes_of_both_versions():
    versions = {
        name
        for struct in (commits.CommitMeta, commits.CommitMetaV1)
        for name in struct.__struct_encode_fields__
    }
    assert set(bodies.CommitMetaRequest.__struct_encode_fields__) == versions
