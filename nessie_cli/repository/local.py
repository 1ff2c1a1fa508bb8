"""The embedded repository: every verb over a store in this process, with no server to start."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

from msgspec import structs

from nessie_cli.kernel.cache import Layered
from nessie_cli.kernel.forms import Id
from nessie_cli.model import CommitResult, Problem
from nessie_cli.repository.base import Check
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.local_reading import LocalReading
from nessie_cli.repository.requests import Submission
from nessie_cli.repository.snapshot import Snapshot
from nessie_cli.repository.writing import Decoded, Plan, Planned, commit_all
from nessie_cli.store.base import StoredObject
from nessie_cli.store.overlay import Overlay

A = TypeVar("A")


class LocalRepository(LocalReading):
    """A `Repository` over a `Store`."""

    knows_callers: ClassVar[bool] = True

    def as_caller(self, who: str) -> Self:
        """See `Repository`."""
        return self._copy(self._view, self._snapshot.cache, who)

    def _copy(self, view: Any, cache: Any, who: str) -> Self:
        before = self._snapshot
        context = structs.replace(before.context, who=who)
        snapshot = Snapshot(view, cache, context, self.default_branch, self._store.put)
        if view is before.view:
            # Shared by all copies: what it has read once.
            snapshot.ancestry = before.ancestry
        other = copy(self)
        other._use(snapshot)  # noqa: SLF001 - a copy of this class
        return other

    def _over(self, overlay: Overlay | None, decoded: Decoded) -> Self:
        """This repository as it will be with the writes of an overlay; `decoded` are their nodes and commits."""
        if overlay is None:
            return self
        return self._copy(overlay, Layered(self._snapshot.cache, decoded), self._at.who)

    # -- writing --

    def draft(self, change: Change, submission: Submission | None = None) -> Draft[Any]:
        """See `Repository`."""
        draft = _verb(change)(self._snapshot, change, submission or Submission())
        draft.open_view = partial(self._as_drafted, draft)
        return draft

    def before_request(self, request_id: str) -> Self:
        """See `Repository`."""
        from nessie_cli.repository.requests import recorded

        request = self._view.request(request_id)
        if request is None:
            return self
        overlay = Overlay(self._view)
        for move in reversed(recorded(self._view, request).moves):
            overlay.put_back(move.name, move.kind, move.before)
        return self._over(overlay, {})

    def _as_drafted(self, draft: Draft[Any]) -> Self:
        if draft.write is None:
            return self
        overlay = Overlay(self._view)
        overlay.add(draft.write)
        return self._over(overlay, draft.decoded)

    def commit_all(self, plans: Sequence[Plan[Self, A]], *, fair: bool = True) -> list[A | Exception]:
        """See `Repository`."""
        return commit_all(self._store, self._over, self._keep, plans, fair=fair)

    def _write(self, change: Change, request_id: str | None, check: Check | None) -> tuple[Any, Draft[Any] | None]:
        """See `Repository`."""
        submission = Submission(request_id)

        def plan(repository: Self) -> Planned[tuple[Any, Draft[Any] | None]]:
            draft = repository.draft(change, submission)
            answer = draft.answer()
            if draft.write is None:
                return Planned((answer, None))
            if check is not None:
                check(draft)
            return Planned((answer, draft), draft)

        [found] = self.commit_all([plan], fair=check is None)
        if isinstance(found, Exception):
            raise found
        return found

    def _keep(self, decoded: Decoded) -> None:
        put = self._snapshot.cache.put
        for id_, found in decoded.items():
            put(id_, found)

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:  # noqa: ARG002 - ids alone find them here
        """See `Repository`."""
        from nessie_cli.repository.commits import result_of
        from nessie_cli.repository.requests import recorded

        request = self._view.request(request_id)
        return None if request is None else result_of(self._objects, recorded(self._view, request))

    # -- care --

    def check(self) -> Iterator[Problem]:
        """See `Repository`."""
        from nessie_cli.kernel.checking import check

        store = self._store
        references = [(stored.name, stored.target) for stored in store.references()]

        def scan() -> Iterator[tuple[Id, int, bytes | str]]:
            for found in store.scan():
                yield found.id, found.kind, found.data if isinstance(found, StoredObject) else found.reason

        progress = self._at.progress
        count = store.count() if progress is not None else 0
        return check(scan, store.get, store.scan_index(), references, progress=progress, count=count)

    def version(self) -> Hashable | None:
        """See `Repository`."""
        return self._store.change_counter()

    def close(self) -> None:
        """See `Repository`."""
        self._store.close()


Verb = Callable[[Snapshot, Any, Submission], Draft[Any]]


def _verb(change: Change) -> Verb:
    """The function that drafts a change. Its module is loaded when it is first needed."""
    if isinstance(change, Commit):
        from nessie_cli.repository.commits import commit

        return commit
    if isinstance(change, Merge):
        from nessie_cli.repository.merges import merge

        return merge
    if isinstance(change, Transplant):
        from nessie_cli.repository.transplants import transplant

        return transplant
    if isinstance(change, PutSettings):
        from nessie_cli.repository.settings import put_settings

        return put_settings
    from nessie_cli.repository import references

    verbs: Mapping[type, Verb] = {
        CreateReference: references.create,
        AssignReference: references.assign,
        RenameReference: references.rename,
        DeleteReference: references.delete,
    }
    return verbs[type(change)]
