from datetime import UTC, datetime

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    DiffEntry,
    Entry,
    LogEntry,
    Namespace,
    Put,
    Reference,
    ReferenceMetadata,
    ReferenceType,
)
from nessie_cli.wire.filters import MAX_LENGTH, FilterKind, compile_filter

ENTRY = Entry(ContentKey(("a", "b.c", "t")), "ICEBERG_TABLE", "id", "hash")
META = CommitMeta(
    "hello\nworld",
    ("ann", "bob"),
    ("sue",),
    datetime(2021, 3, 4, tzinfo=UTC),
    {"p": ("1", "2")},
    committer="me",
    commit_time=datetime(2026, 1, 1, tzinfo=UTC),
    hash="ab" * 32,
)
LOGGED = LogEntry(
    META,
    1,
    (Delete(ContentKey(("gone",))), Put(ContentKey(("n",)), Namespace(id="x", elements=("n",)))),
)
TAG = Reference(ReferenceType.TAG, "v1", "ab" * 32, ReferenceMetadata(head=META, total=7))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (FilterKind.ENTRIES, ENTRY, "entry.contentType in ['ICEBERG_TABLE', 'ICEBERG_VIEW']"),
        (FilterKind.ENTRIES, ENTRY, "entry.key == 'a.b.c.t' && entry.name == 't'"),
        (
            FilterKind.ENTRIES,
            ENTRY,
            "entry.encodedKey == 'a.b\\x1dc.t' && entry.namespace == 'a.b\\x1dc'",
        ),
        (
            FilterKind.ENTRIES,
            ENTRY,
            "size(entry.keyElements) == 3 && entry.namespaceElements == ['a', 'b.c']",
        ),
        (
            FilterKind.ENTRIES,
            ENTRY,
            "entry.namespace.matches('^a(\\\\.|$)') && has(entry.namespace)",
        ),
        (
            FilterKind.LOG,
            LOGGED,
            "commit.author == 'ann' && 'bob' in commit.authors && commit.committer == 'me'",
        ),
        (
            FilterKind.LOG,
            LOGGED,
            "commit.properties['p'] == '1' && commit.allProperties['p'] == ['1', '2']",
        ),
        (
            FilterKind.LOG,
            LOGGED,
            (
                "timestamp(commit.commitTime) > timestamp('2025-01-01T00:00:00Z') &&"
                " commit.authorTime < commit.commitTime"
            ),
        ),
        (
            FilterKind.LOG,
            LOGGED,
            (
                "operations.exists(op, op.type == 'PUT' && op.content.type == 'NAMESPACE' &&"
                " op.content.id == 'x')"
            ),
        ),
        (
            FilterKind.LOG,
            LOGGED,
            "operations.exists_one(op, op.type == 'DELETE' && op.key == 'gone')",
        ),
        (
            FilterKind.REFERENCES,
            TAG,
            "ref.name.startsWith('v') && refType == 'TAG' && refMeta.numTotalCommits > 5",
        ),
        (
            FilterKind.REFERENCES,
            TAG,
            "commit.message.contains('world') && refMeta.commitMetaOfHEAD.author == 'ann'",
        ),
        (
            FilterKind.DIFF,
            DiffEntry(ENTRY.key, None, None),
            "key.name == 't' && key.keyElements[0] == 'a'",
        ),
    ],
)
def test_every_attribute_of_a_listing_can_be_filtered(kind, value, text):
    assert compile_filter(kind, text)(value)
    assert not compile_filter(kind, f"!({text})")(value)


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (FilterKind.ENTRIES, "nonsense", "undeclared reference to 'nonsense'"),
        (FilterKind.ENTRIES, "entry.nosuch == 'a'", "undefined field 'nosuch'"),
        (FilterKind.LOG, "operations.exists(op, op.nosuch == 'x')", "undefined field 'nosuch'"),
        (FilterKind.ENTRIES, "entry.key ==", "Syntax error"),
        (FilterKind.ENTRIES, "entry.key + 1 == 'x'", "no matching overload"),
        (FilterKind.ENTRIES, "entry.key < 1", "no matching overload"),
        (FilterKind.LOG, "1 in commit.authors", "no matching overload"),
        (
            FilterKind.LOG,
            "operations.exists(op, op.content.nosuch == 'x')",
            "undefined field 'nosuch'",
        ),
        (FilterKind.REFERENCES, "ref.metadata.nosuch == 1", "undefined field 'nosuch'"),
        (FilterKind.DIFF, "entry.key == 'x'", "undeclared reference to 'entry"),
        (FilterKind.ENTRIES, "true" + " " * MAX_LENGTH, "characters"),
    ],
)
def test_an_invalid_filter_is_refused_before_evaluation(kind, text, found):
    with pytest.raises(InvalidInput, match=found):
        compile_filter(kind, text)


@pytest.mark.parametrize(
    "text",
    [
        "entry.key",
        "null",
        "1",
        "entry.keyElements[7] == 'a'",
        "1/0 == 1",
        "timestamp('x') == timestamp('y')",
    ],
)
def test_a_filter_without_a_truth_value_is_reported(text):
    test = compile_filter(FilterKind.ENTRIES, text)
    with pytest.raises(InvalidInput, match="filter: "):
        test(ENTRY)


BARE = Reference(ReferenceType.BRANCH, "main", "ab" * 32)
UNSIGNED = LogEntry(
    CommitMeta("m", ("ann",), commit_time=META.commit_time, author_time=META.author_time), 1
)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1 == 1.0",
            "1 != 1.5",
            "[1] == [1.0]",
            "commit.author != 1",
            "!(commit.author == null)",
            "commit != null",
            "commit.authors != 'ann'",
        ),
        *(
            "commit.properties['p'] != 1",
            "null != 1",
            "true != 1",
            "commit.commitTime != 'x'",
            "{'a': 1} != {'a': 'b'}",
        ),
    ],
)
def test_values_of_any_two_types_can_be_compared(text):
    assert compile_filter(FilterKind.LOG, text)(LOGGED)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            UNSIGNED,
            "!has(commit.signedOffBy) && commit.signedOffBy == null && commit.signedOffBy != ''",
        ),
        (
            UNSIGNED,
            (
                "has(commit.allSignedOffBy) && has(commit.properties) &&"
                " has(commit.allProperties) && has(commit.parentCommitHashes)"
            ),
        ),
        (
            UNSIGNED,
            "size(commit.allSignedOffBy) == 0 && commit.properties == {} && has(commit.author)",
        ),
        (
            LOGGED,
            (
                "operations.exists(op, !has(op.content) && op.content == null) &&"
                " operations.exists(op, has(op.content))"
            ),
        ),
        (BARE, "!has(ref.metadata) && ref.metadata == null && has(ref.hash)"),
        (
            BARE,
            (
                "!has(commit.author) && commit.author == null && !has(commit.hash) &&"
                " commit.committer == null && commit.message == ''"
            ),
        ),
        (
            BARE,
            (
                "!has(commit.commitTime) && commit.commitTime == null && has(commit.authors) &&"
                " commit.authors == []"
            ),
        ),
        (
            BARE,
            (
                "has(refMeta.commitMetaOfHEAD) && has(refMeta.commitMetaOfHEAD.message) &&"
                " !has(refMeta.commitMetaOfHEAD.hash)"
            ),
        ),
        (
            BARE,
            (
                "!has(refMeta.numTotalCommits) && refMeta.numTotalCommits == null &&"
                " refMeta.numTotalCommits != 0"
            ),
        ),
        (BARE, "!has(refMeta.commonAncestorHash) && refMeta.commonAncestorHash == null"),
        (
            TAG,
            (
                "has(ref.metadata) && ref.metadata != null && ref.metadata.numTotalCommits == 7"
                " && ref.metadata.numCommitsAhead == null"
            ),
        ),
        (
            TAG,
            (
                "has(commit.commitTime) && commit.commitTime > timestamp('2025-01-01T00:00:00Z')"
                " && refMeta.commitMetaOfHEAD == commit"
            ),
        ),
    ],
)
def test_missing_values_are_null_and_empty_lists_are_values(value, text):
    kind = FilterKind.REFERENCES if isinstance(value, Reference) else FilterKind.LOG
    assert compile_filter(kind, text)(value)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ref.metadata.numTotalCommits == 1",
            "ref.metadata.commitMetaOfHEAD.author == ''",
            "has(ref.metadata.numTotalCommits)",
        ),
        *(
            "commit.commitTime > timestamp('2020-01-01T00:00:00Z')",
            "refMeta.numTotalCommits > 0",
            "commit.author.startsWith('a')",
        ),
    ],
)
def test_a_filter_that_needs_metadata_fails_without_it(text):
    test = compile_filter(FilterKind.REFERENCES, text)
    assert test(TAG) in (True, False)
    with pytest.raises(InvalidInput, match="filter: "):
        test(BARE)


def test_missing_values_are_not_compared():
    test = compile_filter(FilterKind.REFERENCES, "refMeta.numCommitsAhead > 0")
    with pytest.raises(InvalidInput):
        test(TAG)
    assert not compile_filter(FilterKind.REFERENCES, "commit.message == 'x'")(
        Reference(ReferenceType.BRANCH, "main", "ab" * 32)
    )
