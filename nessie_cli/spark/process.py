"""Opens the repository in a process of Spark, by the environment of that process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from nessie_cli import reaching
from nessie_cli.errors import NotAllowed, StoreNotFound
from nessie_cli.repository.base import Repository
from nessie_cli.repository.urls import is_server

_SQLITE = "sqlite:///"


def at_driver(url: str) -> str:
    """Returns the URL for all processes. Relative paths are relative to the driver's directory."""
    if is_server(url):
        return url
    path = url[len(_SQLITE) :] if url[: len(_SQLITE)].lower() == _SQLITE else url
    # `connect` checks all other schemes.
    return url if "://" in path else f"{_SQLITE}{Path(path).absolute()}"


@contextmanager
def opened(url: str) -> Iterator[Repository]:
    """Opens the repository at a URL, with the credentials in the environment of this process."""
    with reaching.opened(url, lambda _: None, str) as repository:
        yield repository


@contextmanager
def opened_by_worker(url: str, created: datetime | None) -> Iterator[Repository]:
    """Opens the driver's repository in a task.

    Refuses a missing file, and another store at the same path of the worker.
    """
    if not url.startswith(_SQLITE):
        with _named_to_server(url), opened(url) as repository:
            yield repository
        return
    try:
        connection = reaching.opened(url, lambda _: None, str)
    except StoreNotFound:
        raise StoreNotFound(
            f"the worker {socket.gethostname()} has no such file; {_ADVICE}", url
        ) from None
    with connection as repository:
        if repository.config().created != created:
            raise StoreNotFound(
                f"on the worker {socket.gethostname()} this file is another repository than the"
                f" driver's; {_ADVICE}",
                url,
            )
        yield repository


_ADVICE = (
    "on a cluster every worker has to reach the store: serve it (nessie serve) and give the"
    " server's URL"
)


@contextmanager
def _named_to_server(url: str) -> Iterator[None]:
    """Adds a hint to a refusal if this process has no credentials, unlike the driver."""
    try:
        yield
    except NotAllowed as error:
        if reaching.access_to(url, lambda _: None, str).credentials:
            raise
        given = "the setting spark.executorEnv.NESSIE_AUTH_TOKEN gives it a token"
        raise NotAllowed(
            f"{error.message}. The worker {socket.gethostname()} has no credentials in its"
            f" environment; {given}"
        ) from None
