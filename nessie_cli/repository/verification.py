"""Verification of a whole repository, for `nessie fsck`: the store's files, its rows, all objects and their links.

A part that cannot be read is a problem, and the parts after it are verified all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from nessie_cli.errors import NessieError
from nessie_cli.kernel.checking import Scanned, check
from nessie_cli.model import Problem, ProblemKind
from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Dump, Store
from nessie_cli.store.records import StoredObject, StoredReference


def verify(store: Store, progress: Progress | None = None) -> Iterator[Problem]:
    """Returns everything that is wrong, as it is found. Reads the store three times."""
    yield from _verify_file(store)
    references: list[StoredReference] = []
    yield from _verify_rows(store, references)
    yield from _verify_objects(store, references, progress)


def _verify_file(store: Store) -> Iterator[Problem]:
    try:
        for line in store.verify_file():
            yield Problem(ProblemKind.DAMAGED, "store", line)
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "store", error.message)


def _verify_rows(store: Store, references: list[StoredReference]) -> Iterator[Problem]:
    """Verifies everything but objects, and adds the references to `references`."""
    parts: dict[str, Callable[[Dump], object]] = {
        "settings": lambda dump: dump.settings(),
        "references": lambda dump: references.extend(dump.references()),
        "reflog": lambda dump: deque(dump.moves(), maxlen=0),
        "requests": lambda dump: deque(dump.requests(), maxlen=0),
    }
    for where, read in parts.items():
        try:
            with store.dump() as dump:
                read(dump)
        except NessieError as error:
            yield Problem(ProblemKind.DAMAGED, where, error.message)


def _verify_objects(store: Store, references: list[StoredReference], progress: Progress | None) -> Iterator[Problem]:
    def scan() -> Iterator[Scanned]:
        for found in store.scan():
            yield found.id, found.kind, found.data if isinstance(found, StoredObject) else found.reason

    try:
        count = store.count() if progress is not None else 0
        targets = [(reference.name, reference.target) for reference in references]
        yield from check(scan, store.get, store.scan_index(), targets, progress=progress, count=count)
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "objects", error.message)
