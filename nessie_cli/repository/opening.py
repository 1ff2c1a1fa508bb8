"""Opens a repository by URL.

A store is opened without the HTTP client, a server without the kernel and the stores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput
from nessie_cli.model import check_new_reference_name
from nessie_cli.repository.base import Repository
from nessie_cli.repository.urls import is_server

if TYPE_CHECKING:
    from nessie_cli.model.progress import Progress
    from nessie_cli.repository.access import Access
    from nessie_cli.repository.store_repository import StoreRepository

Clock = Callable[[], int]
Randomness = Callable[[int], bytes]


def connect(
    url: str,
    *,
    who: str | Callable[[], str] = "",
    access: Access | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
    random: Randomness = os.urandom,
) -> Repository:
    """Opens the repository at a URL.

    `memory:` (a new, empty one), `sqlite:///relative/path`, `sqlite:////absolute/path`, a bare
    path, `postgresql://user@host/database`, or `http(s)://host/api/v2` of a Nessie server. `access`
    is how to reach that server: credentials, certificates, a proxy and timeouts.

    `who` is the committer, or a function that returns it, called for each write (a server
    determines it itself). `progress` is called during long operations with the amount done and the
    total, None if unknown; on a server, it is not called.

    For tests that need equal hashes, `clock` returns microseconds since 1970 instead of the
    machine's clock, and `random` returns random bytes.

    Raises `InvalidInput` for an invalid URL, `StoreNotFound` if nothing is there (see `create`),
    `UnsupportedFormat` and `StoreUnavailable` if it cannot be used.

    >>> with connect("memory:") as repository:
    ...     repository.reference("main").hash[:8]
    '2e1cfa82'
    """
    if is_server(url):
        from nessie_cli.repository.access import Access
        from nessie_cli.repository.remote.opening import open_remote

        return open_remote(url, access or Access(), random)
    return connect_store(url, who=who, progress=progress, clock=clock, random=random)


def connect_store(
    url: str,
    *,
    who: str | Callable[[], str] = "",
    progress: Progress | None = None,
    clock: Clock | None = None,
    random: Randomness = os.urandom,
) -> StoreRepository:
    """Opens the repository at the URL of a store, with group commit. See `connect`."""
    from nessie_cli.repository.local_opening import create_local, open_local
    from nessie_cli.repository.snapshot import Context, now

    context = Context(who, clock or now, random, progress=progress)
    return create_local(url, None, context) if url == "memory:" else open_local(url, context)


def create(
    url: str,
    *,
    default_branch: str | None = None,
    who: str = "",
    clock: Clock | None = None,
    random: Randomness = os.urandom,
) -> StoreRepository:
    """Opens the repository at a URL, and creates it (default branch `main`) if there is none.

    The folder of a file must exist. Raises `InvalidInput` for an invalid name of the default
    branch, for an existing repository with another default branch, and for a server.
    """
    if is_server(url):
        raise InvalidInput(
            "a server creates its own repository; create() needs the URL of a store",
            hint="use connect(url)",
        )
    if default_branch is not None:
        check_new_reference_name(default_branch)
    from nessie_cli.repository.local_opening import create_local
    from nessie_cli.repository.snapshot import Context, now

    return create_local(url, default_branch, Context(who, clock or now, random))
