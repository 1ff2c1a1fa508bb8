"""What the command line says to small mistakes."""

import json

import pytest


def test_a_revision_beyond_the_beginning_is_an_error(nessie, catalog) -> None:
    for argv in (
        ["branch", "x", "HEAD~99"],
        ["log", "main~99"],
        ["diff", "main~98~1", "main"],
        ["log", "main~99*now"],
    ):
        ran = nessie(*argv)
        ran.expect(4, "beyond the beginning of the history")
    assert "x" not in [row[0] for row in nessie("branch").rows]


def test_a_time_before_the_first_commit_is_the_empty_history(nessie, catalog) -> None:
    for revision in ("main*2000-01-01", "main~1*2000-01-01", "main*2000-01-01*now"):
        ran = nessie("log", revision)
        assert (ran.code, ran.out) == (0, ""), revision


def test_a_second_parent_of_a_commit_with_one_parent(nessie, catalog) -> None:
    ran = nessie("show", "HEAD^2")
    assert (ran.code, ran.err) == (4, "nessie: main^2: the commit main has 1 parent\n")


def test_switch_refuses_an_abbreviated_hash(nessie, catalog) -> None:
    ran = nessie("switch", catalog.head("main")[:8])
    ran.expect(2, "is a commit", "nessie switch -c NAME")


def test_identical_content_is_not_staged(nessie, catalog) -> None:
    assert nessie("content", "put", "twice", "--type", "namespace", "-m", "once").code == 0
    assert (
        nessie("content", "put", "twice", "--type", "namespace").out
        == "nothing to stage for twice\n"
    )
    ran = nessie("content", "put", "twice", "--type", "namespace", "-m", "again")
    ran.expect(2, "has no effect")


@pytest.mark.parametrize("argv", [["access", "--help"], ["exit-status"], ["revisions", "HEAD"]])
def test_a_topic_of_the_manual_is_not_a_command(nessie, argv) -> None:
    ran = nessie(*argv)
    ran.expect(2, f"`nessie help {argv[0]}` shows it")
    assert nessie("help", argv[0]).code == 0


def test_a_mistyped_version_option_is_recognised(nessie) -> None:
    assert "did you mean --version?" in nessie("--verison").err


def test_audit_of_a_key_names_the_option_for_it(nessie, catalog) -> None:
    assert "`--prefix db`" in nessie("audit", "db").err


def test_a_missing_argument_is_one_line_with_its_values(nessie) -> None:
    assert (
        nessie("completion").err.splitlines()[0]
        == "nessie: missing argument 'SHELL': bash, zsh, fish"
    )


def test_audit_of_a_prefix_without_keys_is_an_error(nessie, catalog) -> None:
    ran = nessie("audit", "--prefix", "db.order")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.splitlines() == [
        "nessie: no key is db.order or below it",
        "Did you mean 'db.orders'?",
    ]
    assert nessie("audit", "--prefix", "db.order", "--json").error["errorCode"] == (
        "CONTENT_NOT_FOUND"
    )


@pytest.mark.parametrize("line", ["status", "--store ../store.sqlite branch", "unknown-command"])
def test_a_deleted_folder_is_named_as_the_reason(
    nessie, catalog, tmp_path, monkeypatch, line
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = nessie(*line.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "nessie: the current folder has been deleted. Hint: `cd` to a folder that exists\n"
    )
    assert nessie("-C", str(tmp_path), "branch").code == 0


def test_a_negative_limit_of_a_log_is_refused_by_its_value(nessie, catalog) -> None:
    for argv in (["-n", "-1"], ["--max-count", "-1"]):
        ran = nessie("log", *argv)
        ran.expect(2, "-1 must be 0 or more")


def test_init_says_that_the_store_of_a_workspace_was_missing(nessie, tmp_path) -> None:
    assert nessie("init").err == ""
    assert nessie("init").err == ""
    (tmp_path / ".nessie" / "store.sqlite").unlink()
    ran = nessie("init")
    assert (ran.code, ran.err) == (0, "its store did not exist; an empty store was created\n")


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["branch", "x", "--if-exists"], "--if-exists needs -d, -m or -f"),
        (["branch", "-l", "--expected-hash", "main"], "--expected-hash needs -d, -m or -f"),
        (["tag", "-d", "v1", "--if-not-exists"], "--if-not-exists needs a NAME to create"),
        (["tag", "--if-not-exists"], "--if-not-exists needs a NAME to create"),
        (["branch", "-c", "main", "x", "--if-exists"], "--if-exists needs -d, -m or -f"),
        (["branch", "--show-current", "main"], "--show-current takes no names"),
        (["branch", "--show-current", "--merged", "main"], "--show-current takes no names"),
        (["tag", "--show-current", "-x"], "--show-current takes no names"),
        (["log", "--name-status", "-p"], "--name-status and -p cannot be used together"),
        (["log", "--oneline", "--format", "%h"], "--format and --oneline cannot be used together"),
        (["init", "new", "--store", "x", "--profile", "p"], "--store and --profile cannot be used"),
        (["gc", "approve", "--by", ""], "an argument is empty"),
        (["store", "maintain", "--full", "--dry-run"], "--full and --dry-run cannot be used"),
        (["content", "delete", "db.items", "--no-verify"], "--no-verify needs -m"),
        (["transplant", "v1...main", "--onto", "main"], "ranges A..B, not A...B"),
        (["show", "v1:db.orders", "--", "db"], "v1:db.orders shows one content, so keys after --"),
        (["show", "v1:db.orders", "--deep"], "v1:db.orders shows one content, so --deep"),
        (
            ["content", "replace", "db", "--type", "namespace", "--id", "zz"],
            "no such option: --id",
        ),
        (["content", "put", "db", "--type", "namespace", "--id", "zz"], "--id 'zz' is not a UUID"),
        (["content", "put", "db", "--type", "namespace", "--id", ""], "--id '' is not a UUID"),
    ],
)
def test_an_option_without_effect_is_refused(nessie, catalog, argv, line) -> None:
    before = nessie("branch").out + nessie("tag").out
    ran = nessie(*argv)
    ran.expect(2, line)
    assert nessie("branch").out + nessie("tag").out == before


def test_a_blank_message_in_a_batch_file_is_no_message(nessie, catalog, tmp_path) -> None:
    operation = {"type": "DELETE", "key": {"elements": ["db", "orders"]}}
    batch = tmp_path / "batch.json"
    batch.write_text(json.dumps({"commitMeta": {"message": " "}, "operations": [operation]}))
    before = catalog.head("main")
    ran = nessie("commit", "--batch", str(batch))
    ran.expect(2, "a commit needs a message")
    assert catalog.head("main") == before
    assert nessie("commit", "--batch", str(batch), "-m", "drop orders").code == 0


def test_an_expectation_of_a_deletion_is_not_ignored(nessie, catalog, tmp_path) -> None:
    assert nessie("content", "delete", "db.items").code == 0
    operations = nessie("status", "--json").json["batch"]["operations"]
    batch = tmp_path / "operations.json"
    batch.write_text(json.dumps(operations))
    ran = nessie("commit", "--batch", str(batch), "-m", "x")
    ran.expect(2, "only a PUT can have an expected content")
