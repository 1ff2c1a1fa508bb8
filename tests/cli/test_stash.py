"""`nessie stash`, and `nessie switch -`."""

import json

import pytest

from .conftest import staged


def test_a_stashed_batch_is_restored_unchanged(nessie, catalog, tmp_path) -> None:
    nessie("content", "delete", "db.items")
    nessie("content", "rename", "db.orders", "db.sales")
    before = (tmp_path / ".nessie" / "batch.json").read_bytes()

    assert nessie("stash").out == "stashed: 3 keys; nothing is staged\n"
    assert staged(nessie) == []
    assert nessie("stash", "pop").code == 0

    assert (tmp_path / ".nessie" / "batch.json").read_bytes() == before
    assert nessie("stash", "list").out == ""
    assert not (tmp_path / ".nessie" / "stash.json").exists()


def test_the_newest_is_number_0_and_each_can_be_named(nessie, catalog) -> None:
    nessie("content", "delete", "db.items")
    nessie("stash", "push", "-m", "first")
    nessie("content", "delete", "db.orders")
    nessie("stash", "-m", "second")

    assert [(row[0], row[2], row[3], row[4]) for row in nessie("stash", "list").rows] == [
        ("0", "main", "1", "second"),
        ("1", "main", "1", "first"),
    ]
    assert nessie("stash", "show").out == "delete     db.orders  iceberg-table\n"
    assert nessie("stash", "show", "1", "--json").json["batch"]["operations"][0]["key"] == {
        "elements": ["db", "items"]
    }
    assert nessie("stash", "drop", "1").out == "dropped: first\n"
    assert [item["message"] for item in nessie("stash", "list", "--json").json["stashes"]] == [
        "second"
    ]


def test_apply_keeps_the_stash(nessie, catalog) -> None:
    nessie("content", "delete", "db.items")
    nessie("stash")
    assert nessie("stash", "apply").code == 0
    assert staged(nessie) == ["db.items"]
    assert len(nessie("stash", "list").rows) == 1


@pytest.mark.parametrize("verb", ["apply", "pop"])
def test_a_batch_is_not_staged_for_a_tag(nessie, catalog, verb) -> None:
    assert nessie("content", "put", "db.orders", "--snapshot-id", "2").code == 0
    assert nessie("stash").code == 0
    assert nessie("switch", "v1").code == 0
    assert nessie("stash", verb).code == 2
    assert len(nessie("stash", "list").rows) == 1
    assert nessie("switch", "main").code == 0
    assert nessie("stash", verb).code == 0


def test_a_restored_batch_keeps_its_expected_contents(nessie, catalog) -> None:
    nessie("content", "delete", "db.orders")
    nessie("stash")
    catalog.update("main", "db.orders", 2)
    nessie("stash", "pop")
    assert nessie("commit", "-m", "delete").code == 3


def test_a_stash_is_not_applied_over_a_staged_batch(nessie, catalog) -> None:
    nessie("content", "delete", "db.items")
    nessie("stash")
    nessie("content", "delete", "db.orders")
    ran = nessie("stash", "pop")
    ran.expect(2, "already staged")
    assert staged(nessie) == ["db.orders"]
    assert len(nessie("stash", "list").rows) == 1


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ([], 1, "nothing is staged"),
        (["pop"], 1, "the stash is empty"),
        (["show"], 1, "the stash is empty"),
        (["drop"], 1, "the stash is empty"),
        (["pop", "x"], 2, "'x'"),
        (["pp"], 2, "did you mean 'pop'"),
    ],
)
def test_wrong_input_is_one_line_and_a_document(nessie, catalog, argv, code, said) -> None:
    ran = nessie("stash", *argv)
    ran.expect(code, said, out="")
    assert "error" in nessie("stash", *argv, "--json").json


def test_an_unknown_number(nessie, catalog) -> None:
    nessie("content", "delete", "db.items")
    nessie("stash")
    ran = nessie("stash", "pop", "1")
    ran.expect(2, "the stash has 1 batch, numbered from 0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"version": 2, "stashes": []}',
        '{"version": 1, "stashes": [{}]}',
        '{"version": 1, "stashes": [3]}',
        "\x00",
    ],
)
def test_an_unreadable_file_is_reported_and_never_overwritten(
    nessie, catalog, tmp_path, text
) -> None:
    path = tmp_path / ".nessie" / "stash.json"
    nessie("content", "delete", "db.items")
    path.write_text(text)
    for argv in ([], ["list"], ["pop"], ["drop"]):
        ran = nessie("stash", *argv)
        ran.expect(2, "stash.json")
        assert len(ran.err.splitlines()) == 1
    assert path.read_text() == text
    assert staged(nessie) == ["db.items"]


def test_without_a_workspace_there_is_nothing_to_stash(nessie) -> None:
    assert nessie("stash").code == 4


def test_a_stash_keeps_its_time(nessie, catalog, tmp_path) -> None:
    nessie("content", "delete", "db.items")
    nessie("stash")
    kept = json.loads((tmp_path / ".nessie" / "stash.json").read_text())["stashes"][0]
    assert nessie("stash", "list", "--json").json["stashes"][0]["time"] == kept["time"]


# -- switch - ------------------------------------------------------------------------------------
def current(nessie) -> str:
    return nessie("status", "--json").json["reference"]["name"]


def test_switch_dash_goes_to_the_previous_reference_and_back(nessie, catalog) -> None:
    nessie("switch", "-c", "dev")
    assert nessie("switch", "-").code == 0
    assert current(nessie) == "main"
    nessie("switch", "-")
    assert current(nessie) == "dev"


def test_switching_to_the_current_reference_keeps_the_previous_one(nessie, catalog) -> None:
    nessie("switch", "-c", "dev")
    nessie("switch", "dev")
    nessie("switch", "-")
    assert current(nessie) == "main"


def test_the_previous_reference_is_followed_through_a_rename(nessie, catalog) -> None:
    nessie("switch", "-c", "dev")
    nessie("switch", "main")
    nessie("branch", "-m", "dev", "work")
    nessie("switch", "-")
    assert current(nessie) == "work"


def test_switch_dash_without_a_previous_reference_or_with_a_deleted_one(nessie, catalog) -> None:
    ran = nessie("switch", "-")
    ran.expect(2, "no other reference yet")
    nessie("switch", "-c", "dev")
    nessie("switch", "main")
    nessie("branch", "-d", "dev")
    assert nessie("switch", "-").code == 4
    assert current(nessie) == "main"
