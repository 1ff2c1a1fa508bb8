"""Carries our errors through Spark, as one line of text, and back to an error class.

Spark turns an exception of a Python process into the text of its traceback. The exceptions of this
package have one line, `nessie: WHERE: MESSAGE [CODE]`, which is the last line of that traceback.
`failure_of` finds it again.
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
"""How many conflicts a line names."""


class TaskError(Exception):
    """One of our errors inside a process of Spark. Its text is the whole line."""

    def __init__(self, where: str, error: NessieError) -> None:
        # The parts are arguments, so that the exception can be pickled.
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
    return (
        f"{len(conflicts)} of its keys in conflict:"
        f" {named}{f'; and {more} more' if more > 0 else ''}"
    )


def _named(conflict: Conflict) -> str:
    by = (
        f", changed by {conflict.changed_by.hash[:12]}"
        if conflict.changed_by and conflict.changed_by.hash
        else ""
    )
    return f"{conflict.type.value} {conflict.key or ''} ({conflict.message}{by})"


@contextmanager
def at(where: str) -> Iterator[None]:
    """Adds to an error of the block where it happened, for the driver."""
    try:
        yield
    except NessieError as error:
        raise TaskError(where, error) from None


def _by_code() -> Mapping[str, type[NessieError]]:
    """Returns the most general error class of each code that takes only a message."""
    classes: dict[str, type[NessieError]] = {}
    for value in vars(errors).values():
        if (
            isinstance(value, type)
            and issubclass(value, NessieError)
            and value.__init__ in (NessieError.__init__, errors.NotFound.__init__)
        ):
            classes.setdefault(value.code, value)
    return classes


class SparkFailure(NessieError):
    """An error in a process of Spark, with the `code` of the original error."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        # Other errors have it as an attribute of the class.
        self.code = code  # type: ignore[misc]


def failure_of(error: BaseException) -> NessieError | None:
    """Returns our error in an exception of Spark, or None.

    Attributes of the error, such as the conflicts of a commit, are lost. The table `conflicts` and
    a dry run in Python have them.
    """
    lines = re.findall(_LINE, str(error), re.MULTILINE)
    if not lines:
        return None
    message, code = lines[-1]
    kind = _by_code().get(code)
    return kind(f"nessie: {message}") if kind else SparkFailure(f"nessie: {message}", code)


@contextmanager
def nessie_errors() -> Iterator[None]:
    """Raises our errors in Spark's processes as their own classes.

    Use it as `with nessie_errors(): frame.count()`. The message is one line that begins with
    `nessie:`. Other exceptions pass through.
    """
    try:
        yield
    except Exception as error:
        cause = failure_of(error)
        if cause is None:
            raise
        raise cause from error


def unknown(kind: str, given: str, names: Any) -> errors.InvalidInput:
    """Returns the error for an unknown word."""
    return errors.InvalidInput(
        f"{kind} {given!r} is unknown", hint=f"there are {', '.join(sorted(names))}"
    )
