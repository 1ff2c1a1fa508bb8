"""HTTP to a Nessie server: one session, errors as this package's, retries only where nothing can happen twice.

Secrets are given as an `Authorization` that is asked for its header at each request; they are in no URL and in no message.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import requests
from requests.auth import AuthBase

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed, OutcomeUnknown, StoreUnavailable
from nessie_cli.repository.access import Access, Authorization
from nessie_cli.wire.answers import decode_error
from nessie_cli.wire.extensions import HEADER, REQUEST_HEADER, VERSION

CONNECT_TIMEOUT = 5.0
RETRIES = 4
LONGEST_PAUSE = 5.0
"""Seconds that a busy server's `Retry-After` is heeded at most before the next try."""
COMPRESSED_FROM = 64 * 1024
"""Bodies of so many bytes are sent compressed."""
_REFUSED = (429, 503)
"""The server did nothing: it is busy, or away."""
_GATEWAY = (502, 504)
"""Something before the server has lost its answer."""

Query = Mapping[str, str | list[str] | None]


def segment(text: str) -> str:
    """One segment of a path, percent-encoded, slashes too."""
    return quote(text, safe="")


class Transport:
    """Requests to one server, below its `/api/v2`. With `extensions` our own servers are asked to answer in full."""

    def __init__(self, url: str, access: Access | None = None, *, extensions: bool = True) -> None:
        access = access or Access()
        self.url = checked_url(url)
        self._timeout = (min(CONNECT_TIMEOUT, access.timeout), access.timeout)
        self._session = requests.Session()
        self._session.headers.update({"Accept": "application/json", "Nessie-Client-Spec": "2", "User-Agent": "nessie-cli"})
        if extensions:
            self._session.headers[HEADER] = VERSION
        # Also without a header to set: requests would look for a password in the user's netrc otherwise.
        self._session.auth = _Auth(access.authorization)
        self._session.verify = _existing(access.ca, "CA certificates") or True
        certificate, key = _existing(access.certificate, "client certificate"), _existing(access.key, "client key")
        if certificate:
            self._session.cert = (certificate, key) if key else certificate

    def get(self, path: str, query: Query | None = None) -> Any:
        """The JSON of an answer; tried again where the server is busy or the connection broke."""
        return self._retried("GET", path, query, None)

    def send(self, method: str, path: str, query: Query | None = None, body: Any = None, *, request_id: str = "", safe: bool = False) -> Any:
        """The JSON of the answer to something that changes the server, sent once unless it is `safe` to send it twice.

        Raises `OutcomeUnknown` where it was sent and the answer was lost.
        """
        if safe:
            return self._retried(method, path, query, body)
        try:
            return self._once(method, path, query, body, request_id)
        except requests.ConnectionError as error:
            if _never_sent(error):
                raise self._unreachable(error) from None
            raise self._lost(request_id) from None
        except requests.RequestException:
            raise self._lost(request_id) from None

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _retried(self, method: str, path: str, query: Query | None, body: Any) -> Any:
        for number in range(RETRIES):
            try:
                return self._once(method, path, query, body)
            except (requests.ConnectionError, requests.Timeout) as error:
                fault: NessieError = self._unreachable(error)
                if isinstance(error, requests.exceptions.SSLError):
                    raise fault from None
            except requests.RequestException as error:
                raise self._unreachable(error) from None
            except _Busy as busy:
                fault = busy
            except OutcomeUnknown:
                fault = StoreUnavailable(f"server {self.url}: what stands before it lost its answer; try again later")
            if number < RETRIES - 1:
                time.sleep(_pause(fault, number))
        raise fault

    def _once(self, method: str, path: str, query: Query | None, body: Any, request_id: str = "") -> Any:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        data, headers = _encoded(body)
        if request_id:
            headers[REQUEST_HEADER] = request_id
        answer = self._session.request(
            method, f"{self.url}/{path}", params=params, data=data, headers=headers, timeout=self._timeout, allow_redirects=False
        )
        what = f"{method} {self.url}/{path}"
        document = _json(answer)
        if answer.status_code in _REFUSED:
            raise _Busy(f"{what}: the server answered {answer.status_code}, it is busy or away; try again later", answer.headers.get("Retry-After"))
        if answer.status_code in _GATEWAY:
            raise self._lost(request_id)
        if answer.status_code >= requests.codes.bad_request:
            raise self._fault(answer.status_code, document, what)
        if document is None:
            raise StoreUnavailable(f"{what}: the answer is no JSON; is this the address of a Nessie server (…/api/v2)?")
        return document

    def _fault(self, status: int, document: Any, what: str) -> NessieError:
        if status == requests.codes.unauthorized:
            return NotAllowed(f"server {self.url}: it asks who you are, and takes no answer that was given; see NESSIE_TOKEN and its like")
        return decode_error(status, document, what)

    def _unreachable(self, error: requests.RequestException) -> StoreUnavailable:
        if _is_distrust(error):
            return StoreUnavailable(f"server {self.url}: its certificate is not accepted; give the CA's file if it is your own (NESSIE_CA_FILE)")
        if isinstance(error, requests.exceptions.SSLError):
            return StoreUnavailable(f"server {self.url}: no secure connection can be made; does it speak https, does it want a certificate?")
        if isinstance(error, requests.exceptions.ProxyError):
            return StoreUnavailable(f"server {self.url}: the proxy for it does not work; see HTTP_PROXY, HTTPS_PROXY and NO_PROXY")
        if isinstance(error, requests.Timeout):
            return StoreUnavailable(f"server {self.url}: no answer within {self._timeout[1]:g} seconds")
        return StoreUnavailable(f"server {self.url}: not reachable; is it running, and is the address right?")

    def _lost(self, request_id: str) -> OutcomeUnknown:
        return OutcomeUnknown(f"server {self.url}: the connection was lost before it answered; what was sent may have happened", request_id)


class _Busy(StoreUnavailable):
    """The server did nothing, and may say when to come again."""

    def __init__(self, message: str, retry_after: str | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after or ""


class _Auth(AuthBase):
    def __init__(self, authorization: Authorization | None) -> None:
        self._authorization = authorization

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._authorization is not None and (value := self._authorization()):
            request.headers["Authorization"] = value
        return request


def checked_url(url: str) -> str:
    """The address of an API, `/api/v2` where it names no path; raises `InvalidInput` for one that is none, or holds a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"server {_shown(url)}: write http(s)://host[:port]/api/v2")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"server {_shown(url)}: a URL must hold no user and no password; NESSIE_USERNAME and NESSIE_PASSWORD may")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") or "/api/v2", "", ""))


def _existing(path: Path | None, what: str) -> str | None:
    if path is None:
        return None
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file ({what})")
    return str(path)


def _encoded(body: Any) -> tuple[bytes | None, dict[str, str]]:
    if body is None:
        return None, {}
    data, headers = _encode(body), {"Content-Type": "application/json"}
    return (gzip.compress(data, 1), headers | {"Content-Encoding": "gzip"}) if len(data) >= COMPRESSED_FROM else (data, headers)


def _encode(body: Any) -> bytes:
    from msgspec import json

    try:
        return json.encode(body)
    except OverflowError:
        # Numbers of a content of an unknown type may be longer than 64 bits.
        from json import dumps

        return dumps(body, ensure_ascii=False).encode()


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except requests.JSONDecodeError:
        return None


def _pause(fault: NessieError, number: int) -> float:
    asked = fault.retry_after if isinstance(fault, _Busy) else ""
    if asked.isdigit():
        return min(float(asked), LONGEST_PAUSE)
    # Full jitter: many clients that were refused together do not come back together.
    return random.uniform(0, 0.1 * 2**number)  # noqa: S311 - no secret


def _never_sent(error: requests.ConnectionError) -> bool:
    """Whether the connection was refused or never made, so that the server saw nothing."""
    if isinstance(error, requests.ConnectTimeout | requests.exceptions.ProxyError) or _is_distrust(error):
        return True
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return type(reason).__name__ in ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")


def _is_distrust(error: requests.RequestException) -> bool:
    """Whether it ended with the certificate, before anything was sent."""
    return isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error)


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else url
