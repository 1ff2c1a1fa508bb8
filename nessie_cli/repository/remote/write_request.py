"""A request that writes, as a value that can be sent again unchanged."""

from __future__ import annotations

from typing import Any, NamedTuple

from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import Query


class WriteRequest(NamedTuple):
    """A request that writes."""

    method: str
    path: str
    body: Any = None
    query: Query | None = None

    def send(self, session: RestSession, *, request_id: str = "", safe: bool = False) -> Any:
        """Sends the request and returns its answer.

        `safe` is set if the request writes nothing. Raises `Lost` if the answer is lost.
        """
        return session.transport.send(
            self.method, self.path, self.query, self.body, request_id=request_id, safe=safe
        )
