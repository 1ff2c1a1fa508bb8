"""The access to a server: how it is reached, and the caller's credentials.

`connect` takes these values for an `http(s)://` URL. The libraries that use them are not loaded
here.
"""

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
"""A value for `proxy`: use no proxy, whatever the environment says."""


class Basic(NamedTuple):
    """A user's name and password."""

    username: str
    password: Secret


class Bearer(NamedTuple):
    """A token, or a function that returns one, called for each request."""

    token: Secret | Callable[[], Secret]


class OAuth2Grant(StrEnum):
    """A grant of an OAuth2 server: by a program's secret, or by a person who signs in."""

    CLIENT_CREDENTIALS = "client_credentials"
    DEVICE_CODE = "device_code"


class TokenCache(Protocol):
    """Keeps tokens across processes: one text per client of one OAuth2 server."""

    def read(self) -> str | None:
        """Returns the text, or None."""

    def write(self, text: str | None) -> None:
        """Store a text that only the user may read, or delete it (None)."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from requesting a token at the same time."""


class OAuth2(NamedTuple):
    """A client of an OAuth2 server, which issues tokens (RFC 6749, RFC 8628).

    Set `issuer`, an OpenID Connect issuer whose document contains the endpoints, or the endpoints
    themselves: `token_endpoint`, and `device_endpoint` for a device code. `cache` keeps tokens for
    later processes. `print_line` shows a line to the person who has to sign in, and is None if
    there is no person.
    """

    client_id: str
    client_secret: Secret | None = None
    issuer: str | None = None
    token_endpoint: str | None = None
    device_endpoint: str | None = None
    grant: OAuth2Grant = OAuth2Grant.CLIENT_CREDENTIALS
    scopes: tuple[str, ...] = ()
    cache: TokenCache | None = None
    print_line: Callable[[str], None] | None = None


Credentials = Basic | Bearer | OAuth2


class Access(NamedTuple):
    """The access to a server.

    `ca` is a file of certificates to trust instead of the default ones. `certificate` and `key` are
    the client's own; `key_password` decrypts the key. `proxy` is the URL of a proxy, or "none";
    without it, HTTP_PROXY and similar variables apply. Timeouts are in seconds: `connect_timeout`
    for a connection, `timeout` for each answer to begin. `sources` names the variables, settings
    and stores of secrets that these values come from, for messages.
    """

    credentials: Credentials | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: Secret | None = None
    proxy: str | None = None
    connect_timeout: float = CONNECT_TIMEOUT
    timeout: float = TIMEOUT
    sources: tuple[str, ...] = ()


def checked_url(url: str) -> str:
    """Returns the address of an API, with `/api/v2` if it has no path.

    Raises `InvalidInput` for an invalid address or one with a password.
    """
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        raise InvalidInput(
            f"server {shown(url)} is not a URL; write http(s)://host[:port]/api/v2"
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
            f"server {shown(url)}: a URL must not contain a user or password;"
            " use NESSIE_AUTH_USERNAME and NESSIE_AUTH_PASSWORD"
        )
    if parts.query or parts.fragment:
        raise InvalidInput(f"server {shown(url)}: the address of an API must not contain ? or #")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") or "/api/v2", "", ""))


def shown(url: str) -> str:
    """Returns a URL without anything that may be a password."""
    scheme, _, rest = url.partition("://")
    bare = f"{scheme}://{rest.rpartition('@')[2]}" if rest else url
    return bare.partition("?")[0].partition("#")[0]


def header_of(credentials: Basic | Bearer) -> str:
    """Returns the `Authorization` header of credentials.

    Raises `InvalidInput` for a token that a header cannot contain.
    """
    if isinstance(credentials, Basic):
        from base64 import b64encode

        if ":" in credentials.username:
            raise InvalidInput("a user name for basic authentication must not contain a colon")
        pair = f"{credentials.username}:{credentials.password.reveal()}"
        return f"Basic {b64encode(pair.encode()).decode()}"
    token = credentials.token if isinstance(credentials.token, Secret) else credentials.token()
    return bearer(token.reveal())


def bearer(token: str) -> str:
    """Returns the header of a token."""
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise InvalidInput(
            "the bearer token is empty, or contains characters that are invalid in a header"
        )
    return f"Bearer {token}"


# -- tokens of an OAuth2 server ------------------------------------------------------------------
MARGIN = 30.0
"""Seconds by which tokens count as expired early, because clocks differ."""


class OAuth2Tokens(NamedTuple):
    """The tokens of an OAuth2 server, with instants in seconds since 1970.

    A refresh token without expiry has the end None.
    """

    access: Secret
    begin: float
    end: float
    refresh: Secret | None = None
    refresh_end: float | None = None

    def usable(self, now: float) -> bool:
        """Returns whether the access token is valid for another request.

        It is not within the margin of its end, nor in the second half of a short life.
        """
        return (
            now < self.end - min(MARGIN, (self.end - self.begin) / 2) and now >= self.begin - MARGIN
        )

    def refreshable(self, now: float) -> bool:
        """Returns whether the refresh token may still be valid."""
        return self.refresh is not None and (
            self.refresh_end is None or now < self.refresh_end - MARGIN
        )


def read_tokens(cache: TokenCache | None) -> OAuth2Tokens | None:
    """Returns the tokens in a cache, or None."""
    import json

    text = cache.read() if cache else None
    try:
        fields = json.loads(text) if text else None
        if not isinstance(fields, dict):
            return None
        refresh, refresh_end = fields.get("refreshToken"), fields.get("refreshEnd")
        bearer(str(fields["accessToken"]))
        return OAuth2Tokens(
            Secret(str(fields["accessToken"])),
            float(fields["begin"]),
            float(fields["end"]),
            Secret(str(refresh)) if refresh else None,
            float(refresh_end) if refresh_end is not None else None,
        )
    except (ValueError, RecursionError, KeyError, TypeError, InvalidInput):
        # Written by another version, or by hand: the user signs in again.
        return None


def write_tokens(cache: TokenCache | None, tokens: OAuth2Tokens | None) -> None:
    """Writes tokens to a cache, or deletes them."""
    import json

    if cache is None:
        return
    if tokens is None:
        cache.write(None)
        return
    fields = {"accessToken": tokens.access.reveal(), "begin": tokens.begin, "end": tokens.end}
    if tokens.refresh is not None:
        fields |= {"refreshToken": tokens.refresh.reveal(), "refreshEnd": tokens.refresh_end}
    cache.write(json.dumps(fields) + "\n")
