"""The REST server: HTTP -> wire -> Repository -> wire, without rules of its own.

`serve` runs it until it is stopped, `serve_locally` the pages alone for one user.
"""

from nessie_cli.server.auth.gate import Security
from nessie_cli.server.auth.issuer import JwtSettings
from nessie_cli.server.auth.oidc import OidcSettings, read_secret
from nessie_cli.server.auth.tokens import TokenEntry, add_token, list_tokens, remove_tokens
from nessie_cli.server.local import LocalPages, serve_locally
from nessie_cli.server.running import Listeners, ServerSettings, serve
from nessie_cli.server.runtime.tls import Tls
from nessie_cli.server.warehouse_file import read_warehouses

__all__ = [
    "JwtSettings",
    "Listeners",
    "LocalPages",
    "OidcSettings",
    "Security",
    "ServerSettings",
    "Tls",
    "TokenEntry",
    "add_token",
    "list_tokens",
    "read_secret",
    "read_warehouses",
    "remove_tokens",
    "serve",
    "serve_locally",
]
