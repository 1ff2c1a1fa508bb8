"""Who asks: the caller of a request, and how a request says it (header `Authorization`, schemes Bearer and Basic)."""

from __future__ import annotations

from base64 import b64decode
from typing import ClassVar, NamedTuple

from nessie_cli.errors import InvalidInput, NessieError

_MOST = 16 * 1024
"""Bytes of credentials that are looked at; more is refused unread."""
_LONGEST_NAME = 200


class Caller(NamedTuple):
    """Who asks, by name, and the roles that the rules know. Nobody in particular has an empty name and no roles."""

    name: str = ""
    roles: tuple[str, ...] = ()


ANONYMOUS = Caller()


class Unauthenticated(NessieError):
    """The server does not know who asks. The message never repeats what was sent."""

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
    """What a request carries: a token, and the name that Basic says beside it."""

    token: str
    name: str | None = None


def credentials(authorization: bytes) -> Credentials | None:
    """Read the header `Authorization`; None for an empty one. Raises `Unauthenticated` for another scheme and for what cannot be read.

    Basic is for clients that know nothing else: the password is the token, the user its name.
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
        "The header Authorization holds no credentials that this server reads: it takes Bearer and Basic",
        refused=True,
    )


def _basic(text: bytes) -> Credentials:
    try:
        name, colon, token = b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        colon = ""
    if not colon or not token:
        raise Unauthenticated(
            "The header Authorization is no well-formed Basic: NAME:TOKEN in Base64", refused=True
        )
    return Credentials(token, name)


def check_name(text: str, what: str) -> str:
    """A name of a caller or role as rules, logs and commits can take it: 1 to 200 printable characters, no blank at its ends."""
    if not 0 < len(text) <= _LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise InvalidInput(
            f"{what}: must be 1 to {_LONGEST_NAME} printable characters without blanks around them"
        )
    return text
