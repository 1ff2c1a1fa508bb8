"""The page of the server: what it is, and what its caller may do."""

from __future__ import annotations

from typing import NamedTuple

import nessie_cli
from nessie_cli.server.auth import rules
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.wire import keys


class Permission(NamedTuple):
    """An operation, and the name of the rule that allows it, or None."""

    operation: str
    rule: str | None


def server(call: PageCall) -> Reply:
    """`GET /ui/server`: version, store, settings, and the permissions on `ref` and `key`."""
    config = call.repository.config()
    reference, key = call.text("ref") or call.default_branch, call.text("key") or ""
    return call.page(
        "server.html",
        "Server",
        version=nessie_cli.__version__,
        config=config,
        warehouses=call.has_warehouses,
        reads_rows=call.reads_rows,
        asked=reference,
        key=key,
        permissions=_permissions(call, reference, key),
    )


def _permissions(call: PageCall, reference: str, key: str) -> list[Permission] | None:
    """Returns what the caller may do; None if no rules restrict callers."""
    repository = call.repository
    if not isinstance(repository, AuthorizedRepository):
        return None
    content_key = keys.decode(key) if key else None
    return [
        Permission(operation, repository.rights.rule_for(operation, reference, content_key))
        for operation in rules.OPERATIONS
    ]
