"""Random input: candidates begin with the typed word, each occurs once, and nothing fails."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manual.tree import every, read
from nessie_cli.cli.completion.answer import candidates
from nessie_cli.cli.completion.bash import ShellLine

TREE = read()
OPTIONS = sorted(
    {
        name
        for command in every(TREE)
        for option in (*command.options, *TREE.options)
        for name in option.names
    }
)
NAMES = sorted({word for command in every(TREE) for word in command.path})
# fmt: off
PIECES = [
    "main", "main~", "main^2", "v1.0@", "..", "...", "db.", 'db."', "feature/", "HEAD",
    "~", "@", "^", "--", "-", "=", "'", '"', "\\", " ",
    "tables/", "ab12", "é", "~99999", "\u202e", "*",
]
# fmt: on
WORDS = (
    st.sampled_from([*OPTIONS, *NAMES])
    | st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
    | st.text(max_size=5)
)


@given(st.lists(WORDS, max_size=5), WORDS)
@settings(
    print_blob=True,
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_candidates_begin_with_the_word(here, before, last):
    os.chdir(here)
    before = [
        word for word in before if not word.startswith("-C") and "C" not in word
    ]  # a missing folder is an error, and silent
    found = [text for text, _ in candidates([*before, last])]

    assert [text for text in found if not text.startswith(last)] == []
    assert sorted(set(found)) == sorted(found)


@given(st.lists(st.sampled_from([*OPTIONS, *NAMES, *PIECES]), max_size=5).map(" ".join))
@settings(
    print_blob=True,
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_line_of_bash_is_parsed(here, line):
    os.chdir(here)
    line = line.replace("-C", "")
    read_line = ShellLine("nessie " + line, " :=@'\"")
    replies = read_line.replies(candidates(read_line.words[1:]), is_listing=True, columns=80)
    assert all("\n" not in reply for reply in replies)
