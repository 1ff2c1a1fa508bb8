"""`nessie resolve`: in scripts by options, on a terminal by questions."""

import json
from pathlib import Path

import pytest

from nessie_cli.model import Delete, IcebergTable, Namespace, Put

from .conftest import key, staged, table
from .test_deep import metadata


@pytest.fixture
def merging(catalog):
    """`feature` and `main` changed `db.orders` and `db.items` differently."""
    catalog.branch("feature")
    for name in ("db.orders", "db.items"):
        catalog.update("feature", name, 20)
        catalog.update("main", name, 30)
    catalog.create("feature", "db.new", 5)
    return catalog


@pytest.fixture
def batch(nessie, catalog):
    """Updates of `db.orders` and `db.items` are staged that others were faster with."""
    for name in ("db.orders", "db.items"):
        nessie("content", "put", name, "--metadata-location", "s3://mine", "--snapshot-id", "20")
        catalog.update("main", name, 30)
    return catalog


def snapshots(catalog) -> tuple[int | None, int | None]:
    return catalog.snapshot("main", "db.orders"), catalog.snapshot("main", "db.items")


def test_a_merge_by_options(nessie, merging, tmp_path) -> None:
    assert (
        nessie(
            "resolve",
            "merge",
            "feature",
            "--ours",
            "db.orders",
            "--theirs",
            "db.items",
            "-m",
            "both",
        ).code
        == 0
    )
    assert snapshots(merging) == (30, 20)
    assert merging.repository.commit_at("main").meta.message == "both"


def test_a_merge_with_a_content_from_a_file(nessie, merging, tmp_path) -> None:
    content = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": "s3://mine",
        "snapshotId": 99,
        "schemaId": 0,
        "specId": 0,
        "sortOrderId": 0,
    }
    (tmp_path / "mine.json").write_text(json.dumps(content))
    ran = nessie(
        "resolve",
        "merge",
        "feature",
        "--resolve",
        "db.orders=mine.json",
        "--ours",
        "db.items",
        "--json",
    )
    assert (ran.code, ran.json["wasApplied"]) == (0, True)
    assert snapshots(merging) == (99, 30)


def test_the_batch_by_options(nessie, batch) -> None:
    assert nessie("resolve", "--proposed", "db.orders", "--current", "db.items").code == 0
    assert staged(nessie) == ["db.orders"]
    assert nessie("commit", "-m", "now").code == 0
    assert snapshots(batch) == (20, 30)


def test_the_batch_is_committed_with_a_message(nessie, batch) -> None:
    assert (
        nessie("resolve", "--proposed", "db.orders", "--proposed", "db.items", "-m", "both").code
        == 0
    )
    assert snapshots(batch) == (20, 20)
    assert staged(nessie) == []


@pytest.mark.parametrize("argv", [[], ["merge", "feature"]])
def test_without_a_terminal_the_error_names_the_options(nessie, merging, argv) -> None:
    nessie("content", "put", "db.orders", "--metadata-location", "s3://mine", "--snapshot-id", "20")
    merging.update("main", "db.orders", 31)
    ran = nessie("resolve", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert "stdin is not a terminal" in ran.err
    assert ("--ours KEY" if argv else "--current KEY, --proposed KEY") in ran.err
    assert staged(nessie) == ["db.orders"]


def stale_rename(nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.sales")
    catalog.update("main", "db.orders", 30)


def stale_delete(nessie, catalog) -> None:
    nessie("content", "delete", "db.orders")
    catalog.update("main", "db.orders", 30)


def stale_demand(nessie, catalog) -> None:
    nessie("content", "unmodified", "db.orders")
    catalog.update("main", "db.orders", 30)


def gone(nessie, catalog) -> None:
    nessie("content", "put", "db.orders", "--metadata-location", "s3://mine")
    catalog.drop("main", "db.orders")


def made_twice(nessie, catalog) -> None:
    nessie(
        "content", "put", "db.new", "--type", "iceberg-table", "--metadata-location", "s3://mine"
    )
    catalog.create("main", "db.new")


def another_type(nessie, catalog) -> None:
    nessie("content", "put", "db.orders", "--metadata-location", "s3://mine")
    catalog.drop("main", "db.orders")
    catalog.commit("main", "ns", Put(key("db.orders"), Namespace(elements=("db", "orders"))))


def no_namespace(nessie, catalog) -> None:
    nessie(
        "content", "put", "away.t", "--type", "iceberg-table", "--metadata-location", "s3://mine"
    )


def table_for_a_namespace(nessie, catalog) -> None:
    nessie(
        "content",
        "put",
        "db.orders.t",
        "--type",
        "iceberg-table",
        "--metadata-location",
        "s3://mine",
    )


def full_namespace(nessie, catalog) -> None:
    nessie("content", "delete", "db")


CONFLICTS = [
    stale_rename,
    stale_delete,
    stale_demand,
    gone,
    made_twice,
    another_type,
    no_namespace,
    table_for_a_namespace,
    full_namespace,
]


@pytest.mark.parametrize(
    ("make", "side"),
    [
        (make, side)
        for make in CONFLICTS
        for side in ("--current", "--proposed")
        if (make, side) != (full_namespace, "--proposed")
    ],
)
def test_either_side_resolves_every_conflict_of_a_batch(nessie, catalog, make, side) -> None:
    make(nessie, catalog)
    conflicts = nessie("status", "--json").json["conflicts"]
    assert conflicts
    words = [
        word for conflict in conflicts for word in (side, ".".join(conflict["key"]["elements"]))
    ]
    ran = nessie("resolve", *words)
    ran.expect(0, without=("nessie:",))
    assert nessie("status", "--json").json["conflicts"] == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["merge"], "invalid arguments"),
        (["mrge", "feature"], "invalid arguments"),
        (["transplant", "feature", "--unrelated"], "belongs to"),
        (["merge", ""], "an argument is empty"),
        (["--into", "main"], "belongs to"),
        (["merge", "feature", "--ours", "db.none"], "does not change this key"),
        (["merge", "feature", "--ours", "db.orders", "--theirs", "db.orders"], "already named by"),
        (["merge", "feature", "--resolve", "db.orders"], "KEY=FILE"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(nessie, merging, argv, said) -> None:
    head = merging.head("main")
    ran = nessie("resolve", *argv)
    ran.expect(2, said, out="")
    assert "error" in nessie("resolve", *argv, "--json").json
    assert merging.head("main") == head


# -- on a terminal -------------------------------------------------------------------------------


def test_each_conflict_is_shown_and_asked_about(answering, nessie, merging) -> None:
    code, seen = answering("what\nt\no\n", "resolve", "merge", "feature")
    assert code == 0
    assert seen.count(" was changed on main and on feature   VALUE_DIFFERS") == 2
    assert (seen.count("1 of 2: [o]urs"), seen.count("2 of 2: [o]urs")) == (2, 1), (
        "an unknown answer repeats the question"
    )
    assert "resolve  " not in seen, "here the keys that are typed resolve it"
    assert snapshots(merging) == (30, 20)


@pytest.mark.parametrize("where", ["main", "feature"])
def test_an_answer_is_about_the_state_that_was_shown(answering, nessie, catalog, where) -> None:
    catalog.branch("feature")
    catalog.rename("feature", "db.orders", "db.sales")
    catalog.update("feature", "db.sales", 8)
    catalog.update("main", "db.orders", 7)

    def meanwhile() -> None:
        catalog.create(where, "db.sales" if where == "main" else "db.later", 50)

    code, seen = answering("t\n", "resolve", "merge", "feature", meanwhile=meanwhile)
    if where == "main":
        assert code == 5
        assert "'main' has changed db.sales since" in seen
        assert catalog.snapshot("main", "db.sales") == 50
    else:
        assert code == 0
        assert catalog.snapshot("main", "db.sales") == 8
        assert catalog.snapshot("main", "db.later") is None
    assert catalog.snapshot(where, "db.sales" if where == "main" else "db.later") == 50


def test_answers_that_contradict_each_other_are_asked_for_again(answering, nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.drop("feature", "db.items")
    catalog.rename("feature", "db.orders", "db.items")
    catalog.update("feature", "db.items", 8)
    catalog.update("main", "db.orders", 3)
    catalog.update("main", "db.items", 4)
    code, seen = answering("o\nt\no\no\n", "resolve", "merge", "feature")
    assert code == 0, seen
    assert seen.count("the decisions contradict each other") == 1
    assert seen.count("please answer again") == 1
    assert snapshots(catalog) == (3, 4)


def test_an_answer_about_a_revert_is_about_the_state_that_was_shown(
    answering, nessie, catalog
) -> None:
    catalog.rename("main", "db.orders", "db.sales")
    catalog.update("main", "db.sales", 8)
    moved = nessie("log", "-n", "2", "--json").json["logEntries"][1]["commitMeta"]["hash"]
    catalog.rename("main", "db.sales", "db.third")
    code, seen = answering(
        "t\n",
        "resolve",
        "revert",
        moved,
        meanwhile=lambda: catalog.create("main", "db.orders", 50),
    )
    assert code != 0, seen
    assert catalog.snapshot("main", "db.orders") == 50


def test_a_question_mark_explains_the_answers_and_shows_what_each_side_changed(
    answering, nessie, catalog, tmp_path
) -> None:
    found = None
    for branch, rows in (("main", 10), ("feature", 20), ("main", 30)):
        location = metadata(tmp_path / f"{rows}.json", "id", "amount", rows=rows)
        catalog.commit(
            branch,
            "load",
            Put(
                key("db.t"),
                IcebergTable(id=found and found.id, metadata_location=location, snapshot_id=rows),
            ),
        )
        if found is None:
            found = catalog.repository.content("main", key("db.t"))
            catalog.branch("feature")
    code, seen = answering("?\na\n", "resolve", "merge", "feature")
    assert code == 1
    assert "[o]urs keep the state of the target branch" in " ".join(seen.split())
    assert "[t]heirs take the state of the source" in " ".join(seen.split())
    ours, theirs = seen.split("base -> ours (main)")[1].split("base -> theirs (feature)")
    for seen_of_side, rows in ((ours, "30"), (theirs, "20")):
        lines = [line.split() for line in seen_of_side.splitlines()]
        assert ["snapshot-id", "10", "->", rows] in lines
        assert ["rows", "10", "->", rows] in lines


def test_without_a_base_the_two_sides_are_compared_with_rows_and_schema(
    answering, nessie, catalog, tmp_path
) -> None:
    catalog.branch("feature")
    for branch, columns, rows in (("feature", ("id", "amount"), 20), ("main", ("id",), 30)):
        location = metadata(tmp_path / f"{rows}.json", *columns, rows=rows)
        catalog.commit(
            branch,
            "new",
            Put(key("db.t"), IcebergTable(metadata_location=location, snapshot_id=rows)),
        )
    _, seen = answering("?\na\n", "resolve", "merge", "feature", COLUMNS="200")
    compared = [
        line.split() for line in seen.split("ours (main) -> theirs (feature)")[1].splitlines()
    ]
    assert ["rows", "30", "->", "20"] in compared
    assert ["column", "amount", "->", "long"] in compared


def test_the_answers_about_a_batch_are_current_and_proposed(answering, nessie, batch) -> None:
    shown = answering("?\np\nc\n", "resolve", "-q")
    shown.expect(0, "1 of 2: [c]urrent, [p]roposed")
    seen = shown.raw
    assert "[p]roposed keep the staged change" in " ".join(seen.split())
    assert "expected -> current" in seen
    assert len(staged(nessie)) == 1


@pytest.mark.parametrize("option", ["--ours", "--theirs"])
def test_ours_and_theirs_belong_to_a_merge(nessie, batch, option) -> None:
    before = staged(nessie)
    ran = nessie("resolve", option, "db.orders")
    ran.expect(2, "--current and --proposed")
    assert staged(nessie) == before


def test_current_and_proposed_belong_to_a_batch(nessie, merging) -> None:
    ran = nessie("resolve", "merge", "feature", "--current", "db.orders")
    ran.expect(2, "--ours and --theirs")


def test_aborting_changes_nothing(answering, nessie, merging) -> None:
    head = merging.head("main")
    shown = answering("t\na\n", "resolve", "merge", "feature")
    shown.expect(1, "aborted")
    assert merging.head("main") == head


def test_a_skipped_conflict_prevents_the_merge(answering, nessie, merging) -> None:
    head = merging.head("main")
    code, seen = answering("s\nt\n", "resolve", "merge", "feature")
    assert code == 3
    assert merging.head("main") == head
    assert "nessie: 1 conflict left: db.items; nothing was committed" in seen
    assert seen.count("VALUE_DIFFERS") == 2, "each conflict is shown once"


def test_a_batch_with_a_skipped_conflict_is_not_committed(answering, nessie, batch) -> None:
    code, seen = answering("p\ns\n", "resolve", "-m", "not yet")
    assert (code, seen.count("VALUE_DIFFERS")) == (3, 2)
    assert "1 conflict left" in seen
    assert len(nessie("status", "--json").json["conflicts"]) == 1
    assert snapshots(batch) == (30, 30)


def test_the_answers_name_contents_that_give_way(answering, nessie, catalog) -> None:
    catalog.create("main", "d")
    catalog.branch("feature")
    catalog.create("main", "m", 7)
    catalog.rename("feature", "d", "m")
    catalog.create("feature", "d", 30)
    code, shown = answering("abort\n", "resolve", "merge", "feature")
    assert code != 0
    text = " ".join(shown.split())
    assert "the source; renames d on main to m; deletes the present m on main" in text
    assert "the target branch; leaves out the d of theirs" in text


def test_an_unknown_answer_is_named_before_the_answers_are_explained(
    answering, nessie, merging
) -> None:
    _, seen = answering("others\na\n", "resolve", "merge", "feature")
    assert "unknown answer 'others'\r\n  [o]urs     keep" in seen
    assert merging.snapshot("main", "db.orders") == 30


def test_the_beginning_of_an_answer_is_enough(answering, nessie, merging) -> None:
    code, _ = answering("Our\nTHEIRS\n", "resolve", "merge", "feature")
    assert (code, sorted(snapshots(merging))) == (0, [20, 30])


def test_a_missing_namespace_is_created_in_the_batch(answering, nessie, catalog) -> None:
    no_namespace(nessie, catalog)
    code, seen = answering("p\n", "resolve")
    assert "[p]roposed create namespace away and keep the changes below it" in seen
    assert (code, sorted(staged(nessie))) == (0, ["away", "away.t"])
    assert nessie("commit", "-m", "with its namespace").code == 0


def test_a_missing_namespace_on_the_target_of_a_merge_is_not_asked_about(
    answering, nessie, catalog
) -> None:
    catalog.branch("feature")
    catalog.commit("feature", "t", Put(key("db.sub"), Namespace(elements=("db", "sub"))))
    catalog.branch("lake", "feature")
    catalog.create("lake", "db.sub.t", 1)
    shown = answering("", "resolve", "transplant", "lake", "--onto", "main")
    shown.expect(3, without=("[o]urs",))
    seen = shown.raw
    assert "nessie --ref main content put db.sub --type namespace -m 'add db.sub'" in seen
    assert "nessie resolve" not in seen, "it cannot resolve this conflict"


def test_an_edited_content_is_written(answering, nessie, merging, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    keep_theirs = "-e '/^<<<<<<</,/^=======$/d' -e '/^>>>>>>>/d'"
    editor.write_text(
        f"""#!/bin/sh\ncp "$1" seen.txt\nsed -i {keep_theirs} -e 's/"snapshotId": 20/"snapshotId": 77/' "$1"\n"""
    )
    editor.chmod(0o755)
    code, seen = answering("e\no\n", "resolve", "merge", "feature", EDITOR=str(editor))
    assert (code, snapshots(merging)) == (0, (30, 77)), seen
    lines = (tmp_path / "seen.txt").read_text().splitlines()
    start = lines.index("<<<<<<< ours (main)")
    assert [line for line in lines[start:] if "snapshotId" in line] == [
        '  "snapshotId": 30,',
        '  "snapshotId": 1,',
        '  "snapshotId": 20,',
    ]
    assert [line for line in lines if line[:7] in ("|||||||", "=======", ">>>>>>>")] == [
        "||||||| base",
        "=======",
        ">>>>>>> theirs (feature)",
    ]


def test_remaining_conflict_markers_are_reported_and_the_question_is_repeated(
    answering, nessie, merging
) -> None:
    head = merging.head("main")
    shown = answering("e\na\n", "resolve", "merge", "feature", EDITOR="true")
    shown.expect(1, "conflict markers are left")
    assert merging.head("main") == head


def test_a_failed_editor_is_reported_and_the_question_is_repeated(
    answering, nessie, merging
) -> None:
    shown = answering("e\no\no\n", "resolve", "merge", "feature", EDITOR="false")
    shown.expect(0, "the editor 'false' ended with 1")


def test_the_batch_on_a_terminal(answering, nessie, batch) -> None:
    shown = answering("p\ns\n", "resolve", "-q")
    shown.expect(3, "1 conflict left: db.items; nothing was committed")
    assert len(nessie("status", "--json").json["conflicts"]) == 1
    code, _ = answering("c\n", "resolve", "-m", "at last")
    assert (code, snapshots(batch)) in ((0, (20, 30)), (0, (30, 20)))


def test_changes_of_other_keys_are_not_conflicts(nessie, catalog) -> None:
    nessie("content", "put", "db.orders", "--metadata-location", "s3://mine")
    catalog.commit("main", "other", Delete(key("db.items")), Put(key("db.more"), table("m", 1)))
    ran = nessie("resolve")
    assert (ran.code, staged(nessie)) == (0, ["db.orders"])


# -- transplants and reverts ---------------------------------------------------------------------
def test_a_transplant_by_options(nessie, merging) -> None:
    assert (
        nessie(
            "resolve", "transplant", "v1..feature", "--theirs", "db.orders", "--ours", "db.items"
        ).code
        == 0
    )
    assert snapshots(merging) == (20, 30)
    assert merging.snapshot("main", "db.new") == 5


def test_a_transplant_onto_another_branch_asks_on_a_terminal(answering, nessie, merging) -> None:
    nessie("branch", "release", "main")
    code, seen = answering("o\nt\n", "resolve", "cherry-pick", "v1..feature", "--onto", "release")
    assert (code, seen.count("VALUE_DIFFERS")) == (0, 2)
    assert {merging.snapshot("release", "db.orders"), merging.snapshot("release", "db.items")} == {
        20,
        30,
    }
    assert snapshots(merging) == (30, 30)


def test_a_skipped_conflict_prevents_the_transplant(answering, nessie, merging) -> None:
    head = merging.head("main")
    code, _ = answering("s\nt\n", "resolve", "transplant", "v1..feature")
    assert (code, merging.head("main")) == (3, head)


@pytest.fixture
def changed_since(catalog):
    """Two tables were updated by one commit, and one of them again since."""
    for snapshot, names in ((20, ("db.orders", "db.items")), (30, ("db.orders",))):
        found = {name: catalog.repository.content("main", key(name)) for name in names}
        catalog.commit(
            "main",
            f"to {snapshot}",
            *(Put(key(name), table(name, snapshot, found[name].id)) for name in names),
        )
    return catalog


def test_a_content_that_the_branch_deleted_is_not_edited(answering, nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 8)
    catalog.drop("main", "db.orders")
    code, seen = answering("e\nt\n", "resolve", "merge", "feature", EDITOR="false")
    assert (code, seen.count("[e]dit     not possible: the branch deleted it")) == (0, 1)
    assert catalog.snapshot("main", "db.orders") == 8


@pytest.fixture
def created_again(catalog):
    """`feature` changes a table that `main` drops and creates again."""
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 8)
    catalog.drop("main", "db.orders")
    catalog.create("main", "db.orders", 9)
    return catalog


def test_no_new_value_is_asked_for_a_table_that_both_sides_renamed(
    answering, nessie, catalog, tmp_path
) -> None:
    catalog.branch("feature")
    for branch, name, number in (("main", "db.ours", 8), ("feature", "db.theirs", 9)):
        catalog.update(branch, "db.orders", number)
        catalog.rename(branch, "db.orders", name)
    file = tmp_path / "orders.json"
    file.write_text(nessie("content", "show", "db.ours", "--raw").out)
    ran = nessie("resolve", "merge", "feature", "--resolve", f"db.ours={file}")
    ran.expect(2, "both sides renamed it", "--theirs db.ours beside --resolve says which key")
    code, seen = answering("o\n", "resolve", "merge", "feature")
    assert (code, "[e]dit" in seen) == (0, False)
    assert catalog.snapshot("main", "db.ours") == 8


def test_no_new_value_is_asked_for_a_content_that_was_created_again(
    answering, nessie, created_again, tmp_path
) -> None:
    ran = nessie("resolve", "merge", "feature")
    ran.expect(2, "decide by --ours KEY or --theirs KEY", without=("--resolve",))
    file = tmp_path / "orders.json"
    file.write_text(nessie("content", "show", "db.orders", "--raw").out)
    ran = nessie("resolve", "merge", "feature", "--resolve", f"db.orders={file}")
    ran.expect(2, "the branch deleted it", "decide by --ours or --theirs")
    code, seen = answering("o\n", "resolve", "merge", "feature")
    assert (code, "[e]dit" in seen) == (0, False)
    assert created_again.snapshot("main", "db.orders") == 9


def test_a_revert_by_options(nessie, changed_since) -> None:
    assert (
        nessie("resolve", "revert", "main~1", "--ours", "db.orders", "-m", "half of it").code == 0
    )
    assert snapshots(changed_since) == (30, 1)
    assert changed_since.repository.commit_at("main").meta.message == "half of it"


def test_a_revert_asks_on_a_terminal(answering, nessie, changed_since) -> None:
    shown = answering("t\n", "resolve", "revert", "main~1")
    shown.expect(0, "VALUE_DIFFERS")
    assert snapshots(changed_since) == (1, 1)
    assert changed_since.repository.commit_at("main").meta.subject == 'Revert "to 20"'


def test_a_skipped_conflict_prevents_the_revert(answering, nessie, changed_since) -> None:
    head = changed_since.head("main")
    code, _ = answering("s\n", "resolve", "revert", "main~1")
    assert (code, changed_since.head("main")) == (3, head)


def test_a_revert_without_remaining_changes_writes_nothing(nessie, changed_since) -> None:
    changed_since.update("main", "db.items", 31)
    head = changed_since.head("main")
    ran = nessie("resolve", "revert", "main~2", "--ours", "db.orders", "--ours", "db.items")
    ran.expect(0, out="no commit was written: main keeps its contents\n")
    assert changed_since.head("main") == head


def test_a_content_with_the_id_of_another_one_resolves_nothing(nessie, merging, tmp_path) -> None:
    other = nessie("content", "show", "db.items", "--raw").out
    file = tmp_path / "other.json"
    file.write_text(other)
    for words in (["merge"], ["resolve", "merge"]):
        ran = nessie(*words, "feature", "--resolve", f"db.orders={file}", "--ours", "db.items")
        ran.expect(2, "remove the id from the file")


def test_a_conflict_that_remains_does_not_repeat_its_decision(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.drop("feature", "db.orders")
    catalog.drop("feature", "db.items")
    catalog.drop("feature", "db")
    catalog.create("main", "db.more")
    ran = nessie("resolve", "merge", "feature", "--theirs", "db")
    assert ran.code == 3
    source = f"feature@{catalog.head('feature')[:12]}"
    assert f"nessie resolve merge {source} --ours db --expected-hash " in ran.err
    assert "--theirs db" not in ran.err
    assert "one by one" not in ran.err


def test_without_a_batch_there_is_nothing_to_resolve(nessie, catalog) -> None:
    ran = nessie("resolve")
    ran.expect(1, "nothing is staged", out="")
