"""Which commits of a log are meant: by author, text, time and keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, LogEntry

Test = Callable[[LogEntry], bool]


def pattern(option: str, text: str) -> re.Pattern[str]:
    """A regular expression of an option; raises `InvalidInput` that names the option."""
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidInput(f"{option} {text!r}: is no regular expression: {error}") from None


def by_author(found: re.Pattern[str]) -> Test:
    """Commits of which an author matches; the committer, where a commit names no author."""
    return lambda entry: any(found.search(author) for author in entry.meta.authors or (entry.meta.committer or "",))


def by_message(found: re.Pattern[str]) -> Test:
    """Commits whose message matches."""
    return lambda entry: bool(found.search(entry.meta.message))


def made_since(when: datetime) -> Test:
    """Commits made then or later."""
    return lambda entry: entry.meta.commit_time is not None and entry.meta.commit_time >= when


def made_until(when: datetime) -> Test:
    """Commits made then or earlier."""
    return lambda entry: entry.meta.commit_time is not None and entry.meta.commit_time <= when


def touching(keys: Sequence[ContentKey]) -> Test:
    """Commits with an operation on one of the keys, or on a key below one; needs entries with operations."""
    return lambda entry: any(operation.key.starts_with(key) for operation in entry.operations or () for key in keys)


def select(entries: Iterable[LogEntry], tests: Sequence[Test], limit: int | None = None) -> Iterator[tuple[LogEntry, bool]]:
    """Each entry, and whether it passes every test; ends with the last of at most `limit` that do."""
    left = limit
    for entry in entries if limit != 0 else ():
        chosen = all(test(entry) for test in tests)
        yield entry, chosen
        if chosen and left is not None:
            left -= 1
            if not left:
                return
