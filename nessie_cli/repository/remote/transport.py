"""Requests to a Nessie server. A request is repeated only if nothing can happen twice.

URLs and messages contain no secrets.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any, Protocol
from urllib.parse import quote

import requests
from requests.auth import AuthBase

from nessie_cli.errors import (
    InvalidInput,
    NessieError,
    NotAllowed,
    OutcomeUnknown,
    StoreNotFound,
    StoreUnavailable,
    WriteRefused,
)
from nessie_cli.repository.access import (
    Access,
    Basic,
    Bearer,
    OAuth2,
    checked_url,
    header_of,
    shown,
)
from nessie_cli.repository.remote.http import AnswerLimit, Http, HttpAnswer
from nessie_cli.repository.remote.unreachable import for_good, never_sent, unreachable
from nessie_cli.wire.answers import decode_error, understood
from nessie_cli.wire.extensions import HEADER, REQUEST_HEADER, VERSION

ATTEMPTS = 4
LONGEST_PAUSE = 5.0
"""The longest pause in seconds, even if `Retry-After` of a busy server is longer."""
COMPRESSED_FROM = 64 * 1024
"""Bodies of this many bytes and more are compressed."""
_TOO_MANY, _FAILED, _AWAY = 429, 500, 503
_GATEWAY = (502, 504)
"""A proxy has lost the server's answer."""
_PROXY_ASKS = 407

Query = Mapping[str, str | list[str] | None]


def segment(text: str) -> str:
    """Returns a segment of a path, percent-encoded, slashes too."""
    return quote(text, safe="")


class Lost(OutcomeUnknown):
    """The answer to a write was lost.

    `ended` is set if the server answered that the request failed, so that it does nothing more.
    """

    def __init__(self, message: str, request_id: str, *, ended: bool = False) -> None:
        super().__init__(message, request_id)
        self.ended = ended


class Transport:
    """Requests to one server, below its `/api/v2`. With `extensions`, a header requests them."""

    def __init__(self, url: str, access: Access | None = None, *, extensions: bool = True) -> None:
        access = access or Access()
        self.url = checked_url(url)
        self._timeout = access.timeout
        self._authorization = _authorization(access)
        self._http = Http(access)
        self._headers = {
            "Accept": "application/json",
            "Nessie-Client-Spec": "2",
            "User-Agent": "nessie-cli",
        }
        if extensions:
            self._headers[HEADER] = VERSION

    def get(self, path: str, query: Query | None = None) -> Any:
        """Returns the JSON of an answer. Repeats the request if the server is busy."""
        return self._retried("GET", path, query, None)

    def get_bytes(self, path: str, query: Query | None = None) -> bytes:
        """Returns the bytes of an answer that is not JSON. Repeats the request as `get` does."""
        content: bytes = self._retried("GET", path, query, None, is_json=False)
        return content

    def send(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        *,
        request_id: str = "",
        safe: bool = False,
    ) -> Any:
        """Returns the JSON of the answer to a write.

        Repeats it only if the server certainly did not begin it, or if repeating is `safe`. Raises
        `Lost` if it was sent and its outcome is unknown, and `WriteRefused` if the server refuses.
        """
        if safe:
            return self._retried(method, path, query, body)
        for number in range(ATTEMPTS):
            try:
                return self._once(method, path, query, body, request_id)
            except (_Busy, _NoJson, OSError) as error:
                fault = self._fault_before_write(error, request_id)
            except _Forbidden as error:
                raise WriteRefused(error.message, hint=error.hint) from None
            if number < ATTEMPTS - 1:
                time.sleep(_pause(fault, number))
        raise fault

    def _fault_before_write(self, error: Exception, request_id: str) -> NessieError:
        """Returns the fault of a write that the server did not begin and may take later.

        Raises `Lost` if it may have begun.
        """
        if isinstance(error, _Busy):
            if not error.sure:
                raise Lost(
                    f"{error.message}; what was sent may have happened", request_id
                ) from None
            return error
        if isinstance(error, AnswerLimit):
            # Repeated, the request would get the same answer.
            raise OutcomeUnknown(
                f"{self._unreachable(error).message}; what was sent may have happened", request_id
            ) from None
        if not isinstance(error, OSError) or (
            isinstance(error, requests.RequestException) and not never_sent(error)
        ):
            raise self._lost(request_id) from None
        if for_good(error):
            raise self._unreachable(error) from None
        return self._unreachable(error)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()
        if self._authorization is not None:
            self._authorization.close()

    def _retried(
        self, method: str, path: str, query: Query | None, body: Any, *, is_json: bool = True
    ) -> Any:
        for number in range(ATTEMPTS):
            try:
                return self._once(method, path, query, body, is_json=is_json)
            except OSError as error:
                fault: NessieError = self._unreachable(error)
                if for_good(error) or not isinstance(
                    error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError
                ):
                    raise fault from None
            except _Busy as busy:
                fault = busy
            except Lost as lost:
                fault = StoreUnavailable(
                    lost.message
                    if lost.ended
                    else f"server {self.url}: its proxy lost its answer; try again later"
                )
                if lost.ended:
                    raise fault from None
            if number < ATTEMPTS - 1:
                time.sleep(_pause(fault, number))
        raise fault

    def _once(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Any,
        request_id: str = "",
        *,
        is_json: bool = True,
    ) -> Any:
        answer = self._authorized(method, path, query, body, request_id, is_json=is_json)
        request, status = f"{method} {self.url}/{path}", answer.status_code
        if not is_json and status == requests.codes.ok:
            return answer.content
        document = _json(answer)
        if status < requests.codes.multiple_choices:
            if not answer.content:
                # Cut off within its head, an answer looks like one without a body. Every answer of
                # the API has one.
                raise requests.ConnectionError(f"{status} without a body")
            if document is None:
                raise _NoJson(
                    f"{request}: the answer is not JSON; is this the address of a Nessie server"
                    " (…/api/v2)?",
                    self.url,
                )
            return document
        if status in (_TOO_MANY, _AWAY):
            # That it has not begun, only the server itself can say: a proxy does not know.
            why = "too many requests" if status == _TOO_MANY else "it is busy or away"
            sure = status == _TOO_MANY or _is_nessie(document)
            raise _Busy(
                f"{request}: the server answered {status}, {why}; try again later",
                answer.headers.get("Retry-After"),
                sure=sure,
            )
        if status in _GATEWAY:
            raise self._lost(request_id)
        fault = self._fault(answer, document, request)
        if status >= _FAILED:
            raise Lost(
                f"{request}: the server has failed ({status}): {fault.message}",
                request_id,
                ended=_is_nessie(document),
            )
        raise fault

    def _authorized(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Any,
        request_id: str,
        *,
        is_json: bool,
    ) -> HttpAnswer:
        """Returns the answer.

        Repeats the request with a new token after a 401, because the server has not begun it.
        """
        params = {name: value for name, value in (query or {}).items() if value is not None}
        data, headers = _encoded(body)
        headers |= self._headers
        if request_id:
            headers[REQUEST_HEADER] = request_id
        for last in (False, True):
            auth = _Header(self._authorization.header()) if self._authorization else None
            answer = self._http.request(
                method,
                f"{self.url}/{path}",
                is_json=is_json,
                auth=auth,
                params=params,
                data=data,
                headers=headers,
            )
            denied = answer.status_code == requests.codes.unauthorized and auth is not None
            if (
                last
                or not denied
                or self._authorization is None
                or auth is None
                or not self._authorization.refused(auth.value)
            ):
                return answer
        raise AssertionError

    def _fault(self, answer: HttpAnswer, document: Any, request: str) -> NessieError:
        status = answer.status_code
        if status == requests.codes.unauthorized:
            if self._authorization is None:
                return NotAllowed(
                    f"server {self.url}: authentication required (401); set NESSIE_AUTH_TOKEN or"
                    " another credential, see nessie-access(7)"
                )
            return NotAllowed(
                f"server {self.url}: it does not take the token or password that was given (401);"
                " see nessie-access(7)"
            )
        if status == requests.codes.forbidden and not _is_nessie(document):
            return NotAllowed(f"{request}: the server does not allow this (403)")
        if status == _PROXY_ASKS:
            return StoreUnavailable(
                f"server {self.url}: its proxy requires authentication (407); HTTP_PROXY or"
                " NESSIE_PROXY may hold a name and password"
            )
        if status < requests.codes.bad_request:
            where = shown(answer.headers.get("Location", "")).removesuffix(
                f"/{request.partition(f'{self.url}/')[2]}"
            )
            return InvalidInput(
                f"server {self.url}: what answers there points elsewhere"
                f" ({status}){f': {where}' if where else ''}; use that address"
            )
        fault = understood(lambda: decode_error(status, document, request), "error")
        fault.message = fault.message or f"{request}: the server gives no reason ({status})"
        return _Forbidden(fault.message) if isinstance(fault, NotAllowed) else fault

    def _unreachable(self, error: OSError) -> StoreUnavailable:
        return unreachable(self.url, error, timeout=self._timeout)

    def _lost(self, request_id: str) -> Lost:
        return Lost(
            f"server {self.url}: the connection was lost before it answered; what was sent may"
            " have happened",
            request_id,
        )


class _Busy(StoreUnavailable):
    """The server is busy, and may say when to repeat the request.

    `sure` is set if the server itself says that it has not begun the request.
    """

    def __init__(self, message: str, retry_after: str | None, *, sure: bool) -> None:
        super().__init__(message)
        self.retry_after = retry_after or ""
        self.sure = sure


class _Forbidden(NotAllowed):
    """A refusal by the server itself, not by a proxy."""


class _NoJson(StoreNotFound):
    """A successful answer that is not JSON."""


class _Authorization(Protocol):
    """The source of the `Authorization` header of each request."""

    def header(self) -> str:
        """Returns the header of the next request."""

    def refused(self, header: str) -> bool:
        """Returns whether there is another header after the server refused one."""

    def close(self) -> None:
        """Closes connections."""


class _Configured:
    def __init__(self, credentials: Basic | Bearer) -> None:
        self._credentials = credentials

    def header(self) -> str:
        return header_of(self._credentials)

    def refused(self, header: str) -> bool:
        return self.header() != header

    def close(self) -> None:
        """Does nothing: no connection is open."""


def _authorization(access: Access) -> _Authorization | None:
    if isinstance(access.credentials, OAuth2):
        from nessie_cli.repository.remote.oauth import TokenSource

        return TokenSource(access.credentials, access)
    return _Configured(access.credentials) if access.credentials else None


class _Header(AuthBase):
    def __init__(self, value: str) -> None:
        self.value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self.value
        return request


def _encoded(body: Any) -> tuple[bytes | None, dict[str, str]]:
    if body is None:
        return None, {}
    data, headers = _encode(body), {"Content-Type": "application/json"}
    return (
        (gzip.compress(data, 1), headers | {"Content-Encoding": "gzip"})
        if len(data) >= COMPRESSED_FROM
        else (data, headers)
    )


def _encode(body: Any) -> bytes:
    from msgspec import json

    try:
        return json.encode(body)
    except OverflowError:
        # Numbers of a content of an unknown type may be longer than 64 bits.
        from json import dumps

        return dumps(body, ensure_ascii=False).encode()


def _json(answer: HttpAnswer) -> Any:
    """Returns the JSON of an answer, or None if it is empty or not JSON."""
    try:
        return answer.json() if answer.content else None
    except RecursionError:
        problem = "is nested too deeply"
    except (JSONDecodeError, UnicodeDecodeError):
        return None
    except ValueError:  # Python refuses to convert numbers of more than some thousand digits
        problem = "has a number of too many digits"
    raise AnswerLimit(f"the JSON of its answer {problem}")


def _is_nessie(document: Any) -> bool:
    """Returns whether an error's body is a Nessie server's own."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("errorCode"), str)
        and isinstance(document.get("message"), str)
    )


def _pause(fault: NessieError, number: int) -> float:
    asked = _seconds(fault.retry_after) if isinstance(fault, _Busy) else None
    if asked is not None:
        return max(0.0, min(asked, LONGEST_PAUSE))
    # Full jitter: clients that were refused at the same time do not return at the same time.
    return random.uniform(0, 0.1 * 2**number)  # noqa: S311 - no secret


def _seconds(retry_after: str) -> float | None:
    """Returns the seconds of `Retry-After`, a number or a date (RFC 9110, 10.2.3).

    None if it is neither.
    """
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
