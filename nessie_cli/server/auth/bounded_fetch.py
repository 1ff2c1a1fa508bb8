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
from typing import Any

from msgspec import DecodeError, json

from nessie_cli.errors import InvalidInput

MOST_BYTES = 1 << 20
"""The most bytes of a document."""
MOST_THREADS = 8
"""The most fetches without an answer that stay behind, each with a thread."""
_CHUNK = 64 << 10


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

        Raises `OSError` without an answer in time, `InvalidInput` for one that is not JSON, or too
        large.
        """
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= MOST_THREADS:
            raise TimeoutError(f"{MOST_THREADS} earlier requests have no answer yet")
        results: list[bytes | Exception] = []
        thread = threading.Thread(
            target=self._fetch, args=(url, results), name="fetch", daemon=True
        )
        self._threads.append(thread)
        thread.start()
        thread.join(self._seconds)
        if not results:
            raise TimeoutError(f"no answer within {self._seconds:g} seconds")
        [result] = results
        if isinstance(result, Exception):
            raise result
        return _parsed(result)

    def _fetch(self, url: str, results: list[bytes | Exception]) -> None:
        try:
            results.append(self._bytes(url))
        except urllib.error.HTTPError as error:
            error.close()
            results.append(InvalidInput(f"status {error.code}"))
        except (OSError, InvalidInput) as error:
            results.append(error)
        except (http.client.HTTPException, ValueError) as error:
            results.append(InvalidInput(f"not an answer of HTTP: {error}"))

    def _bytes(self, url: str) -> bytes:
        deadline = time.monotonic() + self._seconds
        opener = urllib.request.build_opener(_NoRedirect)
        data = b""
        with opener.open(url, timeout=self._seconds) as response:
            while chunk := response.read1(_CHUNK):
                data += chunk
                if len(data) > MOST_BYTES:
                    raise InvalidInput(f"the answer has more than {MOST_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no complete answer within {self._seconds:g} seconds")
        return data


def _parsed(data: bytes) -> Any:
    try:
        return json.decode(data)
    except (DecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
