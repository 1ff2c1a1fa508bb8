"""The completion scripts: each knows the commands, their options, and the kind of each word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from manual.tree import HELP, VERSION, Command, Option, every
from nessie_cli.cli.completion.kinds import (
    KINDS,
    KINDS_OF_COMMANDS,
    Kind,
    Words,
    bare,
    kind_of,
    names_in,
    words_of,
)
from nessie_cli.cli.completion.scripts import FILE_NAMES

TEMPLATES = Path(__file__).parent / "completions"
FREE = frozenset({
    "BYTES", "CEL", "COLUMNS", "DIGEST", "DURATION", "FILTER", "HOST", "ID", "K=V", "MSG", "N",
    "NAME", "NEW", "OLD", "P", "PATTERN=POLICY", "POLICY", "PORT", "S", "SQL", "T", "TEMPLATE",
    "TIME", "UUID", "VALUE",
})  # fmt: skip
"""Metavars of texts without completion."""


class Entry(NamedTuple):
    """A command as a completion script sees it.

    `values` are the options with a value, each with its kind; `?` after it means that the value is
    optional. `repeatable` are the options that may be repeated.
    """

    path: str
    commands: Mapping[str, str]
    options: Mapping[str, str]
    values: Mapping[str, str]
    repeatable: Sequence[str]
    words: Words


def scripts(tree: Command) -> dict[str, str]:
    """Returns the files of `completions/`."""
    entries = [_entry(command, tree) for command in every(tree)]
    made = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return {
        f"completions/{FILE_NAMES[shell]}": _filled(shell, entries, write)
        for shell, write in made.items()
    }


def unknown_words(tree: Command) -> list[str]:
    """Returns the metavars that no table contains."""
    return sorted(
        {
            f"{command.name}: {word}"
            for command in every(tree)
            for word in _metavars(command)
            if word not in KINDS
            and word not in FREE
            and (_path(command), word) not in KINDS_OF_COMMANDS
        }
    )


def _metavars(command: Command) -> Iterator[str]:
    for word in command.words:
        yield from names_in(word.metavar)
    yield from (bare(one.metavar) for one in command.options if one.metavar and not one.choices)


def _path(command: Command) -> str:
    return " ".join(command.path)


def _entry(command: Command, tree: Command) -> Entry:
    path = _path(command)
    own = (*command.options, *(tree.options if command.path else ()))
    every_option = (*own, HELP, *(() if command.path else (VERSION,)))
    return Entry(
        path,
        {child.path[-1]: child.summary for child in command.children if not child.hidden},
        {name: one.help for one in every_option for name in one.names},
        {name: _value(one, path) for one in own if one.metavar for name in one.names},
        [name for one in own if one.many for name in one.names],
        words_of(path, [word.metavar for word in command.words]),
    )


def _value(option: Option, path: str) -> str:
    kind = option.choices or kind_of(path, option.metavar)
    return _text(kind) + ("?" if option.metavar.startswith("[") else "")


def _text(kind: Kind) -> str:
    """Returns a kind as a script passes it on; `-` for a text without completion."""
    return "=" + ",".join(kind) if isinstance(kind, tuple) else kind or "-"


def _filled(shell: str, entries: Sequence[Entry], write: Callable[[Entry], Iterable[str]]) -> str:
    template = (TEMPLATES / FILE_NAMES[shell]).read_text(encoding="utf-8")
    lines = (line for entry in entries for line in write(entry))
    return template.replace("@COMMANDS@", "\n".join(lines))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _joined(words: Iterable[str]) -> str:
    return _quoted(" ".join(words))


def _words(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "kinds", _joined(map(_text, entry.words.kinds))
    yield "repeats", "1" if entry.words.repeats else "0"
    yield "behind", _quoted(_text(entry.words.behind))


def _assignments(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "values", _joined(f"{name}:{kind}" for name, kind in entry.values.items())
    yield "repeatable", _joined(entry.repeatable)
    yield from _words(entry)


def _bash(entry: Entry) -> Iterator[str]:
    yield f"        {_quoted(entry.path)})"
    yield f"            commands={_joined(entry.commands)} options={_joined(entry.options)}"
    yield "            " + " ".join(f"{name}={text}" for name, text in _assignments(entry)) + " ;;"


def _zsh(entry: Entry) -> Iterator[str]:
    yield f"        {_quoted(entry.path)})"
    yield f"            commands=({_described(entry.commands)})"
    yield f"            options=({_described(entry.options)})"
    yield "            " + " ".join(f"{name}={text}" for name, text in _assignments(entry)) + " ;;"


def _described(texts: Mapping[str, str]) -> str:
    return " ".join(_quoted(f"{name}:{said}") for name, said in texts.items())


def _fish(entry: Entry) -> Iterator[str]:
    yield f"        case {_fish_quoted(entry.path)}"
    for name, texts in (("commands", entry.commands), ("options", entry.options)):
        yield f"            set -g __nessie_{name} " + " ".join(
            _fish_quoted(f"{one}:{said}") for one, said in texts.items()
        )
    yield "            set -g __nessie_values " + " ".join(
        _fish_quoted(f"{one}:{kind}") for one, kind in entry.values.items()
    )
    yield "            set -g __nessie_repeatable " + " ".join(map(_fish_quoted, entry.repeatable))
    yield "            set -g __nessie_kinds " + " ".join(
        _fish_quoted(_text(one)) for one in entry.words.kinds
    )
    yield f"            set -g __nessie_repeats {int(entry.words.repeats)}"
    yield f"            set -g __nessie_behind {_fish_quoted(_text(entry.words.behind))}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
