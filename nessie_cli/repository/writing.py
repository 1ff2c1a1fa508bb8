"""The writing verbs of the embedded repository: draft on what HEAD is now, then one compare-and-swap; when another was faster, draft again.

Drafting needs no lock. Whoever loses a few races takes the store's write lock first and then cannot lose: nobody starves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from nessie_cli.errors import CommitNotFound, InvalidInput, OutcomeUnknown, ReferenceMoved
from nessie_cli.kernel import history
from nessie_cli.kernel.forms import NO_COMMIT, Id, Kind, format_content_id
from nessie_cli.kernel.keys import decode_key
from nessie_cli.kernel.objects import Decoded, Objects
from nessie_cli.model import CommitMeta, ContentKey, Reference, ReferenceType
from nessie_cli.repository.context import Context
from nessie_cli.repository.reading import last_change
from nessie_cli.repository.revisions import reference_not_found
from nessie_cli.store.base import Done, Move, Store, StoredObject, StoredReference, Write

OPTIMISTIC_TRIES = 3
MOST_TRIES = 50

_BRANCH, _NODE = ReferenceType.BRANCH, Kind.NODE  # looking a member up takes longer than a comparison

R = TypeVar("R")


class AddedIds(Mapping[ContentKey, str]):
    """The content ids that a commit gave, decoded as they are read: a large load has a million."""

    def __init__(self, added: Mapping[bytes, bytes]) -> None:
        self._added = added

    def __getitem__(self, key: ContentKey) -> str:
        return format_content_id(self._added["\x00".join(key.elements).encode()])

    def __iter__(self) -> Iterator[ContentKey]:
        return map(decode_key, self._added)

    def __len__(self) -> int:
        return len(self._added)


class Branch:
    """Moves one branch: finds where it is, drafts, writes, and tries again."""

    def __init__(self, store: Store, cache: Decoded, context: Context) -> None:
        self._store = store
        self._cache = cache
        self._context = context

    def last_change(self, objects: Objects, commit: Id, key: bytes) -> CommitMeta | None:
        """The newest commit along first parents with an operation on a key."""
        return last_change(objects, self._store.find_marked, commit, key)

    def objects(self, *, spill: bool = False) -> Objects:
        """A fresh place for drafts over this store; with `spill` a large one is handed to the store early."""
        return Objects(self._store.get, self._cache, self._store_early if spill else None)

    def _store_early(self, pending: dict[Id, tuple[Kind, bytes]]) -> None:
        self._store.put(_stored(pending))

    def find(self, name: str, verb: str) -> StoredReference:
        """The branch as it is now; raises for a missing one and for a tag."""
        return as_found(name, self._store.reference(name), verb)

    def expected(self, objects: Objects, branch: StoredReference, hash_: str | None) -> Id:
        """The expected hash as an id: it has to be on the branch (reference 7.5). HEAD where none is given."""
        if hash_ is None:
            return branch.target
        id_ = _parse_hash(hash_)
        if id_ in (branch.target, NO_COMMIT):
            return id_
        if objects.find_commit(id_) is None or not history.on_first_parents(objects, id_, branch.target):
            raise CommitNotFound(f"Could not find commit '{hash_}' in reference '{branch.name}'.", hash_)
        return id_

    def advance(
        self,
        name: str,
        verb: str,
        objects: Objects,
        attempt: Callable[[StoredReference], tuple[Id | None, R]],
        *,
        first: StoredReference | None = None,
        request_id: str | None = None,
    ) -> R:
        """Draft by `attempt` (new HEAD or None, and the answer) and write, until it is written or `attempt` raises.

        `first` is where the caller just saw the branch: the first try takes its word for it.
        """
        base = objects.pending

        def once(branch: StoredReference) -> tuple[bool | None, R]:
            """Whether it was written (None: there was nothing to write), and the answer."""
            objects.pending = base.copy()
            head, answer = attempt(branch)
            return None if head is None else self._write(objects, self._move(branch, head, verb, request_id)), answer

        for number in range(MOST_TRIES):
            if number < OPTIMISTIC_TRIES:
                written, answer = once(first if first and number == 0 else self.find(name, verb))
            else:
                with self._store.exclusive():
                    written, answer = once(self.find(name, verb))
            if written:
                objects.keep()
            if written is not False:
                return answer
        raise ReferenceMoved(f"The {verb} operation could not be performed after {MOST_TRIES} retries: '{name}' kept moving")

    def _move(self, branch: StoredReference, head: Id, verb: str, request_id: str | None) -> Move:
        at = self._context
        return Move(
            name=branch.name,
            kind=branch.kind,
            before=branch.target,
            after=head,
            time=at.clock(),
            who=at.who,
            operation=verb,
            message="",
            request_id=request_id or at.random(8).hex(),
        )

    def _write(self, objects: Objects, move: Move) -> bool:
        write = Write(_stored(objects.pending, objects.index_terms), [move])
        try:
            return isinstance(self._store.write(write), Done)
        except OutcomeUnknown:
            if self._store.find_request(move.request_id):
                return True
            raise


def _stored(pending: dict[Id, tuple[Kind, bytes]], marks: Mapping[Id, tuple[bytes, ...]] = {}) -> list[StoredObject]:
    # Nodes are little but ids and hashes, which hardly compress, and every commit writes some.
    return [StoredObject(id_, kind, data, marks.get(id_, ()), kind is _NODE) for id_, (kind, data) in pending.items()]


def _parse_hash(text: str) -> Id:
    try:
        id_ = bytes.fromhex(text)
    except ValueError:
        id_ = b""
    if not id_:
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {text!r}")
    return id_


def as_found(name: str, found: StoredReference | None, verb: str) -> StoredReference:
    """What was found under a name, if it is a branch; raises where it is nothing or a tag."""
    if found is None:
        raise reference_not_found(name)
    if found.kind != _BRANCH:
        raise InvalidInput(f"Reference to {verb} into must be a branch.")
    return found


def as_branch(name: str, head: Id) -> Reference:
    """A branch at a commit."""
    return Reference(_BRANCH, name, head.hex())
