"""The pages are complete, up to date, and readable in `man`, in `nessie help` and on the
web."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nessie_cli import errors
from nessie_cli.cli.errors.report import EXIT_CODES
from nessie_cli.cli.help.pages import page_names, page_source
from nessie_cli.model import ConflictType
from nessie_cli.render.manual import manual_lines
from nessie_cli.render.spans import plain
from nessie_cli.workspace import environment

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "man").glob("man*/*"))
MAN = shutil.which("man") and shutil.which("groff")
needs_man = pytest.mark.skipif(not MAN, reason="man or groff is not installed")


def test_generated_files_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "-m", "manual", "--check"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert done.stdout == "", f"run `make docs`; out of date:\n{done.stdout}"
    assert done.returncode == 0, done.stderr


def test_completion_knows_every_metavar(tree):
    from manual.completion_scripts import unknown_words

    assert unknown_words(tree) == [], (
        "say in KINDS of cli/completion/kinds.py what completes it, or in FREE of"
        " manual/completion_scripts.py that nothing does"
    )


def test_manual_changes_of_generated_files_are_found(tmp_path, monkeypatch):
    from manual import writing

    copy = tmp_path / "copy"
    for name in writing.files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    (copy / "man/man1/nessie-log.1").write_text("changed")
    (copy / "man/man1/nessie-gone.1").write_text("left over")
    (copy / "docs/reference/commands/nessie.md").unlink()
    monkeypatch.setattr(writing, "ROOT", copy)

    assert writing.outdated() == [
        "docs/reference/commands/nessie.md",
        "man/man1/nessie-gone.1",
        "man/man1/nessie-log.1",
    ]
    writing.write()
    assert writing.outdated() == []


# -- content -------------------------------------------------------------------------------------
def text_of(name: str) -> str:
    source = page_source(name)
    assert source is not None, name
    return "\n".join(map(plain, manual_lines(source, 100)))


def terms(name: str) -> set[str]:
    """Returns the terms that a page defines."""
    source = page_source(name)
    assert source is not None
    lines = ["".join(span.text for span in line).strip() for line in manual_lines(source, 10_000)]
    # One space follows a term that is almost as wide as the indentation.
    split = (re.split(r", |\s{2,}", line) + line.split(" ", 1)[:1] for line in lines)
    return {term for words in split for term in words}


def test_all_placeholders_are_documented():
    from manual.document import Items, sections
    from nessie_cli.render.templates import VALUES

    text = (ROOT / "manual/texts/nessie-log.md").read_text(encoding="utf-8")
    (table,) = (
        block
        for part in sections(text)
        if part.title == "PLACEHOLDERS"
        for block in part.blocks
        if isinstance(block, Items)
    )
    listed = [name.strip("` ") for item in table.items for name in item.term.split(", ")]

    assert sorted(listed) == sorted([*(f"%{name}" for name in VALUES), "%n", "%%", "%xNN"])


def test_every_command_has_a_page(tree):
    from manual.tree import every

    assert {
        "-".join(("nessie", *command.path)) for command in every(tree) if not command.hidden
    } <= set(page_names())


def test_every_option_that_help_lists_is_on_the_page(tree, nothing):
    from manual.tree import every

    elsewhere = {"-h", "--help", "--store", "--ref", "--json"}
    missing = []
    for command in every(tree):
        section = (
            nothing.ok(*command.path, "--help").out.partition("Options:\n")[2].partition("\n\n")[0]
        )
        on_page = set(OPTION.findall(text_of("-".join(("nessie", *command.path)))))
        missing += [
            (command.name, option) for option in set(OPTION.findall(section)) - on_page - elsewhere
        ]
    assert missing == []


OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def test_every_type_of_conflict_is_explained():
    assert {type_.value for type_ in ConflictType} <= terms("nessie-conflicts")


def test_every_exit_code_is_explained():
    codes = {str(code) for _, code in EXIT_CODES} | {"0", "1", "8", "130", "141"}

    assert codes <= terms("nessie-exit-status")


def test_every_error_code_is_listed():
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.NessieError)
    ]
    text = text_of("nessie-json")

    assert [kind.code for kind in kinds if not re.search(rf"\b{kind.code}\b", text)] == []


def test_every_attribute_of_filters_is_listed():
    from nessie_cli.wire import filter_engine as filters

    text = text_of("nessie-filters")
    attributes = {name for message in filters._MESSAGES.values() for name in message}
    variables = {
        name
        for kind in (
            filters.FilterKind.LOG,
            filters.FilterKind.ENTRIES,
            filters.FilterKind.REFERENCES,
        )
        for name in filters._VARIABLES[kind]
    }

    assert [name for name in attributes | variables if not re.search(rf"\b{name}\b", text)] == []


def test_every_setting_is_listed():
    from nessie_cli.workspace.known import KNOWN, REPOSITORY

    assert {setting.name.replace("*", "NAME") for setting in (*KNOWN, *REPOSITORY)} <= terms(
        "nessie-config"
    )


def test_every_environment_variable_is_listed():
    sources = "".join(
        file.read_text()
        for room in ("workspace", "render")
        for file in (ROOT / "nessie_cli" / room).rglob("*.py")
    )
    used = set(
        re.findall(
            r'"(NESSIE_[A-Z_]+|NO_COLOR|CLICOLOR_FORCE|PAGER|COLUMNS|LINES|VISUAL|EDITOR)"', sources
        )
    )

    assert {environment.STORE, "NESSIE_PAGER"} <= used
    assert used - terms("nessie") - terms("nessie-access") == set()


def test_every_mentioned_page_exists():
    known = {f"{file.stem}({file.suffix[1:]})" for file in FILES}
    mentioned = {
        f"{name}"
        for file in (ROOT / "manual").rglob("*.md")
        for name in re.findall(r"\bnessie[a-z-]*\([17]\)", file.read_text())
    }
    mentioned |= {
        name
        for name in page_names()
        for name in re.findall(r"\bnessie[a-z-]*\([17]\)", text_of(name))
    }

    assert mentioned - known == set()


def test_links_of_the_reference_are_valid():
    folder = ROOT / "docs/reference/commands"
    links = [
        (file.name, link)
        for file in folder.glob("*.md")
        for link in re.findall(r"\]\(([^)]+)\)", file.read_text())
    ]

    assert len(links) > 50
    assert [
        (name, link)
        for name, link in links
        if not link.startswith("http") and not (folder / link).is_file()
    ] == []


def test_unsupported_markup_is_refused():
    from manual.document import Malformed, blocks

    for text in (
        "| a | b |",
        "> quoted",
        "1. first",
        "```\nnever closed",
        "### deep",
        "    indented",
    ):
        with pytest.raises(Malformed):
            list(blocks(text))


# -- formatting ----------------------------------------------------------------------------------
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C.UTF-8",
    "MAN_KEEP_FORMATTING": "",
    "HOME": "/nonexistent",
}


def man(*args: str, width: int = 80) -> subprocess.CompletedProcess[str]:
    command = [
        "man",
        "-M",
        str(ROOT / "man"),
        "--warnings",
        "--no-hyphenation",
        "--no-justification",
        *args,
    ]
    return subprocess.run(
        command,
        env=ENVIRONMENT | {"MANWIDTH": str(width)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        stdin=subprocess.DEVNULL,
    )


@needs_man
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_man_shows_a_page_without_warnings_and_with_the_text_of_help(file):
    done = man(file.suffix[1:], file.stem)
    wide = man(file.suffix[1:], file.stem, width=2000)
    source = page_source(file.stem)
    assert source is not None
    ours = "\n".join(map(plain, manual_lines(source, 100)))

    assert (done.stderr, done.returncode) == ("", 0)
    body = re.sub(r"\A\s*\S.*\n|\n\S.*\s*\Z", "", wide.stdout)
    assert [word.translate(DASHES) for word in body.split()] == ours.split()


DASHES = str.maketrans({"‐": "-", "‘": "'", "’": "'", "−": "-", "•": "-", "·": "-"})  # noqa: RUF001


@needs_man
def test_a_faulty_page_is_found(tmp_path):
    (tmp_path / "x.1").write_text('.TH X 1 "" "" ""\n.SH NAME\nx \\- y\n.FOO\n\\f[nofont]x\n')

    assert man("-l", str(tmp_path / "x.1")).stderr


# -- nessie help ---------------------------------------------------------------------------------
def test_help_shows_the_page_as_plain_text_in_a_pipe(nothing):
    outcome = nothing.ok("help", "content", "put", env={"PATH": "/nonexistent"})

    assert outcome.out.startswith("NAME\n    nessie-content-put - stage the content of a key\n")
    assert "\x1b" not in outcome.out
    assert all(
        len(line) <= 80 or line.startswith("        $ ") for line in outcome.out.splitlines()
    )


def test_help_without_arguments_shows_the_overview(nothing):
    assert nothing.ok("help").out == nothing.ok("help", "nessie").out
    assert "GLOBAL OPTIONS" in nothing.ok("help").out


@pytest.mark.parametrize("words", [("merge",), ("nessie-merge",)])
def test_help_accepts_both_names_of_a_page(nothing, words):
    assert nothing.ok("help", *words).out.startswith("NAME\n    nessie-merge - ")


@pytest.mark.parametrize(
    "topic", ["revisions", "filters", "conflicts", "stores", "json", "exit-status"]
)
def test_help_has_topics(nothing, topic):
    assert nothing.ok("help", topic).out.startswith(f"NAME\n    nessie-{topic} - ")


def test_an_alias_shows_the_page_of_its_command(nothing):
    assert nothing.ok("help", "cherry-pick").out == nothing.ok("help", "transplant").out


def test_a_missing_page_is_reported(nothing):
    outcome = nothing("help", "mege")

    assert outcome.code == 2
    assert outcome.err == "nessie: there is no page for 'mege'; did you mean 'merge'?\n"
    assert nothing("help", "../../etc/passwd").code == 2


def test_help_as_json(nothing):
    document = nothing.ok("help", "log", "--json").json

    assert document["name"] == "nessie-log"
    assert document["text"] == nothing.ok("help", "log").out.rstrip("\n")


def test_lines_fit_into_the_terminal(nothing):
    for width in (60, 100):
        lines = [
            plain(line)
            for name in page_names()
            for line in manual_lines(page_source(name) or "", width)
        ]
        too_long = [
            line
            for line in lines
            if len(line) > width and " " in line.strip() and not line.startswith("        ")
        ]
        assert too_long == []


def test_a_terminal_gets_headings_in_bold_through_the_pager(nothing, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o755)
    import pty

    seen = b""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(nothing.folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "nessie_cli", "help", "merge"],
            {
                **nothing.environment,
                "TERM": "xterm",
                "NESSIE_PAGER": str(pager),
                "PATH": ENVIRONMENT["PATH"],
            },
        )
    while chunk := _read(terminal):
        seen += chunk
    os.waitpid(process, 0)
    assert seen.startswith(b"PAGED")
    assert b"\x1b[1mNAME\x1b[0m" in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
