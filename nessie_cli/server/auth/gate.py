"""The gate of the server: authenticates callers and opens the repository for them.

Each process that answers requests has its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.auth.access import CallerAccess, Catalog
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.identity import (
    ANONYMOUS,
    Caller,
    Credentials,
    Unauthenticated,
    credentials,
)
from nessie_cli.server.auth.issuer import Issuer, JwtSettings
from nessie_cli.server.auth.policy import Policy
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import Rules, read_rules
from nessie_cli.server.auth.tokens import WHAT, is_ours, read_tokens
from nessie_cli.server.http.messages import Headers, header
from nessie_cli.server.runtime.watched_files import (
    SECRET,
    TRUSTED,
    Report,
    WatchedFile,
    report_on_stderr,
)

_V1 = b"/api/v1"
_WHO = "Authentication is required: send a bearer token in the header Authorization"
_WRONG = "The token is not valid: it is unknown, has expired, or has been withdrawn"


class Security(NamedTuple):
    """The settings of authentication and authorization; plain values for several processes.

    `tokens` is a file of hashed tokens, `jwt` names the issuer of accepted JSON Web Tokens, `rules`
    is a file of authorization rules. `anonymous` allows requests without credentials,
    `open_metrics` answers `/q/metrics` without them.
    """

    tokens: Path | None = None
    rules: Path | None = None
    anonymous: bool = False
    open_metrics: bool = False
    jwt: JwtSettings | None = None

    @property
    def authenticates(self) -> bool:
        """Whether callers can authenticate."""
        return self.tokens is not None or self.jwt is not None

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
    """An admitted request: its caller, and the rules for it (None: everything is allowed)."""

    caller: Caller
    rules: Rules | None

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
                return CallerAccess(acting, acting, caller=name)
            rights = Rights(self.caller, self.rules, 1 if raw_path.startswith(_V1) else 2)
            reading = AuthorizedRepository(acting, rights, right)
            policy = Policy(rights, reading, catalog.default_branch)
            return CallerAccess(reading, acting, policy, name)

        return catalog._replace(open=opened)


class Gate:
    """Authenticates requests. Its files are read again when they change."""

    def __init__(self, security: Security, report: Report = report_on_stderr) -> None:
        security.check()
        self.authenticates, self.anonymous = security.authenticates, security.anonymous
        self.open_metrics = security.open_metrics or not security.authenticates
        self._tokens = (
            WatchedFile(security.tokens, SECRET, WHAT, read_tokens, report)
            if security.tokens
            else None
        )
        self._issuer = Issuer(security.jwt, report) if security.jwt else None
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
            caller = await self._caller(given)
        elif self.anonymous:
            caller = ANONYMOUS
        else:
            raise Unauthenticated(_WHO)
        return Admission(caller, self._rules.value() if self._rules else None)

    @property
    def knows_tokens(self) -> bool:
        """Whether there is a file of tokens."""
        return self._tokens is not None

    def expiry_of(self, given: Credentials) -> datetime | None:
        """Returns when a token of the file expires; None for never. Raises `Unauthenticated`."""
        now = datetime.now(UTC)
        tokens = self._tokens.value() if self._tokens is not None else None
        if tokens is None or tokens.caller(given, now) is None:
            raise Unauthenticated(_WRONG, refused=True)
        return tokens.expiry(given)

    async def _caller(self, given: Credentials) -> Caller:
        found = None
        if is_ours(given.token):
            found = self._tokens.value().caller(given, datetime.now(UTC)) if self._tokens else None
        elif self._issuer is not None:
            found = self._issuer.known(given) or await asyncio.to_thread(self._issuer.caller, given)
        if found is None:
            raise Unauthenticated(_WRONG, refused=True)
        return found


def open_gate(security: Security, report: Report = report_on_stderr) -> Gate | None:
    """Returns the gate of a server; None if everything is allowed.

    Raises `InvalidInput` and `NotAllowed` for unusable files.
    """
    if not security.is_enabled:
        return None
    return Gate(security, report)
