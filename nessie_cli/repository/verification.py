"""Verification of a whole repository for `nessie fsck`: files, rows, objects and links.

A part that cannot be read is a problem; later parts are still verified.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from nessie_cli.errors import DamagedObject, NessieError
from nessie_cli.kernel.checking import ReflogNumber, Scanned, check
from nessie_cli.kernel.duplicates import Duplicate, duplicates, replaceable_key
from nessie_cli.kernel.forms import Id, Kind, decode_commit, decode_key, format_content_id
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.reachable import Reachable
from nessie_cli.model import Problem, ProblemKind, ReferenceType, ReflogType
from nessie_cli.model.progress import Progress
from nessie_cli.repository.expiry import expiry, moves_before
from nessie_cli.repository.reading import moves
from nessie_cli.repository.requests import result_of_request, values_of
from nessie_cli.repository.runs import StoredRuns
from nessie_cli.store.base import Store, View
from nessie_cli.store.records import StoredObject, StoredReference

_TRIES = 1000
"""How often a reference that others move is read again."""
_MOST_NAMED = 5
"""The maximum number of keys that a problem names."""


def verify(store: Store, now: int, progress: Progress | None = None) -> Iterator[Problem]:
    """Yields every problem as it is found. Reads the store three times.

    `now` is in microseconds since 1970. Duplicate content ids are searched only if all objects are
    intact.
    """
    state = _StoreState()
    is_intact = True
    for problem in chain(_verify_file(store), _verify_rows(store, now, state)):
        is_intact = False
        yield problem
    if is_intact:
        # On a damaged file it would repeat other problems.
        yield from _verify_references(store)
    is_readable = True
    for problem in _verify_objects(store, state, progress):
        is_readable = False
        yield problem
    if is_readable:
        yield from _verify_content_ids(store, state.references)


class _StoreState:
    """The references, and the positions to which entries of the reflog can restore them."""

    def __init__(self) -> None:
        self.references: list[StoredReference] = []
        self.positions: dict[Id, ReflogNumber] = {}


def _verify_file(store: Store) -> Iterator[Problem]:
    try:
        for line in store.verify_file():
            yield Problem(ProblemKind.DAMAGED, "store", line)
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "store", error.message)


def _verify_rows(store: Store, now: int, state: _StoreState) -> Iterator[Problem]:
    """Verifies everything but objects, and reads the state."""
    parts: dict[str, Callable[[], object]] = {
        "settings": store.settings,
        "references": lambda: state.references.extend(store.references()),
        "reflog": lambda: _read_reflog(store, now, state.positions),
        "requests": lambda: _read_requests(store),
        "sessions": store.sessions.all,
        "runs": lambda: deque(StoredRuns(store.runs).each(), maxlen=0),
    }
    for where, read in parts.items():
        try:
            read()
        except NessieError as error:
            yield Problem(ProblemKind.DAMAGED, where, error.message)


def _verify_references(store: Store) -> Iterator[Problem]:
    try:
        verify_references(store)
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "references", error.message)


def _read_reflog(store: Store, now: int, positions: dict[Id, ReflogNumber]) -> None:
    """Adds the positions of entries that have not expired."""
    try:
        expired_before = moves_before(expiry(store.settings().values), now)
    except NessieError:
        # The settings are a problem of their own.
        expired_before = moves_before(expiry({}), now)
    for row in moves(store):
        if row.move.kind == ReflogType.SETTING:
            values_of(row.move)
        if row.move.time >= expired_before:
            for id_ in (row.move.before, row.move.after):
                if id_ is not None:
                    positions.setdefault(id_, ReflogNumber(row.number, row.move.name))


def _read_requests(store: Store) -> None:
    with store.dump() as dump:
        for request in dump.requests():
            if request.result:
                result_of_request(request)


def _verify_objects(
    store: Store, state: _StoreState, progress: Progress | None
) -> Iterator[Problem]:
    def scan() -> Iterator[Scanned]:
        for listed in store.scan():
            yield (
                listed.id,
                listed.kind,
                listed.data if isinstance(listed, StoredObject) else listed.reason,
            )

    indexed: set[bytes] | None = None
    try:
        indexed = {term + id_ for term, id_ in store.scan_index()}
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "index", error.message)
    try:
        count = store.count() if progress is not None else 0
        targets = [(reference.name, reference.target) for reference in state.references]
        yield from check(
            scan,
            store.get,
            indexed,
            targets,
            state.positions,
            progress=progress,
            count=count,
        )
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "objects", error.message)


def _verify_content_ids(store: Store, references: list[StoredReference]) -> Iterator[Problem]:
    try:
        yield from duplicate_problems(Objects(store.get), _first_parents(store), references)
    except NessieError as error:
        yield Problem(ProblemKind.DAMAGED, "objects", error.message)


def duplicate_problems(
    objects: Objects, first_parents: Mapping[Id, Id], references: Sequence[StoredReference]
) -> Iterator[Problem]:
    """Yields content ids under several keys: in history where they were added, and in HEADs.

    `first_parents` contains every commit. Raises `DamagedObject`.
    """
    heads: dict[Id, list[StoredReference]] = {}
    for reference in references:
        heads.setdefault(reference.target, []).append(reference)
    for duplicate in duplicates(objects, first_parents, heads):
        if duplicate.is_added:
            yield _of_commit(duplicate)
        for reference in heads.get(duplicate.commit, ()):
            yield _of_reference(objects, duplicate, reference)


def _first_parents(store: Store) -> dict[Id, Id]:
    return {
        stored.id: decode_commit(stored.data).parents[0]
        for stored in store.scan(Kind.COMMIT)
        if isinstance(stored, StoredObject)
    }


def _of_commit(duplicate: Duplicate) -> Problem:
    hash_ = duplicate.commit.hex()
    return Problem(
        ProblemKind.DUPLICATE_ID, hash_, f"commit {hash_[:16]} puts {_described(duplicate)}"
    )


def _of_reference(objects: Objects, duplicate: Duplicate, reference: StoredReference) -> Problem:
    key = replaceable_key(objects, duplicate) if reference.kind == ReferenceType.BRANCH else None
    return Problem(
        ProblemKind.DUPLICATE_ID,
        reference.name,
        f"reference '{reference.name}' has {_described(duplicate)}",
        None if key is None else (reference.name, decode_key(key)),
    )


def _described(duplicate: Duplicate) -> str:
    keys = [f"'{decode_key(key).plain}'" for key in duplicate.keys[:_MOST_NAMED]]
    more = len(duplicate.keys) - len(keys)
    return (
        f"content id {format_content_id(duplicate.content_id)} under {len(duplicate.keys)} keys:"
        f" {', '.join(keys)}{f' and {more} more' if more else ''}"
    )


def verify_reachable(store: Store, commits: Iterable[Id], progress: Progress | None = None) -> int:
    """Verifies commits with everything that they need. Returns the number of objects.

    Raises `DamagedObject` for the first object that is missing or damaged. Reads each object once;
    takes about 110 bytes of memory for each.
    """
    reachable = Reachable(
        store.get, None if progress is None else lambda done: progress(done, None)
    )
    reachable.add(Kind.COMMIT, commits)
    return len(reachable)


def verify_rows(store: Store) -> None:
    """Verifies files, and references and settings against the reflog.

    Raises `DamagedObject` for the first problem. Reads the files once.
    """
    for problem in store.verify_file():
        raise DamagedObject(problem)
    verify_references(store)


def verify_copy(store: Store, now: int) -> None:
    """Verifies a copy: its rows, and everything that references and the reflog need.

    `now` is in microseconds since 1970. Entries of the reflog that have expired need nothing.
    Raises `DamagedObject` for the first problem. Reads each object once.
    """
    verify_rows(store)
    positions: dict[Id, ReflogNumber] = {}
    _read_reflog(store, now, positions)
    verify_reachable(store, [*(reference.target for reference in store.references()), *positions])


def verify_references(view: View) -> None:
    """Verifies that each reference is where its newest move in the reflog led.

    Raises `DamagedObject` if one is elsewhere, missing, or should not exist, or if the reflog is
    empty: its newest entry never expires. References whose moves have all expired are accepted.
    Cost: reads the reflog and the references once.
    """
    references = {reference.name: reference.target for reference in view.references()}
    newest = _newest_moves(view)
    if not newest:
        raise DamagedObject("the reflog is empty, and the newest entry of a reflog never expires")
    for name, target in newest.items():
        if references.get(name) != target:
            _verify_reference(view, name)


def _newest_moves(view: View) -> dict[str, Id | None]:
    newest: dict[str, Id | None] = {}
    for row in moves(view):
        newest.setdefault(row.move.name, row.move.after)
    return newest


def _verify_reference(view: View, name: str) -> None:
    """Reads a reference again: another process may have moved it between two reads."""
    for _ in range(_TRIES):
        [move] = view.reflog(name, limit=1)
        reference = view.reference(name)
        if view.reflog(name, limit=1) == [move]:
            break
    there = None if reference is None else reference.target
    if there != move.move.after:
        state = "is missing" if there is None else f"is at {there.hex()[:16]}"
        last = "deleted it" if move.move.after is None else f"led to {move.move.after.hex()[:16]}"
        raise DamagedObject(f"reference '{name}' {state}, but its last move in the reflog {last}")
