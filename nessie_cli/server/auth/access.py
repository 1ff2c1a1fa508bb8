"""The catalog that is served, and the access of one caller to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.http.pieces import Pieces

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations
    from nessie_cli.server.auth.policy import Policy


class CallerAccess(NamedTuple):
    """The repository for one caller: for reading, for drafting, and the policy of its writes.

    Without a policy everything is allowed. `caller` is the authenticated name: empty for a
    request without credentials, None if the server has no authentication.
    """

    reading: ReadableRepository
    drafting: StoreRepository
    policy: Policy | None = None
    caller: str | None = None


def full_access(repository: StoreRepository) -> CallerAccess:
    """Returns the access of a caller who may do everything."""
    return CallerAccess(repository, repository)


class Catalog(NamedTuple):
    """The catalog that is served.

    It has the repository, its default branch (which never changes), a cache of encoded entries, and
    a function that opens the access of a caller. A filter gets `filter_seconds` of processor time
    per page. `locations` are the warehouses in which callers need a right to choose locations.
    """

    repository: StoreRepository
    default_branch: str
    pieces: Pieces
    open: Callable[[StoreRepository], CallerAccess] = full_access
    filter_seconds: float = 10.0
    locations: RecordedLocations | None = None
