import shlex

import pytest

from nessie_cli.model import Delete, Namespace, Put

from .conftest import key


@pytest.fixture
def feature(catalog):
    """feature: two updates of orders, a table created."""
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    catalog.update("feature", "db.orders", 3)
    catalog.create("feature", "db.more")
    catalog.update("main", "db.items", 2)
    return catalog


def subjects(nessie, count: int) -> list[str]:
    return nessie("log", "-n", str(count)).subjects


def test_one_commit_keeps_its_message_and_author(nessie, feature) -> None:
    ran = nessie("transplant", "feature")
    assert ran.code == 0
    assert ran.rows == [["db.more", "merged", "-", "1", "iceberg-table"]]
    assert ran.err.startswith("transplanted 1 commit into main: now at ")
    assert subjects(nessie, 1) == ["create db.more"]


def test_a_range_is_applied_oldest_first(nessie, feature) -> None:
    ran = nessie("cherry-pick", "v1..feature", "--json")
    assert ran.code == 0
    assert ran.json["commonAncestor"] is None
    assert subjects(nessie, 3) == ["create db.more", "update db.orders", "update db.orders"]
    assert feature.snapshot("main", "db.orders") == 3


def test_several_commits_in_the_order_given(nessie, feature) -> None:
    assert nessie("transplant", "feature~2", "feature~1").code == 0
    assert subjects(nessie, 2) == ["update db.orders"] * 2


@pytest.fixture
def letters(catalog):
    """feature: six commits, each creates a table: db.a to db.f."""
    catalog.branch("feature")
    for letter in "abcdef":
        catalog.create("feature", f"db.{letter}")
    return catalog


@pytest.mark.parametrize(
    ("words", "created"),
    [
        (("feature~5", "feature~3", "feature"), "acf"),
        (("feature", "feature~3", "feature~5"), "fca"),
        (("feature~5", "feature~3..feature~1", "feature"), "adef"),
        (("feature~2..feature", "v1..feature~4"), "efab"),
    ],
)
def test_commits_that_are_not_neighbours_are_applied_in_the_order_given(
    nessie, letters, words, created
) -> None:
    ran = nessie("cherry-pick", *words)
    ran.expect(0, f"transplanted {len(created)} commits into main")
    assert subjects(nessie, len(created)) == [f"create db.{letter}" for letter in reversed(created)]
    assert {row[0]: row[3] for row in ran.rows} == {f"db.{letter}": "1" for letter in created}


def test_commits_that_are_not_neighbours_are_all_applied_or_none(nessie, letters) -> None:
    letters.create("main", "db.c", 9)
    head = letters.head("main")
    ran = nessie("cherry-pick", "feature~5", "feature~3", "feature")
    assert (ran.code, letters.head("main")) == (3, head)
    assert nessie("cherry-pick", "feature~5", "feature~3", "feature", "--ours", "db.c").code == 0
    assert subjects(nessie, 2) == ["create db.f", "create db.a"]


def test_pynessie_s_form(nessie, feature) -> None:
    hash_ = feature.head("feature")
    ran = nessie("cherry-pick", "-b", "main", "-s", "feature", hash_)
    ran.expect(2, "a commit is found by its hash")
    assert nessie("cherry-pick", "-b", "main", hash_).code == 0


def test_the_message_of_a_single_commit_may_be_replaced(nessie, feature) -> None:
    feature.branch("late")
    feature.update("late", "db.orders", 2, author="Bob <bob@example.org>")
    before = nessie("show", "late", "--json").json["commitMeta"]
    assert nessie("transplant", "late", "--onto", "main", "-m", "more").code == 0
    meta = nessie("show", "--json").json["commitMeta"]
    assert meta["message"] == "more"
    assert (
        (meta["authors"], meta["authorTime"])
        == (before["authors"], before["authorTime"])
        == (["Bob <bob@example.org>"], meta["authorTime"])
    )
    assert nessie("transplant", "v1..feature", "-m", "more").code == 2


def test_a_conflict_offers_the_same_command_with_a_decision(nessie, feature) -> None:
    feature.update("main", "db.orders", 9)
    before = feature.head("main")
    ran = nessie("transplant", "v1..feature", "--json")
    assert ran.code == 3
    assert feature.head("main") == before
    (found,) = ran.json["error"]["errorDetails"]["conflicts"]
    # In another of the commits, the key could be that of another table.
    name = found["contentId"]
    name = f"{found['commit'][:12]}:{name}"
    commits = f"{feature.head('v1')[:12]}..{feature.head('feature')[:12]}"
    line = f"nessie transplant {commits} --theirs {name} --expected-hash {before[:12]}"
    assert found["resolutions"][0] == line
    assert nessie(*shlex.split(found["resolutions"][0])[1:]).code == 0
    assert feature.snapshot("main", "db.orders") == 3


def test_the_conflicts_of_the_first_commit_are_decided_first(nessie, catalog) -> None:
    """Main swapped two tables and changed both. Each of two commits changes one of them."""
    for name in ("a", "b"):
        catalog.create("main", name)
    catalog.branch("base")
    catalog.branch("x")
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        nessie("content", "rename", old, new)
    assert nessie("commit", "-m", "swap").code == 0
    catalog.update("main", "a", 110)
    catalog.update("main", "b", 111)
    catalog.update("x", "a", 8)
    catalog.drop("x", "b")
    line, deleted = "nessie transplant base..x --onto main", []
    for _ in range(2):
        ran = nessie(*shlex.split(line)[1:], "--json")
        (conflict,) = ran.error["errorDetails"]["conflicts"]
        line, effect = conflict["resolutions"][0], conflict["effects"][0]
        assert "--theirs" in line
        deleted += [part for part in effect.split("; ") if part.startswith("deletes")]
    assert nessie(*shlex.split(line)[1:]).code == 0
    # The table at b was the first a, which theirs changed.
    assert (catalog.snapshot("main", "a"), catalog.snapshot("main", "b")) == (8, None)
    assert deleted == ["deletes b on main"]


@pytest.fixture
def renamed_between(nessie, catalog):
    """`dev` changes a table, renames it, and changes it again; `main` changes it, too."""
    catalog.branch("dev")
    catalog.update("main", "db.orders", 11)
    catalog.update("dev", "db.orders", 12)
    catalog.rename("dev", "db.orders", "db.sales")
    catalog.update("dev", "db.sales", 13)
    return catalog


@pytest.mark.parametrize(("option", "snapshot"), [("--theirs", 13), ("--ours", 11)])
def test_a_printed_line_keeps_the_decision_about_an_earlier_commit(
    nessie, renamed_between, option, snapshot
) -> None:
    words = ("transplant", "main..dev", "--onto", "main", "--ours", "db.orders")
    (conflict,) = nessie(*words, "--json").error["errorDetails"]["conflicts"]
    assert conflict["key"]["elements"] == ["db", "sales"]
    (line,) = [line for line in conflict["resolutions"] if option in line.partition("orders")[2]]
    ran = nessie(*shlex.split(line)[1:])
    assert ran.code == 0, ran.err
    assert renamed_between.snapshot("main", "db.sales") == snapshot


@pytest.mark.parametrize("option", ["--ours", "--theirs"])
def test_a_decision_about_a_key_that_no_commit_changes_is_not_repeated(
    nessie, renamed_between, option
) -> None:
    for words in (["transplant", "main..dev"], ["resolve", "transplant", "main..dev"]):
        ran = nessie(*words, "--onto", "main", option, "db.items")
        ran.expect(2, "the source does not change db.items", without=("nessie transplant",))


def test_two_decisions_about_one_content_of_a_commit_are_refused(nessie, renamed_between) -> None:
    content_id = nessie("content", "show", "db.orders", "--json").json["content"]["id"]
    words = ("transplant", "dev~2", "--onto", "main", "--ours", "db.orders")
    ran = nessie(*words, "--theirs", content_id)
    assert ran.code == 2
    assert f"db.orders and {content_id} name the same content" in ran.err


def test_a_printed_decision_is_about_the_commit_of_its_conflict(nessie, catalog) -> None:
    """A later commit renames the table to a key that another table of the branch has."""
    catalog.branch("dev")
    catalog.update("dev", "db.orders", 7)
    renamed = catalog.rename("dev", "db.orders", "db.sales")
    catalog.update("main", "db.orders", 8)
    catalog.create("main", "db.sales", 60)
    line, effects = "nessie transplant main..dev --onto main", []
    for _ in range(2):
        ran = nessie(*shlex.split(line)[1:], "--json")
        assert ran.code == 3
        (conflict,) = ran.error["errorDetails"]["conflicts"]
        line = conflict["resolutions"][0]
        effects.append(conflict["effects"][0])
    assert conflict["commit"] == renamed
    assert effects == [
        "",
        "renames db.orders on main to db.sales; deletes the present db.sales on main",
    ]
    assert catalog.snapshot("main", "db.sales") == 60
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert catalog.snapshot("main", "db.sales") == 7


def test_a_decision_about_another_commit_is_refused(nessie, renamed_between) -> None:
    content_id = nessie("content", "show", "db.orders", "--json").json["content"]["id"]
    name = f"{renamed_between.head('main')}:{content_id}"
    words = ("transplant", "dev~2", "--onto", "main", "--theirs", name, "--ours", "db.orders")
    assert nessie(*words).code == 2
    assert nessie("merge", "dev", "--into", "main", "--theirs", name).code == 2
    assert nessie("revert", "main", "--theirs", name).code == 2


@pytest.mark.parametrize("verb", ["transplant", "merge"])
def test_a_default_that_contradicts_the_only_decision_is_left_out(nessie, catalog, verb) -> None:
    """A table that keeps its key leaves a namespace, but the default gives this key to another."""
    catalog.create("main", "a", 1)
    catalog.create("main", "b", 2)
    catalog.branch("dev")
    a, b = (catalog.repository.content("dev", key(name)) for name in "ab")
    operations = (Delete(key("a")), Put(key("n"), b), Put(key("b"), a, b))
    moved = catalog.commit("dev", "move", *operations)
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.x", 7)
    source = moved if verb == "transplant" else "dev"
    words = [verb, source, "--behavior", "force"]

    def lines(*words: str) -> list[str]:
        ran = nessie(*words, "--json")
        assert ran.code == 3
        (conflict,) = ran.error["errorDetails"]["conflicts"]
        assert conflict["key"]["elements"] == ["n"]
        return conflict["resolutions"]

    (anew,) = lines(*words)
    assert "--behavior" not in anew
    kept = next(line for line in lines(*shlex.split(anew)[1:]) if "--ours" in line)
    assert nessie(*shlex.split(kept)[1:]).code == 0
    numbers = {name: catalog.snapshot("main", name) for name in ("a", "b", "n.x")}
    assert numbers == {"a": 1, "b": 2, "n.x": 7}


def test_a_namespace_that_an_earlier_commit_makes_room_for_is_prepared_after_it(
    nessie, catalog
) -> None:
    catalog.create("main", "m", 1)
    catalog.branch("dev")
    dropped = catalog.drop("dev", "m")
    catalog.commit("dev", "m", Put(key("m"), Namespace(elements=("m",))))
    created = catalog.create("dev", "m.a", 7)

    def line(*words: str) -> str:
        (conflict,) = nessie(*words, "--json").error["errorDetails"]["conflicts"]
        assert conflict["conflictType"] == "NAMESPACE_ABSENT"
        (only,) = conflict["resolutions"]
        return only

    first = line("transplant", dropped, created, "--onto", "main")
    assert first == f"nessie transplant {dropped[:12]} --onto main"
    assert nessie(*shlex.split(first)[1:]).code == 0
    second = line("transplant", created, "--onto", "main")
    assert second == "nessie --ref main content put m --type namespace -m 'add m'"
    assert nessie(*shlex.split(second)[1:]).code == 0
    assert nessie("transplant", created, "--onto", "main").code == 0
    assert catalog.snapshot("main", "m.a") == 7


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_drop_is_reported_only_for_keys_that_conflict(nessie, feature, dry_run) -> None:
    feature.update("main", "db.orders", 9)
    ran = nessie("transplant", "v1..feature", "--behavior", "drop", *dry_run)
    assert ran.code == 0
    assert {row[0]: row[1] for row in ran.rows} == {"db.more": "merged", "db.orders": "ours"}
    written = None if dry_run else 1
    assert feature.snapshot("main", "db.more") == written
    assert feature.snapshot("main", "db.orders") == 9


def test_a_transplant_without_effect_promises_no_later_comparison(nessie, feature) -> None:
    feature.update("main", "db.orders", 9)
    ran = nessie("transplant", "feature~1", "--ours", "db.orders")
    assert ran.code == 0
    first, second = ran.err.splitlines()
    assert first == "no commit was written: main keeps its contents"
    assert second.startswith("skipped ")
    assert second.endswith(": it changes nothing on this branch")


def test_a_change_that_the_branch_has_already_is_skipped(nessie, feature) -> None:
    assert nessie("transplant", "feature").code == 0
    ran = nessie("transplant", "feature", "--json")
    assert (ran.code, ran.json["wasApplied"]) == (0, False)
    assert ran.json["skippedCommits"] == [feature.repository.resolve("feature").hash]


def test_a_file_for_a_key_that_no_commit_changes_is_refused(nessie, feature, tmp_path) -> None:
    (tmp_path / "items.json").write_text(nessie("content", "show", "db.items", "--raw").out)
    ran = nessie("transplant", "feature", "--resolve", "db.items=items.json")
    ran.expect(2, "the source does not change db.items")


def test_a_dry_run_writes_nothing(nessie, feature) -> None:
    before = feature.head("main")
    assert nessie("transplant", "feature", "--dry-run").err.startswith("dry run, no conflicts")
    assert feature.head("main") == before


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ([], 2),
        (["nowhere"], 4),
        ([""], 2),
        (["main..main"], 2),
        (["feature", "--onto", "v1"], 2),
        (["feature", "--onto", "x"], 4),
        (["feature", "--ours", "db.none"], 2),
        (["feature", "--theirs", "db.none"], 2),
    ],
)
def test_wrong_input(nessie, feature, argv, code) -> None:
    ran = nessie("transplant", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert "Traceback" not in ran.err
