"""The public keys of an issuer of JSON Web Tokens: from a file, from a URL, or from where the issuer says that they are (OpenID Connect Discovery).

Keys of a URL are fetched when they are first needed, again after an hour, and when a token names a key that is not among them: a client that makes
names up cannot make the server ask more often than every half minute.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit

from msgspec import DecodeError, json

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.server.watched import TRUSTED, Tell, WatchedFile

LIFETIME = 3600.0
"""Seconds after which fetched keys are fetched again."""
PAUSE = 30.0
"""Seconds between two attempts to fetch keys."""
TIMEOUT = 5.0
_MOST_BYTES = 1 << 20
_MOST_KEYS = 100
_SHORTEST_RSA = 2048
_OK = 200
DISCOVERY = "/.well-known/openid-configuration"

ALGORITHMS: Mapping[str, tuple[str, str]] = {
    **{f"{family}{size}": ("RSA", "") for family in ("RS", "PS") for size in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "EdDSA": ("OKP", ""),
}
"""The algorithms that signatures may have, each with the type and curve of its keys. Those with a shared secret and `none` are not among them."""


class KeysUnavailable(NessieError):
    """The issuer's keys cannot be had, so nobody can be recognised by its tokens now."""

    code: ClassVar[str] = "SERVICE_UNAVAILABLE"
    status: ClassVar[int] = 503


class Key(NamedTuple):
    """A public key: its name (None where it has none), the algorithms that it may be used with, and what `jwt` verifies with."""

    id: str | None
    algorithms: frozenset[str]
    verifier: Any


class Keys(Protocol):
    """Where keys come from."""

    def find(self, id_: str | None, algorithm: str) -> Sequence[Key]:
        """The keys with which a token may have been signed that names this key and algorithm; may take as long as a fetch."""


def read_keys(data: bytes) -> list[Key]:
    """The keys of a JSON Web Key Set that signatures can be verified with; others are left out. Raises `InvalidInput` where there is none."""
    try:
        document = json.decode(data)
    except DecodeError as error:
        raise InvalidInput(f"is not JSON: {error}") from None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidInput("is no JSON Web Key Set: it has no list 'keys'")
    found = [key for key in map(_key, listed[:_MOST_KEYS]) if key is not None]
    if not found:
        raise InvalidInput("holds no public key that tokens can be verified with")
    return found


def _key(document: Any) -> Key | None:
    import jwt

    if not isinstance(document, dict) or document.get("use", "sig") != "sig":
        return None
    algorithms = frozenset(name for name, fits in ALGORITHMS.items() if fits[0] == document.get("kty") and fits[1] in ("", document.get("crv")))
    if "alg" in document:
        algorithms &= {document["alg"]}
    if not algorithms:
        return None
    try:
        verifier = jwt.PyJWK(document, algorithm=min(algorithms)).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if getattr(verifier, "key_size", _SHORTEST_RSA) < _SHORTEST_RSA and document.get("kty") == "RSA":
        return None
    id_ = document.get("kid")
    return Key(id_ if isinstance(id_, str) else None, algorithms, verifier)


def fitting(keys: Sequence[Key], id_: str | None, algorithm: str) -> list[Key]:
    """Those of the keys that a token may have been signed with."""
    return [key for key in keys if algorithm in key.algorithms and (id_ is None or key.id in (None, id_))]


class KeyFile:
    """Keys of a file, read again when it changes."""

    def __init__(self, path: Path, tell: Tell) -> None:
        self._file = WatchedFile(path, TRUSTED, "key file", read_keys, tell)

    def find(self, id_: str | None, algorithm: str) -> Sequence[Key]:
        """See `Keys`."""
        return fitting(self._file.value(), id_, algorithm)


class KeyUrl:
    """Keys that are fetched: from `url`, or from where the document of the issuer says. `clock` gives seconds."""

    def __init__(self, issuer: str, url: str | None, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer, self._url = issuer, url
        self._tell, self._clock = tell, clock
        self._lock = threading.Lock()
        self._keys: Sequence[Key] = ()
        self._fetched = self._tried = float("-inf")

    def find(self, id_: str | None, algorithm: str) -> Sequence[Key]:
        """See `Keys`; raises `KeysUnavailable` before any were had."""
        found = fitting(self._keys, id_, algorithm)
        if not found or self._clock() - self._fetched >= LIFETIME:
            with self._lock:
                self._renew(id_, algorithm)
            found = fitting(self._keys, id_, algorithm)
        if not self._keys:
            raise KeysUnavailable("The keys of the issuer cannot be had at the moment; try again")
        return found

    def _renew(self, id_: str | None, algorithm: str) -> None:
        """Fetch the keys, unless that was tried just now, or another thread has done it meanwhile."""
        now = self._clock()
        if now - self._tried < PAUSE or (fitting(self._keys, id_, algorithm) and now - self._fetched < LIFETIME):
            return
        self._tried = now
        try:
            self._keys = self._fetch()
            self._fetched = now
        except InvalidInput as error:
            self._tell(f"keys of {self._issuer}: {error.message}" + ("; those before stay in force" if self._keys else ""))

    def _fetch(self) -> list[Key]:
        url = self._url
        if url is None:
            at = self._issuer.rstrip("/") + DISCOVERY
            try:
                document = json.decode(_get(at))
            except DecodeError:
                document = None
            if not isinstance(document, dict) or document.get("issuer") != self._issuer or not isinstance(document.get("jwks_uri"), str):
                raise InvalidInput(f"{at}: is no document of this issuer that names its keys")
            url = check_url(document["jwks_uri"], "jwks_uri")
        try:
            return read_keys(_get(url))
        except InvalidInput as error:
            raise InvalidInput(error.message if url in error.message else f"{url}: {error.message}") from None


def check_url(url: str, what: str) -> str:
    """A URL whose answers can be believed: https, or http on this machine; raises `InvalidInput`."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return url
    if parts.scheme == "http" and _is_this_machine(parts.hostname or ""):
        return url
    raise InvalidInput(f"{what}: must be an https:// URL (http:// only on this machine), not {url!r}")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _get(url: str) -> bytes:
    """What a URL answers; raises `InvalidInput` for anything but a whole answer of a sensible size."""
    import requests

    session = requests.Session()
    # Without this requests would send what ~/.netrc holds for the host.
    session.auth = lambda request: request
    try:
        with session, session.get(url, timeout=TIMEOUT, allow_redirects=False, stream=True, headers={"accept": "application/json"}) as answer:
            if answer.status_code != _OK:
                raise InvalidInput(f"{url}: answers {answer.status_code}")
            data = answer.raw.read(_MOST_BYTES + 1, decode_content=True)
    except (requests.RequestException, OSError) as error:
        raise InvalidInput(f"{url}: cannot be fetched ({type(error).__name__})") from None
    if len(data) > _MOST_BYTES:
        raise InvalidInput(f"{url}: answers more than {_MOST_BYTES} bytes")
    return bytes(data)
