"""The connection to one server: its configuration, requests, pages and cached commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import (
    InvalidInput,
    NotAllowed,
    NotFound,
    StoreNotFound,
    StoreUnavailable,
)
from nessie_cli.model import NO_ANCESTOR, ContentKey, LogEntry, Reference, RepositoryConfig
from nessie_cli.repository.bounded_cache import BoundedCache
from nessie_cli.repository.remote.transport import Query, Transport
from nessie_cli.wire import answers, keys
from nessie_cli.wire.extensions import ANNOUNCED, COMBINES, ROWS
from nessie_cli.wire.values import decode_instant

PAGE = 250
MOST_PAGES = 100_000
"""The most pages of a listing: 25 million records of the usual pages."""
MOST_EMPTY_PAGES = 100
"""The most empty pages in a row. A server sends one if a filter finds nothing for a while."""
API_VERSION = 2
MOST_COMMITS = 20_000
"""Commits that a client remembers. A walk over more asks for some of them again."""
MOST_HASHES = 100_000
_ESCAPED_SINCE = (2, 2)
_CLOCK_ERROR = timedelta(days=1)
"""How much older than its parent a commit of another server may look. On ours it never does."""

T = TypeVar("T")


class Configuration(NamedTuple):
    """The configuration of a server.

    `extensions` says whether it announces those of `wire.extensions`, `combines` whether it
    combines tables, and `reads_rows` whether it reads their rows. `clock_error` is how much older
    than its parent a commit may look.
    """

    default_branch: str
    created: datetime | None
    specification: str
    extensions: bool
    combines: bool
    reads_rows: bool
    clock_error: timedelta


class RestSession:
    """Requests to one server.

    The constructor fetches its configuration, so that a wrong address fails before any request.
    `random` returns random bytes, for request ids and content ids.
    """

    def __init__(
        self, transport: Transport, random: Callable[[int], bytes], most_pages: int = MOST_PAGES
    ) -> None:
        self.transport = transport
        self.random = random
        self._most_pages = most_pages
        self.configuration = _configuration(transport)
        self.commits: BoundedCache[str, LogEntry] = BoundedCache(MOST_COMMITS)
        """Commits without their operations, by hash.

        A commit never changes, so an entry stays true.
        """
        self.hashes: BoundedCache[str, bool] = BoundedCache(MOST_HASHES)
        """Hashes of commits that the server has named."""
        self.steps: BoundedCache[str, str] = BoundedCache(MOST_COMMITS)
        """Hashes by the revision that led to them, a whole hash and one step."""
        self.named(NO_ANCESTOR)

    @property
    def repository_config(self) -> RepositoryConfig:
        """The configuration of the repository, without settings."""
        return RepositoryConfig(
            self.configuration.default_branch,
            self.configuration.created,
            f"REST {self.configuration.specification or 'unknown'}",
            {},
        )

    def key_text(self, key: ContentKey) -> str:
        """Returns a key in a URL, in the form that the server's specification version knows."""
        numbers = tuple(
            int(part) for part in self.configuration.specification.split(".")[:2] if part.isdigit()
        )
        return keys.encode_escaped(key) if numbers >= _ESCAPED_SINCE else keys.encode_legacy(key)

    def pages(
        self,
        path: str,
        name: str,
        query: Query,
        decode: Callable[[Any], T],
        *,
        first: int = PAGE,
        most: int = PAGE,
    ) -> Iterator[T]:
        """Yields the records of a listing.

        Pages are fetched as they are consumed: `first` records, then up to `most`. Raises
        `StoreUnavailable` if the listing does not end: a page repeats a token, too many pages in a
        row are empty, or there are too many pages.
        """
        token, size, empty = None, first, 0
        tokens: set[str] = set()
        while True:
            page = self.transport.get(
                path, {"max-records": str(size), **query, "page-token": token}
            )
            items = understood(page, lambda page: [decode(item) for item in page[name]], name)
            yield from items
            empty = 0 if items else empty + 1
            token, size = (
                understood(page, answers.decode_page, name),
                max(size, min(4 * size, most)),
            )
            if token is None:
                return
            if token in tokens:
                raise self._endless(name, "it repeats a page token")
            if empty >= MOST_EMPTY_PAGES:
                raise self._endless(name, f"{MOST_EMPTY_PAGES} pages in a row are empty")
            tokens.add(token)
            if len(tokens) >= self._most_pages:
                raise self._endless(name, f"it has more than {self._most_pages:,} pages")

    def _endless(self, name: str, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"server {self.transport.url}: its listing ({name}) does not end: {why}"
        )

    def reference(self, answer: Any, name: str = "reference") -> Reference:
        """Returns the reference of an answer, and records its hash."""
        reference = understood(answer, lambda answer: answers.decode_reference(answer[name]), name)
        self.named(reference.hash)
        return reference

    def named(self, hash_: str) -> None:
        """Records a hash that the server has named."""
        self.hashes[hash_] = True

    def optional(self, ask: Callable[[], T], action: str) -> T:
        """Returns the answer to a request. Raises `NotAllowed` if the server is too old for it."""
        try:
            return ask()
        except NotFound as error:
            # A Nessie server names the missing object; a framework without such a path does not.
            if type(error) is not NotFound:
                raise
            raise self.too_old(action) from None

    def too_old(self, action: str) -> NotAllowed:
        """Returns the error for a verb or option that this server does not have."""
        specification = self.configuration.specification or "unknown"
        return NotAllowed(
            f"server {self.transport.url} (specification {specification})"
            f" cannot tell or do this: {action}"
        )


def understood(answer: Any, decode: Callable[[Any], T], answer_name: str) -> T:
    """Decodes an answer. An error in it is reported as the server's."""
    return answers.understood(lambda: decode(answer), answer_name)


def _configuration(transport: Transport) -> Configuration:
    try:
        document = transport.get("config")
    except StoreNotFound:
        raise
    except NotFound:
        raise StoreNotFound(
            f"server {transport.url}: no Nessie server answers there; its API is at …/api/v2",
            transport.url,
        ) from None
    if not isinstance(document, dict) or "maxSupportedApiVersion" not in document:
        raise StoreNotFound(
            f"server {transport.url}: what answers there is no Nessie server", transport.url
        )
    if document.get("actualApiVersion", 1) != API_VERSION:
        raise InvalidInput(
            f"server {transport.url}: this is another version of the API; the address of version 2"
            " ends in /api/v2"
        )
    extra, created = (
        document.get("additionalProperties"),
        document.get("repositoryCreationTimestamp"),
    )
    announced = extra if isinstance(extra, dict) else {}
    has_extensions = ANNOUNCED in announced
    return Configuration(
        default_branch=str(document.get("defaultBranch") or "main"),
        created=understood(
            created, lambda text: decode_instant(text, "repositoryCreationTimestamp"), "config"
        )
        if created
        else None,
        specification=str(document.get("specVersion") or ""),
        extensions=has_extensions,
        combines=has_extensions and COMBINES in announced,
        reads_rows=has_extensions and ROWS in announced,
        clock_error=timedelta() if has_extensions else _CLOCK_ERROR,
    )
