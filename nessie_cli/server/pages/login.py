"""Logging in and out: the pages, and how a request of a browser is admitted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.gate import Admission
from nessie_cli.server.auth.identity import Unauthenticated
from nessie_cli.server.auth.local import OneTimeLink
from nessie_cli.server.auth.oidc import LOGIN_SECONDS, OidcLogin
from nessie_cli.server.auth.sessions import NewSession, Sessions
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import Headers, Reply, header
from nessie_cli.server.pages.call import LoginState, PageCall
from nessie_cli.server.pages.html import SAFETY, redirect
from nessie_cli.server.pages.urls import HOME, ROOT, page_url
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.table import FORM, Endpoint, NoRoute, RouteTable
from nessie_cli.server.runtime.thread_pool import ThreadPool

_SAFE = frozenset({"GET", "HEAD"})
_MOST_FIELDS = 100
_UNAUTHORIZED = 401
_LONGEST_NEXT = 1500
"""The longest address in the cookie of a login. Browsers drop cookies of over 4096 bytes."""
_ISSUER_THREADS, _MOST_WAITING = 4, 100
"""Threads that wait for the issuer, and the most logins that wait for one of them."""


class LoginRequired(Unauthenticated):
    """A page needs a login: there is no session, or it has ended."""

    def __init__(self) -> None:
        super().__init__("Log in to see this page")


class LoginPages:
    """The pages of logins, and the sessions of all others. `pages` are those to return to."""

    def __init__(
        self,
        sessions: Sessions,
        pages: Iterable[Endpoint],
        link: OneTimeLink | None = None,
        oidc: OidcLogin | None = None,
    ) -> None:
        self._sessions = sessions
        self._gate, self._cookie = sessions.gate, sessions.cookie
        self._pages = RouteTable(pages)
        self._link = link
        self._oidc = oidc
        cookie = self._cookie
        self._pending = cookie._replace(name=f"{cookie.name}-login")
        self.pools: tuple[ThreadPool, ...] = ()
        """The threads that wait for the issuer, if there is one."""
        if oidc is not None:
            self.pools = (ThreadPool(_ISSUER_THREADS, name="login", most_waiting=_MOST_WAITING),)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The pages and forms of logins."""
        issuer = (
            (
                _open("GET", "login/issuer", self.go_to_issuer),
                _open("GET", "login/callback", self.come_from_issuer, hides_query=True),
            )
            if self._oidc
            else ()
        )
        local = (_open("GET", "start", self.start, hides_query=True),) if self._link else ()
        return (
            _open("GET", "login", self.form),
            _open("POST", "login", self.log_in),
            _open("POST", "logout", self.log_out),
            *local,
            *issuer,
        )

    @property
    def is_possible(self) -> bool:
        """Whether callers can log in."""
        return self._gate.knows_tokens or self._oidc is not None

    # -- the requests of all pages -----------------------------------------------------------------
    async def admit(self, readers: ThreadPool, headers: Headers) -> Admission:
        """Returns the admission of a request, by its header `Authorization` or its session.

        The store is read on one of the `readers`. Raises `LoginRequired`, and `Unauthenticated` for
        wrong credentials.
        """
        id_ = self._cookie.read(headers)
        if header(headers, b"authorization").strip() or not self.is_possible:
            return await self._gate.admit(headers)
        if not id_:
            if not self._gate.anonymous:
                raise LoginRequired
            return await self._gate.admit(headers)
        admission = await readers.submit(partial(self._sessions.admission, id_))
        if admission is None:
            raise LoginRequired
        return admission

    def state(self, exchange: Exchange) -> LoginState:
        """Returns what a page shows about the login of its caller."""
        return LoginState(exchange.session_ends, self.is_possible)

    def refusal(self, exchange: Exchange) -> Reply:
        """Returns the answer that leads to the login page, and back to the page afterwards.

        It removes the cookie of a session that has ended. The login page looks for none: it is
        there while the store does not answer. htmx would put that page into a part of another one,
        so a header tells it to load the page.
        """
        login = page_url("login", next=self._next_page(exchange))
        if header(exchange.headers, b"hx-request") != b"true":
            reply = redirect(login)
        else:
            challenge = (b"www-authenticate", LoginRequired().challenge)
            reply = Reply(_UNAUTHORIZED, [(b"hx-redirect", login.encode()), challenge, *SAFETY])
        if self._cookie.read(exchange.headers):
            return reply._replace(headers=[*reply.headers, self._cookie.clear(exchange.headers)])
        return reply

    def _next_page(self, exchange: Exchange) -> str:
        """Returns the page that a request asks for, or for a form the page that has it."""
        if exchange.method in _SAFE:
            query = exchange.scope["query_string"].decode("latin-1")
            return self._known(f"{exchange.path}?{query}")
        try:
            parts = urlsplit(header(exchange.headers, b"referer").decode("latin-1"))
        except ValueError:
            return ""
        is_own = parts.netloc == header(exchange.headers, b"host").decode("latin-1")
        return self._known(f"{parts.path}?{parts.query}") if is_own else ""

    def _known(self, url: str) -> str:
        """Returns the address of a page of this server, or an empty text for any other one.

        The path is that of the table of pages, and the query is encoded again, so that nothing of
        `url` can lead elsewhere.
        """
        path, _, query = url.partition("?")
        try:
            endpoint = self._pages.match("GET", path).endpoint
            fields = parse_qsl(query, max_num_fields=_MOST_FIELDS)
        except (NoRoute, InvalidInput, ValueError):
            return ""
        if endpoint.is_open or (endpoint.path == HOME and not fields):
            return ""
        return endpoint.path + (f"?{urlencode(fields)}" if fields else "")

    # -- the pages ---------------------------------------------------------------------------------
    async def form(self, call: PageCall) -> Reply:
        """`GET /ui/login`: the ways to log in."""
        return self._page(call, self._known(call.text("next") or ""))

    def log_in(self, call: PageCall) -> Reply:
        """`POST /ui/login`: begins the session of a token."""
        next_page = self._known(call.field("next"))
        try:
            session = self._sessions.log_in(call.field("token"), self._previous(call))
        except Unauthenticated as error:
            reply = self._page(call, next_page, error.message)
            headers = [*reply.headers, (b"www-authenticate", error.challenge)]
            return reply._replace(status=_UNAUTHORIZED, headers=headers)
        return self._begun(call, session, next_page)

    def log_out(self, call: PageCall) -> Reply:
        """`POST /ui/logout`: ends the session."""
        self._sessions.end(self._previous(call))
        reply = redirect(HOME if self._gate.anonymous else page_url("login"))
        return reply._replace(headers=[*reply.headers, self._cookie.clear(call.all_headers)])

    def start(self, call: PageCall) -> Reply:
        """`GET /ui/start`: the one-time link of `nessie ui`. Its session ends with the browser."""
        assert self._link is not None
        if call.is_head:
            # A preview of the link must not use it up.
            raise HttpFault(405, "This link takes GET, not HEAD")
        token = self._link.use(call.text("token") or "")
        session = self._sessions.log_in(token, self._previous(call))
        return self._with_cookie(call, redirect(HOME), session.id, None)

    async def go_to_issuer(self, call: PageCall) -> Reply:
        """`GET /ui/login/issuer`: leads to the login of the issuer.

        This is a link, because the policy of the pages lets no form lead to another site.
        """
        assert self._oidc is not None
        next_page = self._known(call.text("next") or "")
        if len(next_page) > _LONGEST_NEXT:
            next_page = ""
        url, cookie = await self.pools[0].submit(partial(self._oidc.begin, next_page))
        reply = redirect(url)
        pending = self._pending.set(call.all_headers, cookie, LOGIN_SECONDS)
        return reply._replace(headers=[*reply.headers, pending])

    async def come_from_issuer(self, call: PageCall) -> Reply:
        """`GET /ui/login/callback`: begins the session of the caller whom the issuer names."""
        oidc, sessions = self._oidc, self._sessions
        assert oidc is not None
        pending = self._pending.read(call.all_headers)
        cleared = self._pending.clear(call.all_headers)
        query = {name: call.text(name) or "" for name in call.parameters}
        previous = self._previous(call)

        def finish() -> tuple[NewSession, str]:
            login = oidc.finish(pending, query)
            session = sessions.log_in_by_issuer(login.caller, login.expires, previous)
            return session, self._known(login.next)

        try:
            session, next_page = await self.pools[0].submit(finish)
        except Unauthenticated as error:
            reply = self._page(call, "", error.message)._replace(status=_UNAUTHORIZED)
            challenge = (b"www-authenticate", error.challenge)
            return reply._replace(headers=[*reply.headers, challenge, cleared])
        reply = self._begun(call, session, next_page)
        return reply._replace(headers=[*reply.headers, cleared])

    def _previous(self, call: PageCall) -> str:
        return self._cookie.read(call.all_headers)

    def _page(self, call: PageCall, next_page: str, refusal: str = "") -> Reply:
        values: dict[str, Any] = {
            "next": next_page,
            "back": next_page or HOME,
            "refusal": refusal,
            "takes_tokens": self._gate.knows_tokens and self._link is None,
            "needs_link": self._link is not None,
            "issuer": urlsplit(self._oidc.issuer).netloc if self._oidc else "",
            "is_optional": self._gate.anonymous,
        }
        return call.page("login.html", "Log in", **values)

    def _begun(self, call: PageCall, session: NewSession, next_page: str) -> Reply:
        reply = redirect(next_page or HOME)
        return self._with_cookie(call, reply, session.id, session.seconds)

    def _with_cookie(self, call: PageCall, reply: Reply, id_: str, seconds: int | None) -> Reply:
        cookie = self._cookie.set(call.all_headers, id_, seconds)
        return reply._replace(headers=[*reply.headers, cookie])


def _open(method: str, path: str, handler: Any, *, hides_query: bool = False) -> Endpoint:
    """Returns an endpoint that needs no credentials. It reads the store on a reading thread."""
    return Endpoint(
        method,
        f"{ROOT}/{path}",
        handler,
        body=FORM if method == "POST" else "",
        is_open=True,
        is_page=True,
        hides_query=hides_query,
    )
