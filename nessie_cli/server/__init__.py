"""The REST server: HTTP request -> wire -> Repository -> wire, no rules of its own. `serve` runs it until it is told to stop."""

from nessie_cli.server.gate import Security
from nessie_cli.server.issuer import JwtSettings
from nessie_cli.server.running import Listeners, Settings, serve
from nessie_cli.server.tls import Tls
from nessie_cli.server.tokens import TokenEntry, add_token, list_tokens, remove_tokens

__all__ = ["JwtSettings", "Listeners", "Security", "Settings", "Tls", "TokenEntry", "add_token", "list_tokens", "remove_tokens", "serve"]
