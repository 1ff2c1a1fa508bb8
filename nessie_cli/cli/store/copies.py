"""Shared parts of `nessie store backup` and `nessie store load`."""

import time

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.result import Document
from nessie_cli.errors import InvalidInput
from nessie_cli.render.text import counted
from nessie_cli.repository.urls import is_server
from nessie_cli.repository.verification import verify_copy
from nessie_cli.store.base import Store
from nessie_cli.store.records import Counts
from nessie_cli.wire.scalars import Count


class StoreCopy(Document, frozen=True):
    """A store and a file, and how much was copied between them."""

    store: str
    file: str
    objects: Count
    references: Count
    reflog_entries: Count
    requests: Count

    @classmethod
    def of(cls, store: str, file: str, counts: Counts) -> "StoreCopy":
        """Returns the result of a copy."""
        return cls(store, file, counts.objects, counts.references, counts.moves, counts.requests)

    @property
    def summary(self) -> str:
        """The counts in words: `900 objects, 1 reference, 301 reflog entries`."""
        return ", ".join((
            counted(self.objects, "object"),
            counted(self.references, "reference"),
            counted(self.reflog_entries, "reflog entry", "reflog entries"),
        ))  # fmt: skip


def verify_now(store: Store) -> None:
    """Verifies a copy. Raises `DamagedObject` for the first problem."""
    verify_copy(store, time.time_ns() // 1000)


def local_store_url(app: Invocation) -> str:
    """Returns the URL of the store.

    Raises `InvalidInput` if the store is behind a server.
    """
    url = app.store.url()
    if is_server(url):
        raise InvalidInput(
            f"{url} is a server, but this command needs direct access to the store",
            hint="run it where the store is, with --store",
        )
    return url
