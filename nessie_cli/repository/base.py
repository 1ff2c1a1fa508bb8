"""`Repository`: the operations of a catalog, for an embedded store and for a remote server.

`ReadableRepository` (`repository/reader.py`) has those that read. A write is a `Change`. The method
`submit` drafts, checks and commits it; each other method that writes is one change. A method that
writes does everything or raises.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CombinationRules,
    CombinedTable,
    CommitMeta,
    CommitResult,
    MergeResult,
    Operation,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.changes import (
    AnyRevision,
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    MergeOptions,
    PutSettings,
    RenameReference,
    TablePlaces,
    Transplant,
)
from nessie_cli.repository.reader import ALL_KEYS, ReadableRepository

if TYPE_CHECKING:
    from nessie_cli.repository.draft import ChangeSubmission, Check, Draft, Guard
    from nessie_cli.repository.runs import RunRecords
    from nessie_cli.wire.rows import RowQuery

__all__ = ["ALL_KEYS", "NO_OPTIONS", "Repository", "describe_settings"]

A = TypeVar("A")
NO_OPTIONS = MergeOptions()


class CombiningServer(Protocol):
    """A server that reads and writes the files of tables."""

    def combine_table(self, table: TablePlaces, rules: CombinationRules) -> CombinedTable:
        """Combines a table and writes its files, for a commit that stores the result.

        The answer is empty if the server has no access to the files. Raises `NotAllowed`,
        `InvalidInput` or `StoreUnavailable`.
        """


class RowSource(Protocol):
    """A server that reads the rows of tables with its own access to their files."""

    @property
    def url(self) -> str:
        """The address of the API."""

    def changed_rows(self, query: RowQuery) -> bytes:
        """Returns the changed rows of a table as frames (`wire.rows`)."""


class Repository(ReadableRepository):
    """A catalog under version control. Obtain one with `connect(url)`.

    Use it as a context manager or call `close`. Methods raise the errors of `nessie_cli.errors`:
    `InvalidInput` for invalid arguments, `NotFound` if something does not exist, `NotAllowed`,
    `ReferenceConflict` with the conflicts as data, and `StoreUnavailable` if the store or server
    cannot be used.
    """

    guard: Guard | None = None
    """The guard that decides on every change except dry runs and those of `commit_all`, or None."""

    @property
    def restores_content_ids(self) -> bool:
        """Whether a deleted content that comes back keeps its id.

        Servers without our extensions give it a new one.
        """
        return True

    @property
    def combining_server(self) -> CombiningServer | None:
        """The server of the repository, if it combines tables itself.

        Then it also does so in merges and transplants whose options ask for it.
        """
        return None

    @property
    def row_source(self) -> RowSource | None:
        """The server of the repository, if it reads the rows of tables itself."""
        return None

    @property
    def runs(self) -> RunRecords:
        """The records of pipelines' runs. Raises `InvalidInput` for a server that has none."""
        raise InvalidInput(
            "this server has no runs",
            hint="nessie run needs a store, or a server that is started by nessie serve",
        )

    # -- writing ----------------------------------------------------------------------------------
    @abstractmethod
    def draft(self, change: Change[A], submission: ChangeSubmission | None = None) -> Draft[A]:
        """Drafts a change on the current state of the repository, not visible to others.

        Conflicts, a protected branch and an existing name become the `refusal` of the draft; other
        errors are raised. Drafts of one `submission` give new contents the same ids, and answer a
        request id that was committed before. On a server, this is a dry run without key changes.
        """

    def submit(
        self, change: Change[A], *, request_id: str | None = None, check: Check | None = None
    ) -> A:
        """Drafts, checks and commits a change; after a lost race, again. Returns the answer.

        `check` is called with each draft that changes something, and raises an error to prevent it.
        The guard of the repository decides in the same way, except on dry runs. If the `request_id`
        was committed before, returns the recorded answer. A conflict or another refusal is raised.
        """
        guard = self.guard
        if guard is not None and change.is_dry_run:
            guard = None
        checks = [each for each in (check, guard.check if guard else None) if each is not None]
        if checks:
            change = change.repeatable()

        def check_all(draft: Draft[A]) -> None:
            for each in checks:
                each(draft)

        answer, draft = self._write(change, request_id, check_all if checks else None)
        if guard is not None and draft is not None:
            guard.done(draft, answer)
        return answer

    @abstractmethod
    def _write(
        self, change: Change[A], request_id: str | None, check: Check | None
    ) -> tuple[A, Draft[A] | None]:
        """Drafts, checks and commits a change.

        Returns the answer and the committed draft, if any.
        """

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
        """Puts one commit on a branch: all operations or none.

        `expected_hash` is the commit that the caller started from (default: HEAD). Only changes
        since then to the same keys or their namespaces conflict. Raises `ReferenceConflict` with
        every conflict. `operations` may be a generator of millions. If the `request_id` was
        committed before, returns the recorded result. Cost: O(operations · log keys).
        """
        change = Commit(branch, operations, meta, expected_hash, dry_run)
        return self.submit(change, request_id=request_id)

    def merge(
        self,
        branch: str,
        source: AnyRevision,
        options: MergeOptions = NO_OPTIONS,
        *,
        request_id: str | None = None,
    ) -> MergeResult:
        """Merges the changes of `source` since the merge base into a branch.

        Creates one commit with two parents, or none if the source has no new changes. Raises
        `MergeConflict`, or `ReferenceConflict` for a namespace that would be missing or is not
        empty, also in a dry run. Raises `CommitNotFound` if there is no common ancestor.
        """
        return self.submit(Merge(branch, source, options), request_id=request_id)

    def transplant(
        self,
        branch: str,
        commits: Sequence[str],
        options: MergeOptions = NO_OPTIONS,
        *,
        request_id: str | None = None,
    ) -> MergeResult:
        """Applies commits (hashes, oldest first) one by one onto a branch, each as a new commit.

        Raises the conflicts of `merge`.
        """
        return self.submit(Transplant(branch, commits, options), request_id=request_id)

    def create_reference(
        self,
        type: ReferenceType,
        name: str,
        target: str,
        *,
        message: str = "",
        request_id: str | None = None,
    ) -> Reference:
        """Creates a branch or tag at a hash.

        Raises `AlreadyExists`. Only a tag of a store or of `nessie serve` may have a message.
        """
        return self.submit(CreateReference(type, name, target, message), request_id=request_id)

    def assign_reference(
        self,
        name: str,
        target: str,
        *,
        expected_hash: str,
        allow_failed_run: bool = False,
        request_id: str | None = None,
    ) -> Reference:
        """Moves a reference to another commit (a hash).

        Raises `ReferenceMoved` unless it is at `expected_hash`, a full hash, and `WriteRefused` for
        commits of a run that has failed.
        """
        change = AssignReference(name, target, expected_hash, allow_failed_run)
        return self.submit(change, request_id=request_id)

    def rename_reference(
        self, old: str, new: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Renames a reference that is at `expected_hash`; in two steps on some servers."""
        return self.submit(RenameReference(old, new, expected_hash), request_id=request_id)

    def delete_reference(
        self, name: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Deletes a reference that is at `expected_hash`, and returns it.

        Raises `InvalidInput` for the default branch.
        """
        return self.submit(DeleteReference(name, expected_hash), request_id=request_id)

    def put_setting(
        self, name: str, value: str | None, *, request_id: str | None = None
    ) -> str | None:
        """Sets a setting of the repository, or removes it (None). Returns the previous value."""
        return self.submit(PutSettings({name: value}), request_id=request_id).get(name)

    # -- care -------------------------------------------------------------------------------------
    def verify(self, commits: Collection[str]) -> int | None:  # noqa: ARG002 - for implementations
        """Verifies the references, and everything that these commits (full hashes) need.

        Each object must match its id, and each reference the reflog. Returns the number of objects,
        or None if this repository cannot verify its store because it is remote. Raises
        `DamagedObject` for the first damaged object. Cost: reads the reflog and each object once.
        """
        return None


def describe_settings(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the settings for callers, without internal ones, whose names start with a dot."""
    return {name: value for name, value in settings.items() if not name.startswith(".")}
