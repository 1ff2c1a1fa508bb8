"""The command lines that resolve a conflict. They are attributes of the error."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.errors import ReferenceConflict, Resolution, WaysOut
from nessie_cli.inspection.text import short_hash

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


class CurrentHash(WaysOut):
    """Repeats a command with the current hash as the expected one, if it has an expected hash."""

    def __init__(self, app: Invocation, error: ReferenceConflict) -> None:
        self._argv, self._head = app.argv, error.head

    def of(self, conflict: object) -> Sequence[Resolution]:
        """Returns the command line, or nothing."""
        del conflict
        argv = list(self._argv)
        for option in ("--expected-hash", "-c"):
            if self._head and option in argv[:-1]:
                argv[argv.index(option) + 1] = short_hash(self._head)
                return [Resolution(command_line(*argv))]
        return []


@contextmanager
def repeating(app: Invocation) -> Iterator[None]:
    """Gives a conflict that the block raises the command with the current hash as the way out.

    An outer block overrides an inner one.
    """
    try:
        yield
    except ReferenceConflict as error:
        error.ways_out = CurrentHash(app, error)
        raise


def command_line(*arguments: str) -> str:
    """Returns a command line with each word quoted for a shell."""
    return "nessie " + " ".join(map(shlex.quote, arguments))


def key_option(name: str, key: str) -> list[str]:
    """Returns the arguments of an option with a key. The key can look like an option."""
    return [f"{name}={key}"] if key.startswith("-") else [name, key]
