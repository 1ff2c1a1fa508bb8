"""The login of `nessie ui`: one user on this machine, who opens a link that works once."""

from __future__ import annotations

import hmac
import secrets
import threading
from typing import NamedTuple

from nessie_cli.repository.sessions import MemorySessions
from nessie_cli.server.http.failures import HttpFault

_USED = "This link is wrong or was used before. To open the pages again, restart `nessie ui`"


class OneTimeLink:
    """A secret link, and the token of the user whom it logs in. The token is in no link."""

    def __init__(self, token: str) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._token = token
        self._is_used = False
        self._lock = threading.Lock()

    def use(self, secret: str) -> str:
        """Returns the token, once. Raises `HttpFault` for a wrong or used secret."""
        is_right = hmac.compare_digest(secret.encode(), self.secret.encode())
        with self._lock:
            if self._is_used or not is_right:
                raise HttpFault(403, _USED, "FORBIDDEN")
            self._is_used = True
        return self._token


class LocalLogin(NamedTuple):
    """The login of one user. The sessions end with the process.

    Browsers send a cookie to all ports of this machine, so each start has a `cookie` of its own.
    """

    link: OneTimeLink
    sessions: MemorySessions
    cookie: str


def local_login(token: str) -> LocalLogin:
    """Returns the login of the user with a token."""
    return LocalLogin(OneTimeLink(token), MemorySessions(), f"nessie-ui-{secrets.token_hex(4)}")
