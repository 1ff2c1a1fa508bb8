import pytest


@pytest.fixture
def sides(catalog):
    """feature: orders updated, items renamed, a table created; main: another table."""
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    catalog.rename("feature", "db.items", "db.positions")
    catalog.create("feature", 'db."new.table"')
    catalog.create("main", "db.other")
    return catalog


def test_records_of_fields(nessie, sides) -> None:
    ran = nessie("diff", "v1", "feature")
    assert ran.code == 0
    assert ["M", "db.orders", "snapshot-id", "1", "2"] in ran.rows
    assert ["R", "db.positions", "key", "db.items", "db.positions"] in ran.rows
    assert ["A", 'db."new.table"', "type", "", "iceberg-table"] in ran.rows
    assert all(len(row) == 5 for row in ran.rows)


def test_name_status_and_stat(nessie, sides) -> None:
    assert nessie("diff", "v1", "feature", "--name-status").rows == [
        ["A", 'db."new.table"'],
        ["M", "db.orders"],
        ["R", "db.items", "db.positions"],
    ]
    assert nessie("diff", "v1", "feature", "--name-only").lines == ['db."new.table"', "db.orders", "db.positions"]
    assert nessie("diff", "v1", "feature", "--stat").rows == [
        ["A", 'db."new.table"', "iceberg-table"],
        ["M", "db.orders", "metadata-location,snapshot-id"],
        ["R", "db.items -> db.positions", "key"],
    ]


def test_the_second_side_is_the_current_reference(nessie, sides) -> None:
    assert nessie("diff", "v1", "--name-status").rows == [["A", "db.other"]]
    assert nessie("diff", "v1", "--name-status", "--ref", "feature").out == nessie("diff", "v1", "feature", "--name-status").out


def test_two_dots_are_two_revisions_and_three_start_at_the_merge_base(nessie, sides) -> None:
    assert nessie("diff", "main..feature", "--name-status").out == nessie("diff", "main", "feature", "--name-status").out
    assert ["D", "db.other"] in nessie("diff", "main..feature", "--name-status").rows
    assert nessie("diff", "main...feature", "--name-status").out == nessie("diff", "v1", "feature", "--name-status").out


def test_prefixes_may_overlap(nessie, sides) -> None:
    rows = nessie("diff", "v1", "feature", "--name-status", "--", "db.orders", "db.orders.deeper", "db.positions").rows
    assert rows == [["M", "db.orders"], ["A", "db.positions"]]
    assert len(nessie("diff", "v1", "feature", "--name-status", "--", "db", "db.orders").rows) == 3
    assert nessie("diff", "v1", "feature", "--", "nothing").out == ""


def test_the_exit_code_tells_scripts(nessie, sides) -> None:
    assert nessie("diff", "v1", "feature", "--exit-code").code == 1
    assert nessie("diff", "v1", "feature", "--exit-code", "--json").code == 1
    assert nessie("diff", "main", "main", "--exit-code") == (0, "", "")
    assert nessie("diff", "v1", "feature").code == 0


def test_quiet_is_git_s_nothing_is_printed_and_the_exit_code_tells(nessie, sides) -> None:
    assert nessie("diff", "v1", "feature", "--quiet") == (1, "", "")
    assert nessie("-q", "diff", "v1", "feature", "--stat") == (1, "", "")
    assert nessie("diff", "v1", "v1", "--quiet") == (0, "", "")
    assert nessie("diff", "v1", "feature", "--quiet", "--json") == nessie("diff", "v1", "feature", "--json"), "a document is no remark"


def test_json_has_the_shape_of_rest(nessie, sides) -> None:
    found = nessie("diff", "v1", "feature", "--json").json
    assert found["hasMore"] is False
    assert found["effectiveFromReference"] == {"type": "TAG", "name": "v1", "hash": sides.head("v1")}
    assert found["effectiveToReference"] == {"type": "BRANCH", "name": "feature", "hash": sides.head("feature")}
    keys = {tuple(d["key"]["elements"]): (d["from"] is not None, d["to"] is not None) for d in found["diffs"]}
    assert keys == {
        ("db", "new.table"): (False, True),
        ("db", "orders"): (True, True),
        ("db", "items"): (True, False),
        ("db", "positions"): (False, True),
    }


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ([], 2, "diff needs a revision"),
        (["main", ""], 2, "empty word"),
        (["a", "b", "c"], 2, "'c' is one word too many"),
        (["v1", "futur"], 4, "Did you mean 'feature'?"),
        (["v1", "--", "a..b"], 2, "empty"),
    ],
)
def test_wrong_input(nessie, sides, argv, code, said) -> None:
    ran = nessie("diff", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
