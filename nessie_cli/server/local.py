"""`nessie ui`: the pages on this machine, for one user and without the APIs.

The user has a token in a file that only this process reads. A link logs the user in, once. It is in
a file that only the user can read, because other users see the command line of a browser.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import NamedTuple

from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.gate import Security
from nessie_cli.server.auth.local import OneTimeLink, local_login
from nessie_cli.server.auth.tokens import add_token
from nessie_cli.server.pages.urls import page_url
from nessie_cli.server.running import (
    Listeners,
    ServerSettings,
    ServerWorker,
    listening_sockets,
    parts_of,
)
from nessie_cli.server.workers import STOPPING

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>nessie</title>
</head>
<body><p><a href="{link}">Open nessie</a></p></body>
</html>
"""


class LocalPages(NamedTuple):
    """The running pages: their address, the link that works once, and the file that leads to it."""

    address: str
    link: str
    file: str


def serve_locally(
    opened: Callable[[], StoreRepository],
    settings: ServerSettings,
    author: str,
    started: Callable[[LocalPages], None],
    log_fault: Callable[[bytes], object],
) -> None:
    """Serves the pages of a repository until SIGTERM, SIGINT or SIGHUP.

    The caller of all changes is `author`. `started` is called once the pages are ready. Raises
    `InvalidInput` for an author that cannot be the name of a caller, and `StoreUnavailable` for a
    port in use.
    """
    with tempfile.TemporaryDirectory(prefix="nessie-ui-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        token, _ = add_token(folder / "tokens", author, (), None, datetime.now(UTC))
        login = local_login(token)
        settings = settings._replace(security=Security(tokens=folder / "tokens"))

        def ready(address: str) -> None:
            started(_pages(address, login.link, folder))

        listeners = Listeners(ready, log_fault, faults=True)
        with opened() as repository, listening_sockets(settings) as sockets:
            parts = parts_of(settings, listeners)._replace(local=login)
            worker = ServerWorker(opened, settings, listeners, sockets)
            worker.run(repository, parts, stopping=(*STOPPING, signal.SIGHUP))


def _pages(address: str, link: OneTimeLink, folder: Path) -> LocalPages:
    """Writes the file that leads a browser to the link."""
    url = address + page_url("start", token=link.secret)
    file = folder / "nessie.html"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as page:
        page.write(_PAGE.format(link=escape(url)))
    return LocalPages(address, url, str(file))
