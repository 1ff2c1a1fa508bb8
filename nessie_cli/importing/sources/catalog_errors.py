"""Errors of PyIceberg's catalogs as errors of this program, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    NoSuchPropertyException,
    NotInstalledError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed, StoreUnavailable
from nessie_cli.iceberg.files import first_line, is_no_answer
from nessie_cli.workspace.secrets import is_secret

_REFUSALS = (UnauthorizedError, ForbiddenError, OAuthError, AuthorizationExpiredError)
_INVALID = (ValueError, TypeError, NoSuchPropertyException, BadRequestError)
_OTHER_REFUSALS = re.compile(
    r"AccessDenied|UnrecognizedClient|InvalidClientToken|ExpiredToken|SignatureDoesNotMatch"
    r"|InvalidSignature|Unable to locate credentials|Partial credentials"
    r"|password authentication failed|[Aa]ccess denied|[Pp]ermission denied|role \S+ does not exist"
)
"""Matches messages of AWS and of databases. Their libraries may not be installed."""
_OTHER_INVALID = re.compile(
    r"Can't load plugin|Could not parse .* URL|file is not a database|invalid connection option"
)
_REASON = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")
"""Matches the reason in a message of urllib3 about a server that does not answer."""
_FAULTS = (
    (
        re.compile(r"RESTError 404|validation error for ConfigResponse"),
        "is not the URL of a REST catalog of Iceberg",
        "it ends before /v1; http(s)://host/api/v2 is a Nessie server",
    ),
    (
        re.compile(r"iceberg_tables|iceberg_namespace_properties"),
        "is not a catalog of Iceberg: its database has no tables of one",
        "a store of nessie itself is a source with --type nessie",
    ),
    (
        re.compile(r"must specify a region"),
        "needs the region of AWS",
        "--property client.region=REGION, or the variable AWS_DEFAULT_REGION",
    ),
)
"""Messages of libraries with what they mean, and the way out."""


class CatalogErrors:
    """Translates the errors of one catalog. `label` names it in messages."""

    def __init__(self, label: str, properties: Mapping[str, Any]) -> None:
        """Takes the properties of the catalog, whose secrets no message repeats."""
        self.label = label
        self._secrets = sorted(_secrets(properties), key=len, reverse=True)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raises `InvalidInput`, `NotAllowed` or `StoreUnavailable` for any other error."""
        try:
            yield
        except NessieError:
            raise
        except Exception as error:  # noqa: BLE001 - catalogs share no base class of errors
            raise self._error(error) from None

    def message(self, error: BaseException) -> str:
        """Returns the message of an error in one line, without the secrets of the catalog."""
        text = first_line(error)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def is_silent(self, error: BaseException) -> bool:
        """Whether an error means that the catalog does not answer."""
        return is_no_answer(error) or type(error).__name__ in ("ConnectionError", "ReadTimeout")

    def _error(self, error: Exception) -> NessieError:
        text = self.message(error)
        if isinstance(error, NotInstalledError | ImportError):
            return self._missing_package(error, text)
        if self.is_silent(error):
            reason = _REASON.search(text)
            return StoreUnavailable(
                f"{self.label} does not answer{f': {reason[1]}' if reason else ''}"
            )
        if isinstance(error, _REFUSALS) or _OTHER_REFUSALS.search(text):
            return NotAllowed(f"{self.label} refuses access: {text}")
        for pattern, fault, hint in _FAULTS:
            if pattern.search(text):
                return InvalidInput(f"{self.label} {fault}", hint=hint)
        is_invalid = type(error) is RESTError or isinstance(error, _INVALID)
        kind = InvalidInput if is_invalid or _OTHER_INVALID.search(text) else StoreUnavailable
        return kind(f"{self.label} cannot be read: {text}")

    def _missing_package(self, error: Exception, text: str) -> InvalidInput:
        what, _, install = text.partition(": pip ")
        cause = f" ({self.message(error.__cause__)})" if error.__cause__ else ""
        return InvalidInput(
            f"{self.label} cannot be read: {what}{cause}",
            hint=f"`pip {install.replace(' or pip', '` or `pip')}`" if install else "",
        )


def _secrets(properties: Mapping[str, Any]) -> Iterator[str]:
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and value:
            if is_secret(name):
                yield value
            elif "://" in value and (password := _password(value)):
                yield password


def _password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None
