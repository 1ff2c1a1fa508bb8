"""The one way to write: plan on a state, commit the drafts, and repeat stale plans.

A plan only reads: it drafts a change, checks it, and makes its answer. Several plans share one
commit: each sees what those before it will have done. No answer is given before the writes that it
could have seen are durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

from nessie_cli.errors import NessieError, OutcomeUnknown, ReferenceMoved, StoreUnavailable
from nessie_cli.kernel.forms import Commit, Id, Node
from nessie_cli.kernel.objects import Decoded
from nessie_cli.repository.contention import Contention
from nessie_cli.repository.draft import Draft
from nessie_cli.store.base import Store
from nessie_cli.store.overlay import Overlay
from nessie_cli.store.records import Done, Outcome, Requirement, Stale

FREE_TRIES = 2
"""The rounds that a plan may lose before it takes a lease."""
MOST_TRIES = 50

A = TypeVar("A")
R_contra = TypeVar("R_contra", contravariant=True)
DecodedObjects = Mapping[Id, Node | Commit]


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
        on: Callable[[Overlay | None, DecodedObjects], Any],
        cache: Decoded,
    ) -> None:
        self._store = store
        self._on = on
        self._cache = cache
        self._overlay: Overlay | None = None
        self._decoded: dict[Id, Node | Commit] = {}
        self._newest: Draft[Any] | None = None
        self._results: list[tuple[int, Planned[Any] | Exception]] = []

    def begin(self, begin: Sequence[tuple[str, str]]) -> None:
        """Reads the state with which the plans begin, in one round trip."""
        self._overlay = Overlay(self._store)
        self._overlay.read(begin)

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
        found: Planned[Any] | Exception
        try:
            found = plan(self._on(self._overlay, self._decoded))
        except Exception as error:  # noqa: BLE001 - the answer of this plan; the others go on
            found = error
        self._results.append((number, found))
        self._newest = _writing(found)

    def _show_newest(self) -> None:
        """Shows the newest draft to the next plan."""
        if self._newest is not None and self._newest.write is not None:
            self._overlay = self._overlay or Overlay(self._store)
            self._overlay.add(self._newest.write)
            self._decoded.update(self._newest.decoded)

    def commit(self, lease: Lease | None) -> tuple[dict[int, Any], list[tuple[int, Stale | None]]]:
        """Commits the drafts. Returns answers by number, and stale plans with their reasons."""
        drafts = [draft for _, found in self._results if (draft := _writing(found)) is not None]
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
        for number, found in self._results:
            draft = _writing(found)
            outcome = next(remaining) if draft is not None else None
            if draft is not None and draft.write is not None and isinstance(outcome, Done):
                self._cache.put_all(draft.decoded)
                answers[number] = _answer(found)
            elif draft is not None or again:
                if isinstance(outcome, Stale) and outcome.requirement is Requirement.OBJECT:
                    # A cached commit was deleted from the store.
                    self._cache.clear()
                # Stale, repeated, or an answer that may depend on a stale write.
                again.append((number, outcome if isinstance(outcome, Stale) else None))
            else:
                answers[number] = _answer(found)
        return answers, again

    def _failed(self, error: NessieError) -> dict[int, Any]:
        """Returns the answers after a failed commit: plans before the first write keep theirs."""
        answers: dict[int, Any] = {}
        failed = False
        for number, found in self._results:
            draft = _writing(found)
            failed = failed or draft is not None
            if isinstance(error, OutcomeUnknown) and draft is not None and draft.write is not None:
                answers[number] = OutcomeUnknown(error.message, draft.write.request.id)
            else:
                answers[number] = error if failed else _answer(found)
        return answers


def _writing(found: Planned[Any] | Exception) -> Draft[Any] | None:
    """Returns the draft of a plan that writes."""
    draft = found.draft if isinstance(found, Planned) else None
    return draft if draft is not None and draft.write is not None else None


def _answer(found: Planned[Any] | Exception) -> Any:
    return found.answer if isinstance(found, Planned) else found


class Lease:
    """The lease of a reference, taken before the write is known; none without a name.

    `last` says that the next commit is the last one under it.
    """

    def __init__(self, store: Store, name: str, *, last: bool = False) -> None:
        self._held = ExitStack()
        self.token = ""
        self.last = last
        if name:
            # A commit reports that the store is unavailable.
            with suppress(StoreUnavailable):
                self.token = self._held.enter_context(store.lease(name))

    def give_back(self) -> None:
        """Returns the lease. Calling it twice is harmless."""
        self.token = ""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


def commit_all(
    store: Store,
    on: Callable[[Overlay | None, DecodedObjects], Any],
    cache: Decoded,
    plans: Sequence[Plan[Any, A]],
    *,
    fair: bool = True,
    begin: Sequence[tuple[str, str]] = (),
    contention: Contention,
    lease: Lease | None = None,
) -> list[A | Exception]:
    """Runs and commits plans until each has an answer. Returns answers or errors, in order.

    `on` opens the repository on an overlay (None: on the store itself), `cache` gets the decoded
    objects that are stored now. After `FREE_TRIES` lost rounds a lease keeps other writers away,
    unless `fair` is False, because a plan runs programs of the user. `contention` remembers the
    lost races; `lease` is one that is held already, for the first try. `begin`
    are the references and request ids that plans begin with: read together.
    """
    answers: dict[int, Any] = {}
    waiting: list[tuple[int, Stale | None]] = [(number, None) for number in range(len(plans))]
    tries = 0
    while waiting and tries < MOST_TRIES:
        lost = next((stale.name for _, stale in waiting if stale is not None and stale.name), "")
        if lost:
            contention.add(lost)
        if tries and lease is not None:
            # A writer that waits for one lease holds no other.
            lease.give_back()
        with Lease(store, lost if fair and tries >= FREE_TRIES else "", last=True) as own:
            this = Round(store, on, cache)
            # In a local store a single plan reads as fast on its own.
            if begin and (store.remote or len(waiting) > 1):
                this.begin(begin)
            while waiting and not this.changes_settings:
                number, _ = waiting.pop(0)
                this.plan(number, plans[number])
            some, again = this.commit(own if own.token else lease)
        answers |= some
        waiting = again + waiting
        tries += bool(again)
    for number, stale in waiting:
        name = stale.name if stale is not None else ""
        answers[number] = ReferenceMoved(
            f"The operation could not be performed after {MOST_TRIES} retries: '{name}' kept moving"
        )
    return [answers[number] for number in range(len(plans))]
