"""Fetches a small JSON document within a limited time, whatever its server does.

A server can send a byte now and then, so a timeout of the socket is not enough. The fetch runs on a
thread of its own, which does not keep the process from ending.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import DecodeError, json

from nessie_cli.errors import InvalidInput

MOST_BYTES = 1 << 20
"""The most bytes of a document."""
MOST_THREADS = 8
"""The most fetches without an answer that stay behind, each with a thread."""
_CHUNK = 64 << 10
_OK, _REDIRECTED = 200, 300
_NO_HEADERS: Mapping[str, str] = {}


class FetchAnswer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follows no redirect: the user has not named its target."""


class BoundedFetch:
    """Fetches documents, each within `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads: list[threading.Thread] = []

    def json(self, url: str) -> Any:
        """Returns the JSON value at a URL.

        Raises the errors of `send`, and `InvalidInput` for an answer that is not JSON.
        """
        answer = self.send(url)
        if not _OK <= answer.status < _REDIRECTED:
            raise InvalidInput(f"status {answer.status}")
        return _parsed(answer.body)

    def send(
        self, url: str, form: bytes | None = None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> FetchAnswer:
        """Returns the answer of a URL, also one of an error. A `form` is posted.

        Raises `OSError` without an answer in time, and `InvalidInput` for one that is too large.
        """
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= MOST_THREADS:
            raise TimeoutError(f"{MOST_THREADS} earlier requests have no answer yet")
        results: list[FetchAnswer | Exception] = []
        thread = threading.Thread(
            target=self._fetch, args=(results, url, form, headers), name="fetch", daemon=True
        )
        self._threads.append(thread)
        thread.start()
        thread.join(self._seconds)
        if not results:
            raise TimeoutError(f"no answer within {self._seconds:g} seconds")
        [result] = results
        if isinstance(result, Exception):
            raise result
        return result

    def _fetch(
        self,
        results: list[FetchAnswer | Exception],
        url: str,
        form: bytes | None,
        headers: Mapping[str, str],
    ) -> None:
        try:
            results.append(self._answer(url, form, headers))
        except (OSError, InvalidInput) as error:
            results.append(error)
        except (http.client.HTTPException, ValueError) as error:
            results.append(InvalidInput(f"not an answer of HTTP: {error}"))

    def _answer(self, url: str, form: bytes | None, headers: Mapping[str, str]) -> FetchAnswer:
        deadline = time.monotonic() + self._seconds
        opener = urllib.request.build_opener(_NoRedirect)
        opener.addheaders += headers.items()
        data = b""
        try:
            response = opener.open(url, form, timeout=self._seconds)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            while chunk := response.read1(_CHUNK):
                data += chunk
                if len(data) > MOST_BYTES:
                    raise InvalidInput(f"the answer has more than {MOST_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no complete answer within {self._seconds:g} seconds")
            return FetchAnswer(response.status, data)


def _parsed(data: bytes) -> Any:
    try:
        return json.decode(data)
    except (DecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
