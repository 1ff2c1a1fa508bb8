import pytest
from msgspec import to_builtins

from nessie_cli.cli.log.diff_entries import diff_entries
from nessie_cli.inspection.changes import ChangeKind, changes_of
from nessie_cli.model import ContentKey, DiffEntry, Namespace
from nessie_cli.render.diffs import print_diff, print_name_status, print_summary
from nessie_cli.render.text import cells


@pytest.fixture
def changes(table, key):
    """One created, deleted, renamed with a change, updated; the rename comes as a deleted and a
    created key of one content id."""
    return changes_of(
        [
            DiffEntry(key("a"), None, Namespace(id="ns", elements=("a",))),
            DiffEntry(key('b."x.y"'), table("old.json", 1, id="moved"), None),
            DiffEntry(key("c"), table("a.json", 1), table("b.json", 2)),
            DiffEntry(key("d"), table("a.json", 1, id="gone"), None),
            DiffEntry(key("e"), None, table("new.json", 2, id="moved")),
        ]
    )


def test_a_content_id_that_left_one_key_for_another_is_a_rename(changes, key) -> None:
    assert [(change.kind, str(change.key)) for change in changes] == [
        (ChangeKind.CREATED, "a"),
        (ChangeKind.UPDATED, "c"),
        (ChangeKind.DELETED, "d"),
        (ChangeKind.RENAMED, "e"),
    ]
    assert changes[3].old_key == key('b."x.y"')


def test_a_rename_requires_a_deletion(table, key) -> None:
    found = changes_of(
        [DiffEntry(key("a"), None, table("a", 1)), DiffEntry(key("b"), None, table("a", 1))]
    )
    assert [change.kind for change in found] == [ChangeKind.CREATED, ChangeKind.CREATED]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_blocks_fit_the_terminal(screen, changes, width) -> None:
    for show in (print_diff, print_summary, print_name_status):
        shown = screen(width)
        show(changes, shown.terminal)
        assert all(cells(line) <= width for line in shown.lines)


def test_in_a_pipe_values_are_whole(pipe, changes) -> None:
    print_diff(changes, pipe.terminal)
    location = "s3://lake/db/sales/orders/metadata/"
    assert pipe.lines[3:6] == [
        "updated c  iceberg-table",
        f"  metadata-location  {location}a.json -> {location}b.json",
        f"  snapshot-id        1{' ' * (len(location) + 5)} -> 2",
    ]


def test_values_are_shortened_so_that_the_difference_is_seen(screen, changes) -> None:
    shown = screen(60)
    print_diff(changes[1:2], shown.terminal)
    assert shown.lines == [
        "updated c  iceberg-table",
        "  metadata-location  …/a.json -> …/b.json",
        "  snapshot-id        1        -> 2",
    ]


def test_name_status_speaks_git(pipe, changes) -> None:
    print_name_status(changes, pipe.terminal)
    assert pipe.lines == ["A\ta", "M\tc", "D\td", 'R\tb."x.y"\te']


def test_the_summary_names_fields_and_counts(screen, pipe, changes) -> None:
    shown = screen(100)
    print_summary(changes, shown.terminal)
    print_summary(changes, pipe.terminal)
    assert shown.lines[-1] == "1 created, 1 updated, 1 deleted, 1 renamed"
    assert pipe.lines == shown.lines
    assert pipe.lines[:-1] == [
        "CHANGE  KEY           FIELDS",
        "A       a             namespace",
        "M       c             metadata-location,snapshot-id",
        "D       d             iceberg-table",
        'R       b."x.y" -> e  key,metadata-location,snapshot-id',
    ]


def test_no_difference_prints_nothing(screen, pipe) -> None:
    for where in (screen(), pipe):
        for show in (print_diff, print_summary, print_name_status):
            show([], where.terminal)
        assert where.text == ""


def test_json_has_the_shape_of_a_rest_diff_and_renames(changes) -> None:
    documents = list(map(to_builtins, diff_entries(changes)))
    assert [(d["key"]["elements"], d["from"] is None, d["to"] is None) for d in documents] == [
        (["a"], True, False),
        (["c"], False, False),
        (["d"], False, True),
        (["b", "x.y"], False, True),
        (["e"], True, False),
    ]
    assert documents[3]["renamedTo"] == {"elements": ["e"]}
    assert documents[4]["renamedFrom"] == {"elements": ["b", "x.y"]}


def test_every_known_attribute_has_a_label_of_an_option(table) -> None:
    from nessie_cli.inspection.fields import fields

    assert list(fields(table("a", 1))) == [
        "type",
        "id",
        "metadata-location",
        "snapshot-id",
        "schema-id",
        "spec-id",
        "sort-order-id",
    ]
    assert fields(Namespace(elements=("db", "a.b"), properties={"k": "v"})) == {
        "type": "namespace",
        "elements": str(ContentKey(("db", "a.b"))),
        "properties.k": "v",
    }
