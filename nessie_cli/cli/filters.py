"""Which commits of a log are meant: by author, text, time, keys, and by a filter in CEL; and the filters of other listings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, LogEntry
from nessie_cli.repository.base import Sieve

Test = Callable[[LogEntry], bool]


def pattern(option: str, text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A regular expression of an option; raises `InvalidInput` that names the option."""
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise InvalidInput(f"{option} {text!r}: is no regular expression: {error}") from None


def by_author(wanted: Sequence[re.Pattern[str]]) -> Test:
    """Commits of which an author matches one of these; the committer, where a commit names no author."""
    return lambda entry: any(found.search(author) for found in wanted for author in entry.meta.authors or (entry.meta.committer or "",))


def by_committer(wanted: Sequence[re.Pattern[str]]) -> Test:
    """Commits whose committer matches one of these."""
    return lambda entry: any(found.search(entry.meta.committer or "") for found in wanted)


def merges(entry: LogEntry) -> bool:
    """Whether a commit merged another branch."""
    return len(entry.meta.parents) > 1


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


def of_sieve(sieve: Sieve) -> Iterator[Test]:
    """The tests that a sieve stands for, for a repository that does not sift; what is to be skipped is not among them."""
    if sieve.since is not None:
        yield made_since(sieve.since)
    if sieve.until is not None:
        yield made_until(sieve.until)
    if sieve.authors:
        yield by_author(sieve.authors)
    if sieve.committers:
        yield by_committer(sieve.committers)
    if sieve.message is not None:
        yield by_message(sieve.message)
    if sieve.keys:
        yield touching(sieve.keys)
    if sieve.merges is not None:
        yield lambda entry: merges(entry) == sieve.merges


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
