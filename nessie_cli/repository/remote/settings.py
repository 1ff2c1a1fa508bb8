"""The settings of a repository on one of our servers, by the extensions."""

from __future__ import annotations

from nessie_cli.model import RepositoryConfig
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.wire.extensions import SETTINGS


def config(session: Session) -> RepositoryConfig:
    """See `Repository`."""
    found = session.transport.get("config/repository", {"type": SETTINGS})
    settings = understood(found, lambda found: dict(found["configs"][0]["settings"]) if found.get("configs") else {}, "settings")
    plain = session.config
    return RepositoryConfig(plain.default_branch, plain.created, plain.format, settings)


def put(session: Session, name: str, value: str | None) -> str | None:
    """See `Repository`; answers the previous value."""
    # Setting a value twice is setting it once, so after a lost answer it is sent again; the
    # previous value is read first.
    previous = config(session).settings.get(name)
    session.transport.send("POST", "config/repository", None, {"config": {"type": SETTINGS, "settings": {name: value}}}, safe=True)
    return previous
