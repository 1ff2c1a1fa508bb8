"""The process that a keystroke starts: the modules that it loads, and its output, which
contains only candidates."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nessie_cli.cli.completion import bash
from nessie_cli.cli.completion.answer import candidates
from tests.command.process import run


@pytest.fixture
def complete(forker):
    """Runs `nessie __complete` in a folder, without settings of the machine's user."""

    def call(folder, *args):
        environment = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        return forker.run(["__complete", *args], folder, environment)

    return call


def test_one_candidate_per_line_with_a_tab_before_its_description(complete, here):
    outcome = complete(here, "--", "switch", "fe")

    assert (
        outcome.out
        == "feature/new-orders\tbranch: only on the branch\nfeature/old\tbranch: add éclair\n"
    )
    assert (outcome.code, outcome.err) == (0, "")


def test_without_a_description_there_is_no_tab(complete, here):
    assert complete(here, "--", "merge", "--behavior", "f").out == "force\n"


@pytest.mark.parametrize(
    "typed",
    [
        ["command", "sw"],
        ["revision", "log", "ma"],
        ["key", "content", "show", "db.o"],
        ["=a,b", "x", ""],
    ],
)
def test_a_kind_of_the_script_loads_no_parser(here, typed):
    kind, *words = typed
    program = (
        "import sys; from nessie_cli.cli.main import run; run(sys.argv[1:]);"
        " sys.stderr.write(str('typer' in sys.modules))"
    )
    environment = {"HOME": str(here), "XDG_CONFIG_HOME": str(here / "config")}
    outcome = run(
        "__complete", "--kind", kind, "--", *words,
        cwd=here, env=environment, program=(sys.executable, "-c", program),
    )  # fmt: skip

    assert outcome.out
    assert outcome.err == "False"


@pytest.mark.parametrize(
    "typed",
    [
        [], ["--"], ["--", "switch", ""], ["--", "content", "show", "db."], ["--", "log", "main~99999999999"], ["--", "log", "main^0"],
        ["--", "log", "~^~^"], ["--", "log", "@{yesterday}"], ["--", "log", "main*"], ["--", "log", "\x00"], ["--", "content", "show", '"'],
        ["--", "--store"], ["--", "--store", "http://localhost:1/api/v2", "switch", ""], ["--", "--store", "postgresql://u:p@h/x", "switch", ""],
        ["--", "-C", "/no/such", "switch", ""], ["--", "commit", "-F", "~nobody/"], ["--bash"], ["--bash", " ", "9", "x", "--", "nessie "],
        ["--bash", " ", "9", "80", "--", ""], ["--", "--", "--", "--"], ["--", "-", ""], ["--", "undo", "no-such", "--to", ""],
    ],
)  # fmt: skip
def test_there_is_no_output_without_candidates(complete, tmp_path, typed):
    if any("\0" in word for word in typed):
        typed = [word.replace("\0", "\x01") for word in typed]
    outcome = complete(tmp_path, *typed)

    assert (outcome.code, outcome.err) == (0, "")
    assert "Traceback" not in outcome.out


@pytest.mark.parametrize(
    "damage",
    [
        "no database",
        "empty",
        "folder",
        "other tables",
        "settings",
        "binary HEAD",
        "batch",
        "unreadable object",
    ],
)
def test_a_broken_workspace_still_has_completion(complete, tmp_path, here, damage):
    folder = tmp_path / ".nessie"
    folder.mkdir()
    store = folder / "store.sqlite"
    if damage == "no database":
        store.write_bytes(b"hello" * 1000)
    elif damage == "empty":
        store.write_bytes(b"")
    elif damage == "folder":
        store.mkdir()
    elif damage == "other tables":
        import apsw

        apsw.Connection(str(store)).execute("CREATE TABLE refs (x)").fetchall()
    else:
        store.write_bytes((here / ".nessie/store.sqlite").read_bytes())
    if damage == "unreadable object":
        import apsw

        apsw.Connection(str(store)).execute("UPDATE objects SET packed = x'0100000000'").fetchall()
    (folder / "config.toml").write_bytes(b"[[[" if damage == "settings" else b"")
    (folder / "HEAD").write_bytes(b"\xff\xfe" if damage == "binary HEAD" else b"main\n")
    (folder / "batch.json").write_bytes(b"[" if damage == "batch" else b'{"operations": []}')
    for typed in (["switch", ""], ["content", "show", ""], ["reset", ""], ["log", "main~"]):
        outcome = complete(tmp_path, "--", *typed)
        assert (outcome.code, outcome.err) == (0, "")
    assert complete(tmp_path, "--", "swi").out.startswith("switch\t")


def test_debug_prints_the_reason(complete, tmp_path):
    outcome = complete(tmp_path, "--debug", "--", "-C", "/no/such", "switch", "")

    assert "/no/such" in outcome.err


def test_a_closed_pipe_is_quiet(here):
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m nessie_cli __complete -- '' | true"],
        cwd=here,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == b""


def test_control_characters_in_stored_text_are_escaped(complete, tmp_path):
    from nessie_cli import CommitMeta, ContentKey, Namespace, Put, create

    (tmp_path / ".nessie").mkdir()
    with create(str(tmp_path / ".nessie/store.sqlite")) as repository:
        repository.commit(
            "main",
            [Put(ContentKey(("a\u202eb",)), Namespace(elements=("a\u202eb",)))],
            CommitMeta("red\x1b[31m\tand\rmore\u2028"),
        )
    out = complete(tmp_path, "--", "switch", "").out
    assert out == "main\tbranch: red [31m and more \n"
    replies = complete(tmp_path, "--bash", " ", "9", "80", "--", "nessie log ").out
    assert "\x1b" not in replies
    assert complete(tmp_path, "--", "content", "show", "a").out == ""


def replies(text, *, breaks, listing, columns):
    line = bash.ShellLine(text, breaks)
    return line.replies(candidates(line.words[1:]), is_listing=listing, columns=columns)


HARD = [
    "plain", "two words", "it's", 'a"b', 'db."order.lines"', "$HOME", "`id`", "a\\b", "a;b", "a&b|c", "a(b)", "*", "?x", "!x", "#x", "{a,b}",
    "é ü", "~1", "a~1", "x=y", "a@b",
]  # fmt: skip


def unquoted_by_bash(words):
    done = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + " ".join(words)],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_bash_parses_inserted_text_correctly(quote):
    inserted = [bash._quoted(text, quote) if quote else bash._escaped(text) for text in HARD]

    assert unquoted_by_bash([quote + text + quote for text in inserted]) == HARD


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_line_is_parsed_as_bash_does(quote):
    typed = [
        quote + (bash._quoted(text, quote) if quote else bash._escaped(text)) + quote
        for text in HARD
    ]

    assert bash.ShellLine("nessie  " + "  ".join(typed), " \t\n\"'><=;|&(:@").words == [
        "nessie",
        *unquoted_by_bash(typed),
    ]


def test_long_descriptions_are_cut_at_the_width_of_the_terminal(here):
    lines = replies("nessie c", breaks=" ", listing=True, columns=30)

    assert all(len(line) < 30 for line in lines)
    assert lines[0].startswith("config ")
    assert lines[0].endswith("...)")


def test_descriptions_are_omitted_if_bash_inserts_all_candidates(here):
    assert replies("nessie switch ", breaks=" ", listing=False, columns=80) == [
        "feature/new-orders ",
        "feature/old ",
        "main ",
        "v1.0 ",
    ]
