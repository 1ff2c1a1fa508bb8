"""Which commits of a log are meant: by author, text, time, keys, and by a filter in CEL; and the filters of other listings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import LogEntry

Test = Callable[[LogEntry], bool]


def pattern(option: str, text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A regular expression of an option; raises `InvalidInput` that names the option."""
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise InvalidInput(f"{option} {text!r}: is no regular expression: {error}") from None


def by_filter(kind: str, text: str) -> Callable[[Any], bool]:
    """The test of `--filter` for the values of a listing: `references`, `log` or `entries`. The CEL engine is loaded with the first one.

    Raises `InvalidInput` for a text that is no filter, or where the engine is not installed.
    """
    from nessie_cli.wire.filters import FilterKind, compile_filter

    try:
        test = compile_filter(FilterKind(kind), text)
    except InvalidInput as error:
        raise InvalidInput(f"--{error.message}") from None
    return test


def select(entries: Iterable[LogEntry | None], tests: Sequence[Test], limit: int | None = None, skip: int = 0) -> Iterator[tuple[LogEntry, bool]]:
    """Each entry, and whether it passes every test and is none of the first `skip` that do; ends with the last of at most `limit` chosen.

    None stands for commits that the repository has left out already.
    """
    left = limit
    for entry in entries if limit != 0 else ():
        if entry is None:
            continue
        passed = all(test(entry) for test in tests)
        chosen = passed and skip == 0
        skip -= passed and not chosen
        yield entry, chosen
        if chosen and left is not None:
            left -= 1
            if not left:
                return
