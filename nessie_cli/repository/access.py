"""How a server is reached and who asks it: what `connect` takes for an `http(s)://` URL, without the libraries that use it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Authorization = Callable[[], str | None]
"""Answers the `Authorization` header of the next request to a server, None for none."""

TIMEOUT = 60.0


class Access(NamedTuple):
    """How a server is reached. `ca` is a file of certificates to trust instead of the system's, `certificate` and `key` are the client's own.

    `timeout` is in seconds, for each answer to begin.
    """

    authorization: Authorization | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    timeout: float = TIMEOUT
