"""Starts and stops the server."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn
from msgspec import Struct

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed, StoreUnavailable
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.gate import Catalog, Hosts, Security, open_gate
from nessie_cli.server.auth.oidc import OidcLogin, OidcSettings
from nessie_cli.server.auth.sessions import Sessions
from nessie_cli.server.http.cookies import Cookie
from nessie_cli.server.http.messages import Limits
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.iceberg.errors import NoWarehouse
from nessie_cli.server.iceberg.errors import failure as iceberg_failure
from nessie_cli.server.nessie.dialect import nessie_dialect
from nessie_cli.server.nessie.extensions import EXTENSIONS
from nessie_cli.server.nessie.routes import ROUTES
from nessie_cli.server.nessie.rows import row_reads
from nessie_cli.server.nessie.runs import Runs
from nessie_cli.server.pages.dialect import pages_dialect
from nessie_cli.server.pages.endpoints import HOME_PAGE, Health, checks, pages
from nessie_cli.server.pages.login import LoginPages
from nessie_cli.server.pages.site import site
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts, Pipeline
from nessie_cli.server.pipeline.table import Endpoint, Match, RouteTable
from nessie_cli.server.runtime.memory import collect_rarely
from nessie_cli.server.runtime.metrics import Metrics
from nessie_cli.server.runtime.threads import Threads
from nessie_cli.server.runtime.tls import RenewedContext, Tls
from nessie_cli.server.runtime.watched_files import report_on_stderr
from nessie_cli.server.web_server import (
    configuration,
    managed,
    raise_file_limit,
    take_short_turns,
)
from nessie_cli.server.workers import (
    STOPPING,
    SharedLog,
    Workers,
    handled,
    listen,
    set_ready,
)


class ServerSettings(NamedTuple):
    """The settings of a server.

    Its address, limits, number of processes, authentication, TLS, names, the warehouses of its
    Iceberg REST catalog, the port that answers only health checks and metrics, if any, the URL
    under which browsers reach it, and the issuer at which people log in.
    """

    host: str = "127.0.0.1"
    port: int = 19120
    insecure: bool = False
    limits: Limits = Limits()
    workers: int = 1
    security: Security = Security()
    tls: Tls | None = None
    allowed_hosts: tuple[str, ...] = ()
    warehouses: Warehouses | None = None
    management_port: int | None = None
    public_url: str = ""
    oidc: OidcSettings | None = None

    @property
    def hosts(self) -> Hosts:
        """The names under which the server answers."""
        public = (urlsplit(self.public_url).hostname or "",) if self.public_url else ()
        if is_loopback(self.host):
            return Hosts((*self.allowed_hosts, *public, self.host))
        # With required tokens, a page cannot act for a user, under whatever name.
        every = (
            self.security.authenticates and not self.security.anonymous and not self.allowed_hosts
        )
        wildcard = self.host in ("", "0", "0.0.0.0", "::")  # noqa: S104 - compared, not listened on
        return Hosts(
            (*self.allowed_hosts, *public, *(() if wildcard else (self.host,))),
            addresses=not self.allowed_hosts,
            every=every,
        )


class Listeners(NamedTuple):
    """The callbacks of the running server.

    `started` is called with its URL, `log` with lines of its log: of every request, or with
    `faults` only of failures of the server.
    """

    started: Callable[[str], None]
    log: Callable[[bytes], object] | None = None
    faults: bool = False


def is_loopback(host: str) -> bool:
    """Returns whether an address is only reachable from this machine; of a name, all addresses."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        return host == "localhost"
    return bool(addresses) and all(
        ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
        for *_, address in addresses
    )


class Applications(NamedTuple):
    """The application of the server, and that of its management port."""

    main: Pipeline
    management: Pipeline


def application(repository: StoreRepository, parts: Parts | None = None) -> Pipeline:
    """Returns the ASGI application over a repository."""
    return applications(repository, parts or Parts()).main


def applications(repository: StoreRepository, parts: Parts) -> Applications:
    """Returns the ASGI applications over a repository, which share their threads."""
    parts = parts._replace(metrics=parts.metrics or Metrics())
    limits, default_branch = parts.limits, repository.config().default_branch
    if parts.gate is not None:
        parts.gate.runs = repository.runs
    threads = Threads(repository, limits)
    probes = checks(parts, Health(repository, default_branch, threads.checker), threads.meter)
    rows = row_reads(parts, threads)
    row_endpoints = () if rows is None else (rows.endpoint,)
    runs = Runs(repository.runs).endpoints
    endpoints = (*ROUTES, *EXTENSIONS, *runs, *row_endpoints, *pages(parts), *probes)
    catalog = Catalog(
        repository,
        default_branch,
        LogEntryCache(),
        filter_seconds=limits.filter_seconds,
        writer=threads.writer,
        reads_rows=rows is not None,
    )
    combinations = None
    if parts.warehouses is None:
        nessie = nessie_dialect(endpoints, limits.reads)
        iceberg = nessie._replace(match=_no_warehouse, failure=iceberg_failure)
    else:
        # Loading these modules takes up to a second.
        from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations
        from nessie_cli.server.iceberg.dialect import iceberg_dialect
        from nessie_cli.server.nessie.combination import TableCombinations

        combinations = TableCombinations(parts.warehouses, threads.bodies.files)
        nessie = nessie_dialect((*endpoints, *combinations.endpoints), limits.reads)
        catalog = catalog._replace(locations=RecordedLocations(parts.warehouses.all))
        iceberg = iceberg_dialect(parts.warehouses, parts.gate, threads, limits.reads)
    access = TableAccess(parts.warehouses, threads, rows)
    all_pages = site(access, combinations)
    logins = _login_pages(repository, parts, all_pages)
    web = pages_dialect(all_pages, limits.reads, logins)
    dialects = {"": nessie, "iceberg": iceberg}
    if parts.local is not None:
        # Other users of this machine can reach the port, so it has no APIs.
        only_home = RouteTable((HOME_PAGE,)).match
        dialects = {name: api._replace(match=only_home) for name, api in dialects.items()}
    health = nessie._replace(match=RouteTable(probes).match)
    # Its requests are not counted: it has another thread.
    management = parts._replace(log=None, hosts=Hosts(every=True), metrics=Metrics())
    return Applications(
        Pipeline(catalog, {**dialects, "ui": web}, threads, parts),
        Pipeline(catalog, {"": health}, threads, management),
    )


def _login_pages(
    repository: StoreRepository, parts: Parts, all_pages: Iterable[Endpoint]
) -> LoginPages | None:
    """Returns the pages of logins; None if everybody has access."""
    if parts.gate is None:
        return None
    if parts.local is not None:
        cookie = Cookie(parts.local.cookie, is_secure=False)
        sessions = Sessions(parts.local.sessions, parts.gate, cookie)
        return LoginPages(sessions, all_pages, parts.local.link)
    is_secure = parts.tls is not None or parts.public_url.startswith("https:")
    port = urlsplit(parts.public_url).port
    name = ("nessie" if is_secure else "nessie-session") + (f"-{port}" if port else "")
    # A proxy may send another port than that of the public URL.
    cookie = Cookie(name, is_secure, has_port=not parts.public_url)
    oidc = parts.oidc
    issuer, client = (oidc.issuer, oidc.client) if oidc else ("", "")
    sessions = Sessions(repository.sessions, parts.gate, cookie, issuer=issuer, client=client)
    return LoginPages(sessions, all_pages, oidc=oidc)


def _no_warehouse(*_: str) -> Match:
    raise NoWarehouse


def check_address(settings: ServerSettings) -> None:
    """Raises `NotAllowed` for a public address without authentication, unless it is intended."""
    if (
        settings.insecure
        or settings.allowed_hosts
        or settings.security.restricts_anonymous
        or is_loopback(settings.host)
    ):
        return
    raise NotAllowed(
        f"{settings.host}: other machines can reach this address, and callers need no credentials",
        hint=(
            "use --tokens FILE without --anonymous, or allow it with --allowed-host NAME or"
            " --insecure"
        ),
    )


def check_public_url(url: str) -> None:
    """Raises `InvalidInput` unless a URL names a scheme and a host, and optionally a port."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or url.rstrip("/") != f"{parts.scheme}://{parts.netloc}" or "@" in url:
        raise InvalidInput(
            f"--public-url {url!r} must be a scheme and a host, such as https://catalog.example.com"
        )


def cannot_listen(settings: ServerSettings) -> StoreUnavailable:
    """Returns the error for an address that cannot be used for listening."""
    return StoreUnavailable(
        f"cannot listen on {settings.host}:{settings.port}",
        hint="check that the port is free and that the address belongs to this machine",
    )


def url_of(address: tuple[Any, ...], *, tls: bool) -> str:
    """Returns the URL of a socket's address."""
    host, port = address[:2]
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    opened: Callable[[], StoreRepository], settings: ServerSettings, listeners: Listeners
) -> None:
    """Serves a repository until SIGTERM or SIGINT; finishes accepted requests.

    `opened` opens the repository, once in each process. Raises `NotAllowed` for a public address
    without authentication unless it is intended, `StoreUnavailable` for an address in use, and
    `InvalidInput` for several processes over a store in memory.
    """
    check_address(settings)
    if settings.public_url:
        check_public_url(settings.public_url)
    if settings.oidc is not None and not settings.public_url:
        raise InvalidInput("--oidc-client needs --public-url, to which the issuer sends browsers")
    if settings.security.authenticates and settings.tls is None and not is_loopback(settings.host):
        report_on_stderr(
            f"tokens for {settings.host} travel unencrypted; --tls-cert, or a proxy in front that"
            " speaks TLS, protects them"
        )
    if settings.workers > 1:
        _serve_together(opened, settings, listeners)
        return
    with opened() as repository, listening_sockets(settings) as sockets:
        work = ServerWorker(opened, settings, listeners, sockets)
        work.run(repository, parts_of(settings, listeners))


class Sockets(NamedTuple):
    """The listening sockets of the server, and of its management port."""

    main: list[socket.socket]
    management: list[socket.socket]


@contextmanager
def listening_sockets(settings: ServerSettings) -> Iterator[Sockets]:
    """Yields listening sockets. Raises `StoreUnavailable`."""
    with ExitStack() as closing:

        def listening(port: int) -> list[socket.socket]:
            try:
                sockets = listen(settings.host, port)
            except OSError:
                raise cannot_listen(settings._replace(port=port)) from None
            for listener in sockets:
                closing.enter_context(listener)
            return sockets

        management = settings.management_port
        yield Sockets(listening(settings.port), [] if management is None else listening(management))


def parts_of(settings: ServerSettings, listeners: Listeners) -> Parts:
    """Returns the parts of a server in this process."""
    gate = open_gate(settings.security)
    tls = RenewedContext(settings.tls) if settings.tls else None
    log = AccessLog(listeners.log, faults=listeners.faults) if listeners.log else None
    return Parts(
        settings.limits,
        log,
        gate,
        tls=tls,
        hosts=settings.hosts,
        warehouses=settings.warehouses,
        public_url=settings.public_url.rstrip("/"),
        oidc=_oidc_login(settings),
    )


def _oidc_login(settings: ServerSettings) -> OidcLogin | None:
    if settings.oidc is None:
        return None
    return OidcLogin(settings.oidc, settings.public_url.rstrip("/"), report_on_stderr)


def _serve_together(
    opened: Callable[[], StoreRepository], settings: ServerSettings, listeners: Listeners
) -> None:
    """Serves with `settings.workers` processes besides this one."""
    with opened() as repository:
        if repository.url == "memory:":
            raise InvalidInput(
                "a store in memory exists in one process only", hint="use one worker"
            )
        # Unusable files are reported here, once, and not by each worker.
        parts_of(settings, listeners._replace(log=None))
    # Each worker gets its share of the connections and of the waiting writes.
    each = settings._replace(limits=settings.limits.shared_by(settings.workers))
    with (
        listening_sockets(settings) as sockets,
        tempfile.TemporaryDirectory(prefix="nessie-serve-", ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        log = listeners.log and SharedLog(listeners.log, folder)
        work = ServerWorker(opened, each, listeners._replace(log=log), sockets, folder)
        Workers(
            work,
            settings.workers,
            folder,
            started=lambda: listeners.started(work.url),
            log=log,
        ).run([*sockets.main, *sockets.management])


class ServerWorker(Struct, frozen=True):
    """The work of a process that answers requests.

    `folder` is shared by all of them, if there are several.
    """

    opened: Callable[[], StoreRepository]
    settings: ServerSettings
    listeners: Listeners
    sockets: Sockets
    folder: Path | None = None

    def __call__(self) -> None:
        """Opens the repository, and answers requests until a signal."""
        assert self.folder is not None
        parent = os.getppid()
        try:
            with self.opened() as repository:
                parts = parts_of(self.settings, self.listeners)
                self.run(repository, parts._replace(metrics=Metrics(self.folder)))
        except NessieError as error:
            # An invalid file, or a store that is away: the supervisor tries again.
            report_on_stderr(error.message)
            raise SystemExit(1) from None
        if os.getppid() != parent:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(
        self,
        repository: StoreRepository,
        parts: Parts,
        stopping: Sequence[signal.Signals] = STOPPING,
    ) -> None:
        """Answers requests until one of the signals."""
        raise_file_limit()
        take_short_turns()
        apps = applications(repository, parts._replace(started=self._started))
        collect_rarely()
        server = uvicorn.Server(configuration(apps.main))

        def stop(*_: object) -> None:
            server.should_exit = True

        with managed(apps.management, self.sockets.management), handled(stopping, stop):
            server.run(self.sockets.main)

    def _started(self) -> None:
        if self.folder is None:
            self.listeners.started(self.url)
        else:
            set_ready(self.folder)

    @property
    def url(self) -> str:
        """The URL of the server."""
        address = self.sockets.main[0].getsockname()
        return url_of(address, tls=self.settings.tls is not None)
