"""Drop and rename, which are the same for tables and views."""

from __future__ import annotations

from collections.abc import Callable

from nessie_cli.iceberg.state import State
from nessie_cli.model import ContentKey, Delete, IcebergTable, IcebergView, Put
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import NO_CONTENT
from nessie_cli.server.iceberg.names import identifier_of, need_free_for
from nessie_cli.server.iceberg.session import Proposal, Session

_RENAME = "RenameTableRequest"

Need = Callable[[State, ContentKey], IcebergTable | IcebergView]
"""Returns the content of a key. Raises `NoSuchTable` or `NoSuchView`."""


def drop(session: Session, key: ContentKey, need: Need, kind: str) -> Reply:
    """Drops a table or view; `kind` names it in the commit message."""

    def make(state: State) -> Proposal:
        need(state, key)
        return Proposal(f"drop {kind} {key}", [Delete(key)])

    session.change(make)
    return NO_CONTENT


def rename(session: Session, need: Need, kind: str) -> Reply:
    """Renames the table or view in the body, which keeps its content id."""
    body = session.body(_RENAME)
    old = identifier_of(body, "source", _RENAME)
    new = identifier_of(body, "destination", _RENAME)

    def make(state: State) -> Proposal:
        content = need(state, old)
        if old == new:
            return Proposal()
        need_free_for(state, old, new)
        return Proposal(f"rename {kind} {old} to {new}", [Delete(old), Put(new, content)])

    session.change(make)
    return NO_CONTENT
