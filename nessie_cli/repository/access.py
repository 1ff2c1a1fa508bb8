"""How a server is reached and who asks it: what `connect` takes for an `http(s)://` URL, without the libraries that use it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Secret

TIMEOUT = 60.0
CONNECT_TIMEOUT = 5.0
NO_PROXY = "none"
"""In the place of a proxy's address: none, whatever the environment says."""


class Basic(NamedTuple):
    """A user's name and password."""

    username: str
    password: Secret


class Bearer(NamedTuple):
    """A token, or a function that gives the token of each request."""

    token: Secret | Callable[[], Secret]


class Grant(StrEnum):
    """How an OAuth2 server is asked for a token: by a program's own secret, or by a person who signs in elsewhere."""

    CLIENT_CREDENTIALS = "client_credentials"
    DEVICE_CODE = "device_code"


class TokenCache(Protocol):
    """Where tokens outlive a process; one text for one client of one OAuth2 server."""

    def read(self) -> str | None:
        """What was kept; None for nothing."""

    def write(self, text: str | None) -> None:
        """Keep a text that nobody else may read, or with None forget it."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from asking for a token at the same time."""


class OAuth2(NamedTuple):
    """A client of an OAuth2 server, which gives tokens that last a while (RFC 6749, RFC 8628).

    `issuer` is an OpenID Connect issuer whose document names the endpoints; `token_endpoint` and `device_endpoint` name them otherwise.
    `tell` shows a line to the person who has to sign in, None where there is none.
    """

    client_id: str
    client_secret: Secret | None = None
    issuer: str | None = None
    token_endpoint: str | None = None
    device_endpoint: str | None = None
    grant: Grant = Grant.CLIENT_CREDENTIALS
    scopes: tuple[str, ...] = ()
    cache: TokenCache | None = None
    tell: Callable[[str], None] | None = None


Credentials = Basic | Bearer | OAuth2


class Access(NamedTuple):
    """How a server is reached.

    `ca` is a file of certificates to trust instead of the system's; `certificate` and `key` are the client's own, `key_password` opens the key.
    `proxy` is the address of a proxy instead of the environment's, "none" for no proxy at all. Times are in seconds: until there is a connection,
    and for each answer to begin.
    """

    credentials: Credentials | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: Secret | None = None
    proxy: str | None = None
    connect_timeout: float = CONNECT_TIMEOUT
    timeout: float = TIMEOUT


def checked_url(url: str) -> str:
    """The address of an API, `/api/v2` where it names no path; raises `InvalidInput` for one that is none, or holds a password."""
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        raise InvalidInput(
            f"server {shown(url)}: is no URL; write http(s)://host[:port]/api/v2"
        ) from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not port_is_number
        or not url.isprintable()
        or " " in url
    ):
        raise InvalidInput(f"server {shown(url)}: write http(s)://host[:port]/api/v2")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"server {shown(url)}: a URL must hold no user and no password; NESSIE_AUTH_USERNAME and NESSIE_AUTH_PASSWORD may"
        )
    if parts.query or parts.fragment:
        raise InvalidInput(f"server {shown(url)}: the address of an API has no ? and no #")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") or "/api/v2", "", ""))


def shown(url: str) -> str:
    """The URL without what may be a password."""
    scheme, _, rest = url.partition("://")
    bare = f"{scheme}://{rest.rpartition('@')[2]}" if rest else url
    return bare.partition("?")[0].partition("#")[0]


def header_of(credentials: Basic | Bearer) -> str:
    """The `Authorization` header of credentials that are at hand; raises `InvalidInput` for a token that no header can carry."""
    if isinstance(credentials, Basic):
        from base64 import b64encode

        if ":" in credentials.username:
            raise InvalidInput("a user's name for basic authentication has no colon in it")
        pair = f"{credentials.username}:{credentials.password.reveal()}"
        return f"Basic {b64encode(pair.encode()).decode()}"
    token = credentials.token if isinstance(credentials.token, Secret) else credentials.token()
    return bearer(token.reveal())


def bearer(token: str) -> str:
    """The header of a token."""
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise InvalidInput(
            "the bearer token is empty, or holds characters that no header can carry"
        )
    return f"Bearer {token}"


def header_at_hand(access: Access, now: float | None = None) -> str | None:
    """The `Authorization` header as far as it is known without asking an OAuth2 server: for completion, which must not wait. None for none."""
    credentials = access.credentials
    if not isinstance(credentials, OAuth2):
        return header_of(credentials) if credentials else None
    kept = read_tokens(credentials.cache)
    return (
        f"Bearer {kept.access.reveal()}"
        if kept and kept.usable(time.time() if now is None else now)
        else None
    )


# -- tokens of an OAuth2 server ------------------------------------------------------------------------------------------------------------

MARGIN = 30.0
"""Seconds before its end that a token is taken for spent: clocks differ, and a request takes its time."""


class Tokens(NamedTuple):
    """What an OAuth2 server has given, with instants in seconds since 1970; a refresh token without an end has None."""

    access: Secret
    begin: float
    end: float
    refresh: Secret | None = None
    refresh_end: float | None = None

    def usable(self, now: float) -> bool:
        """Whether the access token is good for another request: not within the margin of its end, nor in the second half of a short life."""
        return (
            now < self.end - min(MARGIN, (self.end - self.begin) / 2) and now >= self.begin - MARGIN
        )

    def refreshable(self, now: float) -> bool:
        """Whether the refresh token may still be good."""
        return self.refresh is not None and (
            self.refresh_end is None or now < self.refresh_end - MARGIN
        )


def read_tokens(cache: TokenCache | None) -> Tokens | None:
    """The tokens that a cache holds; None for none, and for what is no such thing."""
    import json

    text = cache.read() if cache else None
    try:
        found = json.loads(text) if text else None
        if not isinstance(found, dict):
            return None
        refresh, refresh_end = found.get("refreshToken"), found.get("refreshEnd")
        bearer(str(found["accessToken"]))
        return Tokens(
            Secret(str(found["accessToken"])),
            float(found["begin"]),
            float(found["end"]),
            Secret(str(refresh)) if refresh else None,
            float(refresh_end) if refresh_end is not None else None,
        )
    except (ValueError, KeyError, TypeError, InvalidInput):
        # Written by another version, or by hand: then there is a new sign-in.
        return None


def write_tokens(cache: TokenCache | None, tokens: Tokens | None) -> None:
    """Keep tokens, or forget them."""
    import json

    if cache is None:
        return
    if tokens is None:
        cache.write(None)
        return
    kept = {"accessToken": tokens.access.reveal(), "begin": tokens.begin, "end": tokens.end}
    if tokens.refresh is not None:
        kept |= {"refreshToken": tokens.refresh.reveal(), "refreshEnd": tokens.refresh_end}
    cache.write(json.dumps(kept) + "\n")
