"""`-q` prints nothing but errors: every example of every command that changes something."""

from __future__ import annotations

import pytest

from nessie_cli.cli.registry import COMMANDS
from tests.manual.test_examples import EXAMPLES, NEEDS, Needs, place_of, run

READING = (
    "audit",
    "blame",
    "completion",
    "config get",
    "config list",
    "content history",
    "content list",
    "content show",
    "content view",
    "diff",
    "doctor",
    "fsck",
    "gc list",
    "gc show",
    "help",
    "log",
    "reflog",
    "show",
    "stash list",
    "stash show",
    "stats",
    "status",
    "token list",
    # It prints the new token, which nobody can read again.
    "token new",
    "version",
)
"""The commands whose result is an answer, which `-q` prints too."""
LISTINGS = (
    "-r",
    "--list",
    "--merged",
    "--no-merged",
    "--contains",
    "--show-current",
    "--sort",
    "-v",
)
"""Options that make `branch` and `tag` list."""


def _reads(example: str) -> bool:
    words = example.split()
    if words[1] in ("branch", "tag"):
        return not any(not word.startswith("-") for word in words[2:]) or any(
            word in LISTINGS for word in words
        )
    return " ".join(words[1:3]) in READING or words[1] in READING or "--help" in words


CHANGING = [example for example in EXAMPLES if not _reads(example) and "--json" not in example]


@pytest.mark.parametrize("example", CHANGING)
def test_a_command_that_changes_something_prints_only_errors(example, request):
    nessie = request.getfixturevalue(place_of(example))
    needs = NEEDS.get(example, Needs())
    for line in needs.before:
        run(nessie, line)

    outcome = run(nessie, example.replace("nessie ", "nessie -q ", 1), needs.code, needs.hash)

    assert outcome.out == ""
    assert (outcome.err == "") is (needs.code == 0), outcome.err


def test_every_command_reads_or_is_tried():
    paths = {
        " ".join(filter(None, (name, child)))
        for name, entry in COMMANDS.items()
        if not entry.hidden
        for child, leaf in (entry.children or {"": entry}).items()
        if not leaf.hidden
    }
    tried = {" ".join(example.split()[1:3]) for example in CHANGING}
    tried |= {example.split()[1] for example in CHANGING}
    # These run until they are stopped.
    assert paths - tried - set(READING) == {"serve", "ui"}


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("status",), "on branch main"),
        (("branch", "--show-current"), "main"),
        (("content", "list"), "db.orders"),
        (("config", "get", "author"), "Ada"),
        (("version",), "nessie"),
    ],
)
def test_a_command_that_reads_prints_its_result(place, args, part):
    place.ok("config", "set", "author", "Ada")
    assert part in place.ok("-q", *args).out
