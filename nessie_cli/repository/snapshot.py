"""A snapshot: a view of the store with objects, references and revisions, and its context."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from nessie_cli.errors import AmbiguousHash, CommitNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.kernel import history
from nessie_cli.kernel.commits import micros, root_of
from nessie_cli.kernel.forms import NO_COMMIT, Id, Kind
from nessie_cli.kernel.objects import Cache, Objects
from nessie_cli.model import CommitMeta, Reference, ReferenceType
from nessie_cli.repository.reading import last_change
from nessie_cli.revisions import Revision, RevisionStep, StepKind, parse
from nessie_cli.store.base import View
from nessie_cli.store.records import StoredObject, StoredReference

if TYPE_CHECKING:
    from nessie_cli.kernel.ancestry import AncestryIndex
    from nessie_cli.model.progress import Progress

PutEarly = Callable[[list[StoredObject]], None]
"""A function that stores objects before any reference needs them."""

_NEAR = 16
"""The number of commits and nodes that are read together with the head of a branch."""

_DIGITS = 64
_SHORTEST = 4
_CANDIDATES = 10


def now() -> int:
    """Returns the time in microseconds since 1970."""
    return time.time_ns() // 1000


class Context(Struct, frozen=True):
    """The committer, the clock and the randomness that a repository uses. Tests can fix them.

    `committer` is a name, or a function that returns it. `clock` returns microseconds since 1970.
    `progress` is called during long operations.
    """

    committer: str | Callable[[], str]
    clock: Callable[[], int]
    random: Callable[[int], bytes]
    progress: Progress | None = None

    @property
    def who(self) -> str:
        """The name of the committer."""
        return self.committer if isinstance(self.committer, str) else self.committer()


class StoreSnapshot:
    """A view of a store that reads its objects and resolves revisions.

    `put_early` stores the objects of a large load.
    """

    def __init__(
        self,
        view: View,
        cache: Cache,
        context: Context,
        default_branch: str,
        put_early: PutEarly,
        *,
        remote: bool,
    ) -> None:
        self.view = view
        self.cache = cache
        self.context = context
        self.default_branch = default_branch
        self.objects = Objects(
            view.get, cache, written_before=view.written_before, fetch_some=view.get_some
        )
        self._put_early = put_early
        self._remote = remote

    @cached_property
    def ancestry(self) -> AncestryIndex:
        """The ancestry index, which caches what it reads."""
        from nessie_cli.kernel.ancestry import AncestryIndex

        return AncestryIndex(self.objects, self.view.find_indexed)

    def branch_name(self, name: str) -> str:
        """Returns a reference name, where `-` stands for the default branch."""
        return self.default_branch if name == "-" else name

    def drafting_objects(self, *, spill: bool = False) -> Objects:
        """Returns objects that collect what a draft adds.

        With `spill`, a large draft is stored early.
        """
        return Objects(
            self.view.get,
            self.cache,
            self._spill if spill else None,
            fetch_some=self.view.get_some,
        )

    def read_near(self, head: Id) -> None:
        """Caches the head of a branch that another process moved, and its neighbours.

        This takes two round trips. Otherwise, a draft would make one for each commit since its
        expected hash and for each node on its paths. Does nothing if the store is local.
        """
        objects = self.objects
        if (
            self._remote
            and objects.known_commit(head) is None
            and objects.read_commits_before(head, _NEAR)
        ):
            objects.read_nodes_before(root_of(objects, head), _NEAR)

    def _spill(self, pending: dict[Id, tuple[Kind, bytes]]) -> None:
        self._put_early(stored_objects(pending))

    def last_change(self, objects: Objects, commit: Id, key: bytes) -> CommitMeta | None:
        """Returns the newest commit along first parents with an operation on a key."""
        return last_change(objects, self.view.find_indexed, commit, key)

    # -- revisions ---------------------------------------------------------------------------------

    def reference(self, name: str) -> StoredReference:
        """Returns a stored branch or tag; `-` is the default branch. Raises `ReferenceNotFound`."""
        name = self.branch_name(name)
        reference = self.view.reference(name)
        if reference is None:
            raise reference_not_found(name)
        return reference

    def references(
        self, type: ReferenceType | None = None, prefix: str = "", start: str = ""
    ) -> Iterator[Reference]:
        """Yields branches, then tags, each sorted by name. The first one is `start`, if given."""
        kinds = [type] if type else [ReferenceType.BRANCH, ReferenceType.TAG]
        first = self.view.reference(start) if start and len(kinds) > 1 else None
        if first is not None and first.kind == ReferenceType.TAG:
            kinds = [ReferenceType.TAG]
        for index, kind in enumerate(kinds):
            yield from map(
                as_reference, self.view.references(kind, prefix, start if index == 0 else "")
            )

    def resolve(self, revision: str | Revision) -> Reference:
        """Returns the reference and hash that a revision names."""
        spec = parse(revision) if isinstance(revision, str) else revision
        reference = self._named(spec)
        commit = self.commit_id(spec.hash) if spec.hash else bytes.fromhex(reference.hash)
        for step in spec.steps:
            commit = self._step(commit, step)
        return Reference(reference.type, reference.name, commit.hex())

    def _named(self, spec: Revision) -> Reference:
        if spec.name is None:
            return Reference(ReferenceType.DETACHED, "", spec.hash or "")
        stored = self.view.reference(self.branch_name(spec.name))
        if stored is not None:
            return as_reference(stored)
        if spec.hash is None and _is_hash(spec.name):
            return Reference(ReferenceType.DETACHED, "", self.commit_id(spec.name).hex())
        raise reference_not_found(spec.name)

    def commit_id(self, text: str) -> Id:
        """Returns the commit with a full or abbreviated hash.

        Raises `CommitNotFound` or `AmbiguousHash`.
        """
        text = text.lower()
        if not _is_hash(text):
            raise InvalidInput(f"{text!r} is not a commit hash (4 to 64 hexadecimal digits)")
        if len(text) == _DIGITS:
            id_ = bytes.fromhex(text)
            if id_ != NO_COMMIT and self.objects.find_commit(id_) is None:
                raise CommitNotFound(f"Commit '{text}' not found", text)
            return id_
        candidates = self.view.find_ids(Kind.COMMIT, text, _CANDIDATES + 1)
        if NO_COMMIT.hex().startswith(text):
            candidates.insert(0, NO_COMMIT)
        if not candidates:
            raise CommitNotFound(f"Commit '{text}' not found", text)
        if len(candidates) > 1:
            raise self._ambiguous(text, candidates)
        return candidates[0]

    def _ambiguous(self, text: str, candidates: list[Id]) -> AmbiguousHash:
        pairs = [
            (
                c.hex(),
                "the empty history"
                if c == NO_COMMIT
                else self.objects.commit(c).message.partition("\n")[0],
            )
            for c in candidates[:_CANDIDATES]
        ]
        names = ", ".join(
            f"{hash_[: max(8, len(text) + 4)]} ({subject})" for hash_, subject in pairs
        )
        more = " and more" if len(candidates) > _CANDIDATES else ""
        return AmbiguousHash(f"hash '{text}' is ambiguous: {names}{more}", pairs)

    def _step(self, commit: Id, step: RevisionStep) -> Id:
        objects = self.objects
        if step.kind is StepKind.ANCESTOR:
            return history.ancestor_at(
                objects, commit, history.height_of(objects, commit) - step.count
            )
        if step.kind is StepKind.PARENT:
            return history.parent_number(objects, commit, step.count)
        assert step.time is not None
        return history.at_time(objects, commit, micros(step.time))


def stored_objects(
    pending: dict[Id, tuple[Kind, bytes]], index: Mapping[Id, tuple[bytes, ...]] = {}
) -> list[StoredObject]:
    """Returns the objects of a draft for a store, each after those that it refers to."""
    return [
        StoredObject(id_, kind, data, index.get(id_, ())) for id_, (kind, data) in pending.items()
    ]


def as_reference(stored: StoredReference) -> Reference:
    """Returns a stored reference as a value for callers."""
    return Reference(ReferenceType(stored.kind), stored.name, stored.target.hex())


def reference_not_found(name: str) -> ReferenceNotFound:
    """Returns the error for an unknown branch or tag."""
    return ReferenceNotFound(f"Named reference '{name}' not found", name)


def _is_hash(text: str) -> bool:
    return _SHORTEST <= len(text) <= _DIGITS and not text.strip("0123456789abcdefABCDEF")
