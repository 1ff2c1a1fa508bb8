"""Resolves revisions: looks names and abbreviated hashes up, and follows steps back."""

from __future__ import annotations

from nessie_cli.errors import AmbiguousHash, CommitNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.kernel import history
from nessie_cli.kernel.commits import micros
from nessie_cli.kernel.forms import NO_COMMIT, Id, Kind
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import Reference, ReferenceType
from nessie_cli.revisions import Revision, Step, StepKind, parse
from nessie_cli.store.base import View
from nessie_cli.store.records import StoredReference

_DIGITS = 64
_SHORTEST = 4
_CANDIDATES = 10


def as_reference(stored: StoredReference) -> Reference:
    """Returns a stored reference as a value for callers."""
    return Reference(ReferenceType(stored.kind), stored.name, stored.target.hex())


def reference_not_found(name: str) -> ReferenceNotFound:
    """Returns the error for an unknown branch or tag."""
    return ReferenceNotFound(f"Named reference '{name}' not found", name)


class RevisionResolver:
    """Resolves revisions on a view of a store."""

    def __init__(self, view: View, objects: Objects, default_branch: str) -> None:
        self._view = view
        self._objects = objects
        self._default_branch = default_branch

    def reference(self, name: str) -> StoredReference:
        """Returns a stored branch or tag; `-` is the default branch. Raises `ReferenceNotFound`."""
        name = self._default_branch if name == "-" else name
        reference = self._view.reference(name)
        if reference is None:
            raise reference_not_found(name)
        return reference

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
        stored = self._view.reference(self._default_branch if spec.name == "-" else spec.name)
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
            if id_ != NO_COMMIT and self._objects.find_commit(id_) is None:
                raise CommitNotFound(f"Commit '{text}' not found", text)
            return id_
        candidates = self._view.find_ids(Kind.COMMIT, text, _CANDIDATES + 1)
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
                else self._objects.commit(c).message.partition("\n")[0],
            )
            for c in candidates[:_CANDIDATES]
        ]
        names = ", ".join(
            f"{hash_[: max(8, len(text) + 4)]} ({subject})" for hash_, subject in pairs
        )
        more = " and more" if len(candidates) > _CANDIDATES else ""
        return AmbiguousHash(f"hash '{text}' is ambiguous: {names}{more}", pairs)

    def _step(self, commit: Id, step: Step) -> Id:
        objects = self._objects
        if step.kind is StepKind.ANCESTOR:
            return history.ancestor_at(
                objects, commit, history.height_of(objects, commit) - step.count
            )
        if step.kind is StepKind.PARENT:
            return history.parent_number(objects, commit, step.count)
        assert step.time is not None
        return history.at_time(objects, commit, micros(step.time))


def _is_hash(text: str) -> bool:
    return _SHORTEST <= len(text) <= _DIGITS and not text.strip("0123456789abcdefABCDEF")
