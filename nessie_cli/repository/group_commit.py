"""Group commit: plans on one state, whose drafts are committed together.

A plan only reads: it drafts a change, checks it, and makes its answer. Each plan sees the writes of
the plans before it. No answer is returned before the writes that its plan could have seen are
durable. Stale plans are repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Lock
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

from nessie_cli.errors import NessieError, OutcomeUnknown, ReferenceMoved, StoreUnavailable
from nessie_cli.kernel.forms import Id
from nessie_cli.kernel.objects import Cache, DecodedObject
from nessie_cli.repository.draft import Draft
from nessie_cli.store.base import LEASE, Store
from nessie_cli.store.overlay import Overlay
from nessie_cli.store.records import Done, Outcome, Requirement, Stale

FREE_TRIES = 2
"""The rounds that a plan may lose before it takes a lease."""
MOST_TRIES = 50

A = TypeVar("A")
R_contra = TypeVar("R_contra", contravariant=True)
DecodedObjects = Mapping[Id, DecodedObject]
OpenOn = Callable[[Overlay | None, DecodedObjects], Any]
"""Opens the repository on an overlay and its decoded objects, or on the store (None)."""


class Planned(Struct, Generic[A], frozen=True):
    """The outcome of a plan: the answer to give once `draft` is committed."""

    answer: A
    draft: Draft[Any] | None = None


Plan = Callable[[R_contra], Planned[A]]
"""Drafts, checks and answers on a repository, or raises the error for the caller."""


def planned(draft: Draft[A]) -> Planned[A]:
    """Returns the outcome of a plan that commits this draft. Raises the refusal of the draft."""
    return Planned(draft.answer(), draft)


class Round:
    """Plans that are drafted on one state and committed together."""

    def __init__(
        self,
        store: Store,
        open_on: OpenOn,
        cache: Cache,
    ) -> None:
        self._store = store
        self._open_on = open_on
        self._cache = cache
        self._overlay: Overlay | None = None
        self._decoded: dict[Id, DecodedObject] = {}
        self._newest: Draft[Any] | None = None
        self._results: list[tuple[int, Planned[Any] | Exception]] = []

    def prefetch(self, references: Sequence[tuple[str, str]]) -> None:
        """Reads references and request ids that the plans begin with, in one round trip."""
        self._overlay = Overlay(self._store)
        self._overlay.read(references)

    @property
    def changes_settings(self) -> bool:
        """Whether the newest draft changes settings.

        Plans that see this draft must wait until it is committed. A version does not tell its
        settings from those of another writer that changed them at the same time, so a stale draft
        would go unnoticed.
        """
        return (
            self._newest is not None
            and self._newest.write is not None
            and bool(self._newest.write.settings)
        )

    def plan(self, number: int, plan: Plan[Any, Any]) -> None:
        """Runs a plan, which sees the writes of those before it."""
        self._show_newest()
        result: Planned[Any] | Exception
        try:
            result = plan(self._open_on(self._overlay, self._decoded))
        except Exception as error:  # noqa: BLE001 - the answer of this plan; the others go on
            result = error
        self._results.append((number, result))
        self._newest = _writing_draft(result)

    def _show_newest(self) -> None:
        """Shows the newest draft to the next plan."""
        if self._newest is not None and self._newest.write is not None:
            self._overlay = self._overlay or Overlay(self._store)
            self._overlay.add(self._newest.write)
            self._decoded.update(self._newest.decoded)

    def commit(self, lease: Lease | None) -> tuple[dict[int, Any], list[tuple[int, Stale | None]]]:
        """Commits the drafts. Returns answers by number, and stale plans with their reasons."""
        drafts = [draft for _, result in self._results if (draft := _writing_draft(result))]
        try:
            outcomes = (
                self._store.commit(
                    [draft.write for draft in drafts if draft.write is not None],
                    lease=lease.token if lease is not None else "",
                    end_lease=lease is not None and lease.last,
                )
                if drafts
                else []
            )
        except NessieError as error:
            return self._failed(error), []
        return self._decided(outcomes)

    def _decided(
        self, outcomes: Sequence[Outcome]
    ) -> tuple[dict[int, Any], list[tuple[int, Stale | None]]]:
        answers: dict[int, Any] = {}
        again: list[tuple[int, Stale | None]] = []
        remaining = iter(outcomes)
        for number, result in self._results:
            draft = _writing_draft(result)
            outcome = next(remaining) if draft is not None else None
            if draft is not None and draft.write is not None and isinstance(outcome, Done):
                self._cache.put_all(draft.decoded)
                answers[number] = _answer(result)
            elif draft is not None or again:
                if isinstance(outcome, Stale) and outcome.requirement is Requirement.OBJECT:
                    # A cached commit was deleted from the store.
                    self._cache.clear()
                # Stale, repeated, or an answer that may depend on a stale write.
                again.append((number, outcome if isinstance(outcome, Stale) else None))
            else:
                answers[number] = _answer(result)
        return answers, again

    def _failed(self, error: NessieError) -> dict[int, Any]:
        """Returns the answers after a failed commit: plans before the first write keep theirs."""
        answers: dict[int, Any] = {}
        failed = False
        for number, result in self._results:
            draft = _writing_draft(result)
            failed = failed or draft is not None
            if isinstance(error, OutcomeUnknown) and draft is not None and draft.write is not None:
                answers[number] = OutcomeUnknown(error.message, draft.write.request.id)
            else:
                answers[number] = error if failed else _answer(result)
        return answers


def _writing_draft(result: Planned[Any] | Exception) -> Draft[Any] | None:
    """Returns the draft of a plan that writes."""
    draft = result.draft if isinstance(result, Planned) else None
    return draft if draft is not None and draft.write is not None else None


def _answer(result: Planned[Any] | Exception) -> Any:
    return result.answer if isinstance(result, Planned) else result


class Lease:
    """The lease of a reference, taken before the write is known; none without a name.

    `last` says that the next commit is the last one under it.
    """

    def __init__(self, store: Store, name: str, *, last: bool = False) -> None:
        self._lease = ExitStack()
        self.token = ""
        self.last = last
        if name:
            # A commit reports that the store is unavailable.
            with suppress(StoreUnavailable):
                self.token = self._lease.enter_context(store.lease(name))

    def give_back(self) -> None:
        """Returns the lease. Calling it twice is harmless."""
        self.token = ""
        self._lease.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


class Contention:
    """The contested references: those on which this process has lost a race recently.

    The next writers of this process take their lease at once. Correctness does not depend on it: a
    commit names the state that it was drafted on, and is refused if that has changed.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._lock = Lock()

    def add(self, name: str) -> None:
        """Records a lost race."""
        now = time.monotonic()
        with self._lock:
            self._until = {other: end for other, end in self._until.items() if end > now}
            self._until[name] = now + LEASE

    def __contains__(self, name: str) -> bool:
        return self._until.get(name, 0) > time.monotonic()


class GroupCommit:
    """Commits plans over one store, and remembers which references are contested."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._contention = Contention()

    def lease_if_contested(self, name: str) -> Lease:
        """Takes the lease of a reference if races for it were lost recently."""
        return Lease(self._store, name if name in self._contention else "")

    def commit_all(
        self,
        plans: Sequence[Plan[Any, A]],
        open_on: OpenOn,
        cache: Cache,
        *,
        fair: bool = True,
        prefetch: Sequence[tuple[str, str]] = (),
        lease: Lease | None = None,
    ) -> list[A | Exception]:
        """Runs and commits plans until each has an answer. Returns answers or errors, in order.

        `cache` gets the decoded objects that are stored now. After `FREE_TRIES` lost rounds, a
        lease keeps other writers away, unless `fair` is False because a plan runs programs of the
        user. `lease` is one that was taken already, for the first try. `prefetch` are the
        references and request ids that plans begin with.
        """
        answers: dict[int, Any] = {}
        waiting: list[tuple[int, Stale | None]] = [(number, None) for number in range(len(plans))]
        tries = 0
        while waiting and tries < MOST_TRIES:
            lost = next((stale.name for _, stale in waiting if stale and stale.name), "")
            if lost:
                self._contention.add(lost)
            if tries and lease is not None:
                # A writer that waits for one lease holds no other.
                lease.give_back()
            name = lost if fair and tries >= FREE_TRIES else ""
            with Lease(self._store, name, last=True) as own:
                group = Round(self._store, open_on, cache)
                # In a local store, a single plan reads as fast on its own.
                if prefetch and (self._store.remote or len(waiting) > 1):
                    group.prefetch(prefetch)
                while waiting and not group.changes_settings:
                    number, _ = waiting.pop(0)
                    group.plan(number, plans[number])
                committed, stale_plans = group.commit(own if own.token else lease)
            answers |= committed
            waiting = stale_plans + waiting
            tries += bool(stale_plans)
        for number, stale in waiting:
            name = stale.name if stale is not None else ""
            answers[number] = ReferenceMoved(
                f"The operation could not be performed after {MOST_TRIES} retries:"
                f" '{name}' kept moving"
            )
        return [answers[number] for number in range(len(plans))]
