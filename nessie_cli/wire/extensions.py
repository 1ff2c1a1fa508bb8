"""What our own server and our own client tell each other beyond REST v2. Neither side says any of it to strangers.

A client of ours sends the header `Nessie-Cli` with each request. A server of ours then announces the extensions in its configuration and adds
attributes to its answers; others, whose parsers refuse unknown attributes, never see them. A server that announces nothing is spoken to in plain v2.
"""

from __future__ import annotations

HEADER = "Nessie-Cli"
"""Sent by our client, with the version of the extensions that it knows."""

VERSION = "1"

ANNOUNCED = "nessie-cli"
"""Among the additional properties of the configuration: the version of the extensions that the server knows."""

REQUEST_HEADER = "Nessie-Request-Id"
"""Names a write: a second one with the same id does nothing and answers what the first one did."""

SETTINGS = "NESSIE_CLI_SETTINGS"
"""The type of the configuration object that holds the repository's settings."""
