"""Commits of several tables at once: all or none, in one commit of the branch."""

from __future__ import annotations

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.state import State
from nessie_cli.model import ContentKey
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.iceberg.answers import NO_CONTENT
from nessie_cli.server.iceberg.names import identifier_of
from nessie_cli.server.iceberg.session import Proposal, Session
from nessie_cli.server.iceberg.table_commits import (
    Changes,
    changes_of,
    check_number,
    made_by,
    proposal_of,
)

_REQUEST = "CommitTransactionRequest"


def commit(session: Session) -> Reply:
    """`POST /v1/{prefix}/transactions/commit`. Each table is put once."""
    by_key: dict[ContentKey, list[Changes]] = {}
    count = 0
    for number, body in enumerate(
        values.objects(session.body(_REQUEST), "table-changes", _REQUEST)
    ):
        where = f"{_REQUEST}: table-changes[{number}]"
        key = identifier_of(body, "identifier", where)
        changes = changes_of(body, where)
        by_key.setdefault(key, []).append(changes)
        count += 1 + len(changes.requirements) + len(changes.updates)
    check_number(count, _REQUEST)
    if not by_key:
        raise InvalidInput(f"{_REQUEST}: table-changes is empty")

    def make(state: State) -> Proposal:
        several = [
            made
            for key, changes in by_key.items()
            if (made := made_by(session, state, key, changes))
        ]
        messages = [made.message for made in several]
        message = f"change {len(several)} tables\n\n" + "\n".join(messages)
        return proposal_of(several, messages[0] if len(several) == 1 else message)

    session.change(make)
    return NO_CONTENT
