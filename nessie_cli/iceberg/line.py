"""A catalog's line of history: what stands on its reference now, and changes of it, each as one commit that is judged by what it started from."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
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
from nessie_cli.iceberg.failures import pyiceberg_errors
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

MOST_TRIES = 20
"""How often a change is made anew on what others have committed meanwhile, before PyIceberg is told that it failed."""
_PATIENCE = 100
"""So many keys that lie too deep are read past before a listing jumps over all of them."""
_APPLICATION = {"application-type": ("iceberg",)}
"""A property of each commit, as those of Iceberg's own NessieCatalog have it."""


T = TypeVar("T")


def _nothing() -> None:
    """What there is to undo by default."""


class Change(NamedTuple, Generic[T]):
    """What one commit shall do: nothing without operations. `answer` is for the caller, `undo` is called when certainly nothing was committed."""

    message: str
    operations: Sequence[Operation]
    answer: T
    undo: Callable[[], None] = _nothing


class State:
    """Everything that the catalog holds at one commit."""

    def __init__(self, repository: Repository, reference: Reference) -> None:
        self.reference = reference
        self._repository = repository
        self._at = f"{reference.name}@{reference.hash}"

    def content(self, key: ContentKey) -> Content | None:
        """The content of a key, None for none."""
        return self.contents([key]).get(key)

    def contents(self, keys: Sequence[ContentKey]) -> dict[ContentKey, Content]:
        """The contents of those keys that exist."""
        with pyiceberg_errors():
            return self._repository.contents(self._at, keys)

    def inside(self, namespace: ContentKey | None) -> Iterator[Entry]:
        """What lies directly in a namespace (None: at the root), ascending; costs little more than that, however much lies deeper."""
        keys: KeyRange | None = KeyRange(prefix=namespace)
        while keys is not None:
            keys = yield from self._inside(namespace, keys)

    def _inside(
        self, namespace: ContentKey | None, keys: KeyRange
    ) -> Generator[Entry, None, KeyRange | None]:
        """Those in a range of keys, up to many keys that lie deeper; answers the range that is left behind these."""
        depth = len(namespace.elements) + 1 if namespace else 1
        passed = 0
        for entry in self._entries(keys):
            if namespace and not entry.key.starts_with(namespace):
                return None
            if len(entry.key.elements) == depth:
                passed = 0
                yield entry
            elif len(entry.key.elements) > depth:
                passed += 1
                if passed == _PATIENCE and (start := _beyond(entry.key.elements[:depth])):
                    return KeyRange(minimum=start)
        return None

    def is_empty(self, namespace: ContentKey) -> bool:
        """Whether nothing lies in a namespace."""
        return next(self.inside(namespace), None) is None

    def _entries(self, keys: KeyRange) -> Iterator[Entry]:
        with pyiceberg_errors():
            yield from self._repository.entries(self._at, keys)


def _beyond(elements: tuple[str, ...]) -> ContentKey | None:
    """The first key that may follow everything below another one; None where it would be too long for a key."""
    try:
        # No element holds a character before the space.
        return ContentKey((*elements[:-1], f"{elements[-1]} "))
    except InvalidInput:
        return None


class Line:
    """One reference of a repository: a branch can be changed, a tag and a commit only read."""

    def __init__(self, repository: Repository, ref: str | None, author: str | None) -> None:
        """Without `ref`, the default branch. Raises `NotFound` where there is none of this name."""
        self.repository = repository
        self._author = author
        with pyiceberg_errors():
            self._name = ref or repository.config().default_branch
            self._pinned = self._commit()

    @property
    def revision(self) -> str:
        """The branch or tag, or the very commit that was found when the line was opened."""
        return f"{self._pinned.name}@{self._pinned.hash}" if self._pinned else self._name

    def _commit(self) -> Reference | None:
        """The commit that stays the same, None where a reference is named."""
        try:
            self.repository.reference(self._name)
        except (NotFound, InvalidInput):
            return self.repository.resolve(self._name)
        return None

    def state(self) -> State:
        """What stands on the reference now."""
        with pyiceberg_errors():
            return State(self.repository, self._pinned or self.repository.reference(self._name))

    def change(self, make: Callable[[State], Change[T]]) -> T:
        """Commit what `make` makes of the state, and give its answer. When others have changed the same meanwhile, it is called again.

        `make` raises what PyIceberg shall be told. Raises `CommitFailedException` where others are faster time and again,
        `CommitStateUnknownException` where an answer was lost and nobody can say what became of it, `ForbiddenError` for a tag or commit.
        """
        for number in range(1, MOST_TRIES + 1):
            state = self.state()
            self._check_writable(state.reference)
            change = make(state)
            try:
                with pyiceberg_errors():
                    self._write(state.reference, change)
            except (ReferenceConflict, CommitNotFound) as error:
                if number == MOST_TRIES:
                    raise CommitFailedException(f"{change.message}: {error.message}") from error
            else:
                return change.answer
        raise AssertionError

    def _check_writable(self, reference: Reference) -> None:
        if self._pinned is not None:
            raise ForbiddenError(
                f"{self._name} is a commit and can only be read; name a branch as ref"
            )
        if reference.type is not ReferenceType.BRANCH:
            raise ForbiddenError(
                f"{self._name} is a tag and can only be read; name a branch as ref"
            )

    def _write(self, branch: Reference, change: Change[T]) -> None:
        if not change.operations:
            return
        meta = CommitMeta(
            change.message, authors=(self._author,) if self._author else (), properties=_APPLICATION
        )
        request = uuid.uuid4().hex
        try:
            self.repository.commit(
                branch.name, change.operations, meta, expected_hash=branch.hash, request_id=request
            )
        except OutcomeUnknown:
            # What may have been committed is left as it is.
            if not self._happened(branch.name, request):
                raise
        except NessieError:
            change.undo()
            raise

    def _happened(self, branch: str, request: str) -> bool:
        """Whether a commit is known to have been made; whoever cannot ask knows nothing."""
        with suppress(NessieError):
            return self.repository.find_request(request, branch=branch) is not None
        return False

    def close(self) -> None:
        """Let go of the store."""
        self.repository.close()
