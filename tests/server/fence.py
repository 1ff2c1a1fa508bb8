"""A run on a server that authenticates, and the clients of its program and its caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from nessie_cli import connect
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import Secret
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.issuer import JwtSettings
from nessie_cli.server.auth.tokens import add_token
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.repository.runs import begun
from tests.server.guarding import TokenClient, write_rules
from tests.server.iceberg_rest.lake import IcebergClient
from tests.server.serving import serving
from tests.server.test_jwt import AUDIENCE, ISSUER, KEYS
from tests.server.test_jwt import token as json_web_token

LOADER = "role == 'loader'"
"""A rule by which loaders may do everything."""
KINDS = ("tokens", "rules", "jwt")


class Fence:
    """A run of the caller `etl` into main, which has the tables db.t and db.u."""

    def __init__(self, url: str, folder: Path, kind: str) -> None:
        self.url, self.folder, self.kind = url, folder, kind
        self.caller = self.as_("etl", "loader")
        self.repository = connect(f"{url}/api/v2", access=self.access("etl", "loader"))
        main = IcebergClient(self.caller)
        assert main.namespace("db").status == 200
        assert main.create("db", "t").status == 200
        assert main.create("db", "u").status == 200
        self.active = begun(self.repository)
        self.token = self.active.add_token()
        self.program = TokenClient(url, self.token)
        self.branch = quote(self.active.branch, safe="")

    def as_(self, name: str, *roles: str) -> TokenClient:
        """Returns the client of a caller."""
        return TokenClient(self.url, self._token(name, roles))

    def access(self, name: str, *roles: str) -> Access:
        """Returns the access of a caller."""
        return Access(Bearer(Secret(self._token(name, roles))))

    def iceberg(self, ref: str) -> IcebergClient:
        """Returns the Iceberg REST client of the program for a reference."""
        return IcebergClient(self.program, ref)

    def _token(self, name: str, roles: tuple[str, ...]) -> str:
        if self.kind == "jwt":
            return str(json_web_token(sub=name, roles=list(roles)))
        return add_token(self.folder / "tokens", name, roles, None, datetime.now(UTC))[0]


@contextmanager
def fence(
    folder: Path,
    kind: str,
    *rules: str,
    log: AccessLog | None = None,
    warehouses: Warehouses | None = None,
) -> Iterator[Fence]:
    """Yields a run on a server with a token file, also with rules, or with JSON Web Tokens."""
    (folder / "tokens").touch(0o600)
    (folder / "keys.json").write_text(json.dumps(KEYS))
    write_rules(folder, rules or (LOADER,))
    security = Security(
        tokens=None if kind == "jwt" else folder / "tokens",
        rules=None if kind == "tokens" else folder / "rules",
        jwt=JwtSettings(ISSUER, AUDIENCE, str(folder / "keys.json")) if kind == "jwt" else None,
    )
    with connect("memory:") as repository:
        warehouses = warehouses or from_options([str(folder / "warehouse")])
        parts = Parts(log=log, gate=open_gate(security), warehouses=warehouses)
        with serving(app=application(repository, parts)) as url:
            found = Fence(url, folder, kind)
            try:
                yield found
            finally:
                found.repository.close()
