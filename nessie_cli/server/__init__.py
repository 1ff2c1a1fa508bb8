"""The REST server: HTTP -> wire -> Repository -> wire, without rules of its own.

`serve` runs it until it is stopped, `serve_locally` the pages alone for one user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
_PLACES = {
    "JwtSettings": "nessie_cli.server.auth.issuer",
    "Listeners": "nessie_cli.server.running",
    "LocalPages": "nessie_cli.server.local",
    "OidcSettings": "nessie_cli.server.auth.oidc",
    "Security": "nessie_cli.server.auth.gate",
    "ServerSettings": "nessie_cli.server.running",
    "Tls": "nessie_cli.server.runtime.tls",
    "TokenEntry": "nessie_cli.server.auth.tokens",
    "add_token": "nessie_cli.server.auth.tokens",
    "list_tokens": "nessie_cli.server.auth.tokens",
    "read_secret": "nessie_cli.server.auth.oidc",
    "read_warehouses": "nessie_cli.server.warehouse_file",
    "remove_tokens": "nessie_cli.server.auth.tokens",
    "serve": "nessie_cli.server.running",
    "serve_locally": "nessie_cli.server.local",
}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use: processes that read rows need no server."""
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
