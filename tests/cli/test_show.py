import pytest


@pytest.fixture
def changed(catalog):
    catalog.update("main", "db.orders", 2)
    catalog.rename("main", "db.items", "db.positions")
    catalog.drop("main", "db.orders")
    return catalog


def test_a_commit_is_shown_with_each_content_before_and_after(nessie, changed) -> None:
    ran = nessie("show", "main~2")
    assert ran.code == 0
    assert ran.lines[0].startswith("commit ")
    assert ran.lines[1] == "Author: Eva <eva@example.org>"
    assert ran.lines[-5:] == [
        "    update db.orders",
        "",
        "updated db.orders  iceberg-table",
        "  metadata-location  s3://lake/orders.json -> s3://lake/db.orders-2.json",
        "  snapshot-id        1                     -> 2",
    ]


def test_the_newest_commit_of_the_current_reference_is_the_default(nessie, changed) -> None:
    assert "deleted db.orders  iceberg-table" in nessie("show").lines
    assert (
        nessie("show").out
        == nessie("show", "HEAD").out
        == nessie("show", changed.head("main")[:12]).out
    )


def test_a_rename_is_one_change(nessie, changed) -> None:
    assert nessie("show", "main~1").lines[-1] == "renamed db.items -> db.positions  iceberg-table"


def test_only_the_keys_asked_for(nessie, changed) -> None:
    assert nessie("show", "v1", "--", "db.items").out.count("created") == 1
    assert nessie("show", "v1", "--", "db").out.count("created") == 2
    assert nessie("show", "main~1", "--", "db.items").lines[-1].startswith("renamed")
    assert nessie("show", "--", "nothing.here").lines[-1] == "no content changed"


def test_json_is_a_log_entry_with_differences(nessie, changed) -> None:
    found = nessie("show", "main~1", "--json").json
    assert found["commitMeta"]["message"] == "rename db.items"
    assert [operation["type"] for operation in found["operations"]] == ["DELETE", "PUT"]
    assert [
        (d["key"]["elements"][-1], d.get("renamedTo"), d.get("renamedFrom")) for d in found["diffs"]
    ] == [
        ("items", {"elements": ["db", "positions"]}, None),
        ("positions", None, {"elements": ["db", "items"]}),
    ]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["nowhere"], 4, "nowhere"),
        (["main", "v1"], 2, "too many arguments: 'v1'"),
        (["main~99"], 4, "is beyond the beginning of the history"),
        (["--", '"open'], 2, "quote"),
    ],
)
def test_wrong_input(nessie, changed, argv, code, said) -> None:
    ran = nessie("show", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_git_s_form_of_a_content_at_a_revision(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    assert nessie("show", "main:db.orders") == nessie("content", "show", "db.orders", "main")
    assert nessie("show", ":db.orders") == nessie("content", "show", "db.orders")
    assert nessie("show", "v1:db.orders", "--json").json["content"]["snapshotId"] == 1
    assert nessie("show", "main~1:db.orders", "--json").json["content"]["snapshotId"] == 1
    assert (
        nessie("show", "main*9999-01-01T00:00:00Z:db.orders", "--json").json["content"][
            "snapshotId"
        ]
        == 2
    )
    assert (
        nessie("show", "main*9999-01-01T00:00:00Z", "--json").json["commitMeta"]["message"]
        == "update db.orders"
    )


def test_a_content_on_another_reference_is_found_there(nessie, catalog) -> None:
    catalog.create("main", "db.more")
    ran = nessie("show", "v1:db.more")
    ran.expect(4, "main has it")
    assert nessie("show", "nowhere:db.more").code == 4


def test_name_status_shows_a_letter_and_the_key(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    nessie("content", "rename", "db.items", "db.parts")
    nessie("content", "delete", "db.orders")
    nessie("content", "put", "web", "--type", "namespace")
    nessie("commit", "-m", "four")

    lines = nessie("show", "--name-status").out.splitlines()
    assert sorted(lines[lines.index("    four") + 2 :]) == [
        "A web",
        "D db.orders",
        "R db.items -> db.parts",
    ]
    assert nessie("show", "HEAD~1", "--name-status").out.endswith("\n\nM db.orders\n")
    filtered = nessie("show", "--name-status", "--", "web").out
    assert filtered.endswith("\n\nA web\n")


@pytest.mark.parametrize("args", [["--deep"], ["v1:db.orders"]])
def test_name_status_of_no_changes_is_refused(nessie, catalog, args) -> None:
    ran = nessie("show", "--name-status", *args)
    ran.expect(2, "--name-status", out="")
