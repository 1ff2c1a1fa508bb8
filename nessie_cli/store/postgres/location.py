"""The URL of a PostgreSQL store: `postgresql://user@host/database?schema=nessie`."""

from __future__ import annotations

import re
from hashlib import blake2b
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

    def lock_key(self, subject: str) -> int:
        """Returns the key of the advisory lock of a subject, in this schema only."""
        digest = blake2b(f"{self.schema} {subject}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)


def parse_location(url: str) -> Location:
    """Returns the parts of a URL; raises `InvalidInput`, whose text never shows a password."""
    base, options = _split(url)
    own = dict(options)
    if repeated := {name for name in own if [option for option, _ in options].count(name) > 1}:
        raise InvalidInput(f"store {url}: option {min(repeated)} is given twice")
    schema, pool_size = own.pop("schema", SCHEMA), own.pop("pool_size", str(POOL_SIZE))
    if not schema or "\0" in schema or len(schema.encode(errors="replace")) > _LONGEST_NAME:
        raise InvalidInput(f"store {url}: the name of a schema has 1 to {_LONGEST_NAME} bytes")
    sizes = f"{_SMALLEST_POOL} to {_LARGEST_POOL}"
    if not re.fullmatch("[0-9]{1,4}", pool_size):
        raise InvalidInput(f"store {url}: pool_size is a number from {sizes}")
    if not _SMALLEST_POOL <= int(pool_size) <= _LARGEST_POOL:
        raise InvalidInput(f"store {url}: pool_size is a number from {sizes}")
    query = "&".join(f"{quote(name)}={quote(value, safe='')}" for name, value in own.items())
    try:
        parsed = conninfo_to_dict(f"{base}?{query}")
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise InvalidInput(f"store {url}: {' '.join(str(error).split())}") from None
    connection = {name: str(value) for name, value in parsed.items() if value is not None}
    return Location(url, {**_DEFAULTS, **connection}, schema, int(pool_size))


def _split(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns the URL without its options, and the options. Refuses passwords."""
    scheme = re.match("postgres(?:ql)?://", url, re.ASCII | re.IGNORECASE)
    if scheme is None:
        raise InvalidInput("store postgresql:...: write postgresql://user@host/database")
    rest, _, query = url[scheme.end() :].partition("?")
    user, at, _ = rest.rpartition("@")
    # A password may hold any character: no part of a URL that is malformed here is shown.
    if at and ":" in unquote(user):
        raise _refused()
    if "@" in query:
        raise InvalidInput("store postgresql://...: write @ in an option as %40")
    options = [_option(text) for text in query.split("&") if text]
    if not _SECRETS.isdisjoint(name.lower() for name, _ in options):
        raise _refused()
    return f"postgresql://{rest}", options


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput("store postgresql://...: an option has no value; write name=value")
    # Not by parse_qsl: libpq does not read a plus sign as a space.
    return unquote(name), unquote(value)


def _refused() -> InvalidInput:
    return InvalidInput(
        "store postgresql://...: a URL is printed and stored, so it must not contain a password; "
        "use PGPASSWORD, a password file (PGPASSFILE) or a service file (PGSERVICEFILE)"
    )
