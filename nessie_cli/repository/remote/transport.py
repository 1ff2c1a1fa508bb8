"""HTTP to a Nessie server: one session, errors as this package's, retries only where nothing can happen twice.

Secrets are given as an `Authorization` that is asked for its header at each request; they are in no URL and in no message.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import requests

from nessie_cli.errors import InvalidInput, OutcomeUnknown, StoreUnavailable
from nessie_cli.wire.answers import decode_error

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 60.0
RETRIES = 4
_RETRY_STATUS = (429, 502, 503, 504)

Authorization = Callable[[], str | None]
"""Answers the `Authorization` header of the next request, None for none."""

Query = Mapping[str, str | list[str] | None]


def segment(text: str) -> str:
    """One segment of a path, percent-encoded, slashes too."""
    return quote(text, safe="")


class Transport:
    """Requests to one server, below its `/api/v2`."""

    def __init__(self, url: str, authorization: Authorization | None = None, *, verify: bool | str = True, timeout: float = READ_TIMEOUT) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"server {_shown(url)}: write http(s)://host[:port]/api/v2")
        if parts.username or parts.password:
            raise InvalidInput(f"server {_shown(url)}: a URL must not hold a password; see nessie-stores(7) for where secrets belong")
        path = parts.path.rstrip("/")
        self.url = urlunsplit((parts.scheme, parts.netloc, path or "/api/v2", "", ""))
        self._authorization = authorization
        self._timeout = (CONNECT_TIMEOUT, timeout)
        self._session = requests.Session()
        self._session.verify = verify
        self._session.headers.update({"Accept": "application/json", "Nessie-Client-Spec": "2", "User-Agent": "nessie-cli"})

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
            return self._once(method, path, query, body)
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
            except requests.RequestException as error:
                fault: Exception = self._unreachable(error)
                if not isinstance(error, requests.ConnectionError | requests.Timeout):
                    raise fault from None
            except StoreUnavailable as error:
                fault = error
            if number < RETRIES - 1:
                # Full jitter: many clients that were refused together do not come back together.
                time.sleep(random.uniform(0, 0.1 * 2**number))  # noqa: S311 - no secret
        raise fault

    def _once(self, method: str, path: str, query: Query | None, body: Any) -> Any:
        headers = {}
        if self._authorization is not None and (value := self._authorization()):
            headers["Authorization"] = value
        params = {name: value for name, value in (query or {}).items() if value is not None}
        answer = self._session.request(
            method, f"{self.url}/{path}", params=params, json=body, headers=headers, timeout=self._timeout, allow_redirects=False
        )
        what = f"{method} {self.url}/{path.partition('?')[0]}"
        try:
            document = answer.json() if answer.content else None
        except requests.JSONDecodeError:
            document = None
        if answer.status_code in _RETRY_STATUS:
            raise StoreUnavailable(f"{what}: the server answered {answer.status_code}, it is busy or away; try again later")
        if not answer.ok:
            raise decode_error(answer.status_code, document, what)
        if document is None:
            raise StoreUnavailable(f"{what}: the answer is no JSON; is this the address of a Nessie server (…/api/v2)?")
        return document

    def _unreachable(self, error: requests.RequestException) -> StoreUnavailable:
        if isinstance(error, requests.exceptions.SSLError):
            return StoreUnavailable(f"server {self.url}: its certificate is not accepted; give the CA's file if it is your own")
        if isinstance(error, requests.Timeout):
            return StoreUnavailable(f"server {self.url}: no answer in time")
        return StoreUnavailable(f"server {self.url}: not reachable; is it running, and is the address right?")

    def _lost(self, request_id: str) -> OutcomeUnknown:
        return OutcomeUnknown(f"server {self.url}: the connection was lost before it answered; what was sent may have happened", request_id)


def _never_sent(error: requests.ConnectionError) -> bool:
    """Whether the connection was refused or never made, so that the server saw nothing."""
    if isinstance(error, requests.ConnectTimeout):
        return True
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return type(reason).__name__ in ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else url
