"""A snapshot: a view of the store on which changes are drafted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from nessie_cli.errors import CommitNotFound, InvalidInput, ReferenceMoved
from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import root_of
from nessie_cli.kernel.forms import NO_COMMIT, Id, Kind, decode_key
from nessie_cli.kernel.objects import Cache, Objects
from nessie_cli.model import CommitMeta, Reference, ReferenceType
from nessie_cli.repository.context import Context
from nessie_cli.repository.expected import changed_since
from nessie_cli.repository.reading import last_change
from nessie_cli.repository.revisions import RevisionResolver, reference_not_found
from nessie_cli.store.base import View
from nessie_cli.store.records import StoredObject, StoredReference

if TYPE_CHECKING:
    from nessie_cli.kernel.ancestry import AncestryIndex

PutEarly = Callable[[list[StoredObject]], None]
"""A function that stores objects before any reference needs them."""

_NEAR = 16
"""The number of commits and nodes that are read together with the head of a branch."""

_BRANCH = ReferenceType.BRANCH  # looking a member up takes longer than a comparison


class StoreSnapshot:
    """A view of a store with its objects and revisions.

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
        self.objects = Objects(view.get, cache, written_before=view.written_before)
        self.revisions = RevisionResolver(view, self.objects, default_branch)
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
        return Objects(self.view.get, self.cache, self._spill if spill else None)

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


def stored_objects(
    pending: dict[Id, tuple[Kind, bytes]], index: Mapping[Id, tuple[bytes, ...]] = {}
) -> list[StoredObject]:
    """Returns the objects of a draft for a store, each after those that it refers to."""
    return [
        StoredObject(id_, kind, data, index.get(id_, ())) for id_, (kind, data) in pending.items()
    ]


def existing_branch(name: str, reference: StoredReference | None, verb: str) -> StoredReference:
    """Returns a stored branch. Raises an error if there is none, or if it is a tag."""
    if reference is None:
        raise reference_not_found(name)
    if reference.kind != _BRANCH:
        raise InvalidInput(f"Reference to {verb} into must be a branch.")
    return reference


def expected_commit(objects: Objects, branch: StoredReference, hash_: str | None) -> Id:
    """Returns the id of the expected hash, or HEAD.

    Raises `CommitNotFound` unless it is on the branch.
    """
    if hash_ is None:
        return branch.target
    id_ = _parse_hash(hash_)
    if id_ in (branch.target, NO_COMMIT):
        return id_
    if objects.find_commit(id_) is None or not history.on_first_parents(
        objects, id_, branch.target
    ):
        raise CommitNotFound(
            f"Could not find commit '{hash_}' in reference '{branch.name}'.", hash_
        )
    return id_


def refuse_changed(
    objects: Objects, branch: StoredReference, expected: Id, keys: Collection[bytes]
) -> Callable[[], ReferenceMoved] | None:
    """Returns the error if any of these keys has changed on a branch since a commit, or None.

    A decision is about the state that its caller has seen: it must not delete what came later.
    O(keys log N).
    """
    if expected == branch.target:
        return None
    before, after = (
        tree.get(objects, root_of(objects, commit), keys) for commit in (expected, branch.target)
    )
    changed = [decode_key(key) for key in keys if before.get(key) != after.get(key)]
    if not changed:
        return None
    return partial(changed_since, branch.name, expected.hex(), branch.target.hex(), changed)


def _parse_hash(text: str) -> Id:
    try:
        id_ = bytes.fromhex(text)
    except ValueError:
        id_ = b""
    if not id_:
        raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {text!r}")
    return id_


def branch_at(name: str, head: Id) -> Reference:
    """Returns a branch at a commit."""
    return Reference(_BRANCH, name, head.hex())
