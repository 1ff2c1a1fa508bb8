"""Errors on their way through Spark: one line of ours in whatever Spark makes of it, and the way back to an error of this package.

Spark carries an exception of a Python process as the text of its traceback. What this room raises has a text of one line,
`nessie: WHERE: MESSAGE [CODE]`, so it is the last line of that traceback, and `failure_of` finds it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nessie_cli import errors
from nessie_cli.errors import NessieError, ReferenceConflict
from nessie_cli.model import Conflict

_LINE = r"nessie: (.*) \[([A-Z_]+)\]$"
_MOST_CONFLICTS = 5
"""Conflicts that one line names."""


class Refused(Exception):
    """An error of this package inside a process of Spark. Its text is the whole line."""

    def __init__(self, where: str, error: NessieError) -> None:
        # Built from parts, so that it can be pickled, and made in another process.
        super().__init__(where, error)
        self.where = where
        self.error = error

    def __str__(self) -> str:
        message = " ".join(f"{self.where}: {_message(self.error)}".split())
        return f"nessie: {message} [{self.error.code}]"


def _message(error: NessieError) -> str:
    conflicts: tuple[Conflict, ...] = (
        error.conflicts if isinstance(error, ReferenceConflict) else ()
    )
    if not conflicts:
        return error.message
    named = "; ".join(_named(conflict) for conflict in conflicts[:_MOST_CONFLICTS])
    more = len(conflicts) - _MOST_CONFLICTS
    return f"{len(conflicts)} of its keys in conflict: {named}{f'; and {more} more' if more > 0 else ''}"


def _named(conflict: Conflict) -> str:
    by = (
        f", changed by {conflict.changed_by.hash[:12]}"
        if conflict.changed_by and conflict.changed_by.hash
        else ""
    )
    return f"{conflict.type.value} {conflict.key or ''} ({conflict.message}{by})"


@contextmanager
def at(where: str) -> Iterator[None]:
    """Say where an error of this package happened, in the words that the driver is to see."""
    try:
        yield
    except NessieError as error:
        raise Refused(where, error) from None


def _by_code() -> Mapping[str, type[NessieError]]:
    """The most general error of each code that is made of its message alone."""
    found: dict[str, type[NessieError]] = {}
    for item in vars(errors).values():
        if (
            isinstance(item, type)
            and issubclass(item, NessieError)
            and item.__init__ in (NessieError.__init__, errors.NotFound.__init__)
        ):
            found.setdefault(item.code, item)
    return found


class SparkFailure(NessieError):
    """An error of this package that happened in a process of Spark; `code` is that of the error as it was there."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        # An attribute of the class elsewhere: here it is known only when it happens.
        self.code = code  # type: ignore[misc]


def failure_of(error: BaseException) -> NessieError | None:
    """The error of this package that an exception of Spark carries; None where it is about something else.

    Facts that were attributes (the conflicts of a commit) are left behind on the way; the table `conflicts` and a dry run in Python have them.
    """
    found = re.findall(_LINE, str(error), re.MULTILINE)
    if not found:
        return None
    message, code = found[-1]
    kind = _by_code().get(code)
    return kind(f"nessie: {message}") if kind else SparkFailure(f"nessie: {message}", code)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise the errors of this package that happen in Spark's processes as what they are.

    Used as `with told_plainly(): frame.count()`. The message is one line that begins with `nessie:`; exceptions about something else pass.
    """
    try:
        yield
    except Exception as error:
        found = failure_of(error)
        if found is None:
            raise
        raise found from error


def unknown(what: str, given: str, known: Any) -> errors.InvalidInput:
    """The error for a word that is none of those known."""
    return errors.InvalidInput(
        f"{what} {given!r} is not known; there are {', '.join(sorted(known))}"
    )
