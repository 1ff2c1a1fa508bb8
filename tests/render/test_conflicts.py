from collections.abc import Sequence

import pytest
from msgspec import structs

from nessie_cli.errors import Resolution, WaysOut
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
from nessie_cli.render.conflicts import (
    ConflictReport,
    conflict_lines,
    sides_of_batch,
    sides_of_merge,
)
from nessie_cli.render.text import cells

ORDERS = ContentKey(("db", "sales", "orders"))


class Lines(WaysOut):
    """Given command lines for each conflict, and for all of them."""

    def __init__(self, *lines: Resolution, one_by_one: str = "", all_: Sequence[str] = ()) -> None:
        self.lines, self.one_by_one, self.all = lines, one_by_one, all_

    def of(self, conflict: Conflict) -> list[Resolution]:
        return [
            Resolution(line.command.replace("KEY", str(conflict.key)), line.effect)
            for line in self.lines
        ]

    def together(self) -> list[Resolution]:
        return [Resolution(line) for line in self.all]


STAGED = Lines(Resolution("nessie content put KEY"), Resolution("nessie reset KEY"))


def report(*conflicts: Conflict, **more) -> ConflictReport:
    return ConflictReport(
        conflicts, **({"sides": sides_of_batch("main"), "ways_out": STAGED} | more)
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


def figures(_: Conflict) -> list[dict[str, str]]:
    return [
        {"rows": rows, "data-files": files, "column id": "long"} | columns
        for rows, files, columns in (
            ("1,204,551", "12", {}),
            ("1,204,560", "12", {}),
            ("1,310,002", "12", {"column zoe": "string"}),
        )
    ]


def test_a_conflict_of_a_merge_shows_what_differs_who_changed_it_and_the_way_out(
    screen, orders
) -> None:
    found = report(
        orders,
        sides=sides_of_merge("main", "nightly"),
        figures=figures,
        ways_out=Lines(
            *(Resolution(f"nessie merge nightly {side} KEY") for side in ("--theirs", "--ours")),
            one_by_one="nessie resolve merge nightly",
        ),
    )
    assert shown(screen(80), found) == [
        "conflict: db.sales.orders was changed on main and on nightly   VALUE_DIFFERS",
        "                     base            ours (main)     theirs (nightly)",
        "  snapshot-id        4358109269      7721034482      9001288120",
        "  schema-id          3               4               3",
        "  rows               1,204,551       1,204,560       1,310,002",
        "  column zoe                                         string",
        "  metadata-location  …/00012-a.json  …/00013-f.json  …/00013-b.json",
        '  changed by         000400040004 "nightly load" etl@example.org, 4 minutes ago',
        "  resolve            nessie resolve merge nightly   # one by one",
        "  or                 nessie merge nightly --theirs db.sales.orders",
        "  or                 nessie merge nightly --ours db.sales.orders",
    ]


def test_a_conflict_of_a_batch_names_its_own_states(screen, orders) -> None:
    lines = shown(screen(100), report(orders))
    assert lines[:2] == [
        "conflict: db.sales.orders was changed on main and in the batch   VALUE_DIFFERS",
        "                     expected        current         proposed",
    ]
    assert lines[-2:] == [
        "  resolve            nessie content put db.sales.orders",
        "  or                 nessie reset db.sales.orders",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_block_fits_the_terminal_and_commands_stay_whole(screen, orders, width) -> None:
    lines = shown(screen(width), report(orders))
    assert all(cells(line) <= width for line in lines)
    assert "nessie content put db.sales.orders" in "\n".join(lines)
    (locations,) = [line.split()[1:] for line in lines if "metadata-location" in line]
    assert len(set(locations)) == 3, "shortened values still differ"


def test_on_a_narrow_terminal_who_changed_it_takes_two_lines(screen, orders) -> None:
    lines = shown(screen(60), report(orders))
    assert lines[6:8] == [
        '  changed by         000400040004 "nightly load"',
        "                     etl@example.org, 4 minutes ago",
    ]


def test_values_too_wide_for_a_table_are_listed_one_per_line(screen, table) -> None:
    states = [table(f"{n:05}-a.json", 2**62 + n) for n in range(3)]
    conflict = Conflict(ConflictType.VALUE_DIFFERS, ORDERS, "values", *states)
    found = report(conflict, sides=sides_of_merge("main", "load-2026-05-01"), ways_out=WaysOut())
    assert shown(screen(80), found) == [
        "conflict: db.sales.orders was changed on main and on load-2026-05-01",
        "  VALUE_DIFFERS",
        "  ours               main",
        "  theirs             load-2026-05-01",
        "  snapshot-id",
        "    base             4611686018427387904",
        "    ours             4611686018427387905",
        "    theirs           4611686018427387906",
        "  metadata-location",
        "    base             s3://lake/db/sales/orders/metadata/00000-a.json",
        "    ours             s3://lake/db/sales/orders/metadata/00001-a.json",
        "    theirs           s3://lake/db/sales/orders/metadata/00002-a.json",
    ]


def test_the_list_of_a_batch_names_its_own_states(screen, table) -> None:
    states = [table("a.json", 2**62 + n) for n in range(3)]
    conflict = Conflict(ConflictType.VALUE_DIFFERS, ORDERS, "values", *states)
    lines = shown(screen(80), report(conflict))
    assert lines[1:5] == [
        "  snapshot-id",
        "    expected         4611686018427387904",
        "    current          4611686018427387905",
        "    proposed         4611686018427387906",
    ]


def test_a_pipe_gets_the_lines_of_a_wide_terminal_with_whole_values(screen, pipe, orders) -> None:
    found = report(orders, sides=sides_of_merge("main", "nightly"))
    lines = shown(pipe, found)
    assert lines == shown(screen(400), found)
    metadata = "s3://lake/db/sales/orders/metadata/"
    assert (
        f"  metadata-location  {metadata}00012-a.json  {metadata}00013-f.json  "
        f"{metadata}00013-b.json"
    ) in lines
    assert (
        '  changed by         000400040004 "nightly load" etl@example.org, 4 minutes ago' in lines
    )


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
    assert lines[2].split() == ["type", *cells_]


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
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:-1]}
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
    assert lines[0].startswith("conflict: namespace 'db.sales' must exist must")
    assert lines[1].startswith("  exist must")
    assert lines[1].endswith(f"   {type_.value}")
    assert all(cells(line) <= 80 for line in lines)


def test_a_reference_that_moved_has_no_key(screen) -> None:
    text = "named-reference 'main' is not at expected hash '51b0aa17', but at '8f31c0de'"
    lines = shown(
        screen(),
        report(Conflict(ConflictType.UNEXPECTED_HASH, None, text), ways_out=WaysOut()),
    )
    assert lines == [
        "conflict: named-reference 'main' is not at expected hash '51b0aa17', but at",
        "  '8f31c0de'   UNEXPECTED_HASH",
    ]


def test_a_rename_on_either_side_is_shown(screen, table, meta) -> None:
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
    lines = shown(screen(120), report(conflict, sides=sides_of_merge("main", "tidy")))
    assert lines[0] == (
        "conflict: db.sales.orders was deleted on main and renamed and changed on tidy   KEY_CONFLICT"
    )
    assert (
        '  renamed            db.sales.orders to db."old.orders" on tidy by 000700070007' in lines
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
    assert lines[2].split() == ["properties.owner", "a", "b", "a"]
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
    ("sides", "said"),
    [
        ((1, 2, 3), "was changed on main and on dev"),
        ((1, None, 3), "was deleted on main and changed on dev"),
        ((1, 2, None), "was changed on main and deleted on dev"),
        ((None, 2, 3), "was created on main and on dev"),
        ((1, 2, 1), "was changed on main"),
        ((1, 1, 2), "was changed on dev"),
    ],
)
def test_the_headline_says_what_each_side_did(screen, table, sides, said) -> None:
    states = [table(f"{n}.json", n) if n else None for n in sides]
    conflict = Conflict(ConflictType.VALUE_DIFFERS, ORDERS, "values", *states)
    found = report(conflict, sides=sides_of_merge("main", "dev"))
    assert shown(screen(), found)[0] == f"conflict: db.sales.orders {said}   VALUE_DIFFERS"


def test_a_second_key_names_the_first_one(screen, table) -> None:
    conflict = Conflict(
        ConflictType.KEY_EXISTS,
        ORDERS,
        "values",
        proposed=table("1.json", 1),
        other_key=ContentKey(("old",)),
    )
    headline = shown(screen(), report(conflict))[0]
    assert " would be a second key of the content old   KEY_EXISTS" in headline


def test_without_states_the_message_is_the_headline(screen) -> None:
    conflict = Conflict(ConflictType.KEY_EXISTS, ORDERS, "key 'x' already exists")
    assert shown(screen(), report(conflict))[0] == "conflict: key 'x' already exists   KEY_EXISTS"


def test_each_conflict_has_its_block(screen, orders) -> None:
    other = Conflict(
        ConflictType.KEY_EXISTS, Delete(ContentKey(("x",))).key, "key 'x' already exists"
    )
    lines = shown(screen(), report(orders, other))
    assert lines[:3] == [
        "  db.sales.orders  changed on main and in the batch",
        "  x                key 'x' already exists",
        "",
    ]
    assert lines.count("") == 2
    assert [line.split()[-1] for line in lines if line.startswith("conflict: ")] == [
        "VALUE_DIFFERS",
        "KEY_EXISTS",
    ]


def test_a_line_of_the_list_is_never_cut_inside_a_word(screen, orders) -> None:
    other = Conflict(
        ConflictType.NAMESPACE_NOT_EMPTY, ContentKey(("n",)), "namespace 'n' is not empty"
    )
    lines = shown(screen(), report(orders, other))
    assert lines[1] == "  n                namespace 'n' is not empty"


def test_command_lines_for_all_conflicts_are_last_and_once(screen, orders) -> None:
    other = structs.replace(orders, key=ContentKey(("x",)))
    lines = Lines(
        Resolution("nessie merge n --theirs KEY"),
        one_by_one="nessie resolve merge n",
        all_=["nessie merge n --theirs db.sales.orders --theirs x"],
    )
    shown_lines = shown(screen(), report(orders, other, ways_out=lines))
    assert shown_lines[-4:] == [
        "",
        "all conflicts",
        "  resolve            nessie resolve merge n   # one by one",
        "  or                 nessie merge n --theirs db.sales.orders --theirs x",
    ]
    assert sum("one by one" in line for line in shown_lines) == 1
    alone = shown(screen(), report(orders, ways_out=lines))
    assert "all conflicts" not in alone
    assert sum("one by one" in line for line in alone) == 1
