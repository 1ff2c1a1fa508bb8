"""The command tree as plain data: the options and arguments that the parser has."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from nessie_cli.cli.app.group import root
from nessie_cli.cli.registry import COMMANDS, CommandEntry


class Option(NamedTuple):
    """An option: its names, metavar (empty for a flag), choices, repetition, and help."""

    names: tuple[str, ...]
    metavar: str
    choices: tuple[str, ...]
    many: bool
    help: str
    default: str


HELP = Option(
    ("-h", "--help"),
    "",
    (),
    many=False,
    help="Show what the command takes, with examples, and end.",
    default="",
)
VERSION = Option(
    ("--version",),
    "",
    (),
    many=False,
    help="Print the versions of nessie and Python, and the newest store format that nessie supports"
    ", and end.",
    default="",
)
"""Options outside of the parser: the first for every command, the second for `nessie`."""


class Word(NamedTuple):
    """An argument that is not an option."""

    metavar: str
    help: str


class Command(NamedTuple):
    """A command. `path` follows `nessie`, `text` is its docstring without the first line.

    `alias_of` is the path of the same command that is listed earlier.
    """

    path: tuple[str, ...]
    summary: str
    text: str
    section: str
    options: tuple[Option, ...]
    words: tuple[Word, ...]
    examples: tuple[str, ...]
    hidden: bool
    children: tuple[Command, ...]
    alias_of: tuple[str, ...] = ()
    has_default: bool = False

    @property
    def name(self) -> str:
        """The name as users type it: `nessie content put`."""
        return " ".join(("nessie", *self.path))


def read() -> Command:
    """Returns the command `nessie` with all others below it."""
    group = root()
    children = tuple(_below(group, COMMANDS, ()))
    options = tuple(_options(group, shared=True))
    return Command((), str(group.help), "", "", options, (), (), hidden=False, children=children)


def every(command: Command) -> Iterator[Command]:
    """Yields the command and all below it, in the order of the registry."""
    yield command
    for child in command.children:
        yield from every(child)


def _below(
    group: Any, table: Mapping[str, CommandEntry], above: tuple[str, ...]
) -> Iterator[Command]:
    first: dict[str, tuple[str, ...]] = {}
    for name, entry in table.items():
        command = group.get_command(None, name)
        path = (*above, name)
        if entry.children is not None:
            children = tuple(_below(command, entry.children, path))
            yield Command(
                path,
                entry.help,
                entry.text,
                entry.section,
                (),
                (),
                entry.examples,
                entry.hidden,
                children,
                has_default=bool(entry.default),
            )
            continue
        module = module_of(entry)
        text = inspect.getdoc(module.Options) or ""
        rest = text.partition("\n")[2].strip()
        options = tuple(_options(command, shared=False))
        same = first.setdefault(entry.module, path)
        alias_of = same if same != path else ()
        examples = module.EXAMPLES
        yield Command(
            path,
            entry.help,
            rest,
            entry.section,
            options,
            tuple(_words(command)),
            examples,
            entry.hidden,
            (),
            alias_of,
        )


def module_of(entry: CommandEntry) -> Any:
    """Returns the module of a command."""
    return import_module(f"nessie_cli.cli.{entry.module}")


def _options(command: Any, *, shared: bool) -> Iterator[Option]:
    for parameter in command.params:
        if parameter.param_type_name != "option" or (parameter.hidden and not shared):
            continue
        flag = parameter.is_flag
        choices = tuple(getattr(parameter.type, "choices", ()))
        names = (*parameter.opts, *parameter.secondary_opts)
        metavar = (
            ""
            if flag
            else parameter.metavar or "|".join(map(str, choices)) or str(parameter.name).upper()
        )
        yield Option(
            names,
            metavar,
            tuple(map(str, choices)),
            bool(parameter.multiple),
            parameter.help or "",
            _default(parameter, flag=flag),
        )


def _default(parameter: Any, *, flag: bool) -> str:
    value = parameter.default
    return (
        ""
        if flag or value is None or callable(value) or isinstance(value, list | tuple)
        else str(getattr(value, "value", value))
    )


def _words(command: Any) -> Iterator[Word]:
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield Word(parameter.metavar or str(parameter.name).upper(), parameter.help or "")
