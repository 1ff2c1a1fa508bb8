"""The table that completion reads: every command and option with what its values are, told by the words that help uses for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from manual.pages import CONCEPTS, concepts
from manual.tree import HELP, VERSION, Command, Option, every
from nessie_cli.cli.completion.scripts import FILE_NAMES, SCRIPTS
from nessie_cli.cli.options import COLOR_CHOICES
from nessie_cli.cli.resolutions import TYPE_OPTION
from nessie_cli.workspace.known import KNOWN, REPOSITORY

Kind = str | tuple[str, ...]

NOTHING = "-"
KINDS: Mapping[str, Kind] = {
    "A": "range",
    "B": "revision",
    "COMMIT": "revision",
    "DIR": "folder",
    "FILE": "file",
    "FILE|-": "file",
    "FROM": "revision",
    "H": "hash",
    "HASH": "hash",
    "KEY": "key",
    "KEY=FILE": "key=file",
    "COMMAND|TOPIC": "page",
    "PREFIX": "key",
    "LOCATION": "folder",
    "PROFILE": "profile",
    "RUN": "run",
    "RANGE": "range",
    "REF": "reference",
    "REV": "revision",
    "REV|RANGE": "range",
    "SHELL": tuple(SCRIPTS),
    "START": "revision",
    "TARGET": "revision",
    "TYPE": tuple(TYPE_OPTION.values()),
    "URI": "file",
    "URL": "store",
    "WHEN": COLOR_CHOICES,
}
"""What completes a word that help calls so."""
FREE = frozenset({
    "CEL", "DIGEST", "DURATION", "HOST", "ID", "K=V", "MSG", "N", "NAME", "NEW", "OLD", "P", "PATTERN=POLICY", "POLICY", "PORT", "S", "SQL", "T",
    "TEMPLATE", "TIME", "UUID", "VALUE",
})  # fmt: skip
"""Words that nothing can be offered for, except where the table below says otherwise."""
_ORDERS = ("name", "-name", "time", "-time", "ahead", "-ahead", "behind", "-behind")
HERE: Mapping[tuple[str, str], Kind] = {
    ("", "NAME"): "profile",
    ("branch", "KEY"): _ORDERS,
    ("branch", "NAME"): "branch",
    ("config get", "KEY"): "setting",
    ("config set", "KEY"): "setting",
    ("config unset", "KEY"): "setting",
    ("tag", "KEY"): _ORDERS,
    ("tag", "NAME"): "tag",
    ("gc mark", "WHICH"): ("listed", "referenced"),
    ("content rename", "OLD"): "key",
    ("content rename", "NEW"): "key",
    ("commit", "A"): NOTHING,
    ("content delete", "A"): NOTHING,
    ("content put", "A"): NOTHING,
    ("content replace", "A"): NOTHING,
    ("log", "P"): NOTHING,
    ("reflog", "REF"): "moved",
    ("undo", "REF"): "moved",
    ("undo", "N"): "move",
    ("reset", "KEY"): "staged",
}
"""By command and word."""


def scripts() -> dict[str, str]:
    """The files of `completions/`."""
    return {f"completions/{FILE_NAMES[shell]}": script for shell, script in SCRIPTS.items()}


def unknown_words(tree: Command) -> list[str]:
    """Words of help that neither `KINDS` nor `FREE` knows."""
    return sorted(
        {
            f"{command.name}: {word}"
            for command in every(tree)
            for word in _all_words(command)
            if word not in KINDS and word not in FREE and (_path(command), word) not in HERE
        }
    )


def _all_words(command: Command) -> Iterator[str]:
    for word in command.words:
        before, behind = _parts(word.metavar)
        yield from (*before, *behind)
    yield from (option.metavar.strip("[]") for option in command.options if option.metavar and not option.choices)


def table(tree: Command) -> str:
    """The text of the module."""
    shared = "".join(f"    {_option(option, tree)},\n" for option in (*tree.options, HELP))
    commands = "".join(_command(command) for command in every(tree))
    topics = dict(zip(CONCEPTS, (page.summary for page in concepts()), strict=True))
    settings = {setting.name.partition("*")[0]: setting.help for setting in reversed((*KNOWN, *REPOSITORY))}
    return f'''"""Every command and option, for completion. Written by `make docs` from the command tree; not to be edited.

A command is: the commands below it with their help, its options, what its words are, whether the last of them repeats, what stands behind `--`.
An option is: its names, what its value is (nothing for a flag; with `?` it may be left out), whether it can be repeated, its help.
"""
# ruff: noqa: E501
# fmt: off

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nessie_cli.cli.completion.line import Command, Option

SHARED: Sequence[Option] = (
{shared})

COMMANDS: Mapping[str, Command] = {{
{commands}}}

TOPICS: Mapping[str, str] = {_value(topics)}

SETTINGS: Mapping[str, str] = {_value(settings)}
'''


def _command(command: Command) -> str:
    below = {child.path[-1]: child.summary for child in command.children if not child.hidden}
    own = command.options if command.path else (VERSION,)
    options = "".join(f"            {_option(option, command)},\n" for option in own)
    kinds, many, behind = _words(command)
    return (
        f"    {_text(_path(command))}: (\n        {_value(below)},\n        (\n{options}        ),\n"
        f"        {_value(kinds)},\n        {many},\n        {_value(behind)},\n    ),\n"
    )


def _option(option: Option, command: Command) -> str:
    kind: Kind = "" if not option.metavar else option.choices or _kind(command, option.metavar)
    return f"({_value(option.names)}, {_value(kind)}, {option.many}, {_text(option.help)})"


def _kind(command: Command, word: str) -> Kind:
    name = word.strip("[]")
    kind = HERE.get((_path(command), name)) or KINDS.get(name, NOTHING)
    return f"{kind}?" if name != word and isinstance(kind, str) else kind


def _words(command: Command) -> tuple[tuple[Kind, ...], bool, Kind]:
    kinds: list[Kind] = []
    many = False
    behind: Kind = ""
    for word in command.words:
        before, after = _parts(word.metavar)
        if verbs := _verbs(word.metavar):
            kinds.append(verbs)
            before = _names(word.metavar.rpartition(" | ")[2])
        kinds += [_kind(command, name) for name in before]
        many = many or "..." in word.metavar.partition("--")[0]
        behind = _kind(command, after[0]) if after else behind
    return tuple(kinds), many, behind


def _verbs(metavar: str) -> tuple[str, ...]:
    """The words that stand for themselves, of alternatives that each begin with one: `merge FROM | revert REV|RANGE`."""
    words = [alternative.split()[0] for alternative in metavar.strip("[]").split(" | ")]
    return tuple(words) if len(words) > 1 and all(word.isalpha() and word.islower() for word in words) else ()


def _parts(metavar: str) -> tuple[list[str], list[str]]:
    """The words before `--` and behind it; of alternatives the first."""
    before, _, behind = metavar.partition(" | ")[0].partition("-- ")
    return _names(before), _names(behind)


def _names(text: str) -> list[str]:
    return re.findall(r"[A-Z][A-Z]*(?:[|=](?:[A-Z]+|-))*", text)


def _path(command: Command) -> str:
    return " ".join(command.path)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(name)}: {_text(said)}" for name, said in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_value, value)) + ("," if len(value) == 1 else "") + ")"
    return _text(str(value))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
