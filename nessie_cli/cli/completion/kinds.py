"""Kinds of words: which candidates an argument or the value of an option has.

The kind follows from the metavar of a parameter, such as REV or KEY. A tuple is a list of choices.
`FREE` is text without candidates.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Kind = str | tuple[str, ...]

FREE = ""
_SHELLS = ("bash", "zsh", "fish")
_TYPES = ("iceberg-table", "iceberg-view", "namespace", "delta-table", "udf")
_ORDERS = ("name", "-name", "time", "-time", "ahead", "-ahead", "behind", "-behind")

KINDS: Mapping[str, Kind] = {
    "A": "range",
    "B": "revision",
    "COMMAND|TOPIC": "page",
    "COMMIT": "revision",
    "DIR": "folder",
    "FILE": "file",
    "FILE|-": "file",
    "FOLDER": "folder",
    "FROM": "revision",
    "H": "hash",
    "HASH": "hash",
    "KEY": "key",
    "KEY=FILE": "key=file",
    "LOCATION": "folder",
    "PREFIX": "key",
    "PROFILE": "profile",
    "RANGE": "range",
    "REF": "reference",
    "REV": "revision",
    "REV|RANGE": "range",
    "RUN": "run",
    "SHELL": _SHELLS,
    "START": "revision",
    "TARGET": "revision",
    "TYPE": _TYPES,
    "URI": "file",
    "URL": "store",
    "WHEN": ("auto", "always", "never"),
}
"""By metavar."""
KINDS_OF_COMMANDS: Mapping[tuple[str, str], Kind] = {
    ("", "NAME"): "profile",
    ("branch", "KEY"): _ORDERS,
    ("branch", "NAME"): "branch",
    ("commit", "A"): FREE,
    ("config get", "KEY"): "setting",
    ("config set", "KEY"): "setting",
    ("config unset", "KEY"): "setting",
    ("content delete", "A"): FREE,
    ("content put", "A"): FREE,
    ("content rename", "A"): FREE,
    ("content rename", "NEW"): "key",
    ("content rename", "OLD"): "key",
    ("content replace", "A"): FREE,
    ("content unmodified", "A"): FREE,
    ("gc mark", "WHICH"): ("listed", "referenced"),
    ("import", "BRANCH"): "branch",
    ("import", "NAME=VALUE"): FREE,
    ("import", "NAMESPACE"): FREE,
    ("import", "SOURCE"): "folder",
    ("import", "TYPE"): ("rest", "hive", "glue", "sql", "dynamodb", "nessie", "folder"),
    ("log", "P"): FREE,
    ("reflog", "REF"): "moved",
    ("reset", "KEY"): "staged",
    ("restore", "A"): FREE,
    ("run", "BRANCH"): "branch",
    ("run", "COMMAND"): "file",
    ("run", "FILE|SQL"): "file",
    ("run", "ID"): "pipeline-run",
    ("run", "KEY"): FREE,
    ("stash push", "KEY"): "staged",
    ("tag", "KEY"): _ORDERS,
    ("tag", "NAME"): "tag",
    ("undo", "N"): "move",
    ("undo", "REF"): "moved",
}
"""Exceptions by command and metavar."""


class Words(NamedTuple):
    """The kinds of a command's arguments, whether the last one repeats, and those after `--`."""

    kinds: tuple[Kind, ...] = ()
    repeats: bool = False
    behind: Kind = FREE

    def at(self, position: int, *, is_behind: bool) -> Kind:
        """Returns the kind of the word at a position."""
        if is_behind and self.behind:
            return self.behind
        if position < len(self.kinds):
            return self.kinds[position]
        return self.kinds[-1] if self.kinds and self.repeats else FREE


def bare(metavar: str) -> str:
    """Returns the name of a value without its optional parts: `[NAME=]URI` is a URI."""
    return metavar.removeprefix("[NAME=]").removeprefix("[KEY=]").strip("[]")


def kind_of(path: str, metavar: str) -> Kind:
    """Returns the kind of a parameter of a command, such as `content put`."""
    name = bare(metavar)
    return KINDS_OF_COMMANDS.get((path, name), KINDS.get(name, FREE))


def kind_of_option(path: str, parameter: Any) -> Kind:
    """Returns the kind of the value of an option of the parser."""
    choices = tuple(map(str, getattr(parameter.type, "choices", ())))
    return choices or kind_of(path, parameter.metavar or str(parameter.name).upper())


def words_of(path: str, metavars: Sequence[str]) -> Words:
    """Returns the kinds of a command's arguments, from their metavars."""
    kinds: list[Kind] = []
    repeats = False
    behind: Kind = FREE
    for metavar in metavars:
        before, after = _parts(metavar)
        if verbs := _verbs(metavar):
            kinds.append(verbs)
            before = _names(metavar.rpartition(" | ")[2])
        kinds += [kind_of(path, name) for name in before]
        repeats = repeats or "..." in metavar.partition("--")[0]
        behind = kind_of(path, after[0]) if after else behind
    return Words(tuple(kinds), repeats, behind)


def names_in(metavar: str) -> Iterator[str]:
    """Yields the names in a metavar."""
    before, behind = _parts(metavar)
    yield from (*before, *behind)


def _verbs(metavar: str) -> tuple[str, ...]:
    """Returns the verbs of alternatives such as `merge FROM | revert REV|RANGE`."""
    verbs = [alternative.split()[0] for alternative in metavar.strip("[]").split(" | ")]
    return (
        tuple(verbs)
        if len(verbs) > 1 and all(verb.isalpha() and verb.islower() for verb in verbs)
        else ()
    )


def _parts(metavar: str) -> tuple[list[str], list[str]]:
    """Returns the names before and after `--`, of the first alternative."""
    before, _, behind = metavar.partition(" | ")[0].partition("-- ")
    return _names(before), _names(behind)


def _names(text: str) -> list[str]:
    return re.findall(r"[A-Z][A-Z]*(?:[|=](?:[A-Z]+|-))*", text)
