"""Errors of a repository as errors of PyIceberg, where PyIceberg has one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    ServiceUnavailableError,
    ValidationError,
)

from nessie_cli.errors import InvalidInput, NotAllowed, OutcomeUnknown, StoreUnavailable
from nessie_cli.iceberg.builder.document import RequirementFailed
from nessie_cli.iceberg.files import MissingFile, first_line
from nessie_cli.iceberg.locations import shown


@contextmanager
def pyiceberg_errors() -> Iterator[None]:
    """Raises PyIceberg's error for an error of a repository, which becomes its cause.

    Errors for which PyIceberg has no class pass through.
    """
    try:
        yield
    except RequirementFailed as error:
        raise CommitFailedException(error.message) from error
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
    """Names the metadata file in each error: `FileNotFoundError` or `ValidationError`."""
    with pyiceberg_errors():
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
            # PyIceberg's models validate the whole file, but do not know its name.
            raise ValidationError(
                f"{shown(location)}: PyIceberg cannot load this metadata: {_first_fault(error)}"
            ) from error


def _first_fault(error: Exception) -> str:
    """Returns an error in one line: of pydantic's faults, where the first one is and why."""
    lines = str(error).splitlines()
    return (
        f"{lines[1].strip()}: {lines[2].strip().partition(' [type=')[0]}"
        if len(lines) > 2  # noqa: PLR2004
        else first_line(error)
    )
