from datetime import UTC, datetime, timedelta

import pytest

from nessie_cli.errors import ReferenceNotFound
from nessie_cli.repository.opening import connect
from tests.cli.conftest import Catalog
from tests.server.serving import serving


def exists(catalog, name: str) -> bool:
    try:
        catalog.head(name)
    except ReferenceNotFound:
        return False
    return True


def test_undo_reverses_the_last_commit_and_a_second_undo_redoes_it(nessie, catalog) -> None:
    before = catalog.head("main")
    after = days_ago(catalog, 1).update("main", "db.orders", 2)
    ran = nessie("undo", "main", "--yes")
    assert (ran.code, ran.out) == (
        0,
        f"moved branch main back from {after[:12]} to {before[:12]}\n",
    )
    assert ran.err.startswith(
        f'last operation: commit {after[:12]} "update db.orders" on main, by '
    )
    assert ran.err.endswith("\n`nessie undo` again redoes it\n")
    assert catalog.head("main") == before
    assert nessie("undo").code == 0
    assert catalog.head("main") == after


def test_without_a_name_undo_reverses_the_last_operation_of_the_caller(nessie, catalog) -> None:
    assert nessie("branch", "mine").code == 0
    head = catalog.head("mine")
    assert nessie("branch", "-d", "mine").code == 0
    catalog.update("main", "db.orders", 2)
    catalog.branch("theirs")

    ran = nessie("undo")
    assert (ran.code, ran.out) == (0, f"restored branch mine at {head[:12]}\n")
    assert nessie("undo").out == f"deleted branch mine (was {head[:12]})\n"


def test_undo_first_says_what_the_last_operation_did(nessie, catalog) -> None:
    start = catalog.head("main")[:12]
    catalog.branch("feature")
    head = catalog.update("feature", "db.orders", 2)[:12]
    for argv, done, undone in (
        (["tag", "v2"], f"created tag v2 at {start}", f"deleted tag v2 (was {start})"),
        (["tag", "-d", "v1"], f"deleted tag v1 (was {start})", f"restored tag v1 at {start}"),
        (
            ["branch", "-f", "main", "feature"],
            f"moved branch main from {start} to {head}",
            f"moved branch main back from {head} to {start}",
        ),
        (
            ["branch", "-m", "feature", "new"],
            "renamed branch feature to new",
            "renamed branch new back to feature",
        ),
    ):
        assert nessie(*argv).code == 0
        ran = nessie("undo")
        assert (ran.code, ran.out) == (0, f"{undone}\n")
        assert ran.err.startswith(f"last operation: {done}, by Eva <eva@example.org>, ")
    assert nessie("merge", "feature").code == 0
    merged = catalog.head("main")
    assert nessie("undo").err.startswith(
        f"last operation: merge {merged[:12]} \"Merge branch 'feature' into main\" into main, by Eva "
    )


def test_the_operation_of_another_user_needs_yes(nessie, catalog) -> None:
    head = catalog.update("main", "db.orders", 2)

    for words in (["undo", "main"], ["undo", "main", "--json"]):
        ran = nessie(*words)
        ran.expect(2, "by etl, not by you", "--yes")
    assert catalog.head("main") == head
    assert nessie("undo", "main", "--yes").code == 0


def test_later_operations_of_another_user_need_yes_too(nessie, catalog) -> None:
    put = ("content", "put", "--type", "namespace", "-m", "mine")
    assert nessie(*put, "mine").code == 0
    number = nessie("reflog", "main", "-n", "1").rows[0][0]
    head = catalog.update("main", "db.orders", 2)
    assert nessie("content", "put", "mine2", "--type", "namespace", "-m", "mine").code == 0

    ran = nessie("undo", "--to", number)
    ran.expect(2, "by etl, not by you")
    assert catalog.head("main") != head
    assert nessie("undo", "main", "--to", str(int(number) + 1)).code == 0
    assert catalog.head("main") == head


@pytest.mark.parametrize("words", [[], ["main"], ["main", "--json"]])
def test_an_operation_without_a_recorded_user_needs_yes(nessie, catalog, words) -> None:
    before = catalog.head("main")
    with connect(catalog.url) as repository, serving(repository) as url:
        store = ("--store", url)
        put = ("content", "put", "mine", "--type", "namespace", "-m", "mine", "--ref", "main")
        assert nessie(*put, *store).code == 0
        head = catalog.head("main")

        ran = nessie("undo", *words, *store)
        ran.expect(2, "did not record a user", "--yes")
        assert catalog.head("main") == head
        assert nessie("undo", *words, *store, "--yes").code == 0
    assert catalog.head("main") == before


def test_a_reference_that_has_moved_since_is_not_undone(nessie, catalog) -> None:
    assert nessie("content", "put", "mine", "--type", "namespace", "-m", "mine").code == 0
    head = catalog.update("main", "db.orders", 2)

    ran = nessie("undo")
    ran.expect(5, "nessie revert")
    assert catalog.head("main") == head


def test_a_caller_without_operations_gets_an_error(nessie, catalog, monkeypatch) -> None:
    monkeypatch.setenv("NESSIE_AUTHOR", "Nobody <n@example.org>")
    ran = nessie("undo")
    ran.expect(2, "Nobody")


def test_the_reflog_has_the_configured_author(nessie, catalog, monkeypatch) -> None:
    monkeypatch.delenv("NESSIE_AUTHOR")
    assert nessie("config", "set", "author", "Ada <ada@example.org>", "--user").code == 0
    assert nessie("branch", "adas").code == 0
    assert (
        nessie("reflog", "adas", "--json").json["reflogEntries"][0]["who"]
        == "Ada <ada@example.org>"
    )


def test_to_needs_no_reference(nessie, catalog) -> None:
    catalog.branch("feature")
    before = catalog.head("feature")
    catalog.update("feature", "db.orders", 2)
    number = next(
        row[0] for row in nessie("reflog", "--all").rows if row[1] == "feature" and "create" in row
    )
    assert nessie("undo", "--to", number, "--yes").code == 0
    assert catalog.head("feature") == before


def test_a_deleted_branch_or_tag_is_restored(nessie, catalog) -> None:
    for name, command in (("feature", "branch"), ("v1", "tag")):
        nessie(command, "feature") if command == "branch" else None
        head = catalog.head(name)
        assert nessie(command, "-d", name).code == 0
        assert nessie("undo", name).out == f"restored {command} {name} at {head[:12]}\n"
        assert catalog.head(name) == head
        assert name in [row[0] for row in nessie(command).rows]
        assert nessie("undo", name).code == 0
        assert not exists(catalog, name), "undoing again deletes it again"


def test_an_assignment_a_merge_and_a_creation_are_undone(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    start = catalog.head("main")
    for argv in (["merge", "feature"], ["branch", "-f", "main", "v1~1"]):
        assert nessie(*argv).code == 0
        assert nessie("undo", "main").code == 0
        assert catalog.head("main") == start
    nessie("branch", "new")
    assert nessie("undo", "new").code == 0
    assert not exists(catalog, "new")


@pytest.mark.parametrize("named", ["feature", "renamed"])
def test_a_rename_is_undone_by_either_name(nessie, catalog, named) -> None:
    catalog.branch("feature")
    nessie("switch", "feature")
    nessie("branch", "-m", "feature", "renamed")
    assert nessie("undo", named).code == 0
    assert exists(catalog, "feature")
    assert not exists(catalog, "renamed")
    assert nessie("log", "-n", "1").code == 0, "the workspace goes along"
    assert nessie("undo", "feature").code == 0
    assert exists(catalog, "renamed")


def test_chained_renames_are_undone_in_turn(nessie, catalog) -> None:
    catalog.branch("a")
    nessie("branch", "-m", "a", "b")
    nessie("branch", "-m", "b", "c")
    assert nessie("undo", "c").code == 0
    assert [exists(catalog, name) for name in "abc"] == [False, True, False]


def test_to_moves_the_reference_to_the_result_of_an_operation(nessie, catalog) -> None:
    hashes = [catalog.head("main"), *(catalog.update("main", "db.orders", n) for n in (2, 3))]
    rows = nessie("reflog").rows
    assert nessie("undo", "--to", rows[2][0], "--yes").code == 0
    assert catalog.head("main") == hashes[0]
    assert nessie("undo", "--to", rows[0][0], "--yes").code == 0
    assert catalog.head("main") == hashes[2]
    ran = nessie("undo", "--to", rows[0][0], "--yes")
    assert ran.code == 2
    assert "nothing to undo" in ran.err


def test_a_dry_run_moves_nothing(nessie, catalog) -> None:
    head = catalog.update("main", "db.orders", 2)
    assert nessie("undo", "main", "--dry-run").out.startswith("would move branch main back from ")
    assert nessie("undo", "main", "--dry-run", "--json").json["wasApplied"] is False
    assert catalog.head("main") == head


def test_json_is_a_reference_and_both_ends(nessie, catalog) -> None:
    before, after = catalog.head("main"), catalog.update("main", "db.orders", 2)
    assert nessie("undo", "main", "--yes", "--json").json == {
        "reference": {"type": "BRANCH", "name": "main", "hash": before},
        "wasApplied": True,
        "before": after,
        "after": before,
    }


@pytest.mark.parametrize(
    ("argv", "code"), [(["never"], 4), ([""], 2), (["--to", "999"], 2), (["--to", "x"], 2)]
)
def test_wrong_input(nessie, catalog, argv, code) -> None:
    head = catalog.head("main")
    ran = nessie("undo", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert catalog.head("main") == head


def test_the_creation_of_the_default_branch_cannot_be_undone(nessie, catalog) -> None:
    first = nessie("reflog").rows[-1][0]
    assert nessie("undo", "main", "--to", first, "--yes").code == 0, "main as it was made: empty"
    assert nessie("log").out == ""


def test_undoing_the_creation_of_the_current_reference_is_refused(nessie, catalog) -> None:
    nessie("switch", "-c", "dev")
    ran = nessie("undo")
    ran.expect(2, "nessie switch", out="")
    nessie("switch", "-")
    assert nessie("undo", "dev").code == 0
    assert nessie("undo", "dev").code == 0
    assert nessie("switch", "dev").code == 0


GONE = "may be deleted"


def days_ago(catalog, days: float) -> Catalog:
    """The same store, with a clock that is this many days slow."""
    catalog.repository.close()
    time = int((datetime.now(UTC) - timedelta(days=days)).timestamp() * 10**6)
    catalog.repository = connect(catalog.url, who="etl", clock=lambda: time)
    return catalog


def test_an_undo_beyond_the_expiry_says_that_files_may_be_gone(nessie, catalog) -> None:
    old = days_ago(catalog, 91)
    old.branch("dev")
    head = old.update("dev", "db.orders", 7)
    old.repository.delete_reference("dev", expected_hash=head)
    for words in (
        ["undo", "dev", "--dry-run"],
        ["undo", "dev", "--dry-run", "--json"],
        ["undo", "dev", "--yes"],
    ):
        ran = nessie(*words)
        assert ran.code == 0
        assert GONE in ran.err
        assert "nessie audit dev" in ran.err
    assert catalog.head("dev") == head
    assert GONE not in nessie("undo", "dev").err, "a deletion brings nothing back"
    assert GONE not in nessie("undo", "dev").err, "it was there just now"


@pytest.mark.parametrize(
    ("days", "setting", "warned"),
    [
        (89, None, False),
        (91, None, True),
        (31, "30d", True),
        (29, "30d", False),
        (100, "1000d", False),
    ],
)
def test_the_expiry_is_the_repositorys(nessie, catalog, days, setting, warned) -> None:
    old = days_ago(catalog, days)
    head = old.branch("dev")
    old.repository.delete_reference("dev", expected_hash=head)
    if setting:
        assert nessie("config", "set", "reflog-expiry", setting, "--repository").code == 0
    assert (GONE in nessie("undo", "dev", "--yes").err) is warned


def test_an_old_commit_in_a_recent_move_is_not_beyond_the_expiry(nessie, catalog) -> None:
    old = days_ago(catalog, 200)
    first, second = old.update("main", "db.orders", 2), old.update("main", "db.orders", 3)
    young = days_ago(catalog, 1)
    young.update("main", "db.orders", 4)
    moves = nessie("reflog", "main", "--json").json["reflogEntries"]
    number = {move["after"]: str(move["number"]) for move in moves}
    assert GONE in nessie("undo", "main", "--to", number[first], "--dry-run").err
    assert GONE not in nessie("undo", "main", "--to", number[second], "--dry-run").err
