import json
import shlex

import pytest

from nessie_cli.model import ContentKey, Delete, Namespace, Put, ReferenceType


@pytest.fixture
def feature(catalog):
    """feature: orders updated, a table created. main: items updated."""
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    catalog.create("feature", "db.more")
    catalog.update("main", "db.items", 2)
    return catalog


@pytest.fixture
def conflict(feature):
    """The same, and main has updated orders as well."""
    feature.update("main", "db.orders", 3, author="Bob <bob@example.org>")
    return feature


def test_a_merge_lists_each_key_and_says_where_the_branch_is_now(nessie, feature) -> None:
    ran = nessie("merge", "feature")
    assert ran.code == 0
    assert ran.rows == [
        ["db.more", "merged", "-", "1", "iceberg-table"],
        ["db.orders", "merged", "1", "2", "iceberg-table"],
    ]
    assert ran.err == f"merged feature into main: now at {feature.head('main')[:12]}\n"
    assert feature.snapshot("main", "db.orders") == 2


def test_json_has_the_shape_of_rest(nessie, feature) -> None:
    before = feature.head("main")
    found = nessie("merge", "feature", "--json").json
    assert found["wasApplied"] is found["wasSuccessful"] is True
    assert found["resultantTargetHash"] == feature.head("main")
    assert found["effectiveTargetHash"] == before
    assert found["commonAncestor"] == feature.head("v1")
    assert found["details"][1]["source"]["snapshotId"] == 2
    assert found["details"][1]["target"]["snapshotId"] == 1


def test_the_target_and_the_message_may_be_given(nessie, feature) -> None:
    assert nessie("merge", "main", "--into", "feature", "-m", "catch up").code == 0
    meta = nessie("log", "feature", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]
    assert (meta["message"], meta["authors"]) == ("catch up", ["Eva <eva@example.org>"])
    assert len(meta["parentCommitHashes"]) == 2
    assert nessie("merge", "feature", "-b", "main").code == 0


def test_a_merge_with_a_default_message_has_the_user_as_author(nessie, feature) -> None:
    assert nessie("merge", "feature").code == 0
    meta = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]
    assert meta["message"] == "Merge branch 'feature' into main"
    assert meta["authors"] == ["Eva <eva@example.org>"]


def test_merging_twice_has_nothing_to_do(nessie, feature) -> None:
    nessie("merge", "feature")
    ran = nessie("merge", "feature")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "already up to date: nothing was merged into main\n"
    assert nessie("merge", "feature", "--json").json["wasApplied"] is False


def test_a_merge_of_changes_that_the_target_has_made_too_says_so(nessie, catalog) -> None:
    catalog.branch("same")
    catalog.update("same", "db.orders", 5)
    assert nessie("restore", "db.orders", "--at", "same", "-m", "also here").code == 0
    ran = nessie("merge", "same")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("merged same into main: now at")
    assert nessie("merge", "same").err == "already up to date: nothing was merged into main\n"


@pytest.mark.parametrize("how", [["--ours", "db.orders"], ["--behavior", "drop"]])
def test_a_decision_is_remembered(nessie, conflict, how) -> None:
    assert nessie("merge", "feature", *how).code == 0
    ran = nessie("merge", "feature")
    assert (ran.code, ran.err) == (0, "already up to date: nothing was merged into main\n")


def test_a_dry_run_without_effect_says_so(nessie, feature) -> None:
    ran = nessie("merge", "feature", "--behavior", "drop", "--dry-run")
    ran.expect(0, "feature would change no table or view of main")


def test_the_message_of_a_merge_has_paragraphs(nessie, feature) -> None:
    assert nessie("merge", "feature", "-m", "night", "-m", "all tables").code == 0
    meta = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]
    assert meta["message"] == "night\n\nall tables"


def test_a_dry_run_writes_nothing(nessie, feature) -> None:
    before = feature.head("main")
    ran = nessie("merge", "feature", "--dry-run")
    assert ran.code == 0
    assert ran.err.startswith("dry run, no conflicts")
    assert len(ran.rows) == 2
    assert nessie("merge", "feature", "--dry-run", "--json").json["resultantTargetHash"] is None
    assert feature.head("main") == before


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_conflict_shows_the_sides_and_writes_nothing(nessie, conflict, more) -> None:
    before = conflict.head("main")
    ran = nessie("merge", "feature", *more)
    assert (ran.code, ran.out) == (3, "")
    lines = ran.err.splitlines()
    assert lines[0] == "nessie: 1 conflict; nothing was written"
    assert lines[1] == ("conflict: db.orders was changed on main and on feature   VALUE_DIFFERS")
    assert ran.states["snapshot-id"] == ["1", "3", "2"]
    assert f"  changed by         {before[:12]} " in ran.err
    assert " Bob, " in ran.err
    assert conflict.head("main") == before


def test_a_conflict_as_json_has_everything(nessie, conflict) -> None:
    ran = nessie("merge", "feature", "--json")
    assert ran.code == 3
    error = ran.json["error"]
    assert error["errorCode"] == "REFERENCE_CONFLICT"
    (found,) = error["errorDetails"]["conflicts"]
    assert [found[side]["snapshotId"] for side in ("expected", "actual", "proposed")] == [1, 3, 2]
    assert [found[side]["snapshotId"] for side in ("base", "ours", "theirs")] == [1, 3, 2]
    assert found["changedBy"]["hash"] == conflict.head("main")
    expected = f"--expected-hash {conflict.head('main')[:12]}"
    source = f"feature@{conflict.head('feature')[:12]}"
    assert found["resolutions"] == [
        f"nessie merge {source} --theirs db.orders {expected}",
        f"nessie merge {source} --ours db.orders {expected}",
    ]


@pytest.mark.parametrize(("number", "snapshot"), [(0, 2), (1, 3)])
def test_a_pasted_resolution_resolves(nessie, conflict, number, snapshot) -> None:
    error = nessie("merge", "feature", "--dry-run", "-m", "with spaces", "--json").json["error"]
    pasted = error["errorDetails"]["conflicts"][0]["resolutions"][number]
    assert nessie(*shlex.split(pasted)[1:]).code == 0
    assert conflict.snapshot("main", "db.orders") == snapshot
    assert conflict.snapshot("main", "db.more") == 1
    assert nessie("log", "-n", "1").subjects == ["with spaces"]


def test_ours_and_theirs_for_everything(nessie, conflict) -> None:
    assert nessie("merge", "feature", "--behavior", "FORCE").code == 0
    assert conflict.snapshot("main", "db.orders") == 2
    assert nessie("undo").code == 0
    ran = nessie("merge", "feature", "--behavior", "drop", "--theirs", "db.more")
    assert {row[0]: row[1] for row in ran.rows} == {"db.more": "theirs", "db.orders": "ours"}
    assert conflict.snapshot("main", "db.orders") == 3


def test_a_resolution_from_a_file(nessie, conflict, tmp_path) -> None:
    content = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": "s3://lake/both.json",
        "snapshotId": 9,
        "schemaId": 0,
        "specId": 0,
        "sortOrderId": 0,
    }
    (tmp_path / "both=1.json").write_text(json.dumps(content))
    assert nessie("merge", "feature", "--resolve", "db.orders=both=1.json").code == 0
    assert conflict.snapshot("main", "db.orders") == 9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("db.orders", "write KEY=FILE"),
        ("db.orders=", "write KEY=FILE"),
        ("db.orders=none.json", "none.json"),
        ("db.orders=bad.json", "bad.json"),
        ("db.orders=view.json", "view.json"),
        ("db.more=ok.json", "'main' has no content with this key"),
        ("db.nothing=ok.json", "--resolve db.nothing: the source does not change this key"),
    ],
)
def test_a_resolution_that_cannot_work_is_refused_before_anything_happens(
    nessie, conflict, tmp_path, text, said
) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "view.json").write_text('{"type": "ICEBERG_VIEW"}')
    (tmp_path / "ok.json").write_text('{"type": "NAMESPACE", "elements": ["a"]}')
    ran = nessie("merge", "feature", "--resolve", text)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_file_does_not_resolve_two_contents_with_one_key(nessie, catalog, tmp_path) -> None:
    catalog.branch("feature")
    catalog.create("main", "db.new")
    catalog.create("feature", "db.new")
    (tmp_path / "new.json").write_text(nessie("content", "show", "db.new", "--raw").out)
    head = catalog.head("main")
    ran = nessie("merge", "feature", "--resolve=db.new=new.json")
    ran.expect(2, "db.new: a new value cannot be stored", "different contents with this key")
    assert catalog.head("main") == head


def test_a_key_is_decided_once(nessie, conflict) -> None:
    ran = nessie("merge", "feature", "--ours", "db.orders", "--theirs", "db.orders")
    assert ran.code == 2
    assert "--theirs db.orders: the key is already named by --ours\n" in ran.err


def test_a_decision_on_a_key_that_is_not_in_the_merge_is_refused(nessie, conflict) -> None:
    ran = nessie("merge", "feature", "--theirs", "db.orders", "--ours", "db.items")
    assert ran.code == 2
    assert "db.items" in ran.err


def test_all_conflicts_are_reported_at_once(nessie, conflict) -> None:
    conflict.update("feature", "db.items", 5)
    ran = nessie("merge", "feature")
    assert ran.err.count("\nconflict: ") == 2
    source = f"feature@{conflict.head('feature')[:12]}"
    expected = f"--expected-hash {conflict.head('main')[:12]}"
    both = [f"{side} db.items {side} db.orders" for side in ("--theirs", "--ours")]
    assert ran.err.endswith(
        "\nall conflicts\n"
        "  resolve            nessie resolve merge feature   # one by one\n"
        f"  or                 nessie merge {source} {both[0]} {expected}\n"
        f"  or                 nessie merge {source} {both[1]} {expected}\n"
    )
    line = ran.err.splitlines()[-2].split()[2:]
    assert nessie(*line).code == 0
    assert conflict.snapshot("main", "db.items") == 5


def test_a_line_for_all_conflicts_is_not_printed_if_one_has_other_effects(nessie, conflict) -> None:
    conflict.update("feature", "db.items", 5)
    conflict.rename("feature", "db.items", "db.moved")
    conflict.create("main", "db.moved", 9)
    err = nessie("merge", "feature").err
    assert err.count("--theirs") == 2
    assert "nessie resolve merge feature   # one by one\n" in err


# -- globs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["merge", "feature"], ["transplant", "v1..feature"], ["resolve", "merge", "feature"]]
)
def test_a_glob_decides_the_conflicts_that_match(nessie, conflict, words) -> None:
    conflict.update("feature", "db.items", 5)
    ran = nessie(*words, "--theirs", "db.i*", "--json")
    if words[0] == "resolve":
        ran.expect(2, "not decided: db.orders")
    else:
        (left,) = ran.error["errorDetails"]["conflicts"]
        assert left["key"] == {"elements": ["db", "orders"]}
    assert nessie(*words, "--theirs", "db.i*", "--ours", "*").code == 0
    assert conflict.snapshot("main", "db.items") == 5
    assert conflict.snapshot("main", "db.orders") == 3


def test_a_glob_without_conflicts_is_no_error(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.items", 5)
    assert nessie("merge", "feature", "--theirs", "raw.*").code == 0
    assert catalog.snapshot("main", "db.items") == 5


def test_a_glob_deletes_no_content_that_it_does_not_match(nessie, catalog) -> None:
    catalog.branch("x")
    catalog.rename("x", "db.orders", "other")
    catalog.update("x", "other", 2)
    catalog.update("main", "db.orders", 3)
    catalog.create("main", "other", 60)
    ran = nessie("merge", "x", "--theirs", "db.*", "--json")
    assert ran.code == 3
    assert catalog.snapshot("main", "other") == 60
    ran = nessie("merge", "x", "--theirs", "*")
    assert ran.code == 0
    assert "other: the iceberg-table snapshot 60 of main is deleted" in ran.err


@pytest.mark.parametrize("behavior", ["force", "drop"])
@pytest.mark.parametrize("words", [["merge", "feature"], ["transplant", "v1..feature"]])
def test_a_glob_and_a_side_for_all_contents_are_refused_together(
    nessie, conflict, words, behavior
) -> None:
    head = conflict.head("main")
    ran = nessie(*words, "--behavior", behavior, "--ours", "db.*")
    ran.expect(2, f"--behavior {behavior} and a glob")
    assert conflict.head("main") == head


@pytest.mark.parametrize("words", [["merge", "x"], ["transplant", "main..x"]])
@pytest.mark.parametrize(
    "globs",
    [
        ["--ours", "a*", "--theirs", "*"],
        ["--theirs", "a*", "--ours", "*"],
        ["--ours", "mt*", "--theirs", "*"],
        ["--ours", "m?", "--theirs", "a?"],
    ],
)
def test_globs_of_different_sides_never_decide_one_content(nessie, catalog, words, globs) -> None:
    catalog.create("main", "ab")
    catalog.branch("x")
    catalog.rename("x", "ab", "mt")
    catalog.update("x", "mt", 5)
    catalog.update("main", "ab", 7)
    catalog.create("main", "mt", 60)
    head = catalog.head("main")
    assert nessie(*words, *globs).code == 3
    assert catalog.head("main") == head


@pytest.mark.parametrize("words", [["merge", "x"], ["transplant", "main..x"]])
@pytest.mark.parametrize("glob", ["aside*", "*"])
def test_a_decision_about_a_key_removes_nothing_that_a_glob_keeps(
    nessie, catalog, words, glob
) -> None:
    catalog.branch("x")
    catalog.rename("x", "db.orders", "aside")
    catalog.create("main", "aside", 9)
    head = catalog.head("main")
    for more in ([], ["--dry-run"]):
        nessie(*words, "--theirs", "db.orders", "--ours", glob, *more).expect(2, "removes aside")
    assert catalog.head("main") == head
    # The key of the conflict names both.
    assert nessie(*words, "--theirs", "aside", "--ours", glob).code == 0
    assert catalog.snapshot("main", "aside") == 1


def test_a_decision_without_a_conflict_removes_nothing_that_a_glob_keeps(nessie, catalog) -> None:
    catalog.branch("x")
    catalog.drop("x", "db.items")
    catalog.rename("x", "db.orders", "db.items")
    catalog.create("x", "db.orders", 9)
    head = catalog.head("main")
    words = ["merge", "x", "--theirs", "db.*"]
    for more in ([], ["--dry-run"]):
        ran = nessie(*words, "--ours", "db.items", *more)
        ran.expect(2, "about db.items removes db.orders")
    assert catalog.head("main") == head
    assert nessie(*words).code == 0
    assert catalog.snapshot("main", "db.orders") == 9


@pytest.mark.parametrize("glob", ["aside*", "*"])
@pytest.mark.parametrize("first", ["db.items", "a glob", "nothing"])
def test_a_decision_about_a_later_commit_removes_nothing_that_a_glob_keeps(
    nessie, catalog, first, glob
) -> None:
    catalog.branch("x")
    if first == "nothing":
        catalog.create("x", "db.other", 8)
    else:
        catalog.update("x", "db.items", 5)
        catalog.update("main", "db.items", 6)
    catalog.rename("x", "db.orders", "aside")
    catalog.create("main", "aside", 9)
    head = catalog.head("main")
    words = ["transplant", "main..x", "--ours", glob]
    if first != "nothing":
        words += ["--ours", "db.items" if first == "db.items" else "db.i*"]
    for more in ([], ["--dry-run"]):
        nessie(*words, "--theirs", "db.orders", *more).expect(2, "removes aside")
    assert catalog.head("main") == head
    assert nessie(*words, "--theirs", "aside").code == 0
    assert catalog.snapshot("main", "aside") == 1
    assert catalog.snapshot("main", "db.items") == (6 if first != "nothing" else 1)


def test_decisions_for_one_commit_each_are_not_compared_with_globs_of_another(
    nessie, catalog
) -> None:
    catalog.branch("x")
    first = catalog.update("x", "db.orders", 5)
    second = catalog.rename("x", "db.orders", "aside")
    catalog.update("main", "db.orders", 6)
    catalog.create("main", "aside", 9)
    content_id = catalog.repository.content("x", ContentKey.parse("aside")).id
    words = ["transplant", "main..x", "--ours", "*", "--theirs"]
    nessie(*words, f"{second[:12]}:{content_id}", "--dry-run").expect(2, "removes aside")
    assert nessie(*words, f"{first[:12]}:{content_id}").code == 0
    assert catalog.snapshot("main", "aside") == 9
    assert catalog.snapshot("main", "db.orders") == 5


def test_a_staged_revert_keeps_to_its_decisions(nessie, catalog) -> None:
    for snapshot in ("5", "6"):
        for name in ("db.items", "db.orders"):
            value = ["--snapshot-id", snapshot, "--metadata-location", f"s3://{snapshot}"]
            assert nessie("content", "put", name, *value).code == 0
        assert nessie("commit", "-m", "both").code == 0
    sides = ["--ours", "db.items", "--theirs", "db.o*"]
    assert nessie("revert", "HEAD", "-n", *sides).code == 0
    assert nessie("commit", "-m", "revert").code == 0
    assert catalog.snapshot("main", "db.items") == 6
    assert catalog.snapshot("main", "db.orders") == 5


def test_a_glob_decides_a_revert(nessie, conflict) -> None:
    before = conflict.snapshot("main", "db.items")
    changed = conflict.update("main", "db.items", 5)
    conflict.update("main", "db.items", 6)
    assert nessie("revert", changed).code == 3
    assert nessie("revert", changed, "--theirs", "db.*", "--dry-run").code == 0
    assert nessie("revert", changed, "--theirs", "db.*", "-n").code == 0
    assert nessie("reset", "--all").code == 0
    assert nessie("revert", changed, "--theirs", "db.*").code == 0
    assert conflict.snapshot("main", "db.items") == before


@pytest.mark.parametrize("renamed", ["main", "feature"])
def test_a_rename_and_a_change_combine(nessie, catalog, renamed) -> None:
    catalog.branch("feature")
    changed = "main" if renamed == "feature" else "feature"
    catalog.rename(renamed, "db.orders", "db.sales")
    catalog.update(changed, "db.orders", 7)
    dry = nessie("merge", "feature", "--dry-run", "--json").json
    ran = nessie("merge", "feature", "--json").json
    assert [detail["key"] for detail in dry["details"]] == [d["key"] for d in ran["details"]]
    assert [d["result"] for d in dry["details"]] == [d["result"] for d in ran["details"]]
    assert catalog.snapshot("main", "db.orders") is None
    assert catalog.snapshot("main", "db.sales") == 7


def test_the_table_shows_the_combined_content(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.rename("feature", "db.orders", "db.sales")
    catalog.update("main", "db.orders", 7)
    ran = nessie("merge", "feature")
    assert ran.rows == [
        ["db.orders", "merged", "7", "-", "-", "iceberg-table"],
        ["db.sales", "merged", "-", "1", "7", "iceberg-table"],
    ]


def test_a_rename_and_two_changes_conflict_under_the_key_on_ours(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.rename("feature", "db.orders", "db.sales")
    catalog.update("feature", "db.sales", 8)
    catalog.update("main", "db.orders", 7)
    ran = nessie("merge", "feature")
    assert ran.code == 3
    assert "conflict: db.orders was changed on main and renamed and changed on feature" in ran.err
    assert "  renamed            db.orders to db.sales on feature by" in ran.err
    source = f"feature@{catalog.head('feature')[:12]}"
    assert (
        f"  or                 nessie merge {source} --theirs db.orders --expected-hash " in ran.err
    )
    assert "(renames db.orders on main to db.sales)" in ran.err
    assert nessie("merge", "feature", "--theirs", "db.orders").code == 0
    assert catalog.snapshot("main", "db.orders") is None
    assert catalog.snapshot("main", "db.sales") == 8


def test_a_deletion_of_a_renamed_table_is_said(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.drop("feature", "db.orders")
    catalog.rename("main", "db.orders", "db.sales")
    ran = nessie("merge", "feature")
    assert ran.code == 3
    assert "conflict: db.sales was renamed on main and deleted on feature" in ran.err
    assert "(deletes db.sales on main)" in ran.err
    assert nessie("merge", "feature", "--theirs", "db.sales").rows == [
        ["db.sales", "theirs", "1", "-", "iceberg-table"]
    ]
    assert catalog.snapshot("main", "db.sales") is None


@pytest.mark.parametrize("case", ["recreated", "moved", "renamed twice", "dropped", "claimed"])
def test_advice_that_deletes_another_table_says_so(nessie, catalog, case) -> None:
    catalog.branch("feature")
    decided, lost = {
        "recreated": ("db.orders", "db.orders"),
        "moved": ("db.aside", "db.orders"),
        "renamed twice": ("db.aside", "db.sales"),
        "dropped": ("db.sales", "db.sales"),
        "claimed": ("db.aside", "db.orders"),
    }[case]
    if case in ("renamed twice", "dropped"):
        catalog.rename("feature", "db.orders", "db.sales")
    elif case == "claimed":
        catalog.create("feature", "db.aside", 8)
    else:
        catalog.update("feature", "db.orders", 8)
    if decided == "db.aside":
        catalog.rename("main", "db.orders", "db.aside")
    else:
        catalog.drop("main", "db.orders")
    if case == "moved":
        catalog.update("main", "db.aside", 7)
    catalog.create("main", lost, 9)
    said = f"deletes the present {lost} on main)"
    if case == "claimed":
        said = "(renames the present db.aside on main to db.orders; deletes the present db.orders on main)"
    ran = nessie("merge", "feature")
    assert ran.code == 3
    source = f"feature@{catalog.head('feature')[:12]}"
    assert (
        f"  or                 nessie merge {source} --theirs {decided} --expected-hash " in ran.err
    )
    assert said in ran.err
    assert nessie("merge", "feature", "--theirs", decided).code == 0
    assert catalog.snapshot("main", lost) != 9


def test_a_key_that_looks_like_a_content_id_is_quoted_in_advice(nessie, catalog) -> None:
    name = "0f5f1d3a-aaaa-4bbb-8ccc-123456789abc"
    catalog.create("main", name)
    catalog.branch("feature")
    catalog.update("feature", name, 2)
    catalog.update("main", name, 3)
    ran = nessie("merge", "feature", "--json")
    (found,) = ran.error["errorDetails"]["conflicts"]
    for line in found["resolutions"]:
        _, *argv = shlex.split(line)
        assert nessie(*argv, "--dry-run").code == 0


def test_a_missing_namespace_says_how_to_create_it(nessie, catalog) -> None:
    key = ContentKey.parse("ns")
    catalog.commit("main", "ns", Put(key, Namespace(elements=("ns",))))
    catalog.branch("feature")
    catalog.create("feature", "ns.table")
    catalog.commit("main", "drop ns", Delete(key))
    ran = nessie("merge", "feature", "--json")
    assert ran.code == 3
    (found,) = ran.json["error"]["errorDetails"]["conflicts"]
    assert found["conflictType"] == "NAMESPACE_ABSENT"
    assert nessie(*shlex.split(found["resolutions"][0])[1:]).code == 0
    assert nessie("merge", "feature").code == 0


def test_the_expected_hash_must_be_on_the_branch(nessie, feature) -> None:
    assert nessie("merge", "feature", "--expected-hash", feature.head("feature")).code == 4
    assert nessie("merge", "feature", "-c", feature.head("v1")[:9]).code == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ([], 2, "FROM"),
        (["nowhere"], 4, "nowhere"),
        ([""], 2, "an argument is empty"),
        (["feature", "--into", ""], 2, "an argument is empty"),
        (["feature", "-c", ""], 2, "an argument is empty"),
        (["feature", "--into", "v1"], 2, "must be a branch"),
        (["feature", "--into", "mian"], 4, "Did you mean 'main'?"),
        (["feature", "--behavior", "maybe"], 2, "maybe"),
        (["feature", "--ours", "a..b"], 2, "empty"),
        (["feature", "-m", " "], 2, "the commit message is empty"),
    ],
)
def test_wrong_input(nessie, feature, argv, code, said) -> None:
    before = feature.head("main")
    ran = nessie("merge", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert feature.head("main") == before


def test_unrelated_histories_are_merged_on_request(nessie, catalog) -> None:
    catalog.repository.create_reference(
        ReferenceType.BRANCH,
        "alone",
        "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d",
    )
    catalog.create("alone", "elsewhere", 7)
    ran = nessie("merge", "alone")
    ran.expect(4, "nessie merge --unrelated", out="")
    assert nessie("merge", "alone", "--unrelated").code == 0
    assert catalog.snapshot("main", "elsewhere") == 7


def test_a_first_history_is_merged_into_an_empty_branch(nessie) -> None:
    """A newcomer who works on a branch before anything is on main needs no option."""
    assert nessie("init").code == 0
    assert nessie("branch", "work").code == 0
    assert (
        nessie("--ref", "work", "content", "put", "db", "--type", "namespace", "-m", "db").code == 0
    )
    assert nessie("merge", "work", "--dry-run").code == 0
    ran = nessie("merge", "work")
    assert (ran.code, ran.rows) == (0, [["db", "merged", "-", "namespace", "namespace"]])
    assert [row[:2] for row in nessie("content", "list").rows] == [["db", "namespace"]]


@pytest.mark.parametrize("option", ["--into", "--onto"])
@pytest.mark.parametrize("command", ["merge", "transplant", "cherry-pick"])
def test_both_words_name_the_target(nessie, feature, command, option) -> None:
    nessie("branch", "release", "v1")
    before = feature.head("main")
    assert nessie(command, "feature", option, "release").code == 0
    assert feature.head("main") == before
    assert feature.head("release") != feature.head("v1")
