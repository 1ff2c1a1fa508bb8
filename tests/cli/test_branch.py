import os
import pty
import subprocess
import sys

import pytest

from nessie_cli.cli.errors.messages import text_for_people
from nessie_cli.model import NO_ANCESTOR


def names(ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [row[0] for row in ran.rows]


# -- list ----------------------------------------------------------------------------------------
def test_a_list_is_name_and_hash(nessie, catalog) -> None:
    catalog.branch("feature")
    assert nessie("branch").rows == [
        ["feature", catalog.head("feature")[:12]],
        ["main", catalog.head("main")[:12]],
    ]
    assert nessie("branch", "-l").out == nessie("branch").out


def test_the_long_list_counts_ahead_and_behind(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    catalog.update("feature", "db.orders", 3)
    catalog.update("main", "db.items", 2)
    feature, main = nessie("branch", "-v").rows
    assert feature[2:4] == ["2", "1"]
    assert feature[6] == "update db.orders"
    assert main[2:4] == ["", ""]
    metadata = nessie("branch", "-v", "--json").json["references"][0]["metadata"]
    assert (
        metadata["numCommitsAhead"],
        metadata["numCommitsBehind"],
        metadata["commonAncestorHash"],
    ) == (2, 1, catalog.head("v1"))


def test_json_has_the_shape_of_rest(nessie, catalog) -> None:
    assert nessie("branch", "--json").json == {
        "hasMore": False,
        "token": None,
        "references": [{"type": "BRANCH", "name": "main", "hash": catalog.head("main")}],
    }


def test_one_name_or_a_pattern(nessie, catalog) -> None:
    for name in ("feature/a", "feature/b"):
        catalog.branch(name)
    assert names(nessie("branch", "-l", "main")) == ["main"]
    assert names(nessie("branch", "-l", "feature/*")) == ["feature/a", "feature/b"]
    assert nessie("branch", "-l", "main", "--json").json == {
        "reference": {"type": "BRANCH", "name": "main", "hash": catalog.head("main")}
    }
    assert nessie("branch", "-l", "maine").code == 4


def test_several_names_and_patterns(nessie, catalog) -> None:
    for name in ("etl/a", "etl/b", "dev/c", "dev/d"):
        catalog.branch(name)
    ran = nessie("branch", "--list", "etl/*", "dev/[cx]", "main")
    assert names(ran) == ["dev/c", "etl/a", "etl/b", "main"]
    assert names(nessie("branch", "-l", "etl/*", "--sort", "-name")) == ["etl/b", "etl/a"]
    assert names(nessie("branch", "-l", "main", "dev/c")) == ["dev/c", "main"]
    assert names(nessie("branch", "-l", "no/*")) == []
    assert nessie("branch", "-l", "etl/*", "maine").code == 4
    assert names(nessie("tag", "-l", "v*")) == ["v1"]


def test_branches_that_contain_a_commit(nessie, catalog) -> None:
    catalog.branch("old")
    catalog.update("main", "db.orders", 2)
    assert names(nessie("branch", "--contains", "main")) == ["main"]
    assert names(nessie("branch", "--contains", "v1")) == ["main", "old"]


def test_orders_and_relations_follow_every_move(nessie, catalog) -> None:
    """What was found out for one listing is asked again for the next one."""

    def shown() -> dict[str, list[str]]:
        lines = (
            "--sort ahead",
            "--sort -behind",
            "--sort -time",
            "--merged",
            "--no-merged",
            "--contains v1",
            "--no-contains side",
        )
        return {line: names(nessie("branch", *line.split())) for line in lines}

    for name in ("side", "work"):
        catalog.branch(name)
    catalog.update("work", "db.orders", 2)
    for number in (2, 3):
        catalog.update("side", "db.items", number)
    first = {
        "--sort ahead": ["main", "work", "side"],
        "--sort -behind": ["main", "side", "work"],
        "--sort -time": ["side", "work", "main"],
        "--merged": ["main"],
        "--no-merged": ["side", "work"],
        "--contains v1": ["main", "side", "work"],
        "--no-contains side": ["main", "work"],
    }
    assert shown() == shown() == first
    assert nessie("merge", "work").code == 0
    catalog.branch("later")
    catalog.update("later", "db.items", 9)
    second = {
        "--sort ahead": ["main", "later", "work", "side"],
        "--sort -behind": ["side", "work", "later", "main"],
        "--sort -time": ["later", "main", "side", "work"],
        "--merged": ["main", "work"],
        "--no-merged": ["later", "side"],
        "--contains v1": ["later", "main", "side", "work"],
        "--no-contains side": ["later", "main", "work"],
    }
    assert shown() == shown() == second
    nessie("branch", "-f", "main", "v1", "--yes")
    nessie("branch", "-d", "later", "--yes")
    third = first | {"--sort -time": ["side", "work", "main"]}
    assert shown() == shown() == third


# -- create --------------------------------------------------------------------------------------
def test_a_branch_starts_at_the_current_reference_or_the_named_one(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    ran = nessie("branch", "feature")
    assert (ran.code, ran.out) == (0, f"created branch feature at {catalog.head('main')[:12]}\n")
    assert nessie("branch", "older", "main~1", "--json").json == {
        "reference": {"type": "BRANCH", "name": "older", "hash": catalog.head("v1")}
    }
    assert nessie("branch", "empty", NO_ANCESTOR).code == 0
    assert [catalog.head(name) for name in ("feature", "older", "empty")] == [
        catalog.head("main"),
        catalog.head("v1"),
        NO_ANCESTOR,
    ]


def test_an_existing_name_is_refused_or_kept(nessie, catalog) -> None:
    catalog.branch("feature", "v1")
    assert nessie("branch", "feature", "main~1").code == 5
    ran = nessie("branch", "feature", "main~1", "--if-not-exists")
    assert ran.code == 0
    assert catalog.head("feature") == catalog.head("v1")
    assert nessie("branch", "v1", "--if-not-exists").code == 2, "v1 is a tag"


@pytest.mark.parametrize("name", ["HEAD", "deadbeef", "1abc", "a..b", "a/", "-", "a b"])
def test_unusable_names_are_refused(nessie, catalog, name) -> None:
    ran = nessie("branch", "--", name) if name.startswith("-") else nessie("branch", name)
    assert ran.code == 2
    assert names(nessie("branch")) == ["main"]


@pytest.mark.parametrize("option", ["-c", "--copy"])
def test_a_copy_starts_at_the_head_of_the_old_branch(nessie, catalog, option) -> None:
    catalog.branch("feature")
    head = catalog.update("feature", "db.orders", 2)

    assert (
        nessie("branch", option, "feature", "backup", "--dry-run").out
        == f"would create branch backup at {head[:12]}\n"
    )
    assert nessie("branch", "-l", "backup").code == 4
    ran = nessie("branch", option, "feature", "backup", "--json")
    assert ran.json == {"reference": {"type": "BRANCH", "name": "backup", "hash": head}}
    assert nessie("branch", option, "feature", "backup").code == 5
    assert nessie("branch", option, "feature", "backup", "--dry-run").code == 5
    assert nessie("branch", option, "feature", "backup", "--if-not-exists").code == 0
    assert (
        nessie("branch", option, "of-main").out
        == f"created branch of-main at {catalog.head('main')[:12]}\n"
    )


@pytest.mark.parametrize(
    ("argv", "code", "line"),
    [
        (["-c"], 2, "expected: -c [OLD] NEW"),
        (["-c", "a", "b", "c"], 2, "expected: -c [OLD] NEW"),
        (["-c", "main", ""], 2, "an argument is empty"),
        (["-c", "-l", "a"], 2, "-l and -c cannot be used together"),
        (["-c", "v1", "new"], 2, "`nessie branch new v1` creates a branch there"),
        (["-c", "nowhere", "new"], 4, "nowhere"),
        (["-c", "main", "new", "--expected-hash", "main"], 2, "--expected-hash needs -d, -m or -f"),
        (["-c", "main", "a..b"], 2, "a..b"),
        (["--copy", "-d", "a"], 2, "-d and -c cannot be used together"),
    ],
)
def test_a_copy_that_cannot_be_made(nessie, catalog, argv, code, line) -> None:
    ran = nessie("branch", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert line in ran.err
    assert names(nessie("branch")) == ["main"]


# -- delete --------------------------------------------------------------------------------------
def test_deleting_says_how_to_undo_it(nessie, catalog) -> None:
    catalog.branch("feature")
    ran = nessie("branch", "-d", "feature")
    assert ran.out == f"deleted branch feature (was {catalog.head('main')[:12]})\n"
    assert "`nessie undo feature` restores it" in ran.err
    assert nessie("branch", "-d", "feature").code == 4
    assert nessie("-q", "branch", "-d", "feature", "--if-exists") == (0, "", "")


def test_losing_commits_is_reported_without_a_question_if_there_is_no_terminal(
    nessie, catalog
) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    ran = nessie("branch", "-d", "feature")
    assert ran.code == 0
    assert "no other reference reaches its last commits" in ran.err


def test_two_branches_that_cover_each_other_are_lost_together(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    catalog.branch("copy", "feature")
    assert "no other reference reaches" not in nessie("branch", "-d", "copy").err
    nessie("undo", "copy")
    assert nessie("branch", "-d", "copy", "feature").err.count("no other reference reaches") == 2


def test_protected_references_are_not_deleted(nessie, catalog) -> None:
    catalog.branch("feature")
    assert "default branch" in nessie("branch", "-d", "main").err
    assert "is a tag" in nessie("branch", "-d", "v1").err
    assert nessie("switch", "feature").code == 0
    assert "is the current reference" in nessie("branch", "-d", "feature").err
    assert names(nessie("branch")) == ["feature", "main"]


def test_a_dry_run_deletes_nothing(nessie, catalog) -> None:
    catalog.branch("feature")
    assert nessie("branch", "-d", "feature", "--dry-run").out.startswith(
        "would delete branch feature"
    )
    assert names(nessie("branch")) == ["feature", "main"]


def test_the_expected_hash_guards(nessie, catalog) -> None:
    catalog.branch("feature")
    before = catalog.head("feature")
    catalog.update("feature", "db.orders", 2)
    for argv in (["-d", "feature"], ["-m", "feature", "other"], ["-f", "feature", "main"]):
        ran = nessie("branch", *argv, "--expected-hash", before)
        assert ran.code == 5
        assert f"is not at the expected commit {before}, but at " in ran.err
    error = nessie("branch", "-d", "feature", "-c", before[:10], "--json").json["error"]
    assert error["errorDetails"]["conflicts"][0]["conflictType"] == "UNEXPECTED_HASH"
    assert nessie("branch", "-d", "feature", "-c", catalog.head("feature")[:10]).code == 0


def answered(answer: bytes, *argv: str) -> subprocess.CompletedProcess[str]:
    """Runs a command whose stdin is a real terminal with a typed answer."""
    keyboard, terminal = pty.openpty()
    os.write(keyboard, answer)
    try:
        command = [sys.executable, "-m", "nessie_cli", *argv]
        return subprocess.run(
            command, stdin=terminal, capture_output=True, text=True, check=False, timeout=120
        )
    finally:
        os.close(keyboard)
        os.close(terminal)


def test_on_a_terminal_losing_commits_needs_a_yes(nessie, catalog) -> None:
    catalog.branch("feature")
    kept = catalog.update("feature", "db.orders", 2)
    for argv in (["-d", "feature"], ["-f", "feature", "main"]):
        refused = answered(b"n\n", "branch", *argv)
        assert refused.returncode == 1
        assert refused.stderr.startswith("Some commits are reachable only from feature")
        assert (
            "[y/N] nessie: not confirmed, so nothing was done. Hint: --yes skips the question"
            in refused.stderr
        )
        assert catalog.head("feature") == kept
    assert answered(b"", "branch", "-d", "feature", "--yes").returncode == 0
    nessie("undo", "feature")
    assert answered(b"y\n", "branch", "-d", "feature").returncode == 0
    assert answered(b"", "branch", "-f", "main", "v1~1").returncode == 0, (
        "the tag keeps the commits"
    )


# -- rename and assign ---------------------------------------------------------------------------
def test_a_rename_updates_the_workspace(nessie, catalog) -> None:
    catalog.branch("feature")
    nessie("switch", "feature")
    ran = nessie("branch", "-m", "feature", "rework")
    assert ran.out == f"renamed feature to branch rework at {catalog.head('rework')[:12]}\n"
    assert nessie("branch", "-m", "again").code == 0
    assert nessie("status", "--json").code == 0
    assert names(nessie("branch")) == ["again", "main"]
    assert nessie("branch", "-m", "again", "main").code == 5
    assert nessie("branch", "-m", "main", "trunk").code == 2


def test_moving_forwards_is_quiet_and_moving_backwards_says_how_to_undo_it(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("main", "db.orders", 2)
    ran = nessie("branch", "-f", "feature", "main")
    assert (ran.code, ran.out, ran.err) == (
        0,
        f"assigned branch feature at {catalog.head('main')[:12]}\n",
        "",
    )
    ran = nessie("branch", "-f", "feature", "v1")
    assert ran.code == 0
    assert "`nessie undo feature` restores it at " in ran.err
    assert catalog.head("feature") == catalog.head("v1")


def test_renaming_needs_an_existing_branch(nessie, catalog) -> None:
    assert nessie("branch", "-m", "nowhere", "new").code == 4
    assert nessie("branch", "-m", "nowhere", "new", "--if-exists") == (0, "", "")
    assert nessie("tag", "--move", "nowhere", "new", "--if-exists").code == 0


def test_assigning_needs_an_existing_branch(nessie, catalog) -> None:
    assert nessie("branch", "-f", "nowhere", "main").code == 4
    assert nessie("branch", "-f", "nowhere", "main", "--if-exists") == (0, "", "")
    assert (
        nessie("branch", "-f", "nowhere", "main", "--if-exists", "--json").json["references"] == []
    )
    assert nessie("branch", "-f", "main", "v1", "--dry-run").out.startswith(
        "would assign branch main"
    )
    assert nessie("branch", "-f", "main").code == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["-d", "-m", "a", "b"],
        ["-d"],
        ["-m"],
        ["a", "b", "c"],
        ["-f", "a", "b", "c"],
        ["x", ""],
        [""],
        ["-d", ""],
        ["-l", ""],
        ["-c", "", "-d", "a"],
    ],
)
def test_contradictory_options_are_refused(nessie, catalog, argv) -> None:
    ran = nessie("branch", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1


def test_if_one_reference_cannot_be_deleted_the_others_still_are(nessie, catalog) -> None:
    for name in ("a", "b", "keep"):
        catalog.branch(name)
    catalog.repository.put_setting("protect.keep", "no-delete")
    ran = nessie("branch", "-d", "a", "nowhere", "keep", "b", "--json")
    assert ran.code == 8
    assert [reference["name"] for reference in ran.json["references"]] == ["a", "b"]
    assert [error["errorCode"] for error in ran.json["errors"]] == [
        "REFERENCE_NOT_FOUND",
        "FORBIDDEN",
    ]
    assert [line for line in ran.err.splitlines() if line.startswith("nessie: ")] == [
        f"nessie: {text_for_people(error['message'])}" for error in ran.json["errors"]
    ]
    assert [reference.name for reference in catalog.repository.references()] == [
        "keep",
        "main",
        "v1",
    ]


def test_if_none_can_be_deleted_the_first_reason_decides_the_exit_code(nessie, catalog) -> None:
    ran = nessie("branch", "-d", "nowhere", "nor-here")
    assert ran.code == 4
    assert "nessie: no branch or tag 'nowhere'" in ran.err
    assert "no branch or tag 'nor-here'" in ran.err
    assert nessie("branch", "-d", "nowhere", "main").code == 2
    catalog.branch("a")
    assert nessie("branch", "-d", "a", "nowhere", "--if-exists").code == 0


def test_a_protected_tag_is_called_a_tag(nessie, catalog) -> None:
    catalog.repository.put_setting("protect.v*", "no-delete")
    ran = nessie("tag", "-d", "v1")
    ran.expect(6, "nessie: tag 'v1' is protected")


def test_the_document_of_one_deletion_and_of_several(nessie, catalog) -> None:
    for name in ("a", "b", "c"):
        catalog.branch(name)
    found = nessie("branch", "-d", "a", "b", "--json").json
    assert [reference["name"] for reference in found["references"]] == ["a", "b"]
    assert nessie("branch", "-d", "c", "--json").json["reference"]["name"] == "c"
    assert names(nessie("branch")) == ["main"]


@pytest.mark.parametrize("command", ["branch", "tag"])
def test_a_dry_run_creates_nothing(nessie, command, catalog) -> None:
    before = nessie(command).out

    assert nessie(command, "x", "--dry-run").out.startswith(f"would create {command} x at ")
    assert nessie(command, "main", "--dry-run").code == 5
    assert nessie(command, "no good", "--dry-run").code == 2
    assert nessie(command).out == before


@pytest.mark.parametrize(
    ("argv", "code", "line"),
    [
        (["-m", "feature", "main"], 5, "already exists"),
        (["-m", "feature", "no good"], 2, "Reference name"),
        (["-m", "main", "trunk"], 2, "cannot be renamed"),
        (
            ["-m", "feature", "other", "--expected-hash", "main~1"],
            5,
            "is not at the expected commit",
        ),
        (["-d", "feature", "--expected-hash", "main~1"], 5, "is not at the expected commit"),
        (["-d", "keep"], 6, "is protected"),
        (["-f", "feature", "v1", "--expected-hash", "main~1"], 5, "is not at the expected commit"),
        (["-d", "fea*"], 2, "`nessie branch -l 'fea*'` lists the names"),
        (["fea*"], 2, "`nessie branch -l 'fea*'` lists them"),
    ],
)
def test_a_dry_run_fails_as_the_command_does(nessie, catalog, argv, code, line) -> None:
    catalog.branch("feature")
    catalog.branch("keep")
    catalog.repository.put_setting("protect.keep", "no-delete")
    before = nessie("branch").out

    for ran in (nessie("branch", *argv, "--dry-run"), nessie("branch", *argv)):
        assert (ran.code, ran.out) == (code, "")
        assert line in ran.err
        assert nessie("branch").out == before


def test_a_dry_run_renames_nothing(nessie, catalog) -> None:
    head = catalog.branch("feature")
    assert (
        nessie("branch", "-m", "feature", "other", "--dry-run").out
        == f"would rename feature to branch other at {head[:12]}\n"
    )
    assert names(nessie("branch")) == ["feature", "main"]
