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


def test_each_content_has_its_changed_fields(nessie, sides) -> None:
    ran = nessie("diff", "v1", "feature")
    assert ran.code == 0
    assert ran.changed == [
        ("created", 'db."new.table"'),
        ("updated", "db.orders"),
        ("renamed", "db.items -> db.positions"),
    ]
    assert ran.fields["db.orders", "snapshot-id"] == ["1", "2"]
    assert ran.fields['db."new.table"', "snapshot-id"] == ["1"]
    assert not [label for key, label in ran.fields if key.endswith("db.positions")]


def test_name_status_and_stat(nessie, sides) -> None:
    assert nessie("diff", "v1", "feature", "--name-status").records == [
        ["A", 'db."new.table"'],
        ["M", "db.orders"],
        ["R", "db.items", "db.positions"],
    ]
    assert nessie("diff", "v1", "feature", "--name-only").lines == [
        'db."new.table"',
        "db.orders",
        "db.positions",
    ]
    assert nessie("diff", "v1", "feature", "--stat").lines == [
        "CHANGE  KEY                       FIELDS",
        'A       db."new.table"            iceberg-table',
        "M       db.orders                 metadata-location,snapshot-id",
        "R       db.items -> db.positions  key",
        "1 created, 1 updated, 1 renamed",
    ]


def test_the_second_side_is_the_current_reference(nessie, sides) -> None:
    assert nessie("diff", "v1", "--name-status").records == [["A", "db.other"]]
    assert (
        nessie("diff", "v1", "--name-status", "--ref", "feature").out
        == nessie("diff", "v1", "feature", "--name-status").out
    )


def test_two_dots_are_two_revisions_and_three_start_at_the_merge_base(nessie, sides) -> None:
    assert (
        nessie("diff", "main..feature", "--name-status").out
        == nessie("diff", "main", "feature", "--name-status").out
    )
    assert ["D", "db.other"] in nessie("diff", "main..feature", "--name-status").records
    assert (
        nessie("diff", "main...feature", "--name-status").out
        == nessie("diff", "v1", "feature", "--name-status").out
    )


def test_prefixes_may_overlap(nessie, sides) -> None:
    rows = nessie(
        "diff",
        "v1",
        "feature",
        "--name-status",
        "--",
        "db.orders",
        "db.orders.deeper",
        "db.positions",
    ).records
    assert rows == [["M", "db.orders"], ["A", "db.positions"]]
    assert (
        len(nessie("diff", "v1", "feature", "--name-status", "--", "db", "db.orders").records) == 3
    )
    assert nessie("diff", "v1", "feature", "--", "nothing").out == ""


def test_the_exit_code_says_whether_there_are_differences(nessie, sides) -> None:
    assert nessie("diff", "v1", "feature", "--exit-code").code == 1
    assert nessie("diff", "v1", "feature", "--exit-code", "--json").code == 1
    assert nessie("diff", "main", "main", "--exit-code") == (0, "", "")
    assert nessie("diff", "v1", "feature").code == 0


def test_quiet_prints_nothing_and_sets_the_exit_code_as_in_git(nessie, sides) -> None:
    assert nessie("diff", "v1", "feature", "--quiet") == (1, "", "")
    assert nessie("-q", "diff", "v1", "feature", "--stat") == (1, "", "")
    assert nessie("diff", "v1", "v1", "--quiet") == (0, "", "")
    assert nessie("diff", "v1", "feature", "--quiet", "--json") == nessie(
        "diff", "v1", "feature", "--json"
    ), "a document is no remark"


@pytest.mark.parametrize(
    ("first", "second"),
    [("--stat", "--name-status"), ("--stat", "--name-only"), ("--name-status", "--name-only")],
)
def test_two_formats_are_refused(nessie, sides, first, second) -> None:
    ran = nessie("diff", "v1", "feature", second, first)
    assert (ran.code, ran.out) == (2, "")
    assert f"{first} and {second} cannot be used together" in ran.err


def test_json_has_the_shape_of_rest(nessie, sides) -> None:
    found = nessie("diff", "v1", "feature", "--json").json
    assert found["hasMore"] is False
    assert found["effectiveFromReference"] == {
        "type": "TAG",
        "name": "v1",
        "hash": sides.head("v1"),
    }
    assert found["effectiveToReference"] == {
        "type": "BRANCH",
        "name": "feature",
        "hash": sides.head("feature"),
    }
    keys = {
        tuple(d["key"]["elements"]): (d["from"] is not None, d["to"] is not None)
        for d in found["diffs"]
    }
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
        (["main", ""], 2, "an argument is empty"),
        (["a", "b", "c"], 2, "too many arguments: 'c'"),
        (["v1", "featrue"], 4, "Did you mean 'feature'?"),
        (["v1", "--", "a..b"], 2, "empty"),
    ],
)
def test_wrong_input(nessie, sides, argv, code, said) -> None:
    ran = nessie("diff", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


# -- the staged batch ----------------------------------------------------------------------------
@pytest.fixture
def staged(nessie, catalog):
    """A staged creation, update, deletion and rename, on a branch that has moved since."""
    catalog.create("main", "db.old")
    catalog.create("main", "db.gone")
    for line in (
        (
            "content put db.new --type iceberg-table --metadata-location s3://lake/new.json"
            " --snapshot-id 7"
        ),
        (
            "content put db.orders --type iceberg-table --metadata-location s3://lake/later.json"
            " --snapshot-id 2"
        ),
        "content delete db.gone",
        "content rename db.old db.moved",
        "content unmodified db.items",
    ):
        assert nessie(*line.split()).code == 0
    catalog.update("main", "db.items", 5)
    return catalog


STAGED = [["R", "db.old", "db.moved"], ["D", "db.gone"], ["A", "db.new"], ["M", "db.orders"]]


def test_the_staged_batch_is_compared_with_the_head_of_its_branch(nessie, staged) -> None:
    assert sorted(nessie("diff", "--staged", "--name-status").records) == sorted(STAGED)
    ran = nessie("diff", "--staged")
    assert ran.fields["db.orders", "snapshot-id"] == ["1", "2"]
    assert ("created", "db.new") in ran.changed
    assert ran.fields["db.new", "snapshot-id"] == ["7"]
    assert "db.items" not in [key for _, key in ran.changed]
    assert (
        "M       db.orders           metadata-location,snapshot-id"
        in nessie("diff", "--cached", "--stat").lines
    )
    assert nessie("diff", "--staged", "--name-only", "--", "db.orders", "db.n").lines == [
        "db.orders"
    ]


def test_the_document_of_a_staged_batch_is_that_of_a_diff(nessie, staged) -> None:
    document = nessie("diff", "--staged", "--json").json
    main = {"type": "BRANCH", "name": "main", "hash": staged.head("main")}
    assert document["staged"] is True
    assert (document["effectiveFromReference"], document["effectiveToReference"]) == (main, main)
    assert len(document["diffs"]) == 5
    assert "staged" not in nessie("diff", "main~1", "--json").json


def test_a_staged_diff_shows_the_changes_of_the_commit(nessie, staged) -> None:
    before = sorted(nessie("diff", "--staged", "--name-status").records)
    assert nessie("reset", "db.items").code == 0
    assert nessie("commit", "-m", "all").code == 0
    assert sorted(nessie("diff", "HEAD~1", "--name-status").records) == before
    assert nessie("diff", "--staged") == (0, "", "")


def test_exit_codes_of_a_staged_diff(nessie, staged) -> None:
    assert nessie("diff", "--staged", "--exit-code", "--stat").code == 1
    assert nessie("diff", "--staged", "-q") == (1, "", "")
    assert nessie("diff", "--staged", "--exit-code", "--", "db.items").code == 0
    assert nessie("diff", "--staged", "main").code == 2
    elsewhere = nessie("--ref", "v1", "diff", "--staged")
    elsewhere.expect(2, "not for 'v1'")


def test_a_staged_diff_reads_metadata_files(nessie, staged) -> None:
    ran = nessie("diff", "--staged", "--deep", "--", "db.orders")
    assert ("db.orders", "metadata") in ran.fields


def test_an_empty_diff_suggests_the_staged_one(nessie, catalog) -> None:
    assert "nessie diff --staged" in nessie("diff").err
