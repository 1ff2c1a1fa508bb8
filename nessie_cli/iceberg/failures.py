"""Errors of a repository as PyIceberg knows them; those that it has no word for stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import CommitStateUnknownException, ForbiddenError, ServiceUnavailableError

from nessie_cli.errors import InvalidInput, NotAllowed, OutcomeUnknown, StoreUnavailable


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
