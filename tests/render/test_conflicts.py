import pytest

from nessie_cli.model import (
    Conflict,
    ConflictType,
    ContentKey,
    Delete,
    IcebergView,
    Namespace,
    Rename,
    UnknownContent,
)
from nessie_cli.render.conflicts import ConflictReport, conflict_lines
from nessie_cli.render.text import cells

HEAD = "8f31c0de" * 8
START = "51b0aa17" * 8
ORDERS = ContentKey(("db", "sales", "orders"))


def resolutions(conflict: Conflict) -> list[str]:
    return [f"nessie content put {conflict.key}", f"nessie reset {conflict.key}"]


def report(*conflicts: Conflict, **more) -> ConflictReport:
    return ConflictReport(
        conflicts,
        **(
            {
                "reference": "main",
                "head": HEAD,
                "expected_hash": START,
                "distance": 3,
                "resolutions": resolutions,
            }
            | more
        ),
    )


@pytest.fixture
def orders(table, meta) -> Conflict:
    return Conflict(
        ConflictType.VALUE_DIFFERS,
        ORDERS,
        "values of existing and expected content for key 'db.sales.orders' are different",
        table("00012-a.json", 4358109269),
        table("00013-f.json", 7721034482, schema=4),
        table("00013-b.json", 9001288120),
        meta(4),
    )


def shown(where, of: ConflictReport) -> list[str]:
    where.terminal.print_lines(conflict_lines(of, where.terminal))
    return where.lines


def test_the_block_shows_what_differs_who_changed_it_and_what_to_do(screen, orders) -> None:
    assert shown(screen(100), report(orders)) == [
        "conflict on main at 8f31c0de8f31 (you started from 51b0aa1751b0, 3 commits ago)",
        " key               db.sales.orders                 VALUE_DIFFERS",
        "                   expected        current         proposed",
        " metadata-location …/00012-a.json  …/00013-f.json  …/00013-b.json",
        " snapshot-id       4358109269      7721034482      9001288120",
        " schema-id         3               4               3",
        ' changed by        000400040004 "nightly load" etl@example.org, 4 minutes ago',
        " resolve           nessie content put db.sales.orders   or   nessie reset db.sales.orders",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_block_fits_the_terminal_and_commands_stay_whole(screen, orders, width) -> None:
    lines = shown(screen(width), report(orders))
    assert all(cells(line) <= width for line in lines[1:])
    assert "nessie content put db.sales.orders" in "\n".join(lines)
    assert len(set(lines[3].split()[1:])) == 3, "shortened values still differ"


def test_on_a_narrow_terminal_who_changed_it_takes_two_lines(screen, orders) -> None:
    lines = shown(screen(60), report(orders))
    assert lines[6:8] == [
        ' changed by        000400040004 "nightly load"',
        "                   etl@example.org, 4 minutes ago",
    ]


def test_in_a_pipe_every_value_is_whole(pipe, orders) -> None:
    text = "\n".join(shown(pipe, report(orders)))
    for whole in (
        HEAD,
        START,
        "s3://lake/db/sales/orders/metadata/00013-f.json",
        "0004" * 16,
        "2026-05-01T11:56:00Z",
    ):
        assert whole in text
    assert "…" not in text


def test_only_fields_that_differ_are_shown(screen, orders) -> None:
    labels = [line.split()[0] for line in shown(screen(), report(orders)) if line.startswith(" ")]
    assert "spec-id" not in labels
    assert "sort-order-id" not in labels
    assert "id" not in labels


@pytest.mark.parametrize(
    ("expected", "actual", "proposed", "cells_"),
    [
        (True, False, True, ["iceberg-table", "(none)", "iceberg-table"]),
        (False, True, True, ["(none)", "iceberg-table", "iceberg-table"]),
        (True, True, False, ["iceberg-table", "iceberg-table", "(none)"]),
        (True, False, False, ["iceberg-table", "(none)", "(none)"]),
    ],
)
def test_a_side_without_content_says_so(
    screen, table, *, expected, actual, proposed, cells_
) -> None:
    sides = [
        table(f"{n}.json", n) if there else None
        for n, there in enumerate((expected, actual, proposed))
    ]
    lines = shown(
        screen(120),
        report(
            Conflict(
                ConflictType.KEY_DOES_NOT_EXIST,
                ORDERS,
                "key 'db.sales.orders' does not exist",
                *sides,
            )
        ),
    )
    assert lines[3].split() == ["type", *cells_]
    assert " reason            key 'db.sales.orders' does not exist" in lines, (
        "nobody is known to have changed it"
    )


def test_another_type_shows_the_fields_of_both(screen, table) -> None:
    view = IcebergView(
        id="id-2", metadata_location="s3://lake/view.json", version_id=1, schema_id=3
    )
    lines = shown(
        screen(120),
        report(
            Conflict(
                ConflictType.PAYLOAD_DIFFERS, ORDERS, "payload", table("a", 1), view, table("b", 2)
            )
        ),
    )
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:-1]}
    assert rows["type"] == ["iceberg-table", "iceberg-view", "iceberg-table"]
    assert rows["id"] == ["id-1", "id-2", "id-1"]
    assert rows["version-id"] == ["1"]


@pytest.mark.parametrize(
    "type_",
    [
        ConflictType.NAMESPACE_ABSENT,
        ConflictType.NAMESPACE_NOT_EMPTY,
        ConflictType.NOT_A_NAMESPACE,
        ConflictType.UNKNOWN,
    ],
)
def test_a_conflict_without_contents_gives_its_reason(screen, type_) -> None:
    lines = shown(
        screen(), report(Conflict(type_, ORDERS, "namespace 'db.sales' " + "must exist " * 8))
    )
    assert type_.value in lines[1]
    assert lines[2].startswith(" reason            namespace 'db.sales' must exist")
    assert lines[3].strip().startswith("exist must exist")
    assert all(cells(line) <= 80 for line in lines[:-1])


def test_a_reference_that_moved_has_no_key(screen) -> None:
    text = f"named-reference 'main' is not at expected hash '{START}', but at '{HEAD}'"
    lines = shown(
        screen(),
        report(Conflict(ConflictType.UNEXPECTED_HASH, None, text), resolutions=lambda _: ()),
    )
    assert lines[1].split() == ["reference", "main", "UNEXPECTED_HASH"]
    assert lines[2].startswith(" reason            named-reference 'main'")


def test_a_rename_on_either_side_is_told(screen, table, meta) -> None:
    rename = Rename(ORDERS, ContentKey(("db", "old.orders")), meta(7, "tidy up"))
    conflict = Conflict(
        ConflictType.KEY_CONFLICT,
        ORDERS,
        "renamed",
        table("a", 1),
        None,
        table("b", 2),
        meta(4),
        rename,
        None,
    )
    assert (
        ' renamed           db.sales.orders to db."old.orders" in the source by 000700070007'
        in shown(screen(120), report(conflict))
    )


def test_properties_and_unknown_attributes_are_compared_one_by_one(screen) -> None:
    sides = [
        Namespace(elements=("db",), properties={"owner": owner, "same": "x"}) for owner in "ab"
    ]
    lines = shown(
        screen(),
        report(
            Conflict(ConflictType.VALUE_DIFFERS, ORDERS, "values", sides[0], sides[1], sides[0])
        ),
    )
    assert lines[3].split() == ["properties.owner", "a", "b", "a"]
    foreign = [
        UnknownContent(foreign_type="MODEL", foreign_attributes={"weights": {"n": n}})
        for n in (1, 2)
    ]
    lines = shown(
        screen(),
        report(
            Conflict(ConflictType.VALUE_DIFFERS, ORDERS, "values", foreign[0], foreign[1], None)
        ),
    )
    assert ["weights.n", "1", "2"] in [line.split() for line in lines]


def test_stored_control_characters_are_shown_escaped(screen, meta) -> None:
    sides = [
        Namespace(elements=("db",), properties={"a\x1b[2J": value})
        for value in ("x\x07", "y\u202e")
    ]
    text = "\n".join(
        shown(
            screen(),
            report(
                Conflict(
                    ConflictType.VALUE_DIFFERS,
                    ORDERS,
                    "m",
                    sides[0],
                    sides[1],
                    None,
                    meta(1, "boo\x1b[31m"),
                )
            ),
        )
    )
    assert "properties.a\\x1b[2J" in text
    assert "x\\x07" in text
    assert "y\\u202e" in text
    assert '"boo\\x1b[31m"' in text


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({"distance": None}, "conflict on main at 8f31c0de8f31 (you started from 51b0aa1751b0)"),
        (
            {"distance": 1},
            "conflict on main at 8f31c0de8f31 (you started from 51b0aa1751b0, 1 commit ago)",
        ),
        ({"expected_hash": None}, "conflict on main at 8f31c0de8f31"),
        ({"expected_hash": HEAD}, "conflict on main at 8f31c0de8f31"),
        ({"would": True, "expected_hash": None}, "would conflict on main at 8f31c0de8f31"),
        ({"reference": None, "head": None, "expected_hash": None}, "conflict"),
    ],
)
def test_the_title_says_where_and_since_when(screen, orders, more, title) -> None:
    assert shown(screen(), report(orders, **more))[0] == title


def test_several_conflicts_are_counted_and_each_has_its_block(screen, orders) -> None:
    other = Conflict(
        ConflictType.KEY_EXISTS, Delete(ContentKey(("x",))).key, "key 'x' already exists"
    )
    lines = shown(screen(), report(orders, other))
    assert lines[0].startswith("2 conflicts on main at 8f31c0de8f31 (you")
    assert (
        shown(screen(), report(orders, other, would=True, expected_hash=None))[0]
        == "2 keys would conflict on main at 8f31c0de8f31"
    )
    assert lines.count("") == 1
    assert [line.split()[1] for line in lines if line.startswith(" key ")] == [
        "db.sales.orders",
        "x",
    ]


def test_commands_that_do_not_fit_stand_below_each_other(screen, pipe, orders) -> None:
    for where in (screen(60), pipe):
        assert shown(where, report(orders))[-2:] == [
            " resolve           nessie content put db.sales.orders",
            " or                nessie reset db.sales.orders",
        ]
