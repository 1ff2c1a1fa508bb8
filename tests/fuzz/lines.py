"""Random command lines: arguments, options and values for every command; some of them make
sense."""

from __future__ import annotations

import functools
import random
import string
from collections.abc import Iterator
from typing import Any

from nessie_cli.cli.app.global_options import VALUED
from nessie_cli.cli.app.group import root

_LOCAL = ["--engine", "local"]
NEVER_TO_BE_RUN = {
    ("serve",): ["--port", "none"],
    ("ui",): ["--port", "none"],
    ("run",): ["--dry-run"],
    ("audit",): _LOCAL,
    ("stats",): _LOCAL,
    ("gc", "mark"): _LOCAL,
    ("gc", "plan"): _LOCAL,
    ("gc", "apply"): _LOCAL,
}
"""Options that stop commands from running for ever, running programs, or reading buckets.

Such an option precedes all random ones, or is refused.
"""
REVISIONS = (
    "main",
    "dev",
    "v1",
    "HEAD",
    "main~1",
    "main~99",
    "dev^2",
    "main*yesterday",
    "main*9999999999999999999",
    "main@00",
    "@",
    "~",
    "dev..main",
)
RANGES = ("main..dev", "dev...main", "..", "...", "main..", "..dev", "a..b..c", "main..dev~1")
KEYS = (
    "db",
    "db.orders",
    "db.items",
    'db."a.b"',
    '"',
    ".",
    "..",
    "a..b",
    "db.日本",
    "-m",
    "nope.t",
    "a." * 40,
    "x" * 600,
)
VALUES = (
    "",
    " ",
    "0",
    "-1",
    "1",
    "99999999999999999999999",
    "1e9",
    "NaN",
    "true",
    "iceberg-table",
    "namespace",
    "udf",
    "k=v",
    "=",
    "name",
    "time",
    "-",
)
TIMES = (
    "2 hours ago",
    "yesterday",
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "-5",
    "9" * 30,
    "1 fortnight ago",
)
FILTERS = (
    "commit.message == 'x'",
    "1",
    "ref.name",
    "(",
    "entry.key.matches('(')",
    "commit.author.size() / 0 == 1",
    "'" * 3,
    "operations.exists(o, o.key",
)
FILES = (
    "batch",
    "content",
    "metadata",
    "folder",
    "binary",
    "loop",
    "missing",
    "deep",
    "-",
    "db.orders=content",
    "db.orders=-",
    "=content",
)
STORES = (
    ".nessie/store.sqlite",
    "sqlite:///none.sqlite",
    "sqlite://",
    "postgres",
    "http://127.0.0.1:1/api/v2",
    "http://",
    "https://[",
    "http://[::1]:x/",
    "folder",
    "binary",
    "memory:",
    "memory:x",
)
POOLS = (REVISIONS, RANGES, KEYS, VALUES, TIMES, FILTERS, FILES)
ODD = (
    "\x1b[31m",
    "\u202e",
    "\udcff\udcfe",
    "\u0301",
    "\ufeff",
    "👩\u200d👧",
    "\n",
    "\r",
    "\t",
    "'",
    '"',
    "\\",
    "$(id)",
    "%s%n",
    "{",
    "}",
    "\x7f",
    "*",
    "~^@",
    "..",
    "=",
)


@functools.cache
def commands() -> tuple[tuple[tuple[str, ...], Any], ...]:
    """Returns every command with its path."""
    return tuple(_below((), root()))


def _below(words: tuple[str, ...], group: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.table:
        command = group.get_command(None, name)
        if hasattr(command, "table"):
            yield from _below((*words, name), command)
        else:
            yield (*words, name), command


def text(chance: random.Random) -> str:
    """Returns any text that can be one argument and names no file outside the folder."""
    parts = [
        chance.choice((*ODD, *string.ascii_letters, *string.digits, ".", "-", "/"))
        for _ in range(chance.choice((1, 2, 5, 20)))
    ]
    return "".join(parts).lstrip("/").replace("../", "")


def value(chance: random.Random) -> str:
    """Returns a value of an option, or an argument."""
    return text(chance) if chance.random() < 0.2 else chance.choice(chance.choice(POOLS))


def line(chance: random.Random) -> list[str]:
    """Returns a command line."""
    path, command = chance.choice(commands())
    words = list(path)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        words += _option(chance, command)
    words += [value(chance) for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))]
    if chance.random() < 0.15:
        words += ["--", *(chance.choice(KEYS) for _ in range(chance.choice((0, 1, 2))))]
    if chance.random() < 0.1:
        words.insert(chance.randrange(len(words) + 1), text(chance))
    if chance.random() < 0.35:
        words.insert(chance.choice((0, len(path))), chance.choice(("--json", "--json", "--jsonl")))
    if (fixed := NEVER_TO_BE_RUN.get(path)) is not None:
        words[len(path) :] = [*words[len(path) :], *fixed] if "--" not in words else fixed
    return words


def _option(chance: random.Random, command: Any) -> list[str]:
    option = chance.choice(
        [parameter for parameter in command.params if parameter.param_type_name == "option"]
    )
    name = chance.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [name] if name != "--debug" else []
    return [name, _fitting(chance, name)] if chance.random() < 0.97 else [name]


def _fitting(chance: random.Random, name: str) -> str:  # noqa: PLR0911 (a table)
    """Returns a value of the kind that the option takes, in most cases."""
    if chance.random() < 0.2:
        return value(chance)
    if name == "--store":
        return chance.choice(STORES)
    if name in ("--ours", "--theirs"):
        return chance.choice(KEYS)
    if name in ("--since", "--until", "--after", "--before", "--author-time"):
        return chance.choice(TIMES)
    if name == "--filter":
        return chance.choice(FILTERS)
    if name in ("-F", "--file", "--batch", "--content", "--from-metadata", "--resolve", "-C"):
        return chance.choice(FILES)
    return chance.choice(REVISIONS if name in VALUED or chance.random() < 0.5 else VALUES)
