"""HTTP with the certificates, proxies and timeouts of an `Access`.

Raises the errors of unusable settings before it sends anything. Answers are limited in size, before
and after decompression, and in time.
"""

from __future__ import annotations

import json
import queue
import ssl
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.utils import should_bypass_proxies

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Secret
from nessie_cli.repository.access import NO_PROXY, Access, shown

LARGEST_ANSWER = 256 << 20
"""The limit of an answer in bytes, as it is sent and decompressed."""
_LONGEST = 10
"""An answer must be complete within this many times the timeout."""
_CHUNK = 64 * 1024
MOST_VALUES = 10_000_000
"""The limit of an answer in JSON values, which take many times the memory of their text."""
_SEPARATORS = (b",", b"[", b"{")
_ENCODING = "gzip"
_GZIP = zlib.MAX_WBITS | 16
"""The window of zlib for streams with a header of gzip."""


class AnswerLimit(requests.RequestException):
    """An answer exceeds a limit, or cannot be decompressed. The text has no secret."""


class HttpAnswer(NamedTuple):
    """The answer to a request, complete."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes
    url: str

    def json(self) -> Any:
        """Returns the value of the JSON text.

        Raises `ValueError` for other bytes, and for a number of too many digits, `RecursionError`
        for a nesting that is too deep.
        """
        return json.loads(self.content)


class Http:
    """A pool of connections, shared by threads. Call `close`.

    `largest` is the limit of an answer in bytes.
    """

    def __init__(self, access: Access, largest: int = LARGEST_ANSWER) -> None:
        _check_certificates(access)
        self._largest = largest
        self._longest = _LONGEST * access.timeout
        self._timeout = (access.connect_timeout, access.timeout)
        self._proxy = _checked_proxy(access.proxy)
        self.session = requests.Session()
        # Otherwise requests looks for a password in the user's netrc.
        self.session.auth = _NoPassword()
        self._verify = str(access.ca) if access.ca else None
        if access.certificate:
            self.session.cert = (
                (str(access.certificate), str(access.key))
                if access.key
                else str(access.certificate)
            )
        if access.key_password:
            self.session.mount("https://", _WithKeyPassword(access.key_password))

    def request(
        self,
        method: str,
        url: str,
        *,
        is_json: bool = True,
        auth: AuthBase | None = None,
        **more: Any,
    ) -> HttpAnswer:
        """Sends a request. Does not follow redirects, because the request may contain a secret.

        `is_json` limits the number of JSON values in the answer. Raises the errors of requests, and
        `AnswerLimit`.
        """
        # Timeouts of sockets apply to each packet, so a server that sends a byte at a time would
        # never reach one. The thread that it keeps busy ends with the process.
        results: queue.SimpleQueue[HttpAnswer | BaseException] = queue.SimpleQueue()
        end = time.monotonic() + self._longest

        def work() -> None:
            try:
                results.put(self._request(method, url, end, is_json=is_json, auth=auth, **more))
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                results.put(error)

        threading.Thread(target=work, daemon=True).start()
        try:
            result = results.get(timeout=self._longest)
        except queue.Empty:
            raise self._too_slow() from None
        if isinstance(result, BaseException):
            raise result
        return result

    def _request(
        self, method: str, url: str, end: float, *, is_json: bool, **more: Any
    ) -> HttpAnswer:
        headers = {**more.pop("headers", {}), "Accept-Encoding": _ENCODING}
        with self.session.request(
            method,
            url,
            timeout=self._timeout,
            # Passed with each request, because REQUESTS_CA_BUNDLE overrides the session's.
            verify=self._verify,
            proxies=self._proxies(url),
            allow_redirects=False,
            stream=True,
            headers=headers,
            **more,
        ) as response:
            content = self._content(response, end, is_json=is_json)
            return HttpAnswer(response.status_code, response.headers, content, response.url)

    def _content(self, response: requests.Response, end: float, *, is_json: bool) -> bytes:
        """Returns the decompressed body."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in (_ENCODING, "identity"):
            raise AnswerLimit(
                "its answer is compressed in a way that was not requested (Content-Encoding)"
            )
        chunks: list[bytes] = []
        received = expanded = 0
        unpack = _Gunzip() if encoding == _ENCODING else None
        for chunk in _received(response):
            received += len(chunk)
            # One byte more than allowed is enough to know.
            part = unpack.feed(chunk, self._largest - expanded + 1) if unpack else chunk
            expanded += len(part)
            if max(received, expanded) > self._largest:
                raise AnswerLimit(
                    f"its answer is larger than {self._largest >> 20} MiB, the limit of this client"
                )
            if time.monotonic() > end:
                raise self._too_slow()
            chunks.append(part)
        if unpack and not unpack.complete:
            raise requests.exceptions.ChunkedEncodingError("the compressed answer ends too early")
        content = b"".join(chunks)
        if is_json and _has_too_many_values(content):
            raise AnswerLimit(
                f"its answer has more than {MOST_VALUES:,} JSON values, the limit of this client"
            )
        return content

    def _too_slow(self) -> AnswerLimit:
        return AnswerLimit(
            f"its answer is not complete after {self._longest:g} seconds, the limit of this client"
            f" ({_LONGEST} times NESSIE_TIMEOUT)"
        )

    def _proxies(self, url: str) -> dict[str, str]:
        """Returns the proxies that override the environment's: none, or the configured one.

        NO_PROXY applies to both.
        """
        if self._proxy is None:
            return {}
        if self._proxy == NO_PROXY or should_bypass_proxies(url, None):
            return {"no_proxy": "*"}
        return {"http": self._proxy, "https": self._proxy}

    def close(self) -> None:
        """Closes the connections."""
        self.session.close()


def _has_too_many_values(text: bytes) -> bool:
    return len(text) > MOST_VALUES and sum(map(text.count, _SEPARATORS)) > MOST_VALUES


def _received(response: requests.Response) -> Iterator[bytes]:
    """Yields the parts of a body as they are sent, with the errors of requests."""
    try:
        yield from response.raw.stream(_CHUNK, decode_content=False)
    except urllib3.exceptions.ProtocolError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.ConnectionError(error) from error
    except urllib3.exceptions.SSLError as error:
        raise requests.exceptions.SSLError(error) from error


class _Gunzip:
    """Decompresses the members of a gzip stream (RFC 1952)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self.complete = True

    def feed(self, data: bytes, most: int) -> bytes:
        """Returns the bytes that more data expands to, at most `most`. Raises `AnswerLimit`."""
        expanded = b""
        try:
            while data and len(expanded) < most:
                if self._member.eof:
                    self._member = zlib.decompressobj(_GZIP)
                expanded += self._member.decompress(data, most - len(expanded))
                data = self._member.unused_data
        except zlib.error:
            raise AnswerLimit("its answer cannot be decompressed (gzip)") from None
        self.complete = self._member.eof
        return expanded


class _NoPassword(AuthBase):
    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class _WithKeyPassword(HTTPAdapter):
    """Opens an encrypted client key."""

    __attrs__ = HTTPAdapter.__attrs__

    def __init__(self, password: Secret) -> None:
        self._password = password
        super().__init__()

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        """Creates the pool of connections with the password of the key."""
        super().init_poolmanager(*args, key_password=self._password.reveal(), **more)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        """Creates the connections to a proxy with the password of the key."""
        return super().proxy_manager_for(proxy, key_password=self._password.reveal(), **more)


def _checked_proxy(proxy: str | None) -> str | None:
    if proxy is None or proxy == NO_PROXY:
        return proxy
    if not proxy.startswith(("http://", "https://")):
        raise InvalidInput(
            f"proxy {shown(proxy)}: write http://host:port, or {NO_PROXY} for no proxy"
        )
    return proxy


def _check_certificates(access: Access) -> None:
    """Raises `InvalidInput` that names the file for an unusable certificate or key.

    Otherwise requests would fail late, or ask for a password.
    """
    if not (access.ca or access.certificate or access.key):
        return
    trial = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if access.ca:
        try:
            trial.load_verify_locations(_existing(access.ca, "CA certificates"))
        except (ssl.SSLError, OSError) as error:
            raise InvalidInput(
                f"{access.ca} holds no CA certificates that can be read ({_reason(error)})"
            ) from None
    if access.key and not access.certificate:
        raise InvalidInput(
            f"{access.key}: a client's key needs its certificate too (NESSIE_CERTIFICATE_FILE)"
        )
    if not access.certificate:
        return
    certificate = _existing(access.certificate, "client certificate")
    key = _existing(access.key, "client key") if access.key else certificate

    def password() -> str:
        if access.key_password is None:
            raise InvalidInput(
                f"{key}: the key is encrypted; NESSIE_KEY_PASSWORD or NESSIE_KEY_PASSWORD_FILE"
                " gives its password"
            )
        return access.key_password.reveal()

    try:
        trial.load_cert_chain(certificate, key, password)
    except (ssl.SSLError, OSError) as error:
        where = certificate if key == certificate else f"{certificate}, {key}"
        raise InvalidInput(
            f"{where} is not a usable certificate and key ({_reason(error)})"
        ) from None


def _reason(error: OSError) -> str:
    """Returns OpenSSL's reason in words.

    The attribute of the error that has it depends on the version.
    """
    text = f"{getattr(error, 'reason', '')} {error.strerror}".lower().replace("_", " ")
    return next((reason for name, reason in _REASONS.items() if name in text), "it cannot be read")


_REASONS = {
    "mismatch": "they belong to different pairs",
    "bad decrypt": "the wrong password",
    "pem lib": "no PEM file, or the wrong password",
    "no start line": "no PEM file",
    "no certificate": "no PEM file",
}


def _existing(path: Path, purpose: str) -> str:
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file ({purpose})")
    return str(path)
