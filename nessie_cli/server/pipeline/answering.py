"""Runs the handler of a request on a thread, and encodes its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nessie_cli.repository.group_commit import Planned
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.http.messages import JSON, Limits, Reply, compressed, decompress
from nessie_cli.server.http.streams import Listing, encoded
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.dialect import Dialect
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.table import Endpoint
from nessie_cli.server.runtime.writer import Write

_NO_CONTENT = 204


class Job(NamedTuple):
    """A request and the endpoint that answers it."""

    exchange: Exchange
    dialect: Dialect
    endpoint: Endpoint
    call: Call
    limits: Limits

    def read_body(self) -> int:
        """Reads the body as JSON, once. Returns the size of its text."""
        if not self.endpoint.takes_json or self.call.is_read:
            return 0
        body = decompress(self.call.body, self.exchange.headers, self.limits)
        self.call.take(body)
        return len(body)

    def failure(self, error: Exception) -> Reply:
        """Returns the answer for an error."""
        return self.dialect.failure(error, self.exchange)

    def reply(self, answer: Answer | Reply) -> Reply:
        """Encodes an answer."""
        return compressed(reply_of(answer), self.exchange.headers)

    def steps(self) -> Iterator[Reply | None]:
        """Runs the handler in short steps. Only the last one returns the answer, not None."""
        try:
            self.read_body()
            answer = self.call.answer(self.endpoint.handler)
            if isinstance(answer, Answer) and isinstance(answer.body, Listing):
                yield from answer.body.search
            yield self.reply(answer)
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            yield self.failure(error)

    def write(self, *, large: bool) -> Write:
        """Returns the request for the writing thread. Nothing can fail after the commit."""
        return Write(self.read_body, self._planned, self.failure, large, self.call.begin)

    def _planned(self, repository: StoreRepository) -> Planned[Reply]:
        return self.call.plan(
            repository, lambda call: self.reply(call.answer(self.endpoint.handler))
        )


def reply_of(answer: Answer | Reply) -> Reply:
    """Encodes an answer, if it is not encoded already."""
    if isinstance(answer, Reply):
        return answer
    if answer.status == _NO_CONTENT:
        return Reply(_NO_CONTENT, [])
    value = answer.body.opened() if isinstance(answer.body, Listing) else answer.body
    headers = [(b"content-type", JSON)]
    if isinstance(value, Iterator):
        return Reply(answer.status, headers, pieces=value)
    return Reply(answer.status, headers, encoded(value))
