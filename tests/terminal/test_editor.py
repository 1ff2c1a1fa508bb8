"""`nessie commit` without a message opens the user's editor, on a terminal only."""

from __future__ import annotations

import shlex
import sys

import pytest

from nessie_cli.cli.staging.editor import without_comments

WRITES = (
    "import sys; path = sys.argv[1]; text = open(path, encoding='utf-8').read(); open(path, 'w',"
    " encoding='utf-8').write({} + text)"
)


def editor(expression: str) -> str:
    """Returns an editor that inserts a text before the current one, `text`."""
    return shlex.join([sys.executable, "-c", WRITES.format(expression)])


@pytest.fixture
def mine(ordinary):
    """A workspace whose staged operations do not conflict."""
    ordinary.ok("reset")
    ordinary.ok("content", "put", "db.new", "--type", "namespace")
    return ordinary


def newest(nessie) -> str:
    return nessie.ok("log", "-n", "1", "--format", "%B").out.rstrip("\n")


def test_the_written_text_without_comments_is_the_message(mine, show):
    shown = show(
        mine, "commit", NESSIE_EDITOR=editor("'a subject  \\n\\n# no word\\nand a body\\n'")
    )

    assert shown.code == 0
    assert newest(mine) == "a subject\n\nand a body"
    assert mine.staged() == []
    assert not (mine.folder / ".nessie/MESSAGE").exists()


def test_the_file_shows_the_staged_operations_and_the_branch(mine, show):
    (mine.folder / "copy.py").write_text("import shutil, sys; shutil.copy(sys.argv[1], 'seen')")
    shown = show(mine, "commit", EDITOR=shlex.join([sys.executable, "copy.py"]))

    seen = (mine.folder / "seen").read_text()
    assert "# On branch main:" in seen
    assert "create     db.new  namespace" in seen
    assert shown.code == 2
    assert "the message is empty; nothing was committed" in shown.plain
    assert mine.staged() == [("PUT", "db.new")]


def test_the_message_of_a_failed_commit_is_kept_for_the_next_one(ordinary, show):
    ordinary.ok("content", "put", "db.new", "--type", "namespace")
    refused = show(ordinary, "commit", VISUAL=editor("'a long story\\n'"))

    assert refused.code == 3
    assert "the message is kept in" in refused.plain
    ordinary.ok("reset", "db.orders")
    assert show(ordinary, "commit", VISUAL=editor("''")).code == 0
    assert newest(ordinary) == "a long story"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "no-such-editor",
            (
                "cannot be run: No such file or directory. Hint: NESSIE_EDITOR, VISUAL or EDITOR"
                " names another one"
            ),
        ),
        ("false", "the editor 'false' ended with 1"),
        ("'unclosed", "cannot be run: No closing quotation"),
    ],
)
def test_a_failing_editor_is_reported_and_nothing_is_committed(mine, show, program, said):
    before = newest(mine)
    shown = show(mine, "commit", NESSIE_EDITOR=program, width=200)

    assert shown.code == 2
    assert said in shown.plain
    assert "Traceback" not in shown.plain
    assert newest(mine) == before
    assert mine.staged() == [("PUT", "db.new")]


def test_ctrl_c_goes_to_the_editor(mine, start):
    (mine.folder / "waits.py").write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (open(sys.argv[1], 'w').write('kept on'),"
        " sys.exit()))\n"
        "print('READY', flush=True)\n"
        "time.sleep(600)\n"
    )
    running = start(mine, "commit", NESSIE_EDITOR=shlex.join([sys.executable, "waits.py"]))
    running.wait_for("READY")
    running.interrupt()
    shown = running.end()

    assert shown.code == 0, shown.raw
    assert newest(mine) == "kept on"


@pytest.mark.parametrize("more", [("--json",), ("--jsonl",)])
def test_scripts_never_open_an_editor(mine, show, more):
    shown = show(mine, "commit", *more, NESSIE_EDITOR=editor("'never\\n'"))

    assert shown.code == 2
    assert "a commit needs a message: -m MSG or -F FILE" in shown.plain


def test_without_a_terminal_a_message_is_required_except_in_a_dry_run(mine):
    refused = mine("commit", env={"NESSIE_EDITOR": editor("'never\\n'")})

    assert (refused.code, refused.err) == (
        2,
        "nessie: a commit needs a message: -m MSG or -F FILE\n",
    )
    assert mine.ok("commit", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ""),
        ("# a\n", ""),
        ("\n\n a \n\n#b\nc\n\n", " a\n\nc"),
        ("a # b", "a # b"),
        (" # indented", " # indented"),
    ],
)
def test_a_message_is_cleaned_as_in_git(text, message):
    assert without_comments(text) == message
