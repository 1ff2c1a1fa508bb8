"""The embedded repository: every verb over a store in this process, nothing to start."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Self

from msgspec import structs

from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.forms import Id
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    MergeResult,
    Operation,
    Problem,
    Reference,
    ReferenceType,
)
from nessie_cli.repository import protection
from nessie_cli.repository.base import MergeOptions, R, Revision
from nessie_cli.repository.judging import Judge
from nessie_cli.repository.local_reading import LocalReading
from nessie_cli.store.base import Move, StoredObject, Watched, Write

if TYPE_CHECKING:
    from nessie_cli.repository.commits import Committer
    from nessie_cli.repository.moves import Moves
    from nessie_cli.repository.writing import Branch

DEMAND_EXPECTED = "require-expected-content"
"""The name of a setting."""
NO_OPTIONS = MergeOptions()


class LocalRepository(LocalReading):
    """A `Repository` over a `Store`."""

    def acting_as(self, who: str, judge: Judge | None = None) -> Self:
        """See `Acting`."""
        _ = self._ancestry  # found out once for all copies
        other = copy(self)
        other._at = structs.replace(self._at, who=who, judge=judge)  # noqa: SLF001 - a copy of this class
        # Both were made for whoever acts here.
        for name in ("_branches", "_committer"):
            vars(other).pop(name, None)
        return other

    # -- references --------------------------------------------------------------------------------------------------------------

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`."""
        if not name or name.startswith("."):
            raise InvalidInput(f"setting {name!r}: names of settings begin with a letter")
        protection.check_setting(name, value)
        previous = self._store.settings().get(name)
        self._store.write(Write(settings={name: value}))
        self._settings = self._store.settings()
        return previous

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """See `Repository`."""
        return self._moves().create(type, name, target)

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        return self._moves().assign(name, target, expected_hash)

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        return self._moves().rename(old, new, expected_hash)

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        return self._moves().delete(name, expected_hash)

    def _moves(self) -> Moves:
        from nessie_cli.repository.moves import Moves

        return Moves(self._store, self._revisions, self._ancestry, self._at, self.default_branch)

    # -- writing -----------------------------------------------------------------------------------------------------------------

    def commit(
        self,
        branch: str,
        operations: Iterable[Operation],
        meta: CommitMeta,
        *,
        expected_hash: str | None = None,
        request_id: str | None = None,
        dry_run: bool = False,
    ) -> CommitResult:
        """See `Repository`."""
        if request_id and (earlier := self.find_request(request_id)):
            return earlier
        name = self._plain_name(branch)
        found, settings = self._store.standing(name)
        protection.refuse(settings, name, protection.MERGE_ONLY, "it changes only by merges")
        return self._committer.commit(
            name,
            found,
            operations,
            meta,
            expected_hash=expected_hash,
            request_id=request_id,
            dry_run=dry_run,
            demand_expected=settings.get(DEMAND_EXPECTED) == "true",
        )

    # Kept: an import of what has been imported costs as much as a statement.
    @cached_property
    def _committer(self) -> Committer:
        from nessie_cli.repository.commits import Committer

        return Committer(self._branches, self._at)

    @cached_property
    def _branches(self) -> Branch:
        from nessie_cli.repository.writing import Branch

        return Branch(self._store, self._cache, self._at)

    def _plain_name(self, branch: str) -> str:
        return self.default_branch if branch == "-" else branch

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:  # noqa: ARG002 - ids alone find them here
        """See `Repository`."""
        from nessie_cli.repository.commits import added_by
        from nessie_cli.repository.writing import AddedIds

        rows = self._store.find_request(request_id)
        if not rows or rows[-1].move.after is None:
            return None
        move = rows[-1].move
        assert move.after is not None
        added = added_by(self._objects, move.after) if move.operation == "commit" else {}
        return CommitResult(Reference(ReferenceType(move.kind), move.name, move.after.hex()), AddedIds(added))

    def merge(self, branch: str, source: Revision, options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        from nessie_cli.repository.merges import merge

        done = self._done(options.request_id)
        if done is not None and done.after is not None:
            # The source may have moved since; the commit remembers what was merged.
            source = CommitSpec(None, self._objects.commit(done.after).parents[1].hex())
        return merge(self._branches, self._at, self._plain_name(branch), self.resolve(source), options, done=done)

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        from nessie_cli.repository.transplants import transplant

        name = self._plain_name(branch)
        protection.refuse(self._store.settings(), name, protection.MERGE_ONLY, "it changes only by merges")
        ids = [self._commit_id(CommitSpec(None, text)) for text in commits]
        return transplant(self._branches, self._at, name, ids, options, done=self._done(options.request_id))

    def _done(self, request_id: str | None) -> Move | None:
        rows = self._store.find_request(request_id) if request_id else []
        return rows[-1].move if rows else None

    def together(self, calls: Sequence[Callable[[], R]]) -> list[R | Exception]:
        """See `Grouping`."""
        from nessie_cli.repository.grouping import together

        return together(self._store, self._cache, calls)

    # -- care --------------------------------------------------------------------------------------------------------------------

    def check(self) -> Iterator[Problem]:
        """See `Repository`."""
        from nessie_cli.kernel.checking import check

        references = [(stored.name, stored.target) for stored in self._store.references()]

        def scan() -> Iterator[tuple[Id, int, bytes | str]]:
            for found in self._store.scan():
                yield found.id, found.kind, found.data if isinstance(found, StoredObject) else found.reason

        progress = self._at.progress
        count = self._store.count() if progress is not None else 0
        return check(scan, self._store.get, self._store.scan_marks(), references, progress=progress, count=count)

    def version(self) -> Hashable | None:
        """See `Repository`."""
        return None if self._watched is None else self._watched.version()

    @cached_property
    def _watched(self) -> Watched | None:
        # Looking whether an object keeps a protocol takes longer than the answer.
        return self._store if isinstance(self._store, Watched) else None

    def close(self) -> None:
        """See `Repository`."""
        self._store.close()
