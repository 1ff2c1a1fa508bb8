import pytest

from nessie_cli.inspection.changes import ChangeKind, ContentChange
from nessie_cli.model import NO_ANCESTOR, ContentKey, Reference, ReferenceType
from nessie_cli.render.history import (
    LogForm,
    LoggedCommit,
    Names,
    further_details,
    log_details,
    print_log,
    show_lines,
)
from nessie_cli.render.spans import Hash
from nessie_cli.render.text import cells

LONG = "日本語 " * 40
EVA = "Eva Long <eva@example.org>"


@pytest.fixture
def commits(entry):
    """A merge of a branch of one commit, newest first."""
    first = entry(9, "first\n\nwith a body")
    return [
        LoggedCommit(c)
        for c in (
            entry(1, LONG, 2, 3),
            entry(2, "on main", 9, author=EVA),
            entry(3, "on feature", 9),
            first,
        )
    ]


@pytest.fixture
def names(commits):
    hashes = [commit.entry.hash for commit in commits]
    return Names(
        [
            Reference(ReferenceType.BRANCH, "feature", hashes[2]),
            Reference(ReferenceType.BRANCH, "a", hashes[0]),
            Reference(ReferenceType.BRANCH, "main", hashes[0]),
            Reference(ReferenceType.TAG, "v1", hashes[0]),
        ],
        "main",
    )


@pytest.mark.parametrize(
    "form",
    [
        LogForm(),
        LogForm(oneline=True),
        LogForm(graph=True),
        LogForm(oneline=True, graph=True, stat=True),
    ],
)
def test_a_pipe_gets_the_lines_of_a_wide_terminal(screen, pipe, commits, names, form) -> None:
    shown = screen(400)
    for where in (shown, pipe):
        print_log(commits, form, where.terminal, names)
    assert pipe.lines == shown.lines
    assert LONG.rstrip() in pipe.text


def test_one_line_is_hash_and_subject(pipe, commits) -> None:
    print_log(commits, LogForm(oneline=True), pipe.terminal)
    assert pipe.lines[1:] == [
        "000200020002 on main",
        "000300030003 on feature",
        "000900090009 first",
    ]


def test_the_full_log_looks_like_git_s(screen, commits, names) -> None:
    shown = screen(100)
    print_log(commits[2:], LogForm(), shown.terminal, names)
    assert shown.lines == [
        "commit 000300030003 (feature)",
        "Author: etl@example.org",
        "Date:   3 minutes ago",
        "",
        "    on feature",
        "",
        "commit 000900090009",
        "Author: etl@example.org",
        "Date:   9 minutes ago",
        "",
        "    first",
        "",
        "    with a body",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize(
    "form",
    [LogForm(), LogForm(oneline=True), LogForm(graph=True), LogForm(oneline=True, graph=True)],
)
def test_every_form_fits_the_terminal(screen, commits, names, width, form) -> None:
    shown = screen(width)
    print_log(commits, form, shown.terminal, names)
    assert all(cells(line) <= width for line in shown.lines)
    assert all(line == line.rstrip() for line in shown.lines)


def test_references_stand_at_their_commit_the_current_one_first(screen, commits, names) -> None:
    shown = screen()
    print_log(commits[:1], LogForm(oneline=True), shown.terminal, names)
    assert shown.text.startswith("000100010001 (HEAD -> main, a, tag: v1) 日本語")


def test_the_graph_joins_the_lines(screen, commits) -> None:
    shown = screen()
    print_log(commits, LogForm(oneline=True, graph=True), shown.terminal)
    assert [line[:6].rstrip() for line in shown.lines] == [
        "◎ 0001",
        "├─╮",
        "● │ 00",
        "│ ● 00",
        "├─╯",
        "● 0009",
    ]


def test_the_graph_runs_beside_the_text_of_the_full_log(screen, commits) -> None:
    shown = screen()
    print_log(commits[1:], LogForm(graph=True), shown.terminal)
    assert shown.lines[:8] == [
        "● commit 000200020002",
        "│ Author: Eva Long <eva@example.org>",
        "│ Date:   2 minutes ago",
        "│",
        "│     on main",
        "│",
        "│ ● commit 000300030003",
        "│ │ Author: etl@example.org",
    ]
    assert shown.lines[-7:-1] == [
        "  Author: etl@example.org",
        "  Date:   9 minutes ago",
        "",
        "      first",
        "",
        "      with a body",
    ]


def test_commits_left_out_by_a_filter_only_lead_the_lines(screen, entry) -> None:
    shown = screen()
    found = [
        LoggedCommit(entry(1, "c", 2)),
        LoggedCommit(entry(2, "b", 3), shown=False),
        LoggedCommit(entry(3, "a")),
    ]
    print_log(found, LogForm(oneline=True, graph=True), shown.terminal)
    assert shown.lines == ["● 000100010001 c", "● 000300030003 a"]


def test_changes_are_counted_by_kind(screen, pipe, entry, table) -> None:
    kinds = [
        ChangeKind.CREATED,
        ChangeKind.CREATED,
        ChangeKind.UPDATED,
        ChangeKind.RENAMED,
        ChangeKind.DELETED,
    ]
    changes = [
        ContentChange(kind, ContentKey((f"k{n}",)), None, None) for n, kind in enumerate(kinds)
    ]
    commits = [LoggedCommit(entry(1, "many"), changes), LoggedCommit(entry(2, "none"), [])]
    shown = screen()
    print_log(commits, LogForm(oneline=True, stat=True), shown.terminal)
    print_log(commits, LogForm(oneline=True, stat=True), pipe.terminal)
    assert shown.lines == ["000100010001 many +2 ~1 -1 >1", "000200020002 none no change"]
    assert pipe.lines == shown.lines


def test_stored_control_characters_are_shown_escaped(screen, pipe, entry) -> None:
    commits = [LoggedCommit(entry(1, "bell\x07\ttab\n\x1b[2Jbody", author="x\x1b]0;title\x07"))]
    for form in (LogForm(), LogForm(oneline=True), LogForm(graph=True)):
        for where in (screen(), pipe):
            print_log(commits, form, where.terminal)
            assert not set(where.text) & set("\x07\x1b")
            assert "bell\\x07\\ttab" in where.text


def test_a_commit_is_shown_with_all_of_its_metadata(screen, entry, table) -> None:
    import msgspec

    found = entry(5, "load", 6)
    said = {
        "signed_off_by": ("Bob <bob@x>",),
        "properties": {"ticket": ("A-1", "A-2")},
        "committer": "robot",
        "author_time": found.meta.commit_time,
    }
    commit = msgspec.structs.replace(found, meta=msgspec.structs.replace(found.meta, **said))
    key = ContentKey(("db", "orders"))
    changes = [
        ContentChange(ChangeKind.UPDATED, key, table("00012-a.json", 1), table("00013-b.json", 2)),
        ContentChange(
            ChangeKind.RENAMED, key, table("x", 1), table("x", 1), ContentKey(("db", "old"))
        ),
        ContentChange(ChangeKind.DELETED, key, table("x", 1), None),
    ]
    shown = screen(120)
    shown.terminal.print_lines(show_lines(LoggedCommit(commit, changes), shown.terminal))
    assert shown.lines[2:] == [
        "Date:   5 minutes ago",
        "Parent: 000600060006",
        "Commit: robot",
        "Signed: Bob <bob@x>",
        "Prop:   ticket=A-1",
        "Prop:   ticket=A-2",
        "",
        "    load",
        "",
        "updated db.orders  iceberg-table",
        (
            "  metadata-location  s3://lake/db/sales/orders/metadata/00012-a.json ->"
            " s3://lake/db/sales/orders/metadata/00013-b.json"
        ),
        "  snapshot-id        1                                               -> 2",
        "renamed db.old -> db.orders  iceberg-table",
        "deleted db.orders  iceberg-table",
        "  id                 id-1",
        "  metadata-location  s3://lake/db/sales/orders/metadata/x",
        "  snapshot-id        1",
        "  schema-id          3",
        "  spec-id            0",
        "  sort-order-id      0",
    ]


def test_the_first_commit_has_the_empty_history_as_parent(screen, entry) -> None:
    shown = screen()
    shown.terminal.print_lines(show_lines(LoggedCommit(entry(1, "first"), []), shown.terminal))
    assert f"Parent: {NO_ANCESTOR[:12]}" in shown.lines
    assert shown.lines[-1] == "no content changed"


def test_the_details_of_a_commit_are_whole_values(commits, names) -> None:
    merge, first = commits[0].entry, commits[-1].entry
    parents = [Hash(commit.entry.hash) for commit in commits[1:3]]

    assert next(log_details(merge)) == ("Merge", parents)
    assert list(log_details(first))[-1] == ("Date", [first.meta.commit_time])
    assert next(further_details(first)) == ("Parent", [Hash(first.parent)])
    assert [reference.name for reference in names.at(merge.hash)] == ["main", "a", "v1"]
