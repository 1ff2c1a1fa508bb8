"""`StoreRepository`: the operations that need the store itself: care, group commit, callers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypeVar, cast

from nessie_cli.errors import InvalidInput
from nessie_cli.model import MaintenanceReport, Problem, Reference
from nessie_cli.repository.base import Repository

if TYPE_CHECKING:
    from nessie_cli.repository.group_commit import Lease, Plan
    from nessie_cli.repository.history_writer import HistoryWriter
    from nessie_cli.repository.runs import StoredRuns
    from nessie_cli.store.base import SessionTable

A = TypeVar("A")


class StoreRepository(Repository):
    """A repository over a store."""

    @abstractmethod
    def as_caller(self, who: str) -> Self:
        """Returns the same repository with `who` as the committer."""

    @abstractmethod
    def before_request(self, request_id: str) -> Self:
        """Returns this repository, but the references that a request moved are where they were.

        Returns the repository itself if there is no such request. Drafting the same change on it
        gives the recorded answer.
        """

    @property
    @abstractmethod
    def runs(self) -> StoredRuns:
        """The records of pipelines' runs."""

    @property
    @abstractmethod
    def sessions(self) -> SessionTable:
        """The logins of browsers at all servers of the store."""

    @property
    @abstractmethod
    def version_waits(self) -> bool:
        """Whether `version` and `heads` wait for a database server.

        Otherwise they take microseconds.
        """

    @abstractmethod
    def heads(self, names: Sequence[str]) -> tuple[Reference | None, ...] | None:
        """Returns the branches and tags with these names, or None if they are unavailable.

        Only one thread may call it or `version` at a time.
        """

    @abstractmethod
    def at_heads(self, heads: Iterable[Reference], *, in_memory: bool = False) -> Self:
        """Returns this repository with these branches and tags at these commits.

        `in_memory`: whatever is not in memory raises `NotInMemory` instead of being read.
        """

    @abstractmethod
    def commit_all(
        self,
        plans: Sequence[Plan[Self, A]],
        *,
        fair: bool = True,
        prefetch: Sequence[tuple[str, str]] = (),
        lease: Lease | None = None,
    ) -> list[A | Exception]:
        """Runs plans and commits their drafts. Returns the answer or error of each plan, in order.

        A plan is called with this repository as it will be after the plans before it. It reads,
        drafts, checks, and returns a `Planned`. It is called again if something that it read has
        changed. All plans share one wait for the disk. No answer is returned before the writes that
        its plan could have seen are durable. If they fail, their plans get an error:
        `StoreUnavailable` if nothing was written, otherwise `OutcomeUnknown` with the request id.

        Plans that run programs need `fair=False`: then no lease is taken for them. `prefetch` lists
        references that plans move, each with the request id (or ""), which are read together.
        `lease` is the result of `lease_if_contested`. The guard is not asked.
        """

    @abstractmethod
    def lease_if_contested(self, name: str) -> Lease:
        """Takes the lease of a reference if other processes have won races for it recently.

        Otherwise the result holds no lease. The caller calls `give_back` in any case. A server
        collects plans for `commit_all` under the lease, so that plans that arrive while it waits
        share one commit.
        """

    @abstractmethod
    def history_writer(self) -> HistoryWriter:
        """Returns a writer that brings the history of another repository into this one."""

    # -- care -------------------------------------------------------------------------------------
    @abstractmethod
    def check(self) -> Iterator[Problem]:
        """Verifies every object, reference and link, as `nessie fsck` does."""

    @abstractmethod
    def maintain(
        self,
        *,
        grace: timedelta | None = None,
        dry_run: bool = False,
        full: bool = False,
    ) -> MaintenanceReport:
        """Deletes expired reflog entries and request ids, and unreachable objects, beside writers.

        Keeps objects written within `grace` (default: a day, at least 2 hours), which must be
        longer than the longest load. A `dry_run` only counts. With `full`, free space returns to
        the file system while writers wait. Verifies the files of the store, its references against
        the reflog, and every reachable object, which it reads once. Raises `DamagedObject` before
        it deletes anything, and `InvalidInput` if `grace` is too short.
        """


def require_store(repository: Repository, refusal: str) -> StoreRepository:
    """Returns a repository over a store. Raises `InvalidInput` with `refusal` for a server."""
    if repository.is_remote:
        raise InvalidInput(refusal)
    # Another object may stand for the repository, to show that a command is busy.
    return cast(StoreRepository, repository)
