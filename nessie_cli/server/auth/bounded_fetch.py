"""Fetches a small document within a limited time, whatever its server does.

A server can send a byte now and then, so a timeout of the socket is not enough. The fetch runs on a
thread of its own, which does not keep the process from ending.
"""

from __future__ import annotations

import http.client
import threading
import time
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
_SUCCESS = range(200, 300)
_NO_HEADERS: Mapping[str, str] = {}


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Returns every answer. It follows no redirect: the user has not named its target."""

    def http_response(self, _: urllib.request.Request, response: Any) -> Any:
        return response

    def https_response(self, _: urllib.request.Request, response: Any) -> Any:
        return response


class Answer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes


class BoundedFetch:
    """Fetches documents, each within `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads: list[threading.Thread] = []

    def json(self, url: str) -> Any:
        """Returns the JSON value at a URL.

        Raises `OSError` without an answer in time, `InvalidInput` for one that is not JSON, or too
        large.
        """
        answer = self._answer(url)
        if answer.status not in _SUCCESS:
            raise InvalidInput(f"status {answer.status}")
        return _parsed(answer.body)

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Sends a body to a URL, and returns the answer, whatever its status is.

        Raises `OSError` without an answer in time, `InvalidInput` for one that is too large.
        """
        return self._answer(url, headers, body)

    def _answer(
        self, url: str, headers: Mapping[str, str] = _NO_HEADERS, body: bytes | None = None
    ) -> Answer:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= MOST_THREADS:
            raise TimeoutError(f"{MOST_THREADS} earlier requests have no answer yet")
        results: list[Answer | Exception] = []
        thread = threading.Thread(
            target=self._fetch, args=(results, url, headers, body), name="fetch", daemon=True
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
        results: list[Answer | Exception],
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> None:
        try:
            results.append(self._read(url, headers, body))
        except (OSError, InvalidInput) as error:
            results.append(error)
        except (http.client.HTTPException, ValueError) as error:
            results.append(InvalidInput(f"not an answer of HTTP: {error}"))

    def _read(self, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        deadline = time.monotonic() + self._seconds
        opener = urllib.request.build_opener(_AnyStatus)
        opener.addheaders = [*headers.items()]
        data = b""
        with opener.open(url, body, timeout=self._seconds) as response:
            while chunk := response.read1(_CHUNK):
                data += chunk
                if len(data) > MOST_BYTES:
                    raise InvalidInput(f"the answer has more than {MOST_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no complete answer within {self._seconds:g} seconds")
            return Answer(response.status, data)


def _parsed(data: bytes) -> Any:
    try:
        return json.decode(data)
    except (DecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
