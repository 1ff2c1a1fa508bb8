"""The credentials that tokens of runs depend on, as text in the record of a run.

The token of a run ends with the token of its caller. That is an entry of the token file, which can
be withdrawn, or a token of an issuer, which expires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import json

from nessie_cli.server.auth.tokens import TokenEntry

_ISSUER = "until "
_LATEST = 253_402_300_800
"""The year 10000; an issuer may name any later time."""


def credential_of_entry(entry: TokenEntry) -> str:
    """Returns the credential of an entry of the token file."""
    return f"{entry.id} {entry.hash}"


class IssuerCredential(NamedTuple):
    """A token of an issuer: the second until which it is accepted, and the roles of its caller."""

    expires: int
    roles: tuple[str, ...]


def credential_of_issuer(expires: int, roles: Sequence[str]) -> str:
    """Returns the credential of a token of an issuer. See `IssuerCredential`."""
    return f"{_ISSUER}{min(expires, _LATEST)} {json.encode(roles).decode()}"


def issuer_credential(credential: str) -> IssuerCredential | None:
    """Returns the token of an issuer that a credential names; None for an entry."""
    if not credential.startswith(_ISSUER):
        return None
    # Older versions have recorded no roles.
    expires, _, roles = credential.removeprefix(_ISSUER).partition(" ")
    return IssuerCredential(int(expires), json.decode(roles or "[]", type=tuple[str, ...]))


def entry_of(credential: str) -> tuple[str, str]:
    """Returns the id and the hash of an entry of the token file."""
    id_, _, hash_ = credential.partition(" ")
    return id_, hash_


def credentials_of(
    tokens: Sequence[str], before: Mapping[str, str], credential: str
) -> Mapping[str, str]:
    """Returns the credentials of the tokens of a run whose caller changes its record.

    New tokens depend on the `credential` of this caller. Those that depend on an earlier one of the
    issuer last as long as the later of both: the caller has got another one. It must have the same
    roles: a caller can have tokens with more and with fewer rights.
    """
    credentials = {token: before[token] for token in tokens if token in before}
    if not credential:
        return credentials
    given = issuer_credential(credential)
    for token in tokens:
        earlier = issuer_credential(credentials[token]) if token in credentials else None
        if token not in credentials or (given and earlier and _extends(given, earlier)):
            credentials[token] = credential
    return credentials


def _extends(given: IssuerCredential, earlier: IssuerCredential) -> bool:
    return set(given.roles) == set(earlier.roles) and given.expires > earlier.expires
