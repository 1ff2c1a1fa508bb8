"""References, reflogs, merges and problems."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from nessie_cli.model import (
    Conflict,
    ConflictType,
    IcebergView,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Namespace,
    Problem,
    ProblemKind,
    Reference,
    ReferenceMetadata,
    ReferenceType,
    ReflogEntry,
)
from nessie_cli.render.merges import merge_headline, merge_table
from nessie_cli.render.problems import print_problems
from nessie_cli.render.references import references_table, reflog_table
from nessie_cli.render.spans import plain
from nessie_cli.render.text import cells

H = "8f31c0de" * 8


@pytest.fixture
def references(meta):
    return [
        Reference(ReferenceType.BRANCH, "feature", H, ReferenceMetadata(meta(4), 12, 2, 3, H)),
        Reference(ReferenceType.BRANCH, "main", H, ReferenceMetadata(meta(5), 13)),
        Reference(ReferenceType.BRANCH, "empty", H),
    ]


def test_a_star_marks_the_current_reference(screen, pipe, references) -> None:
    shown = screen()
    for where in (shown, pipe):
        where.terminal.print_table(*references_table(references, current="main"))
    assert pipe.lines == shown.lines
    assert [line.split() for line in shown.lines] == [
        ["NAME", "HASH"],
        ["feature", H[:12]],
        ["*", "main", H[:12]],
        ["empty", H[:12]],
    ]


def test_the_long_list_counts_and_shows_the_last_commit(pipe, references) -> None:
    pipe.terminal.print_table(*references_table(references, verbose=True))
    assert pipe.lines == [
        "  NAME     HASH          AHEAD  BEHIND  WHEN           AUTHOR           LAST COMMIT",
        "  feature  8f31c0de8f31      2       3  4 minutes ago  etl@example.org  nightly load",
        "  main     8f31c0de8f31                 5 minutes ago  etl@example.org  nightly load",
        "  empty    8f31c0de8f31",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lists_fit_the_terminal(screen, references, width) -> None:
    shown = screen(width)
    shown.terminal.print_table(*references_table(references, current="main", verbose=True))
    shown.terminal.print_table(*reflog_table([move(1, None, H), move(2, H, None, "w" * 90)]))
    assert all(cells(line) <= width for line in shown.lines)


def move(number: int, before: str | None, after: str | None, message: str = "why") -> ReflogEntry:
    time = datetime(2026, 5, 1, 11, 0, tzinfo=UTC)
    return ReflogEntry(
        number=number,
        reference="main",
        type=ReferenceType.BRANCH,
        before=before,
        after=after,
        time=time,
        who="Eva <e@x>",
        operation="commit",
        message=message,
        request_id="r",
    )


def test_a_reflog_shows_the_hash_after_each_move(screen, pipe) -> None:
    shown = screen()
    for where in (shown, pipe):
        where.terminal.print_table(*reflog_table([move(7, H, None), move(3, None, H)]))
    assert pipe.lines == shown.lines
    assert [line.split() for line in shown.lines] == [
        ["NO", "REFERENCE", "AFTER", "WHEN", "WHO", "VERB", "WHY"],
        ["7", "main", "-", "1", "hour", "ago", "Eva", "commit", "why"],
        ["3", "main", H[:12], "1", "hour", "ago", "Eva", "commit", "why"],
    ]


def result(
    table,
    key,
    *,
    applied: bool = True,
    successful: bool = True,
    hash_: str | None = H,
    dropped: bool = True,
    merged: bool = True,
) -> MergeResult:
    conflict = None if successful else Conflict(ConflictType.VALUE_DIFFERS, key("a"), "differs")
    details = (
        MergeDetail(
            key("a"),
            MergeBehavior.NORMAL,
            conflict,
            table("a", 7),
            table("b", 8),
            None if conflict else table("a", 7),
        ),
        MergeDetail(key('"b.c"'), MergeBehavior.DROP, None, Namespace(elements=("b.c",)), None),
    )
    return MergeResult(
        target_branch="main",
        effective_target_hash=H,
        resultant_hash=hash_,
        common_ancestor=H,
        expected_hash=None,
        applied=applied,
        successful=successful,
        details=details[not merged : 1 + dropped],
    )


def test_a_merge_lists_each_key_with_its_result_and_both_sides(pipe, table, key) -> None:
    pipe.terminal.print_table(*merge_table(result(table, key)))
    assert pipe.lines == [
        "KEY    RESULT  OURS  THEIRS     TYPE",
        "a      merged  8     7          iceberg-table",
        '"b.c"  ours    -     namespace  namespace',
    ]


def test_a_conflict_adds_a_column_to_the_list_of_a_merge(pipe, table, key) -> None:
    pipe.terminal.print_table(*merge_table(result(table, key, successful=False)))
    assert pipe.lines == [
        "KEY    RESULT  OURS  THEIRS     TYPE           CONFLICT",
        "a      merged  8     7          iceberg-table  VALUE_DIFFERS",
        '"b.c"  ours    -     namespace  namespace      -',
    ]


def test_a_narrow_terminal_shows_whole_snapshot_ids_and_no_types(screen, table, key) -> None:
    shown = screen(width=60)
    details = (
        MergeDetail(
            key("a"), MergeBehavior.FORCE, None, table("a", 2**63 - 1), table("b", 2**62 + 1)
        ),
    )
    shown.terminal.print_table(*merge_table(replace(result(table, key), details=details)))
    assert shown.lines == [
        "KEY  RESULT  OURS                 THEIRS",
        f"a    theirs  {2**62 + 1}  {2**63 - 1}",
    ]


def test_a_merge_names_both_types_of_a_key_if_they_differ(pipe, table, key) -> None:
    view = IcebergView(id="v", metadata_location="s3://lake/v.json", version_id=3, schema_id=1)
    details = (MergeDetail(key("a"), MergeBehavior.NORMAL, None, view, table("b", 8)),)
    pipe.terminal.print_table(*merge_table(replace(result(table, key), details=details)))
    assert pipe.lines[1:] == ["a    merged  8     3       iceberg-table -> iceberg-view"]


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({}, "merged dev into main: now at 8f31c0de8f31"),
        (
            {"applied": False},
            "no commit was written: main keeps its contents",
        ),
        (
            {"applied": False, "dropped": False},
            "no commit was written: main already has these changes",
        ),
        (
            {"applied": False, "hash_": None},
            "dry run, no conflicts: nothing was written; would have merged dev into main",
        ),
        (
            {"applied": False, "hash_": None, "merged": False},
            (
                "dry run, no conflicts: nothing was written; dev would change no table or view of"
                " main"
            ),
        ),
        (
            {"applied": False, "hash_": None, "successful": False},
            "nothing was written: dev conflicts with main",
        ),
    ],
)
def test_the_headline_says_what_happened(table, key, state, line) -> None:
    assert plain(merge_headline(result(table, key, **state), "merged", "dev")) == line


def test_a_problem_is_one_line(pipe) -> None:
    print_problems([Problem(ProblemKind.DAMAGED, H, "checksum\nwrong")], pipe.terminal)
    assert pipe.lines == [f"DAMAGED       {H}  checksum\\nwrong"]
