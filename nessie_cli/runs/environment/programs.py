"""Recognises the program of a command, behind `env`, `sh -c` and similar words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"(i?python|pypy)(\d(\.\d+)?)?")
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_SHELL_SYNTAX = frozenset(";&|<>()`\n\\")
"""Characters of a script that may be more than one plain command."""
_PREFIXES = frozenset({"exec", "nohup", "time"})
"""Words in front of a command that change nothing about it."""
_RUNNERS = frozenset({"hatch", "pdm", "pipenv", "poetry", "uv"})
"""Programs whose verb `run` starts a command in a virtual environment."""


class Program(NamedTuple):
    """A program, its arguments, and what `env` in front of it does to its environment."""

    name: str
    """The base name, or the package of `python -m`."""
    path: str
    """The program as it is named in the command; that of Python for `python -m`."""
    arguments: Sequence[str]
    is_python: bool
    changes: Mapping[str, str | None]
    """Variables that the command itself sets, or unsets (None)."""
    clears: bool
    """Whether the command begins with an empty environment (`env -i`)."""


def program_of(command: Sequence[str]) -> Program:
    """Returns the program of a command, as far as its words show it with certainty."""
    innermost = list(command)
    changes: dict[str, str | None] = {}
    clears = False
    while innermost:
        name = PurePath(innermost[0]).name
        if name == "env":
            rest, more, is_empty = _without_env(innermost[1:])
            changes |= more
            clears = clears or is_empty
        else:
            rest = _without_prefix(name, innermost)
        if not rest:
            break
        innermost = rest
    path = innermost[0] if innermost else ""
    name = PurePath(path).name
    is_python = bool(_PYTHON.fullmatch(name)) or name.endswith(".py")
    arguments = innermost[1:]
    if is_python and len(arguments) > 1 and arguments[0] == "-m":
        name, arguments = arguments[1].partition(".")[0], arguments[2:]
    return Program(name, path, arguments, is_python, changes, clears)


def _without_prefix(name: str, command: list[str]) -> list[str] | None:
    """Returns the command behind a first word that only starts it, or None."""
    rest = command[1:]
    if name in _SHELLS and len(rest) > 1 and rest[0] == "-c":
        return _plain_command(rest[1])
    if name in _PREFIXES and rest and not rest[0].startswith("-"):
        return rest
    if name in _RUNNERS and len(rest) > 1 and rest[0] == "run" and not rest[1].startswith("-"):
        return rest[1:]
    return None


def _plain_command(script: str) -> list[str] | None:
    """Returns the words of a script that is one plain command, or None."""
    if _SHELL_SYNTAX & set(script):
        return None
    try:
        command = shlex.split(script)
    except ValueError:
        return None
    return ["env", *command] if command and _ASSIGNMENT.fullmatch(command[0]) else command


def _without_env(command: list[str]) -> tuple[list[str] | None, dict[str, str | None], bool]:
    """Returns the command behind the arguments of `env`, its variables, and whether it clears."""
    changes: dict[str, str | None] = {}
    clears = False
    while command:
        word = command.pop(0)
        if word in {"-", "-i", "--ignore-environment"}:
            clears = True
        elif word == "-u" and command:
            changes[command.pop(0)] = None
        elif word.startswith("--unset="):
            changes[word.removeprefix("--unset=")] = None
        elif assignment := _ASSIGNMENT.fullmatch(word):
            changes[assignment[1]] = assignment[2]
        elif word.startswith("-") and word != "--":
            return None, changes, clears
        elif word != "--":
            return [word, *command], changes, clears
    return None, changes, clears
