"""`nessie revert` of a range, and its conflicts."""

import pytest

from .conftest import key


@pytest.fixture
def history(catalog):
    """After v1: orders updated twice, a table created, items dropped."""
    catalog.update("main", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    catalog.create("main", "db.more")
    catalog.drop("main", "db.items")
    return catalog


def test_a_range_is_reverted_by_one_commit(nessie, history) -> None:
    ran = nessie("revert", "v1..main", "--json")
    assert (ran.code, ran.json["wasApplied"]) == (0, True)
    assert [history.snapshot("main", name) for name in ("db.orders", "db.more", "db.items")] == [
        1,
        None,
        1,
    ]
    message = history.repository.commit_at("main").meta.message
    assert message.startswith("Revert v1..main (4 commits)\n\nThis reverts commit ")
    assert message.count("This reverts commit") == 4
    assert nessie("diff", "v1", "main", "--name-status").lines == []


@pytest.mark.parametrize("more", [["--dry-run"], ["-m", "back"]])
def test_options_of_a_commit_exclude_no_commit(nessie, history, more) -> None:
    ran = nessie("revert", "main", "-n", *more)
    ran.expect(2, "cannot be used together", out="")
    assert nessie("status", "--json").json["batch"]["operations"] == []


@pytest.mark.parametrize("name", ["db.orders", "db.*"])
def test_ours_for_every_key_writes_nothing_as_a_merge_does(nessie, history, name) -> None:
    history.update("main", "db.orders", 4)
    head = history.head("main")
    options = ("main~3", "--ours", name)
    nessie("revert", *options).expect(0, out="no commit was written: main keeps its contents\n")
    ran = nessie("revert", *options, "--json")
    assert (ran.code, ran.json["wasApplied"], ran.json["operations"]) == (0, False, [])
    assert ran.json["targetBranch"]["hash"] == head
    nessie("revert", *options, "-n").expect(0, "nothing was staged: main keeps its contents")
    assert nessie("status", "--json").json["batch"]["operations"] == []
    assert history.head("main") == head


def test_a_later_change_is_a_conflict_and_nothing_is_reverted(nessie, history) -> None:
    history.update("main", "db.more", 9)
    head = history.head("main")
    ran = nessie("revert", "v1..main~1", "--json")
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    assert (ran.code, conflict["key"]["elements"], history.head("main")) == (
        3,
        ["db", "more"],
        head,
    )
    assert (
        conflict["expected"]["snapshotId"],
        conflict["actual"]["snapshotId"],
        conflict["proposed"],
    ) == (1, 9, None)
    assert [conflict[side] for side in ("base", "ours", "theirs")] == [
        conflict["expected"],
        conflict["actual"],
        None,
    ]
    assert conflict["changedBy"]["message"] == "update db.more"
    assert nessie("revert", "v1..main~1", "--ours", "db.more").code == 0
    assert [history.snapshot("main", name) for name in ("db.orders", "db.more")] == [1, 9]


def test_a_range_can_be_staged_only(nessie, history) -> None:
    assert nessie("revert", "main~2..main", "--no-commit").code == 0
    assert len(nessie("status", "--json").json["batch"]["operations"]) == 2
    assert nessie("commit", "-m", "back").code == 0
    assert history.snapshot("main", "db.items") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("main..main", "there are no commits after main up to main"),
        ("main..v1", "is not an ancestor of v1"),
        ("v1...main", "two dots"),
        ("..", "there are no commits after"),
    ],
)
def test_an_empty_range_is_refused(nessie, history, words, said) -> None:
    head = history.head("main")
    ran = nessie("revert", words)
    ran.expect(2, said)
    assert history.head("main") == head


def test_a_range_without_a_net_change_leaves_nothing_to_do(nessie, catalog) -> None:
    catalog.create("main", "db.more")
    catalog.drop("main", "db.more")
    assert nessie("revert", "v1..main").code == 2
    assert key("db.more") not in catalog.repository.contents("main", [key("db.more")])


def test_a_key_that_is_back_in_its_earlier_state_is_no_conflict(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    assert nessie("restore", "db.orders", "--at", "HEAD~1", "-m", "back").code == 0
    ran = nessie("revert", "HEAD~1")
    ran.expect(2, "is reverted already")
    ran = nessie("revert", "HEAD", "--ours", "db.orders", "--theirs", "db.orders")
    ran.expect(2, "the key is named twice")


@pytest.fixture
def renamed_twice(catalog):
    """main: items was renamed to parts (HEAD~1), and then to pieces."""
    catalog.rename("main", "db.items", "db.parts")
    catalog.rename("main", "db.parts", "db.pieces")
    return catalog


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "by glob"])
def test_a_decision_about_a_revert_does_not_override_a_later_deletion(
    nessie, renamed_twice, by_id
) -> None:
    catalog = renamed_twice
    seen = catalog.head("main")
    id_ = nessie("content", "show", "db.pieces", "--json").json["content"]["id"]
    revision = catalog.repository.resolve("main~1").hash
    assert nessie("revert", revision).code == 3
    catalog.drop("main", "db.pieces")
    theirs = id_ if by_id else "*"
    ran = nessie("revert", revision, "--theirs", theirs, "--expected-hash", seen)
    assert ran.code == 5
    assert "db.pieces" in ran.err
    assert "db.items" not in nessie("content", "list").out


@pytest.mark.parametrize("verb", ["revert", "transplant"])
def test_the_printed_resolve_names_the_commit_that_conflicts(nessie, catalog, verb) -> None:
    catalog.branch("dev")
    catalog.update("dev", "db.orders", 7)
    catalog.update("main", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    named = "HEAD~1" if verb == "revert" else "dev"
    commit = catalog.repository.resolve(named.replace("HEAD", "main")).hash
    ran = nessie(verb, named)
    assert ran.code == 3
    assert f"nessie resolve {verb} {commit[:12]} " in ran.err


def test_a_key_and_a_glob_are_staged_as_they_are_committed(nessie, history) -> None:
    for words in ((), ("-n",)):
        ran = nessie("revert", "v1..main", *words, "--ours", "db.orders", "--theirs", "db.m*")
        assert ran.code == 0, ran.err
        assert nessie("commit", "-m", "back").code == 0 if words else True
        found = [history.snapshot("main", name) for name in ("db.orders", "db.more", "db.items")]
        assert found == [3, None, 1]
        assert nessie("undo", "-y").code == 0
