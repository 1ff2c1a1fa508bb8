"""The public keys of an issuer of JSON Web Tokens, from a file or a URL.

The issuer's OpenID document can name the URL. PyJWT reads the keys and remembers them. This module
is imported only if tokens of an issuer are accepted.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from jwt import PyJWK, PyJWKClient, PyJWKClientError, PyJWKSet, PyJWTError
from msgspec import DecodeError, json

from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.bounded_fetch import BoundedFetch
from nessie_cli.server.auth.identity import KeysUnavailable
from nessie_cli.server.runtime.watched_files import TRUSTED, Report, WatchedFile

LIFETIME = 3600.0
"""Seconds after which fetched keys are fetched again."""
PAUSE = 30.0
"""Seconds after a fetch during which an unknown key causes no other fetch."""
RETRY = 5.0
"""Seconds after a failed fetch until the next one."""
TIMEOUT = 5.0
"""Seconds for a whole fetch of a document."""
_MOST_KEYS = 100
DISCOVERY = "/.well-known/openid-configuration"

ALGORITHMS: Mapping[str, tuple[str, str]] = {
    **{f"{family}{size}": ("RSA", "") for family in ("RS", "PS") for size in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "EdDSA": ("OKP", ""),
}
"""The accepted algorithms with the type and curve of their keys; no shared secrets."""


class Keys(Protocol):
    """A source of keys."""

    def find(self, id_: str | None, algorithm: str) -> Sequence[PyJWK]:
        """Returns the keys that may have signed a token with these headers.

        May wait for a fetch.
        """


def read_keys(data: bytes) -> PyJWKSet:
    """Reads a JSON Web Key Set. Raises `InvalidInput` if it has no usable key."""
    try:
        document = json.decode(data)
    except (DecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
    return _key_set(document)


def _key_set(document: Any) -> PyJWKSet:
    """Returns the usable keys of a set, each once per algorithm, because PyJWT expects one."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidInput("not a JSON Web Key Set: it has no list 'keys'")
    try:
        key_set = PyJWKSet(
            [{**key, "alg": name} for key in listed[:_MOST_KEYS] for name in _algorithms(key)]
        )
    except PyJWTError:
        key_set = None
    if key_set is not None:
        key_set.keys = [key for key in key_set.keys if not key.Algorithm.check_key_length(key.key)]
    if key_set is None or not key_set.keys:
        raise InvalidInput("no public key in it can verify tokens")
    return key_set


def _algorithms(key: Any) -> list[str]:
    """Returns the algorithms of a key: the one that it names, or all of its type and curve."""
    if not isinstance(key, dict) or key.get("use", "sig") != "sig":
        return []
    kind, curve = key.get("kty"), key.get("crv")
    fitting = [
        name for name, needs in ALGORITHMS.items() if needs[0] == kind and needs[1] in ("", curve)
    ]
    return [name for name in fitting if key.get("alg", name) == name]


def _find(keys: PyJWKSet, id_: str | None, algorithm: str) -> list[PyJWK]:
    return [
        key
        for key in keys
        if key.algorithm_name == algorithm and (id_ is None or key.key_id in (None, id_))
    ]


class KeyFile:
    """Keys of a file, which is read again when it changes."""

    def __init__(self, path: Path, report: Report) -> None:
        self._file = WatchedFile(path, TRUSTED, "key file", read_keys, report)

    def find(self, id_: str | None, algorithm: str) -> Sequence[PyJWK]:
        """Returns matching keys of the file as it is now."""
        return _find(self._file.value(), id_, algorithm)


class KeyUrl(PyJWKClient):
    """Keys of a URL. Without `url`, the OpenID document of the issuer names it.

    If they cannot be fetched, the previous keys remain valid. The parameters are in seconds; see
    `LIFETIME`, `PAUSE` and `RETRY`.
    """

    def __init__(
        self,
        issuer: str,
        url: str | None,
        report: Report,
        *,
        lifetime: float = LIFETIME,
        pause: float = PAUSE,
        retry: float = RETRY,
    ) -> None:
        super().__init__(url or issuer, lifespan=lifetime, cooldown_duration=pause)
        self._fetch = BoundedFetch(TIMEOUT)
        self._issuer, self._discovers = issuer, url is None
        self._report = report
        self._retry = retry
        self._lock = threading.RLock()
        self._last: PyJWKSet | None = None
        self._failed = float("-inf")

    def find(self, id_: str | None, algorithm: str) -> Sequence[PyJWK]:
        """Returns matching keys. Raises `KeysUnavailable` before any keys were fetched."""
        keys = _find(self.get_jwk_set(), id_, algorithm)
        if not keys and id_ is not None:
            try:
                # Fetches the keys again, unless that was done recently.
                self.get_signing_key(id_)
            except PyJWKClientError:
                return []
            keys = _find(self.get_jwk_set(), id_, algorithm)
        return keys

    def get_jwk_set(self, refresh: bool = False) -> PyJWKSet:
        """Returns the current keys, or the previous ones if fetching fails.

        Does not retry soon after a failure. Raises `KeysUnavailable`.
        """
        with self._lock:
            if time.monotonic() - self._failed >= self._retry:
                try:
                    self._last = super().get_jwk_set(refresh)
                except (PyJWTError, InvalidInput, OSError, ValueError) as error:
                    self._failed = time.monotonic()
                    reason = f"keys of {self._issuer} ({self.uri}): {error}"
                    self._report(
                        reason + ("; the previous keys stay in force" if self._last else "")
                    )
            if self._last is None:
                raise KeysUnavailable("The keys of the issuer are unavailable; try again")
            return self._last

    def fetch_data(self) -> PyJWKSet:
        """Fetches the keys and drops unusable ones; without a URL, the issuer names it."""
        if self._discovers:
            self.uri = self._discover()
        keys = _key_set(self._fetch.json(self.uri))
        # PyJWKClient fetches the keys for an unknown one only if this is long ago.
        self._last_successful_fetch = time.monotonic()
        return keys

    def _discover(self) -> str:
        at = self._issuer.rstrip("/") + DISCOVERY
        document = self._fetch.json(at)
        named = document.get("jwks_uri") if isinstance(document, dict) else None
        if not isinstance(named, str) or document.get("issuer") != self._issuer:
            raise InvalidInput(f"{at} is not a document of this issuer that names its keys")
        return check_url(named, "jwks_uri")


def check_url(url: str, setting: str) -> str:
    """Raises `InvalidInput` unless a URL can be trusted: https, or http on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return url
    if parts.scheme == "http" and _is_this_machine(parts.hostname or ""):
        return url
    raise InvalidInput(
        f"{setting} must be an https:// URL (http:// only on this machine), not {url!r}"
    )


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
