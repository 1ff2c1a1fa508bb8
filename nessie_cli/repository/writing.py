"""The writing verbs of the embedded repository: draft on what HEAD is now, then one compare-and-swap; when another was faster, draft again.

Drafting needs no lock. Whoever loses a few races takes the store's write lock first and then cannot lose: nobody starves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import TypeVar

from nessie_cli.errors import CommitNotFound, InvalidInput, OutcomeUnknown, ReferenceMoved
from nessie_cli.kernel import history
from nessie_cli.kernel.keys import decode_key
from nessie_cli.kernel.objects import NO_COMMIT, Decoded, Id, Kind, Objects, format_content_id, is_inner
from nessie_cli.model import CommitMeta, ContentKey, Reference, ReferenceType
from nessie_cli.repository.circumstances import Circumstances
from nessie_cli.repository.reading import last_change
from nessie_cli.repository.revisions import reference_not_found
from nessie_cli.store.base import Done, Move, Store, StoredObject, StoredReference, Write

OPTIMISTIC_TRIES = 3
MOST_TRIES = 50

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

    def __init__(self, store: Store, cache: Decoded, circumstances: Circumstances) -> None:
        self._store = store
        self._cache = cache
        self._circumstances = circumstances

    def last_change(self, objects: Objects, commit: Id, key: bytes) -> CommitMeta | None:
        """The newest commit along first parents with an operation on a key."""
        return last_change(objects, self._store.find_marked, commit, key)

    def objects(self, *, spill: bool = False) -> Objects:
        """A fresh place for drafts over this store; with `spill` a large one is handed to the store early."""
        return Objects(self._store.get, self._cache, self._store_early if spill else None)

    def _store_early(self, pending: dict[Id, tuple[Kind, bytes]]) -> None:
        self._store.put([StoredObject(id_, kind, data, plain=is_inner(kind, data)) for id_, (kind, data) in pending.items()])

    def find(self, name: str, verb: str) -> StoredReference:
        """The branch as it is now; raises for a missing one and for a tag."""
        found = self._store.reference(name)
        if found is None:
            raise reference_not_found(name)
        if found.kind != ReferenceType.BRANCH:
            raise InvalidInput(f"Reference to {verb} into must be a branch.")
        return found

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
        base = dict(objects.pending)
        for number in range(MOST_TRIES):
            with self._store.exclusive() if number >= OPTIMISTIC_TRIES else nullcontext():
                branch = first if first and number == 0 else self.find(name, verb)
                objects.pending = dict(base)
                head, answer = attempt(branch)
                if head is None:
                    return answer
                move = self._move(branch, head, verb, request_id)
                written = self._write(objects, move)
            if written:
                objects.keep()
                return answer
        raise ReferenceMoved(f"The {verb} operation could not be performed after {MOST_TRIES} retries: '{name}' kept moving")

    def _move(self, branch: StoredReference, head: Id, verb: str, request_id: str | None) -> Move:
        at = self._circumstances
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
        marks = objects.marks
        stored = [StoredObject(id_, kind, data, marks.get(id_, ()), is_inner(kind, data)) for id_, (kind, data) in objects.pending.items()]
        write = Write(stored, [move])
        try:
            return isinstance(self._store.write(write), Done)
        except OutcomeUnknown:
            if self._store.find_request(move.request_id):
                return True
            raise


def _parse_hash(text: str) -> Id:
    try:
        id_ = bytes.fromhex(text)
    except ValueError:
        id_ = b""
    if not id_:
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {text!r}")
    return id_


def as_branch(name: str, head: Id) -> Reference:
    """A branch at a commit."""
    return Reference(ReferenceType.BRANCH, name, head.hex())
