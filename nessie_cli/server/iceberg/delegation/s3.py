"""The folder of a table in a bucket of S3, and the server's own credentials."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from posixpath import normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.locations import LocationRefused, is_inside, parse
from nessie_cli.iceberg.warehouses.warehouse import Warehouse

_NOT_DELEGATED = re.compile(r"[*?$%\\]")
"""In a policy, `*`, `?` and `$` are special characters.

Programs differ in how they read the others.
"""
_METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?$")
_MOST_DECODINGS = 4
_TIMEOUTS = {"connect_timeout": 5, "read_timeout": 15, "retries": {"max_attempts": 2}}


class Folder(NamedTuple):
    """A folder of a bucket; `prefix` has no slash at its end."""

    bucket: str
    prefix: str

    @classmethod
    def of(cls, location: str) -> Folder | None:
        """Returns the folder of a location; None if access cannot be limited to this folder."""
        try:
            place = parse(location)
        except LocationRefused:
            return None
        prefix = place.path.removeprefix("/")
        if place.scheme != "s3" or _NOT_DELEGATED.search(prefix) or not _is_plain(prefix):
            return None
        return cls(place.authority, prefix)

    def holds(self, key: str) -> bool:
        """Whether an object with this key is in the folder, even if a program decodes the key."""
        return (
            _is_plain(key)
            and key != self.prefix
            and all(is_inside(normpath(reading), self.prefix) for reading in _readings(key))
        )

    def holds_prefix(self, prefix: str) -> bool:
        """Whether all keys with a prefix are in the folder."""
        folder = prefix.removesuffix("/")
        return prefix.startswith(f"{self.prefix}/") and (
            folder == self.prefix or self.holds(folder)
        )


def _is_plain(key: str) -> bool:
    """Whether a key has only printable characters and no segments that are empty or dots."""
    return key.isprintable() and not any(part in ("", ".", "..") for part in key.split("/"))


def _readings(key: str) -> list[str]:
    """A key as it is, and percent-decoded once or more often.

    Iceberg percent-encodes the values of partitions in keys.
    One that can be decoded again and again has no reading inside of any folder.
    """
    readings = [key]
    while (decoded := unquote(readings[-1])) != readings[-1]:
        if len(readings) > _MOST_DECODINGS:
            return [""]
        readings.append(decoded)
    return readings


def is_metadata_file(key: str) -> bool:
    """Whether an object is a metadata file. The server writes them, clients do not."""
    return _METADATA_FILE.search(key) is not None


class Account:
    """The server's own access to the storage of a warehouse. Threads may share it."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._lock = threading.Lock()
        self._botocore_session: Any = None

    @property
    def region(self) -> str | None:
        """The configured region."""
        settings = self.warehouse.storage
        return settings.get("s3.region") or settings.get("client.region")

    def credentials(self) -> Any:
        """The server's credentials, as botocore has them now.

        Raises `StoreUnavailable` if there are none.
        """
        credentials = self._session().get_credentials()
        if credentials is None:
            raise StoreUnavailable(
                f"warehouse '{self.warehouse.name}': the server has no credentials for S3"
            )
        return credentials.get_frozen_credentials()

    def sts(self, endpoint: str) -> Any:
        """Returns a client of STS."""
        from botocore.config import Config

        return self._session().create_client(
            "sts",
            region_name=self.region,
            endpoint_url=endpoint or None,
            config=Config(**_TIMEOUTS),
        )

    def _session(self) -> Any:
        with self._lock:
            if self._botocore_session is None:
                self._botocore_session = _session(self.warehouse.storage)
            return self._botocore_session


def _session(settings: Mapping[str, str]) -> Any:
    """A session with the credentials of the settings, otherwise with those of the environment."""
    try:
        from botocore.session import Session
    except ImportError:
        raise InvalidInput(
            "access delegation needs botocore", hint="`pip install 'nessie-cli[s3]'`"
        ) from None

    def setting(name: str) -> str | None:
        return settings.get(f"s3.{name}") or settings.get(f"client.{name}")

    session = Session(profile=setting("profile-name"))
    key, secret = setting("access-key-id"), setting("secret-access-key")
    if key and secret:
        session.set_credentials(key, secret, setting("session-token"))
    return session
