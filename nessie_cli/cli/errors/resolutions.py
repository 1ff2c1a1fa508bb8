"""The command lines that resolve a conflict. They are attributes of the error."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.errors import ReferenceConflict, Resolution, Resolutions
from nessie_cli.render.text import short_hash

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


@contextmanager
def resolving(find: Callable[[ReferenceConflict], Resolutions]) -> Iterator[None]:
    """Sets the resolutions of a conflict raised by the block. `find` returns those of the error.

    An outer block overrides the resolutions of an inner one.
    """
    try:
        yield
    except ReferenceConflict as error:
        error.resolutions = find(error)
        error.resolver = ""
        raise


def command_line(*words: str) -> str:
    """Returns a command line with each word quoted for a shell."""
    return "nessie " + " ".join(map(shlex.quote, words))


def with_current_hash(app: Invocation, error: ReferenceConflict) -> Resolutions:
    """Returns the command with the current hash as the expected one, if it has an expected hash."""

    def resolutions(_: object) -> list[Resolution]:
        words = list(app.argv)
        for option in ("--expected-hash", "-c"):
            if error.head and option in words[:-1]:
                words[words.index(option) + 1] = short_hash(error.head)
                return [Resolution(command_line(*words))]
        return []

    return resolutions
