"""The caller of a request, and its credentials (header `Authorization`, Bearer and Basic)."""

from __future__ import annotations

from base64 import b64decode
from typing import ClassVar, NamedTuple

from nessie_cli.errors import InvalidInput, NessieError

_MOST = 16 * 1024
"""The most bytes of credentials; longer ones are refused unread."""
_LONGEST_NAME = 200


class Caller(NamedTuple):
    """A caller: the name, and the roles that rules refer to. Anonymous callers have neither.

    A program of a pipeline's `run` may write the branch of this run only.
    """

    name: str = ""
    roles: tuple[str, ...] = ()
    run: str = ""


ANONYMOUS = Caller()


class Unauthenticated(NessieError):
    """Authentication failed. The message never repeats credentials."""

    code: ClassVar[str] = "UNKNOWN"
    status: ClassVar[int] = 401

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.challenge = b'Bearer realm="nessie"' + (b', error="invalid_token"' if refused else b"")
        """The header `WWW-Authenticate` of the answer (RFC 6750)."""


class KeysUnavailable(NessieError):
    """The keys of the issuer cannot be fetched, so its tokens cannot be verified now."""

    code: ClassVar[str] = "SERVICE_UNAVAILABLE"
    status: ClassVar[int] = 503


class Credentials(NamedTuple):
    """The credentials of a request: a token, and the user name of Basic."""

    token: str
    name: str | None = None


def credentials(authorization: bytes) -> Credentials | None:
    """Parses the header `Authorization`; None if it is empty.

    Raises `Unauthenticated` for another scheme and for invalid credentials. Basic is for clients
    without Bearer: the password is the token, the user its name.
    """
    if not authorization.strip():
        return None
    scheme, _, rest = authorization[:_MOST].strip().partition(b" ")
    rest = rest.strip()
    if len(authorization) < _MOST and rest and rest.isascii():
        if scheme.lower() == b"bearer":
            return Credentials(rest.decode())
        if scheme.lower() == b"basic":
            return _basic(rest)
    raise Unauthenticated(
        "The header Authorization must be of type Bearer or Basic",
        refused=True,
    )


def _basic(text: bytes) -> Credentials:
    try:
        name, colon, token = b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        colon = ""
    if not colon or not token:
        raise Unauthenticated(
            "The header Authorization is not well-formed Basic: NAME:TOKEN in Base64", refused=True
        )
    return Credentials(token, name)


def check_name(text: str, field: str) -> str:
    """Returns a valid name of a caller or role: 1 to 200 printable characters, trimmed."""
    if not 0 < len(text) <= _LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise InvalidInput(
            f"{field} must be 1 to {_LONGEST_NAME} printable characters without leading or trailing"
            " spaces"
        )
    return text
