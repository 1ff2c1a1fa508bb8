"""Colour: `--color`, otherwise NO_COLOR, otherwise CLICOLOR_FORCE, otherwise whether stdout
is a terminal."""

from __future__ import annotations

import pytest

COMMANDS = ("log --oneline -n 3", "content list", "branch -v", "status", "blame", "reflog -n 3")
ENVIRONMENTS = {
    "nothing": {},
    "no": {"NO_COLOR": "1"},
    "empty": {"NO_COLOR": ""},
    "force": {"CLICOLOR_FORCE": "1"},
    "zero": {"CLICOLOR_FORCE": "0"},
}
ENVIRONMENTS["both"] = ENVIRONMENTS["no"] | ENVIRONMENTS["force"]
ENVIRONMENTS["dumb"] = {"TERM": "dumb"}
ON_TERMINAL = {
    "nothing": True,
    "no": False,
    "empty": True,
    "force": True,
    "zero": True,
    "both": False,
    "dumb": False,
}
IN_PIPE = {
    "nothing": False,
    "no": False,
    "empty": False,
    "force": True,
    "zero": False,
    "both": False,
    "dumb": False,
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_without_the_option_colour_follows_the_environment(ordinary, show, environment):
    given = ENVIRONMENTS[environment]
    for command in COMMANDS:
        assert (
            "\x1b[" in show(ordinary, *command.split(), PAGER="cat", **given).raw
        ) == ON_TERMINAL[environment], command
        assert ("\x1b[" in ordinary(*command.split(), env=given).out) == IN_PIPE[environment], (
            command
        )


@pytest.mark.parametrize("environment", ["nothing", "both"])
def test_the_option_overrides_the_environment(ordinary, show, environment):
    given = ENVIRONMENTS[environment]
    for command in COMMANDS:
        assert (
            "\x1b["
            not in show(ordinary, *command.split(), "--color=never", PAGER="cat", **given).raw
        ), command
        assert "\x1b[" in ordinary("--color", "always", *command.split(), env=given).out, command


def test_json_never_has_colour(ordinary, show):
    for command in COMMANDS:
        assert "\x1b[" not in ordinary(*command.split(), "--json", "--color=always").out, command
        assert "\x1b[" not in show(ordinary, *command.split(), "--json", PAGER="cat").raw, command


def test_errors_follow_the_same_rules(ordinary, show):
    assert "\x1b[" in show(ordinary, "merge", "dev", PAGER="cat").raw
    assert "\x1b[" not in show(ordinary, "merge", "dev", PAGER="cat", NO_COLOR="1").raw
    assert "\x1b[" not in ordinary("merge", "dev").err
