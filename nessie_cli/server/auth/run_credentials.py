"""The credentials that tokens of runs depend on, as text in the record of a run.

The token of a run ends with the token of its caller. That is an entry of the token file, which can
be withdrawn, or a token of an issuer, which expires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nessie_cli.server.auth.tokens import TokenEntry

_ISSUER = "until "
_LATEST = 253_402_300_800
"""The year 10000; an issuer may name any later time."""


def credential_of_entry(entry: TokenEntry) -> str:
    """Returns the credential of an entry of the token file."""
    return f"{entry.id} {entry.hash}"


def credential_of_issuer(expires: int) -> str:
    """Returns the credential of a token of an issuer, which is accepted until this second."""
    return f"{_ISSUER}{min(expires, _LATEST)}"


def expiry_of(credential: str) -> int | None:
    """Returns the second until which a token of an issuer is accepted; None for an entry."""
    return int(credential.removeprefix(_ISSUER)) if credential.startswith(_ISSUER) else None


def entry_of(credential: str) -> tuple[str, str]:
    """Returns the id and the hash of an entry of the token file."""
    id_, _, hash_ = credential.partition(" ")
    return id_, hash_


def credentials_of(
    tokens: Sequence[str], before: Mapping[str, str], credential: str
) -> Mapping[str, str]:
    """Returns the credentials of the tokens of a run whose caller changes its record.

    New tokens depend on the `credential` of this caller. Those that depend on an earlier one of the
    issuer last as long as the later of both: the caller has got another one.
    """
    credentials = {token: before[token] for token in tokens if token in before}
    if not credential:
        return credentials
    until = expiry_of(credential)
    for token in tokens:
        earlier = expiry_of(credentials[token]) if token in credentials else None
        if token not in credentials or (until and earlier and until > earlier):
            credentials[token] = credential
    return credentials
