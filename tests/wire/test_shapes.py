"""Definitions of shapes: everything derived from them agrees with them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from jsonschema import Draft202012Validator

from nessie_cli.errors import (
    AmbiguousHash,
    ContentNotFound,
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
    Tag,
    Unchanged,
    UnknownContent,
)
from nessie_cli.server.nessie.extensions import merge_detail
from nessie_cli.wire import (
    answers,
    bodies,
    commits,
    contents,
    documents,
    entries,
    facts,
    merges,
    references,
    rest,
    schemas,
    shapes,
)
from nessie_cli.wire.decode import decode_content_value, decode_operation
from nessie_cli.wire.encode import (
    assembled,
    encode,
    encode_content,
    encode_error,
    encode_operation,
    encode_page,
)
from nessie_cli.wire.shape import OneOf, Shape, attributes

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
    "main", HASH, None, OTHER, HASH, applied=False, successful=False, details=DETAILS
)
COMMIT = CommitResult(MAIN, {KEY: "i"})
CONFIG = RepositoryConfig("main", WHEN, "1")
MOVE = ReflogEntry(1, "main", ReferenceType.BRANCH, None, HASH, WHEN, "w", "create", "m", "r")
PAIR = {KEY: TABLE}.items()

ENCODED = [
    *((shapes.Content, content) for content in CONTENTS[:-1]),
    (contents.Key, KEY),
    (commits.CommitMeta, NEW_COMMIT),
    (commits.CommitMeta, META),
    (commits.CommitMetaV1, NEW_COMMIT),
    (commits.CommitMetaV1, META),
    (commits.BareLogEntry, LOGGED),
    (commits.BareLogEntry, LogEntry(META, 2)),
    (commits.LogEntry, LOGGED),
    (commits.LogEntryV1, LOGGED),
    (shapes.Reference, BARE),
    (shapes.Reference, MAIN),
    (shapes.Reference, DETACHED),
    (rest.ReferenceV1, MAIN),
    (rest.ReferenceV1, DETACHED),
    (entries.BareEntry, ENTRY),
    (entries.Entry, ENTRY),
    (entries.EntryV1, ENTRY),
    (entries.BareDiffEntry, DiffEntry(KEY, None, TABLE)),
    (merges.BareConflict, CONFLICT),
    (merges.BareMergeDetail, DETAILS[0]),
    (merges.BareMergeDetail, DETAILS[1]),
    (merges.BareMerge, MERGE),
    (merges.MergeResponseV1, MERGE),
    (commits.BareCommit, COMMIT),
    (commits.BareCommit, CommitResult(MAIN)),
    (references.ReflogEntry, MOVE),
    (rest.NessieConfiguration, CONFIG),
    (rest.NessieConfiguration, RepositoryConfig("main", None, "1")),
    (rest.NessieConfigurationV1, CONFIG),
]
PLACED = MergeDetail(
    KEY,
    MergeBehavior.NORMAL,
    source_at=ContentPlace(HASH, NEW),
    result_at=ContentPlace(HASH, KEY),
)
WRITTEN = [
    *((shape, encode(shape, value)) for shape, value in ENCODED),
    (shapes.SingleReference, assembled(shapes.SingleReference, reference=MAIN)),
    (
        shapes.ContentResponse,
        assembled(shapes.ContentResponse, content=TABLE, effective_reference=MAIN),
    ),
    (
        rest.GetMultipleContentsResponse,
        assembled(rest.GetMultipleContentsResponse, contents=PAIR, effective_reference=MAIN),
    ),
    (
        rest.GetMultipleContentsResponseV1,
        assembled(rest.GetMultipleContentsResponseV1, contents=PAIR),
    ),
    (rest.LogResponse, encode_page("logEntries", [encode(commits.BareLogEntry, LOGGED)], HASH)),
    (rest.ReferencesResponse, encode_page("references", [encode(shapes.Reference, MAIN)])),
    (
        rest.EntriesResponse,
        encode_page("entries", [encode(entries.BareEntry, ENTRY)], effectiveReference=MAIN),
    ),
    (
        rest.DiffResponse,
        encode_page("diffs", [], effectiveFromReference=MAIN, effectiveToReference=DETACHED),
    ),
    *(
        (rest.NessieError, encode_error(error))
        for error in (
            InvalidInput("m"),
            ContentNotFound("m", KEY),
            MergeConflict("m", [CONFLICT], MERGE),
        )
    ),
    (documents.Conflict, facts.conflict_with_facts(CONFLICT, [Resolution("nessie reset")])),
    (documents.Merge, facts.merge_with_facts(MERGE)),
    (merges.MergeDetailOfOurs, merge_detail(PLACED)),
    (commits.LogEntry, facts.log_entry_with_facts(LOGGED)),
    (entries.Entry, facts.entry_with_facts(ENTRY)),
    (references.ReflogEntry, facts.reflog_entry(MOVE)),
    (documents.Problem, facts.problem(Problem(ProblemKind.DAMAGED, "w", "m"))),
    (
        documents.Maintenance,
        encode(
            documents.Maintenance,
            MaintenanceReport(
                1,
                2,
                {kind: Reclaimed(3, 4) for kind in ("commit", "node", "value")},
                5,
                6,
                7,
                None,
                True,
            ),
        ),
    ),
    (references.Tag, encode(references.Tag, Tag(ReferenceType.TAG, "v1", HASH, message="m"))),
    (commits.CommitOutcome, facts.commit_with_facts(COMMIT)),
    *(
        (documents.Error, facts.error_with_facts(error))
        for error in (
            InvalidInput("m"),
            NotFound("m", "n"),
            ContentNotFound("m", KEY),
            ReferenceConflict("m", [CONFLICT]),
            MergeConflict("m", [CONFLICT], MERGE),
            AmbiguousHash("m", [(HASH, "m")]),
            OutcomeUnknown("m", "r"),
        )
    ),
]
"""Output for each shape, of derived encoders and of those that compose answers by hand."""


def named(*modules):
    return [
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__
    ]


SHAPES = [found for found in named(shapes, documents, rest) if issubclass(found, Shape)]


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


@pytest.mark.parametrize(("shape", "body"), WRITTEN, ids=[shape.__name__ for shape, _ in WRITTEN])
def test_attributes_are_written_in_the_order_of_definition(shape, body):
    several = shape.shapes if issubclass(shape, OneOf) else (shape,)
    orders = [[name for name in names_of(found) if name in body] for found in several]
    assert list(body) in orders


def names_of(shape):
    if issubclass(shape, Shape):
        named = [[one.name] if one.name else names_of(one.type) for one in attributes(shape)]
        return [name for names in named for name in names]
    tag = [shape.__struct_config__.tag_field] if shape.__struct_config__.tag_field else []
    return [*tag, *shape.__struct_encode_fields__]


def test_every_shape_of_an_answer_is_checked_against_output():
    def reached(shape):
        return set(schemas.definitions([shape]))

    written = {name for shape, _ in WRITTEN for name in reached(shape)}
    by_hand = {
        # Pages of v1 and listings consist of records that are here; other modules store or report
        # the rest.
        "Listing", "Page", "ErrorAnswer", "ErrorLine", "BarePage", "MetadataFact",
        "NamespacesResponse", "ReferencesResponseV1", "LogResponseV1", "EntriesResponseV1", "DiffResponseV1", "ReferenceState",
        "ReferenceHistoryResponse", "RepositoryConfigResponse", "UpdateRepositoryConfigResponse",
    }  # fmt: skip
    assert {shape.__name__ for shape in SHAPES} - written == by_hand


def test_names_of_shapes_are_unique():
    names = [shape.__name__ for shape in SHAPES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.type_name)
def test_a_content_type_has_the_fields_of_its_struct(content):
    assert decode_content_value(encode_content(content), allow_unknown=True) == content
    assert answers.decode_content(encode_content(content)) == content
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
    ("shape", "decode", "value"),
    [
        (commits.CommitMeta, answers.decode_meta, META),
        (commits.CommitMeta, answers.decode_meta, NEW_COMMIT),
        (shapes.Reference, answers.decode_reference, MAIN),
        (shapes.Reference, answers.decode_reference, DETACHED),
        (commits.LogEntry, answers.decode_log_entry, LOGGED),
        (commits.LogEntry, answers.decode_log_entry, LogEntry(META, 2)),
        (references.ReflogEntry, answers.decode_reflog_entry, MOVE),
    ],
)
def test_a_client_can_read_the_output_of_a_server(shape, decode, value):
    assert decode(encode(shape, value)) == value


def test_a_client_reads_conflicts_and_merges():
    conflict = answers.decode_conflict(facts.conflict_with_facts(CONFLICT))
    assert (conflict.type, conflict.key, conflict.source_rename) == (
        CONFLICT.type,
        CONFLICT.key,
        CONFLICT.source_rename,
    )
    merge = answers.decode_merge(encode(merges.BareMerge, MERGE))
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


def subclasses(shape):
    return {found for one in shape.__subclasses__() for found in (one, *subclasses(one))}


def test_no_definition_is_postponed():
    texts = [
        (shape, one.name)
        for shape in subclasses(Shape)
        for one in attributes(shape)
        if isinstance(one.type, str)
    ]
    assert texts == [], "`from __future__ import annotations` leaves texts where types are needed"
