"""The settings of a repository on one of our servers, by the extensions."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import convert

from nessie_cli.model import RepositoryConfig
from nessie_cli.repository.remote.once import Sent, send_once
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.wire.extensions import SETTINGS


def config(session: Session) -> RepositoryConfig:
    """See `Repository`."""
    found = session.transport.get("config/repository", {"type": SETTINGS})
    settings = understood(
        found,
        lambda found: (
            convert(found["configs"][0]["settings"], dict[str, str]) if found.get("configs") else {}
        ),
        "settings",
    )
    plain = session.config
    return RepositoryConfig(plain.default_branch, plain.created, plain.format, settings)


def put(
    session: Session, values: Mapping[str, str | None], request_id: str | None = None
) -> Mapping[str, str | None]:
    """See `Repository`; returns the previous values."""
    sent = Sent(
        "POST", "config/repository", {"config": {"type": SETTINGS, "settings": dict(values)}}
    )
    return send_once(
        session,
        sent,
        request_id,
        lambda found: convert(found["previous"]["settings"], dict[str, str | None]),
    )
