"""The global options, which are accepted before and after the subcommand."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from nessie_cli.errors import InvalidInput

COLOR_CHOICES = ("auto", "always", "never")


class GlobalOptions:
    """Values of the global options. A later option on the command line overrides an earlier one."""

    directories: tuple[str, ...] = ()
    store: str | None = None
    profile: str | None = None
    ref: str | None = None
    json: bool = False
    jsonl: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    no_pager: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    no_verify: bool = False

    def take(self, name: str, value: Any) -> None:
        """Sets one option as it is parsed. Raises `InvalidInput` for an invalid value."""
        if name == "directory":
            for directory in value:
                enter(directory)
            self.directories += tuple(value)
            return
        if name == "color" and value not in COLOR_CHOICES:
            raise InvalidInput(f"--color {value} must be one of {', '.join(COLOR_CHOICES)}")
        setattr(self, name, value)
        if self.json and self.jsonl:
            raise InvalidInput(
                "--json and --jsonl cannot be used together: one document, or one per line"
            )


def enter(directory: str) -> None:
    """Changes the working directory (`-C`). A second `-C` is relative to the first."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise InvalidInput(f"-C {directory}: {error.strerror}") from None


_ALL = ("store", "profile", "ref")
_OF_STORES = ("store", "profile")
_CARRIED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("branch", "tag", "undo", "reflog", "fsck", "gc", "store"), _OF_STORES),
    **dict.fromkeys(("config", "stash", "switch"), ()),
}
"""The options, besides `-C`, that a hint repeats for a command. Default: all of them."""
_ELSEWHERE = ("help", "init", "login", "serve", "token")
"""Commands that do not read the store and the workspace of the command before."""
_HINT = re.compile(r"`nessie (?P<command>[a-z]+)\b(?P<rest>[^`]*)`")

VALUED = frozenset({"--store", "--profile", "--ref", "--color", "-C"})
"""The global options that take a value."""


def command_position(argv: Sequence[str]) -> int | None:
    """Returns the index of the command in a command line, or None if there is no command.

    The command is the first word that is neither a global option nor the value of one.
    """
    position = 0
    while position < len(argv) and argv[position].startswith("-") and argv[position] != "--":
        position += 2 if argv[position] in VALUED else 1
    return position if position < len(argv) and argv[position] != "--" else None


def carried(options: GlobalOptions, names: Sequence[str] = _ALL) -> list[str]:
    """Returns the options that make another command line use the same store and reference.

    `names` are those that it uses besides `-C`.
    """
    arguments = [argument for directory in options.directories for argument in ("-C", directory)]
    for name in names:
        value = getattr(options, name)
        arguments += [f"--{name}", value] if value else []
    return arguments


def with_carried(text: str, options: GlobalOptions) -> str:
    """Returns a text in which each `nessie COMMAND` uses the same store and reference.

    A command line that begins with options has them already.
    """

    def carrying(match: re.Match[str]) -> str:
        command, rest = match["command"], match["rest"]
        if command in _ELSEWHERE or "--store" in rest:
            return match[0]
        arguments = carried(options, _CARRIED.get(command, _ALL))
        return f"`nessie {shlex.join([*arguments, command])}{rest}`"

    return _HINT.sub(carrying, text)
