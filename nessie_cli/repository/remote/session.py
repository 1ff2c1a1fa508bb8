"""A connection to one server, and what its configuration says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput, NotAllowed, NotFound, StoreNotFound
from nessie_cli.model import ContentKey, Reference, RepositoryConfig
from nessie_cli.repository.remote.transport import Query, Transport
from nessie_cli.wire import answers, keys
from nessie_cli.wire.decode import decode_instant
from nessie_cli.wire.extensions import ANNOUNCED

PAGE = 250
API_VERSION = 2
_ESCAPED_SINCE = (2, 2)

T = TypeVar("T")


class ServerFacts(NamedTuple):
    """What a server says of itself. `extensions` is whether it is one of ours and speaks to us as such."""

    default_branch: str
    created: datetime | None
    specification: str
    extensions: bool


class Session:
    """Requests, pages and decoding, with the server's facts at hand. They are asked for at once: a wrong address is told before any verb."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.facts = _facts(transport)

    @property
    def config(self) -> RepositoryConfig:
        """The configuration as far as every server tells it."""
        return RepositoryConfig(self.facts.default_branch, self.facts.created, f"REST {self.facts.specification or 'unknown'}", {})

    def key_text(self, key: ContentKey) -> str:
        """A key in a URL, in the form that the server's specification version knows."""
        numbers = tuple(int(part) for part in self.facts.specification.split(".")[:2] if part.isdigit())
        return keys.encode_escaped(key) if numbers >= _ESCAPED_SINCE else keys.encode_legacy(key)

    def pages(self, path: str, name: str, query: Query, decode: Callable[[Any], T], *, growing: int = 0) -> Iterator[T]:
        """The records of a listing, page by page as they are consumed; `growing` from one page to the next up to so many records."""
        token, size = None, PAGE
        while True:
            page = self.transport.get(path, {"max-records": str(size), **query, "page-token": token})
            yield from understood(page, lambda page: [decode(item) for item in page[name]], name)
            token, size = understood(page, answers.decode_page, name), max(size, min(4 * size, growing))
            if token is None:
                return

    def reference(self, answer: Any, name: str = "reference") -> Reference:
        """The reference of an answer."""
        return understood(answer, lambda answer: answers.decode_reference(answer[name]), name)

    def optional(self, ask: Callable[[], T], what: str) -> T:
        """What a server may be too old for: then one line says so, in place of whatever it answers for an unknown path."""
        try:
            return ask()
        except NotFound as error:
            # A Nessie server names what it has not found; a framework that has no such path does not.
            if type(error) is not NotFound:
                raise
            raise self.too_old(what) from None

    def too_old(self, what: str) -> NotAllowed:
        """The error for what this server cannot do."""
        return NotAllowed(f"server {self.transport.url} (specification {self.facts.specification or 'unknown'}) cannot tell or do this: {what}")


def understood(answer: Any, decode: Callable[[Any], T], what: str) -> T:
    """What `decode` makes of an answer; a fault in it is the server's."""
    return answers.understood(lambda: decode(answer), what)


def _facts(transport: Transport) -> ServerFacts:
    try:
        found = transport.get("config")
    except StoreNotFound:
        raise
    except NotFound:
        raise StoreNotFound(f"server {transport.url}: no Nessie server answers there; its API is at …/api/v2", transport.url) from None
    if not isinstance(found, dict) or "maxSupportedApiVersion" not in found:
        raise StoreNotFound(f"server {transport.url}: what answers there is no Nessie server", transport.url)
    if found.get("actualApiVersion", 1) != API_VERSION:
        raise InvalidInput(f"server {transport.url}: this is another version of the API; the address of version 2 ends in /api/v2")
    extra, created = found.get("additionalProperties"), found.get("repositoryCreationTimestamp")
    return ServerFacts(
        default_branch=str(found.get("defaultBranch") or "main"),
        created=understood(created, lambda text: decode_instant(text, "repositoryCreationTimestamp"), "config") if created else None,
        specification=str(found.get("specVersion") or ""),
        extensions=isinstance(extra, dict) and ANNOUNCED in extra,
    )
