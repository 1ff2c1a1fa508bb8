"""Servers that authenticate callers: token and rules files, and clients with tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nessie_cli import connect
from nessie_cli.repository.base import Repository
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.tokens import add_token
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts, Pipeline
from nessie_cli.server.running import application
from tests.server.client import Answer, Client
from tests.server.serving import serving

ADMIN = "everything = \"'admin' in roles\"\n"


class Guarded:
    """A server with a gate. `as_(NAME)` is a client of that caller, `as_("")` an anonymous one."""

    def __init__(self, url: str, folder: Path, repository: Repository) -> None:
        self.url = url
        self.folder = folder
        self.repository = repository
        self._clients = ExitStack()

    def as_(self, name: str, *roles: str) -> TokenClient:
        token = (
            add_token(self.folder / "tokens", name, roles, None, datetime.now(UTC))[0]
            if name
            else None
        )
        client = TokenClient(self.url, token)
        self._clients.callback(client.close)
        return client

    def rule(self, *lines: str) -> None:
        """Replaces the rules; the administrator keeps every right."""
        write_rules(self.folder, lines)

    def close(self) -> None:
        self._clients.close()


class TokenClient(Client):
    """A client with a token."""

    def __init__(self, url: str, token: str | None) -> None:
        super().__init__(url)
        self.token = token

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        mine = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return super().send(method, path, body, mine | (headers or {}), raw)


def write_rules(folder: Path, lines: Sequence[str]) -> None:
    beside = folder / "rules.new"
    beside.write_text(
        ADMIN + "".join(f'rule_{number} = """{line}"""\n' for number, line in enumerate(lines))
    )
    beside.replace(folder / "rules")


def with_gate(repository: Repository, security: Security, log: AccessLog | None = None) -> Pipeline:
    """Returns an application with the gate of these settings."""
    return application(repository, Parts(log=log, gate=open_gate(security)))


@contextmanager
def guarded(
    folder: Path, *rules: str, anonymous: bool = False, with_rules: bool = True
) -> Iterator[Guarded]:
    (folder / "tokens").touch(0o600)
    write_rules(folder, rules)
    security = Security(
        tokens=folder / "tokens",
        rules=folder / "rules" if with_rules else None,
        anonymous=anonymous,
    )
    with connect("memory:") as repository, serving(app=with_gate(repository, security)) as url:
        found = Guarded(url, folder, repository)
        try:
            yield found
        finally:
            found.close()
