"""Tables as values, for front ends other than a terminal, and as text."""

from datetime import UTC, datetime

from nessie_cli.inspection.changes import ChangeKind, ContentChange
from nessie_cli.model import (
    CommitMeta,
    Entry,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
    ReflogType,
    Tag,
)
from nessie_cli.render.diffs import changes_table
from nessie_cli.render.entries import entries_table, last_changes_table
from nessie_cli.render.references import references_table, reflog_table
from nessie_cli.render.spans import Column, Hash, Person, Span, Table

H = "8f31c0de" * 8
WHEN = datetime(2026, 5, 1, 11, 0, tzinfo=UTC)
EVA = "Eva <eva@example.org>"


def test_a_terminal_shortens_the_values_of_a_table(pipe) -> None:
    columns = [Column(name) for name in ("TEXT", "NUMBER", "HASH", "PERSON", "TIME", "NOTHING")]
    row = ("a\tb", 1234, Hash(H), Person(EVA), WHEN, None)

    pipe.terminal.print_table(*Table(columns, [row, (Span("x"), 0, "-", Person(""), "", 7)]))

    assert pipe.lines == [
        "TEXT  NUMBER  HASH          PERSON  TIME        NOTHING",
        "a\\tb  1234    8f31c0de8f31  Eva     1 hour ago",
        "x     0       -                                 7",
    ]


def test_references_are_rows_of_whole_hashes_instants_and_persons() -> None:
    head = CommitMeta("load\n\nmore", authors=(EVA,), commit_time=WHEN, hash=H)
    main = Reference(ReferenceType.BRANCH, "main", H, ReferenceMetadata(head, 12, 2, 3, H))
    tag = Tag(ReferenceType.TAG, "v1", H, ReferenceMetadata(head, 12), message="first\nsecond")

    branches = references_table([main], current="main", verbose=True)
    tags = references_table([tag], verbose=True, tags=True)

    assert [column.heading for column in branches.columns][:3] == ["", "NAME", "HASH"]
    assert [list(row) for row in branches.rows] == [
        ["*", Span("main", "current"), Hash(H), 2, 3, WHEN, Person(EVA), "load"]
    ]
    assert [list(row) for row in tags.rows] == [
        ["", Span("v1", "tag"), Hash(H), WHEN, Person(EVA), "first"]
    ]


def test_a_reflog_is_rows_of_numbers_hashes_and_instants() -> None:
    entry = ReflogEntry(7, "main", ReflogType.BRANCH, None, H, WHEN, EVA, "commit", "why", "r")

    (row,) = reflog_table([entry]).rows

    assert list(row) == [7, "main", Hash(H), WHEN, Person(EVA), "commit", "why"]


def test_entries_and_their_last_changes_are_rows(table, key) -> None:
    entry = Entry(key("a"), "ICEBERG_TABLE", "id", "hash", table("a", 7))
    meta = CommitMeta("load", authors=(EVA,), commit_time=WHEN, hash=H)

    assert [list(row) for row in entries_table([entry], verbose=True).rows] == [
        ["a", "iceberg-table", "id", "snapshot 7"]
    ]
    assert [list(row) for row in last_changes_table([(entry, meta)]).rows] == [
        ["a", Hash(H), WHEN, Person(EVA), "load"]
    ]


def test_changes_are_rows_with_the_names_of_their_fields(table, key) -> None:
    change = ContentChange(
        ChangeKind.RENAMED, key("b"), table("a", 7), table("a", 8), old_key=key("a")
    )

    assert [list(row) for row in changes_table([change]).rows] == [
        [Span("R", "renamed"), "a -> b", "key,snapshot-id"]
    ]
