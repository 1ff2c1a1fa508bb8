"""Errors of a repository as PyIceberg knows them; those that it has no word for stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    CommitStateUnknownException,
    ForbiddenError,
    ServiceUnavailableError,
    ValidationError,
)

from nessie_cli.errors import InvalidInput, NotAllowed, OutcomeUnknown, StoreUnavailable
from nessie_cli.iceberg.files import MissingFile, first_line, shown


@contextmanager
def as_pyiceberg_says() -> Iterator[None]:
    """Raise PyIceberg's error where it has one for what a repository raises; the original error is its cause."""
    try:
        yield
    except OutcomeUnknown as error:
        raise CommitStateUnknownException(error.message) from error
    except StoreUnavailable as error:
        raise ServiceUnavailableError(error.message) from error
    except NotAllowed as error:
        raise ForbiddenError(error.message) from error
    except InvalidInput as error:
        raise ValueError(error.message) from error


@contextmanager
def reading_metadata(location: str) -> Iterator[None]:
    """As `as_pyiceberg_says`; what is wrong with a metadata file names it: missing is `FileNotFoundError`, unsound PyIceberg's `ValidationError`."""
    with as_pyiceberg_says():
        try:
            yield
        except MissingFile as error:
            raise FileNotFoundError(error.message) from error
        except InvalidInput as error:
            raise ValidationError(error.message) from error
        except (
            ValidationError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
        ) as error:
            # PyIceberg's models have looked at all of it, and do not know where it comes from.
            raise ValidationError(
                f"{shown(location)}: is no sound Iceberg metadata file: {_first_fault(error)}"
            ) from error


def _first_fault(error: Exception) -> str:
    """What an error says in one line; of the faults that pydantic has found, where the first one is and what it is."""
    lines = str(error).splitlines()
    return (
        f"{lines[1].strip()}: {lines[2].strip().partition(' [type=')[0]}"
        if len(lines) > 2  # noqa: PLR2004
        else first_line(error)
    )
