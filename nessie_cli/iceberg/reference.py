"""The reference of a catalog: reads its current state, and commits changes to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from pyiceberg.exceptions import CommitFailedException, ForbiddenError

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    NessieError,
    NotFound,
    OutcomeUnknown,
    ReferenceConflict,
)
from nessie_cli.iceberg.errors import pyiceberg_errors
from nessie_cli.iceberg.messages import COMMIT_PROPERTIES
from nessie_cli.iceberg.state import State
from nessie_cli.model import (
    CommitMeta,
    Content,
    ContentKey,
    Entry,
    KeyRange,
    Operation,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.base import Repository

MAX_ATTEMPTS = 20
"""How often a change is tried on newer commits before it fails with `CommitFailedException`."""


T = TypeVar("T")


def _nothing() -> None:
    """The default of `Change.undo`."""


class CatalogChange(NamedTuple, Generic[T]):
    """The content of one commit. Without operations, nothing is committed.

    `answer` is returned to the caller. `undo` runs if certainly nothing was committed.
    """

    message: str
    operations: Sequence[Operation]
    answer: T
    undo: Callable[[], None] = _nothing


class PyIcebergState(State):
    """The contents of the catalog at one commit, with PyIceberg's errors."""

    def contents(self, keys: Sequence[ContentKey]) -> dict[ContentKey, Content]:
        """Returns the contents of those keys that exist."""
        with pyiceberg_errors():
            return super().contents(keys)

    def _entries(self, keys: KeyRange) -> Iterator[Entry]:
        with pyiceberg_errors():
            yield from super()._entries(keys)


class BoundReference:
    """A repository at one reference. Branches are writable, tags and commits are read-only."""

    def __init__(self, repository: Repository, ref: str | None, author: str | None) -> None:
        """Uses the default branch if `ref` is None. Raises `NotFound`."""
        self.repository = repository
        self._author = author
        with pyiceberg_errors():
            self._name = ref or repository.config().default_branch
            self._pinned = self._commit()

    @property
    def revision(self) -> str:
        """The name of the branch or tag, or the commit that `ref` was resolved to."""
        return f"{self._pinned.name}@{self._pinned.hash}" if self._pinned else self._name

    def _commit(self) -> Reference | None:
        """Returns the commit that `ref` names, None if it names a branch or tag."""
        try:
            self.repository.reference(self._name)
        except (NotFound, InvalidInput):
            return self.repository.resolve(self._name)
        return None

    def state(self) -> PyIcebergState:
        """Returns the current state of the reference."""
        with pyiceberg_errors():
            return PyIcebergState(
                self.repository, self._pinned or self.repository.reference(self._name)
            )

    def change(self, make: Callable[[PyIcebergState], CatalogChange[T]]) -> T:
        """Commits the change that `make` returns for the current state, and returns its answer.

        If others have changed the same keys meanwhile, `make` is called again. Its errors are
        passed on. Raises `CommitFailedException` after `MAX_ATTEMPTS` lost races,
        `CommitStateUnknownException` if the outcome is unknown, and `ForbiddenError` if the
        reference is a tag or commit.
        """
        for number in range(1, MAX_ATTEMPTS + 1):
            state = self.state()
            self._check_writable(state.reference)
            change = make(state)
            try:
                with pyiceberg_errors():
                    self._write(state.reference, change)
            except (ReferenceConflict, CommitNotFound) as error:
                if number == MAX_ATTEMPTS:
                    raise CommitFailedException(f"{change.message}: {error.message}") from error
            else:
                return change.answer
        raise AssertionError

    def _check_writable(self, reference: Reference) -> None:
        if self._pinned is not None:
            raise ForbiddenError(
                f"{self._name} is a commit and can only be read. Hint: set ref to a branch"
            )
        if reference.type is not ReferenceType.BRANCH:
            raise ForbiddenError(
                f"{self._name} is a tag and can only be read. Hint: set ref to a branch"
            )

    def _write(self, branch: Reference, change: CatalogChange[T]) -> None:
        if not change.operations:
            return
        meta = CommitMeta(
            change.message,
            authors=(self._author,) if self._author else (),
            properties=COMMIT_PROPERTIES,
        )
        request = uuid.uuid4().hex
        try:
            self.repository.commit(
                branch.name, change.operations, meta, expected_hash=branch.hash, request_id=request
            )
        except OutcomeUnknown:
            # The commit may exist, so its files are kept.
            if not self._happened(branch.name, request):
                raise
        except NessieError:
            change.undo()
            raise

    def _happened(self, branch: str, request: str) -> bool:
        """Whether the commit certainly exists. False if the repository does not answer."""
        with suppress(NessieError):
            return self.repository.find_request(request, branch=branch) is not None
        return False

    def close(self) -> None:
        """Closes the store."""
        self.repository.close()
