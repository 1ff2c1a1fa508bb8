"""The URL of a store in PostgreSQL: `postgresql://user@host/database?schema=nessie&pool_size=16`."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict

from nessie_cli.errors import InvalidInput

SCHEMA = "nessie"
POOL_SIZE = 16

_SMALLEST_POOL = 2  # one connection is kept for reading
_LARGEST_POOL = 1000
_LONGEST_NAME = 63  # bytes of an identifier in PostgreSQL
_SECRETS = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
)
_USER_WITH_PASSWORD = re.compile(r"//[^/?#@]*:[^/?#]*@|//[^/?#]*%3a[^/?#]*@", re.IGNORECASE)

# Without these a connection whose network went away silently would be waited for without end.
_DEFAULTS = {
    "connect_timeout": "10",
    "fallback_application_name": "nessie",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


class Location(Struct, frozen=True):
    """Where a store is. `url` has no secrets; `connection` are libpq's parameters."""

    url: str
    connection: dict[str, str]
    schema: str = SCHEMA
    pool_size: int = POOL_SIZE


def parse_location(url: str) -> Location:
    """Returns the parts of a URL; raises `InvalidInput`, whose text never shows a password."""
    if _USER_WITH_PASSWORD.search(url):
        raise _refused()
    base, _, query = url.partition("?")
    # Not by parse_qsl: libpq reads a plus sign as itself, not as a space.
    options = [_option(url, text) for text in query.split("&") if text]
    names = [name for name, _ in options]
    if not _SECRETS.isdisjoint(name.lower() for name in names):
        raise _refused()
    if repeated := {name for name in names if names.count(name) > 1}:
        raise InvalidInput(f"store {url}: option {min(repeated)} is given twice")
    own = dict(options)
    schema, pool_size = own.pop("schema", SCHEMA), own.pop("pool_size", str(POOL_SIZE))
    if not schema or "\0" in schema or len(schema.encode(errors="replace")) > _LONGEST_NAME:
        raise InvalidInput(f"store {url}: a schema's name has 1 to {_LONGEST_NAME} bytes")
    if (
        not re.fullmatch("[0-9]{1,4}", pool_size)
        or not _SMALLEST_POOL <= int(pool_size) <= _LARGEST_POOL
    ):
        raise InvalidInput(
            f"store {url}: pool_size is a number from {_SMALLEST_POOL} to {_LARGEST_POOL}"
        )
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in own.items())
    try:
        found = conninfo_to_dict(f"{base}?{query}")
    except psycopg.Error as error:
        raise InvalidInput(f"store {url}: {' '.join(str(error).split())}") from None
    connection = {name: str(value) for name, value in found.items() if value is not None}
    return Location(url, {**_DEFAULTS, **connection}, schema, int(pool_size))


def _option(url: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"store {url}: option {name} has no value")
    return unquote(name), unquote(value)


def _refused() -> InvalidInput:
    return InvalidInput(
        "store postgresql://...: a URL is printed and stored, so it may not hold a password; "
        "use PGPASSWORD, a password file (PGPASSFILE) or a service file (PGSERVICEFILE)"
    )
