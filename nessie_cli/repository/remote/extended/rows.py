"""Changed rows of a table, which the server reads."""

from __future__ import annotations

from urllib.parse import quote

from nessie_cli.errors import InvalidInput
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire.rows import RowQuery

_LONGEST_FILTER = 60_000
"""The most characters of a filter in a URL. A server takes 64 KiB of URL and headers."""


def changed_rows(session: RestSession, query: RowQuery) -> bytes:
    """Returns the frames of the answer (`wire.rows`). Raises `InvalidInput` for a long filter."""
    length = len(quote(query.where or ""))
    if length > _LONGEST_FILTER:
        raise InvalidInput(
            f"the filter of the rows has {length:,} characters in a URL, {_LONGEST_FILTER:,} are"
            " allowed at a server"
        )
    parameters: Query = {
        "key": session.key_text(query.key),
        "from-key": session.key_text(query.old_key) if query.old_key else None,
        "key-column": list(query.key_columns),
        "column": list(query.columns),
        "where": query.where,
        "limit": None if query.limit is None else str(query.limit),
        "rows": None if query.rows else "false",
    }
    before, after = (segment(f"@{hash_}") for hash_ in (query.before, query.after))
    return session.transport.get_bytes(f"trees/{before}/rows/{after}", parameters)
