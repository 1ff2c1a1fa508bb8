"""The result of a merge or transplant, or of its dry run, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nessie_cli.inspection.merges import displaced_contents, is_combined
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import (
    Content,
    ContentKey,
    IcebergTable,
    IcebergView,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    TableCombination,
    type_label,
)
from nessie_cli.render.entries import summary
from nessie_cli.render.spans import Column, Line, Span, Table
from nessie_cli.render.text import counted

_AFTER, _FILES, _ROWS, _CONFLICT = "AFTER", "FILES", "ROWS", "CONFLICT"
_COLUMNS = (
    Column("KEY", "key", "fold"),
    Column("RESULT"),
    Column("OURS", "before"),
    Column("THEIRS", "after"),
    Column(_AFTER, "updated"),
    Column(_FILES),
    Column(_ROWS),
    Column("TYPE", "label", "spare"),
    Column(_CONFLICT, "conflict"),
)
_RESULTS = {
    MergeBehavior.NORMAL: "merged",
    MergeBehavior.FORCE: "theirs",
    MergeBehavior.DROP: "ours",
}
_NOTHING = "-"


def merge_table(result: MergeResult) -> Table:
    """Returns a row for each key: its result, both sides before the merge, its type.

    The column AFTER appears only if the merge combined both sides of a content, FILES and ROWS only
    if it combined the files of a table, and CONFLICT only if a key has one.
    """
    details = result.details
    shown = {column.heading: True for column in _COLUMNS} | {
        _AFTER: any(is_combined(d) and not d.combination for d in details),
        _FILES: any(detail.combination for detail in details),
        _ROWS: any(detail.combination for detail in details),
        _CONFLICT: any(detail.conflict for detail in details),
    }
    indexes = [i for i, column in enumerate(_COLUMNS) if shown[column.heading]]
    rows = ([row[i] for i in indexes] for row in map(_row, details))
    return Table([_COLUMNS[i] for i in indexes], rows)


def combination_lines(key: ContentKey, combination: TableCombination) -> Iterator[str]:
    """Yields what a revert does to a table that has changed since, and its notes."""
    parts = (
        " and ".join(filter(None, [_files(files), _rows(rows)])) + f" {verb}"
        for files, rows, verb in (
            (combination.removed_files, combination.removed_rows, "removed"),
            (combination.added_files, combination.added_rows, "added"),
        )
        if files or rows != 0
    )
    changes = ", ".join(parts) or "only definitions change"
    yield f"{key}: combined with later changes: {changes}"
    yield from (f"{key}: {note}" for note in combination.notes)


def _files(files: int) -> str:
    return counted(files, "file") if files else ""


def _rows(rows: int | None) -> str:
    if rows is None:
        return "an unknown number of rows"
    return counted(rows, "row") if rows else ""


def notes_of_combinations(result: MergeResult) -> Iterator[str]:
    """Yields the notes about tables whose files the merge combined."""
    for detail in result.details:
        for note in detail.combination.notes if detail.combination else ():
            yield f"{detail.key}: {note}"


def replaced_contents(result: MergeResult) -> Iterator[str]:
    """Yields a line for each content that gives its key to another one and is then absent.

    The row of the key shows two numbers, as if they were versions of one content.
    """
    for key, content, is_ours in displaced_contents(result):
        if is_ours:
            yield f"{key}: the {summary(content)} of {result.target_branch} is deleted"
        else:
            yield f"{key}: the {summary(content)} of theirs is left out"


def merge_headline(
    result: MergeResult, verb: str, source: str, *, is_contained: bool = False
) -> Line:
    """Returns the result in one line; `verb` is `merged` or `transplanted`.

    `is_contained` is whether the target already contained the source.
    """
    where = [Span(" into "), Span(result.target_branch, "name")]
    if result.applied and result.resultant_hash:
        return [
            Span(f"{verb} "),
            Span(source, "name"),
            *where,
            Span(": now at "),
            Span(short_hash(result.resultant_hash), "hash"),
        ]
    if not result.successful:
        return [
            Span("nothing was written: ", "conflict"),
            Span(source, "name"),
            Span(" conflicts with "),
            Span(result.target_branch, "name"),
        ]
    if result.resultant_hash and is_contained:
        return [Span(f"already up to date: nothing was {verb}"), *where]
    if result.resultant_hash:
        is_dropped = any(
            detail.behavior is MergeBehavior.DROP and detail.source != detail.target
            for detail in result.details
        )
        return [
            Span("no commit was written: "),
            Span(result.target_branch, "name"),
            Span(" keeps its contents" if is_dropped else " already has these changes"),
        ]
    if all(detail.result == detail.target for detail in result.details):
        return [
            Span("dry run, no conflicts: nothing was written; "),
            Span(source, "name"),
            Span(" would change no table or view of "),
            Span(result.target_branch, "name"),
        ]
    return [
        Span("dry run, no conflicts: nothing was written; would have "),
        Span(f"{verb} "),
        Span(source, "name"),
        *where,
    ]


def _row(detail: MergeDetail) -> Sequence[str]:
    ours, theirs, combination = detail.target, detail.source, detail.combination
    return (
        str(detail.key),
        "combined" if combination else _RESULTS[detail.behavior],
        _version(ours),
        _version(theirs),
        _version(detail.result),
        _change(combination.added_files, combination.removed_files) if combination else _NOTHING,
        _change(combination.added_rows, combination.removed_rows) if combination else _NOTHING,
        " -> ".join(dict.fromkeys(type_label(side.type_name) for side in (ours, theirs) if side)),
        detail.conflict.type.value if detail.conflict else _NOTHING,
    )


def _change(added: int | None, removed: int | None) -> str:
    """Returns numbers such as `+3 -1`, with `?` for one that is not known."""
    texts = (
        f"{sign}?" if number is None else f"{sign}{number:,}"
        for sign, number in (("+", added), ("-", removed))
        if number != 0
    )
    return " ".join(texts) or "0"


def _version(content: Content | None) -> str:
    """Returns the number that identifies the version of a content, or its type without one."""
    if isinstance(content, IcebergTable):
        return str(content.snapshot_id)
    return str(content.version_id) if isinstance(content, IcebergView) else summary(content)
