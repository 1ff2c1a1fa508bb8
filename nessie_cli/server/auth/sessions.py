"""The sessions of browsers: a cookie holds a random id, the store has its meaning.

A session is bound to the token with which it began. It is compared with the token file at each
request, so it ends with the token, and its roles are those of the file. The store has only the
SHA-256 of the id. Only pages accept sessions.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import MsgspecError, Struct, json

from nessie_cli.errors import StoreUnavailable
from nessie_cli.repository.sessions import SessionTable, StoredSession
from nessie_cli.server.auth.gate import Admission, Gate
from nessie_cli.server.auth.identity import Caller, Credentials
from nessie_cli.server.http.cookies import Cookie

IDLE = 12 * 3600
"""Seconds without a request after which a session ends."""
LONGEST = 7 * 24 * 3600
"""Seconds after the login at which a session ends at the latest."""
MOST_SESSIONS = 20
"""The most sessions of a token, or of a caller of an issuer. A further login ends one."""
EXTENDED_AFTER = 300
"""Seconds of use after which the store gets the new end of a session."""
_ID = re.compile(r"[A-Za-z0-9_-]{43}")


class TokenLogin(Struct, frozen=True, tag="token"):
    """A login by a token of the token file: its id and the hash of its secret."""

    id: str
    hash: str
    until: int
    """The second at which the session ends at the latest."""

    @property
    def owner(self) -> Hashable:
        """The token, which has a limited number of sessions."""
        return self.id, self.hash


class IssuerLogin(Struct, frozen=True, tag="issuer"):
    """A login at an issuer: who it is by the ID token, which `client` got from `issuer`."""

    issuer: str
    client: str
    name: str
    roles: tuple[str, ...]
    until: int

    @property
    def owner(self) -> Hashable:
        """The caller, who has a limited number of sessions."""
        return self.issuer, self.client, self.name


Login = TokenLogin | IssuerLogin
_encode, _decode = json.Encoder().encode, json.Decoder(Login).decode


class NewSession(NamedTuple):
    """A session that has begun: the id for the cookie, and the seconds until it ends at latest."""

    id: str
    seconds: int


class Sessions:
    """The sessions in a table. `issuer` and `client` name those whose logins are valid.

    All methods but `admit` may wait for the store, so they must not run on the event loop.
    """

    def __init__(
        self,
        table: SessionTable,
        gate: Gate,
        cookie: Cookie,
        *,
        issuer: str = "",
        client: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.gate, self.cookie = gate, cookie
        self._table = table
        self._issuer, self._client = issuer, client
        self._clock = clock

    def log_in(self, token: str, previous: str) -> NewSession:
        """Begins the session of a token. Raises `Unauthenticated`. See `begin`."""
        entry = self.gate.token_entry(Credentials(token))
        until = int(self._clock()) + LONGEST
        if entry.expires is not None:
            until = min(until, int(entry.expires.timestamp()))
        return self.begin(TokenLogin(entry.id, entry.hash, until), previous)

    def log_in_by_issuer(self, caller: Caller, expires: int, previous: str) -> NewSession:
        """Begins the session of a caller whose ID token expires at a second. See `begin`."""
        until = min(int(self._clock()) + LONGEST, expires)
        login = IssuerLogin(self._issuer, self._client, caller.name, caller.roles, until)
        return self.begin(login, previous)

    def begin(self, login: Login, previous: str) -> NewSession:
        """Begins a session with a new id, and deletes the browser's previous one.

        Removes ended sessions as well, and of the owner's sessions those used longest ago if they
        are too many. Raises `StoreUnavailable`.
        """
        now = int(self._clock())
        self._table.expire(now)
        if previous:
            self.end(previous)
        self._make_room(login.owner)
        id_ = secrets.token_urlsafe(32)
        ends = min(now + IDLE, login.until)
        self._table.put(StoredSession(_digest(id_), _encode(login), ends))
        return NewSession(id_, max(1, login.until - now))

    def admission(self, id_: str) -> Admission | None:
        """Returns the admission of a session as its token is now, or None if it has ended."""
        if not _ID.fullmatch(id_):
            return None
        now = int(self._clock())
        stored = self._table.get(_digest(id_))
        if stored is None or stored.ends <= now:
            return None
        login = _login_of(stored)
        caller = None if login is None else self._caller(login)
        if login is None or caller is None or login.until <= now:
            return None
        ends = min(now + IDLE, login.until)
        if ends - stored.ends >= EXTENDED_AFTER:
            # If the store cannot be written now, a later request extends the session.
            with suppress(StoreUnavailable):
                self._table.extend(stored.id, ends)
        return self.gate.admission(caller)._replace(session_ends=datetime.fromtimestamp(ends, UTC))

    def end(self, id_: str) -> None:
        """Ends a session."""
        if _ID.fullmatch(id_):
            self._table.delete(_digest(id_))

    def _make_room(self, owner: Hashable) -> None:
        """Deletes sessions of an owner, so that there is room for one more."""
        own = [
            session
            for session in self._table.all()
            if (login := _login_of(session)) is not None and login.owner == owner
        ]
        # Every use moves the end.
        own.sort(key=lambda session: session.ends, reverse=True)
        for session in own[MOST_SESSIONS - 1 :]:
            self._table.delete(session.id)

    def _caller(self, login: Login) -> Caller | None:
        if isinstance(login, TokenLogin):
            return self.gate.caller_of_entry(login.id, login.hash)
        if self._issuer and (login.issuer, login.client) == (self._issuer, self._client):
            return Caller(login.name, login.roles)
        return None


def _login_of(session: StoredSession) -> Login | None:
    """Returns the login of a session, or None if its row is damaged."""
    try:
        return _decode(session.data)
    except MsgspecError:
        return None


def _digest(id_: str) -> bytes:
    return hashlib.sha256(id_.encode("ascii")).digest()
