"""Positional arguments: words before `--`, keys after it, and `REV:KEY`."""

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
from nessie_cli.model.key_patterns import KeyPattern

T = TypeVar("T")


def split_keys(
    call: Invocation, arguments: Sequence[str], most: int, usage: str
) -> tuple[list[str], list[ContentKey]]:
    """Returns at most `most` words before `--`, and the keys after it.

    A key stands for itself and the keys below it. Raises `InvalidInput` with `usage` if there are
    too many words, and for a glob.
    """
    refuse_empty(usage, *arguments)
    after = len(call.argv) - call.argv.index("--") - 1 if "--" in call.argv else 0
    before = list(arguments[: len(arguments) - after])
    if len(before) > most:
        raise InvalidInput(f"too many arguments: {before[most]!r}; usage: {usage}")
    return before, [_key_or_prefix(argument) for argument in arguments[len(arguments) - after :]]


def _key_or_prefix(word: str) -> ContentKey:
    pattern = KeyPattern.parse(word)
    if pattern is None:
        return ContentKey.parse(word)
    raise InvalidInput(
        f"{word!r} is a glob, but this command takes keys and their prefixes",
        hint=f"'{pattern.prefix}' includes all keys below it" if pattern.prefix else "",
    )


def split_content(word: str) -> tuple[str | None, ContentKey] | None:
    """Splits `REV:KEY` as git does (`:KEY` is at the current reference).

    Returns None for other words, such as a revision with a time.
    """
    if ":" not in word or _revision(word):
        return None
    for place in range(len(word) - 1, -1, -1):
        if word[place] == ":" and (place == 0 or _revision(word[:place])):
            with suppress(InvalidInput):
                return word[:place] or None, ContentKey.parse(word[place + 1 :])
    return None


def _revision(text: str) -> bool:
    """Whether a text is a valid revision. Times are checked for syntax only."""
    from nessie_cli import revisions

    try:
        revisions.parse(
            text if text[:1] not in "~^*@" else f"{revisions.HEAD}{text.removeprefix('@')}",
            datetime.now(UTC),
        )
    except InvalidInput:
        return False
    return True


def refuse_empty(usage: str, *arguments: str | None) -> None:
    """Raises `InvalidInput` for an empty argument.

    An unset variable of a script must not mean the current reference.
    """
    if "" in arguments:
        raise InvalidInput(f"an argument is empty; usage: {usage}")


def limited(call: Invocation, limit: int | None, items: Iterable[T]) -> tuple[Iterator[T], bool]:
    """Returns the first `limit` items, or all, and with `--json` whether there are more.

    In the document, `hasMore` comes before the items. So they are read first, and one item more.
    Accepts limits beyond `sys.maxsize`.
    """
    rest = iter(items)
    if limit is None:
        return rest, False
    first = islice(rest, min(limit, sys.maxsize))
    if not call.options.json:
        return first, False
    return iter(list(first)), next(rest, None) is not None
