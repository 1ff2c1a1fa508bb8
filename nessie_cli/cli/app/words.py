"""Positional words of a command: what stands before `--`, and the keys behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

T = TypeVar("T")


def split_keys(
    call: Invocation, words: Sequence[str], most: int, usage: str
) -> tuple[list[str], list[ContentKey]]:
    """The words before `--`, at most so many, and the keys behind it; raises `InvalidInput` that shows `usage`."""
    refuse_empty(usage, *words)
    behind = len(call.argv) - call.argv.index("--") - 1 if "--" in call.argv else 0
    before = list(words[: len(words) - behind])
    if len(before) > most:
        raise InvalidInput(f"{before[most]!r} is one word too many: {usage}")
    return before, [ContentKey.parse(word) for word in words[len(words) - behind :]]


def split_content(word: str) -> tuple[str | None, ContentKey] | None:
    """`REV:KEY` in two, as git writes it (`:KEY` is at the current reference); None for any other word, such as one whose colons are of a time."""
    if ":" not in word or _revision(word):
        return None
    for place in range(len(word) - 1, -1, -1):
        if word[place] == ":" and (place == 0 or _revision(word[:place])):
            with suppress(InvalidInput):
                return word[:place] or None, ContentKey.parse(word[place + 1 :])
    return None


def _revision(text: str) -> bool:
    """Whether a text can be a revision; times are only read."""
    from nessie_cli import revisions

    try:
        revisions.parse(
            text if text[:1] not in "~^*@" else f"{revisions.HEAD}{text.removeprefix('@')}",
            datetime.now(UTC),
        )
    except InvalidInput:
        return False
    return True


def refuse_empty(usage: str, *words: str | None) -> None:
    """Raise `InvalidInput` for an empty word: a script's variable that is not set must not mean the current reference."""
    if "" in words:
        raise InvalidInput(f"an empty word where a name is expected: {usage}")


def at_most(limit: int | None, items: Iterable[T]) -> Iterator[T]:
    """The first `limit` items, or all of them; a number may have as many digits as somebody likes to type."""
    return islice(items, None if limit is None else min(limit, sys.maxsize))


def confirm(call: Invocation, question: str, *, yes: bool) -> None:
    """Ask before something is lost, on a terminal only; a no raises `InvalidInput`. Scripts are never asked."""
    if yes or call.wants_json or not sys.stdin.isatty():
        return
    call.err.prompt(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInput("nothing was done; --yes answers yes")
