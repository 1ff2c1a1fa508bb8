"""The gate of the server: which requests it takes, and what their callers may access.

It authenticates callers and opens the catalog for them (`Gate`). It protects from web pages by the
host name and the origin of a request (`Hosts`). Each process that answers requests has its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from nessie_cli.errors import InvalidInput
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.runs import RunRecords, RunToken, find_token, is_run_token
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.identity import (
    ANONYMOUS,
    Caller,
    Credentials,
    Unauthenticated,
    credentials,
)
from nessie_cli.server.auth.issuer import LEEWAY, JwtSettings, TokenVerifier
from nessie_cli.server.auth.policy import Policy
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import Rules, read_rules
from nessie_cli.server.auth.run_credentials import (
    credential_of_entry,
    credential_of_issuer,
    entry_of,
    issuer_credential,
)
from nessie_cli.server.auth.run_rules import RunRules, caller_of_run
from nessie_cli.server.auth.tokens import FILE_KIND, TokenEntry, is_ours, read_tokens
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import Headers, header
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.runtime.thread_pool import ThreadPool, Writer
from nessie_cli.server.runtime.watched_files import (
    SECRET,
    TRUSTED,
    Report,
    WatchedFile,
    report_on_stderr,
)

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations
    from nessie_cli.server.auth.policy import Policy

VERIFIERS, MOST_UNVERIFIED = 4, 1000
"""The threads that verify tokens, and the most tokens that wait for them."""
_V1 = b"/api/v1"
_WHO = "Authentication is required: send a bearer token in the header Authorization"
_WRONG = "The token is not valid: it is unknown, has expired, or has been withdrawn"


class CallerAccess(NamedTuple):
    """The repository for one caller: for reading, for drafting, and the policy of its writes.

    Without a policy everything is allowed. `caller` is the authenticated name: empty for a
    request without credentials, None if the server has no authentication. `credential` is that of
    the request, as the record of a run names it.
    """

    reading: ReadableRepository
    drafting: StoreRepository
    policy: Policy | None = None
    caller: str | None = None
    credential: str = ""


def full_access(repository: StoreRepository) -> CallerAccess:
    """Returns the access of a caller who may do everything."""
    return CallerAccess(repository, repository)


class Catalog(NamedTuple):
    """The catalog that is served.

    It has the repository, its default branch (which never changes), a cache of encoded entries, and
    a function that opens the access of a caller. A filter gets `filter_seconds` of processor time
    per page. `locations` are the warehouses in which callers need a right to choose locations.
    `writer` commits the changes of requests that write files. `reads_rows` says whether the server
    reads the changed rows of tables.
    """

    repository: StoreRepository
    default_branch: str
    log_entry_cache: LogEntryCache
    open: Callable[[StoreRepository], CallerAccess] = full_access
    filter_seconds: float = 10.0
    locations: RecordedLocations | None = None
    writer: Writer | None = None
    reads_rows: bool = False


class Security(NamedTuple):
    """The settings of authentication and authorization; plain values for several processes.

    `tokens` is a file of hashed tokens, `jwt` names the issuer of accepted JSON Web Tokens, `rules`
    is a file of authorization rules. `anonymous` allows requests without credentials,
    `open_metrics` answers `/q/metrics` without them. `runs_only` accepts the tokens of runs alone.
    """

    tokens: Path | None = None
    rules: Path | None = None
    anonymous: bool = False
    open_metrics: bool = False
    jwt: JwtSettings | None = None
    runs_only: bool = False

    @property
    def authenticates(self) -> bool:
        """Whether callers can authenticate."""
        return self.tokens is not None or self.jwt is not None or self.runs_only

    @property
    def is_enabled(self) -> bool:
        """Whether any setting restricts callers."""
        return self.authenticates or self.rules is not None

    @property
    def restricts_anonymous(self) -> bool:
        """Whether rules or required credentials restrict anonymous callers."""
        return self.is_enabled and (self.rules is not None or not self.anonymous)

    def check(self) -> None:
        """Raises `InvalidInput` for settings that contradict each other."""
        if self.rules is not None and not self.authenticates and not self.anonymous:
            raise InvalidInput(
                "--rules requires authentication",
                hint=(
                    "identify callers with --tokens or"
                    " --jwt-issuer, or allow anonymous callers with --anonymous"
                ),
            )


class Admission(NamedTuple):
    """An admitted request: its caller, and the rules for it (None: everything is allowed).

    `session_ends` is the end of the session of a browser. `credential` names the token of the
    request without its secret.
    """

    caller: Caller
    rules: Rules | RunRules | None
    session_ends: datetime | None = None
    credential: str = ""

    @property
    def scope(self) -> Hashable:
        """Everything about the caller on which the answer to a read depends.

        Callers with the same scope may share answers.
        """
        return None if self.rules is None else (self.caller, self.rules)

    def catalog(self, catalog: Catalog, raw_path: bytes, right: str = "") -> Catalog:
        """Returns the catalog for this caller in a request for a path.

        Rules call the route of the path `right`.
        """

        def opened(repository: StoreRepository) -> CallerAccess:
            name = self.caller.name
            acting = repository.as_caller(name)
            if self.rules is None:
                return CallerAccess(acting, acting, None, name, self.credential)
            rights = Rights(self.caller, self.rules, 1 if raw_path.startswith(_V1) else 2)
            reading = AuthorizedRepository(acting, rights, right)
            policy = Policy(
                rights, reading, catalog.default_branch, guards_rows=bool(catalog.locations)
            )
            return CallerAccess(reading, acting, policy, name, self.credential)

        return catalog._replace(open=opened)


class Gate:
    """Authenticates requests. Its files are read again when they change."""

    runs: RunRecords | None = None
    """The runs whose programs are admitted, if any are."""

    def __init__(self, security: Security, report: Report = report_on_stderr) -> None:
        security.check()
        self.authenticates, self.anonymous = security.authenticates, security.anonymous
        self.open_metrics = security.open_metrics or not security.authenticates
        self._tokens = (
            WatchedFile(security.tokens, SECRET, FILE_KIND, read_tokens, report)
            if security.tokens
            else None
        )
        self._issuer = TokenVerifier(security.jwt, report) if security.jwt else None
        self._rules = (
            WatchedFile(security.rules, TRUSTED, "rules file", read_rules, report)
            if security.rules
            else None
        )

    async def admit(self, headers: Headers) -> Admission:
        """Returns the admission of a request. Raises `Unauthenticated`.

        Wrong credentials are refused even if none are needed.
        """
        given = credentials(header(headers, b"authorization"))
        if given is not None:
            caller, credential = await self._caller(given)
        elif self.anonymous:
            caller, credential = ANONYMOUS, ""
        else:
            raise Unauthenticated(_WHO)
        return self.admission(caller)._replace(credential=credential)

    @property
    def knows_tokens(self) -> bool:
        """Whether there is a file of tokens."""
        return self._tokens is not None

    def token_entry(self, given: Credentials) -> TokenEntry:
        """Returns the entry of a token of the file. Raises `Unauthenticated`."""
        entry = self._tokens.value().entry(given, datetime.now(UTC)) if self._tokens else None
        if entry is None:
            raise Unauthenticated(_WRONG, refused=True)
        return entry

    def caller_of_entry(self, id_: str, hash_: str) -> Caller | None:
        """Returns the caller of an entry of the token file as it is now.

        Returns None if the token was withdrawn or replaced, or has expired.
        """
        if self._tokens is None:
            return None
        entry = self._tokens.value().entry_of(id_, hash_, datetime.now(UTC))
        return None if entry is None else entry.caller

    def admission(self, caller: Caller) -> Admission:
        """Returns the admission of a caller by the rules as they are now."""
        rules = self._rules.value() if self._rules else None
        if caller.run:
            assert self.runs is not None, "only a token of a run admits such a caller"
            return Admission(caller, RunRules(rules, caller.run, self.runs))
        return Admission(caller, rules)

    @cached_property
    def _verifiers(self) -> ThreadPool:
        """Threads that verify tokens, and can wait for the keys of their issuer."""
        return ThreadPool(VERIFIERS, name="verifier", most_waiting=MOST_UNVERIFIED)

    async def _caller(self, given: Credentials) -> tuple[Caller, str]:
        """Returns the caller of a request, and its credential."""
        if is_run_token(given.token):
            if self.runs is not None:
                find = partial(find_token, self.runs, given.token)
                token = await self._verifiers.submit(find)
                caller = None if token is None else self._caller_of_run(token)
                if caller is not None:
                    return caller, ""
        elif is_ours(given.token):
            now = datetime.now(UTC)
            entry = self._tokens.value().entry(given, now) if self._tokens else None
            if entry is not None:
                return entry.caller, credential_of_entry(entry)
        elif self._issuer is not None:
            verify = partial(self._issuer.verify, given)
            verified = self._issuer.cached(given) or await self._verifiers.submit(verify)
            if verified is not None:
                caller = verified.caller
                return caller, credential_of_issuer(verified.expires + LEEWAY, caller.roles)
        raise Unauthenticated(_WRONG, refused=True)

    def _caller_of_run(self, token: RunToken) -> Caller | None:
        """Returns the caller of a program of a run.

        Returns None if the credential by which its token was made is no longer valid.
        """
        run, credential = token
        if not credential:
            return caller_of_run(run)
        if (given := issuer_credential(credential)) is not None:
            is_valid = time.time() < given.expires
            return Caller(run.who, given.roles, run.id) if is_valid else None
        caller = self.caller_of_entry(*entry_of(credential))
        return None if caller is None else caller._replace(run=run.id)


def open_gate(security: Security, report: Report = report_on_stderr) -> Gate | None:
    """Returns the gate of a server; None if everything is allowed.

    Raises `InvalidInput` and `NotAllowed` for unusable files.
    """
    if not security.is_enabled:
        return None
    return Gate(security, report)


HEALTH = b"/q/health"
"""The paths that are answered under every name, because probes use addresses."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE = frozenset({b"same-origin", b"none"})
_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_CODE = "FORBIDDEN"
_LONGEST = 300
"""The most characters of a host name with port, brackets and a final dot (DNS allows 253)."""
_REMEMBERED = 256


class Hosts:
    """The host names of a server: this machine's, `names`, and optionally addresses or all.

    A page can let its own name resolve to the server's address (DNS rebinding) and read the
    answers; the header `Host` reveals it. A page can also send requests to any server without
    reading the answers; `Sec-Fetch-Site` and `Origin` reveal it. Other clients send neither of the
    two.

    A page cannot have an address as its name, so addresses are safe from rebinding.
    """

    def __init__(
        self, names: Iterable[str] = (), *, addresses: bool = False, every: bool = False
    ) -> None:
        checked = [_checked(name) for name in names]
        self._names = frozenset(name for name in checked if not name.startswith("*"))
        self._endings = tuple(name[1:] for name in checked if name.startswith("*"))
        self._addresses, self._every = addresses, every
        self._answers_to = lru_cache(_REMEMBERED)(lambda host: self.allows(_name_of(host)))

    def check(self, method: str, path: bytes, headers: Headers) -> None:
        """Raises `HttpFault` for a foreign host name, and for a change from another site."""
        if path.startswith(HEALTH):
            return
        hosts = [value for name, value in headers if name == b"host"]
        if not self._every and not (
            len(hosts) == 1 and len(hosts[0]) <= _LONGEST and self._answers_to(hosts[0])
        ):
            shown = ", ".join(host.decode("latin-1")[:_LONGEST] for host in hosts)
            raise HttpFault(
                403,
                (
                    f"Host '{shown}' is not a name of this server; --allowed-host or"
                    " NESSIE_ALLOWED_HOSTS adds one"
                ),
                _CODE,
            )
        if method not in _SAFE:
            _check_site(hosts, headers)

    def allows(self, name: str) -> bool:
        """Returns whether the server answers under a name (lower case, without a port)."""
        if name == "localhost" or name in self._names or name.endswith(self._endings):
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return self._addresses or address.is_loopback


def _check_site(hosts: Sequence[bytes], headers: Headers) -> None:
    sites = [value for name, value in headers if name == b"sec-fetch-site"]
    origins = [value for name, value in headers if name == b"origin"]
    if b"null" in origins or not _OWN_SITE.issuperset(sites):
        raise HttpFault(403, "A page of another site must not make changes", _CODE)
    # `Sec-Fetch-Site` counts if it is present: a proxy may have changed the name.
    if not sites and any(
        host_of_origin(origin) != host.decode("latin-1").lower()
        for origin in origins
        for host in hosts or (b"",)
    ):
        raise HttpFault(
            403,
            (
                "A page of another origin must not make changes. A proxy in front of the server"
                " must forward the header Host"
            ),
            _CODE,
        )


def host_of_origin(origin: bytes) -> str:
    """Returns the host and port of a header `Origin`; empty if it has none."""
    try:
        return urlsplit(origin.decode("latin-1").lower()).netloc
    except ValueError:
        return ""


def _name_of(host: bytes) -> str:
    """Returns the name in a header `Host`, without the port."""
    text = host.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")


def _checked(name: str) -> str:
    """Returns an allowed name in the form in which it is compared."""
    plain = name.strip().lower().removesuffix(".")
    try:
        return str(ip_address(plain.removeprefix("[").removesuffix("]")))
    except ValueError:
        pass
    if not _NAME.fullmatch(plain):
        raise InvalidInput(
            f"--allowed-host {name!r} must be a host name or address without scheme and port;"
            " *.example.com stands for all names below it"
        )
    return plain
