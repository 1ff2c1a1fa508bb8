"""The REST server: HTTP request -> wire -> Repository -> wire, no rules of its own. `serve` runs it until it is told to stop."""

from nessie_cli.server.running import Listeners, Settings, serve

__all__ = ["Listeners", "Settings", "serve"]
