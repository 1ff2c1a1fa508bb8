"""From the history to the states of tables and views: live ones first, then dead ones.

The live commits of a root are its first parents, as far as the retention policy of its reference
reaches. Live states are those that these commits put, and all contents of the oldest of them.
Each commit is read once, even if many roots share it. Staged contents are live as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from nessie_cli.errors import DamagedObject, NotFound
from nessie_cli.gc.policies import Policies, RetentionPolicy
from nessie_cli.gc.roots import EVER, Root, Roots
from nessie_cli.model import (
    NO_ANCESTOR,
    Content,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    LogEntry,
    Put,
)
from nessie_cli.repository.base import Repository

_NO_ANCESTOR = bytes.fromhex(NO_ANCESTOR)


class TableState(Struct, frozen=True):
    """One state of a content with files: the fields of the dataset `contents`."""

    content_id: str
    key: str
    type: str
    metadata_location: str
    snapshot_id: int | None
    live: bool
    reference: str
    commit: str


def no_staged() -> Iterable[TableState]:
    """The default of `HistoryWalk`: there is no workspace."""
    return ()


class HistoryWalk:
    """One walk over the history of a repository."""

    def __init__(
        self,
        repository: Repository,
        policies: Policies,
        progress: Callable[[int], None] = lambda _: None,
        *,
        moves_since: datetime = EVER,
        staged: Callable[[], Iterable[TableState]] = no_staged,
    ) -> None:
        """Takes the retention policies, and a callback for the number of commits read so far.

        Moves before `moves_since` have expired. `staged` returns the states in the staged batch and
        the stashes.
        """
        self.roots = Roots(repository, moves_since)
        self._repository = repository
        self._policies = policies
        self._progress = progress
        self._staged = staged
        self.vanished: list[Root] = []
        """The roots that were deleted before all of their history was read."""
        self.commits = 0
        self._live: dict[bytes, bytes] = {}
        """Live commits, each with its first parent."""
        self._in_order = True
        """Whether all segments so far were walked in the order of `_reach`. Later roots are not."""
        self._last_end: str | None = None
        self._below: list[tuple[str, str]] = []
        """The first dead commits, each with the reference that leads to it."""
        self._known_live: set[bytes] = set()
        self._known_dead: set[bytes] = set()

    def states(self) -> Iterator[TableState]:
        """Yields every state once, live ones first.

        Cost: each commit of the repository is read once. One commit is listed in full, and there is
        one diff for each further segment that ends before the beginning of history. Memory: about
        200 bytes for each commit, 100 for each state, 500 for each unexpired move of the reflog.
        """
        yield from self.became_live()
        # References may have been created meanwhile at commits that were dead before.
        yield from self.became_live()
        yield from self._dead_states()

    def became_live(self) -> Iterator[TableState]:
        """Yields the live states that were not yielded before.

        Later calls find the states of references that were created or moved since. Cost if nothing
        has changed: the references and one page of the reflog.
        """
        roots = self.roots.new()
        for state in self._staged():
            yield from self._fresh(state)
        yield from self._live_states(roots)

    # -- live -------------------------------------------------------------------------------------

    def _live_states(self, roots: Sequence[Root]) -> Iterator[TableState]:
        by_policy: dict[RetentionPolicy, dict[bytes, Root]] = {}
        for root in roots:
            by_policy.setdefault(self._policies.of(root.name), {}).setdefault(root.id, root)
        for policy, waiting in sorted(by_policy.items(), key=lambda item: _reach(item[0])):
            while waiting:
                first = waiting.pop(next(iter(waiting)))
                segment = _Segment(first, policy, waiting)
                try:
                    for state in self._segment(segment):
                        yield from self._fresh(state)
                except NotFound:
                    if not self.roots.is_gone(first):
                        raise
                    self.vanished.append(first)
                    # An incomplete segment must not end the walk of another one.
                    for id_ in segment.commits:
                        del self._live[id_]
                    waiting.update(segment.passed)
        self._in_order = False

    def _segment(self, segment: _Segment) -> Iterator[TableState]:
        """Yields the new live states of one root, and of the roots in the same segment.

        Policies come in the order of `_reach`, so an earlier segment that this one meets reaches at
        least as far. The exceptions are policies that count commits, and later roots: then the walk
        continues beyond the end of the earlier segment, whose commits are in memory.
        """
        policy, name = segment.policy, segment.root.name
        position, count, last = segment.root.id, 0, ""
        while position != _NO_ANCESTOR:
            if position in self._live:
                if policy.commits is None and self._in_order:
                    return
                position, count = self._beyond(segment, position, count)
                if _is_full(policy, count):
                    return
                # The contents of the live commits above are live already.
                last = ""
            for entry in self._log(position.hex()):
                id_ = bytes.fromhex(entry.hash)
                if id_ in self._live:
                    break
                count = 0 if segment.passes(id_) else count
                if count and _is_dead(policy, entry, count):
                    self._below.append((entry.hash, name))
                    if last:
                        yield from self._held(last, name)
                    return
                count, last, position = count + 1, entry.hash, self._take(entry, id_, name)
                segment.commits.append(id_)
                yield from _puts(entry, name, live=True)
            else:
                if last and position != _NO_ANCESTOR:
                    # Older commits have been deleted.
                    yield from self._held(last, name)
                return
            position = id_

    def _beyond(self, segment: _Segment, position: bytes, count: int) -> tuple[bytes, int]:
        """Returns the first commit below live ones that is not live or beyond the policy.

        Also returns the number of commits in the segment so far.
        """
        while position in self._live and not _is_full(segment.policy, count):
            count = 1 if segment.passes(position) else count + 1
            position = self._live[position]
        return position, count

    def _take(self, entry: LogEntry, id_: bytes, reference: str) -> bytes:
        """Records a live commit. Returns its first parent."""
        parent = bytes.fromhex(entry.parent)
        self._live[id_] = parent
        self._below += [(merged, reference) for merged in entry.meta.parents[1:]]
        return parent

    def _held(self, at: str, reference: str) -> Iterator[TableState]:
        """Yields all contents at the end of a segment: by a listing at first, later by diffs."""
        if self._last_end is None:
            for entry in self._repository.entries(f"@{at}", content=True):
                yield from states_of(entry.key, entry.content, reference, at, live=True)
        else:
            for difference in self._repository.diff(f"@{self._last_end}", f"@{at}"):
                yield from states_of(difference.key, difference.after, reference, at, live=True)
        self._last_end = at

    # -- dead -------------------------------------------------------------------------------------

    def _dead_states(self) -> Iterator[TableState]:
        seen: set[bytes] = set()
        # The newest moves come first, because one walk from there passes most of the others.
        waiting = [*reversed(self.roots.expired.items()), *reversed(self._below)]
        while waiting:
            start, reference = waiting.pop()
            if (first := bytes.fromhex(start)) in seen or first in self._live:
                continue
            try:
                for entry in self._log(start):
                    id_ = bytes.fromhex(entry.hash)
                    if id_ in seen or id_ in self._live:
                        break
                    seen.add(id_)
                    waiting += [(merged, reference) for merged in entry.meta.parents[1:]]
                    for state in _puts(entry, reference, live=False):
                        yield from self._fresh(state)
            except (NotFound, DamagedObject):
                # Maintenance may have deleted commits that no reference reaches.
                continue

    # -- both -------------------------------------------------------------------------------------

    def _log(self, start: str) -> Iterator[LogEntry]:
        if start == NO_ANCESTOR:
            return
        for entry in self._repository.log(f"@{start}", operations=True):
            self.commits += 1
            self._progress(self.commits)
            yield entry

    def _fresh(self, state: TableState) -> Iterator[TableState]:
        """Yields a state that was not yielded before, or only as a dead one."""
        text = f"{state.content_id}\0{state.metadata_location}\0{state.snapshot_id}"
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest in self._known_live or (not state.live and digest in self._known_dead):
            return
        (self._known_live if state.live else self._known_dead).add(digest)
        yield state


class _Segment:
    """One root with its live commits, and the roots of the same policy on the way."""

    def __init__(self, root: Root, policy: RetentionPolicy, waiting: dict[bytes, Root]) -> None:
        self.root = root
        self.policy = policy
        self.commits: list[bytes] = []
        self.passed: dict[bytes, Root] = {}
        self._waiting = waiting

    def passes(self, commit: bytes) -> bool:
        """Whether a commit is a waiting root. Then it is not walked separately."""
        if commit not in self._waiting:
            return False
        self.passed[commit] = self._waiting.pop(commit)
        return True


def _reach(policy: RetentionPolicy) -> tuple[int, datetime, int]:
    """Sort key of policies: those that keep everything, then times, then numbers of commits."""
    if policy.commits is not None:
        return 2, EVER, -policy.commits
    return (0, EVER, 0) if policy.since is None else (1, policy.since, 0)


def _is_full(policy: RetentionPolicy, count: int) -> bool:
    """Whether a policy that counts commits has reached its number."""
    return policy.commits is not None and count >= policy.commits


def _is_dead(policy: RetentionPolicy, entry: LogEntry, count: int) -> bool:
    """Whether a commit after `count` live ones is dead."""
    if policy.commits is not None:
        return _is_full(policy, count)
    time = entry.meta.commit_time
    return policy.since is not None and time is not None and time < policy.since


def _puts(entry: LogEntry, reference: str, *, live: bool) -> Iterable[TableState]:
    for operation in entry.operations or ():
        if isinstance(operation, Put):
            yield from states_of(operation.key, operation.content, reference, entry.hash, live=live)


def states_of(
    key: ContentKey, content: Content | None, reference: str, commit: str, *, live: bool
) -> Iterable[TableState]:
    """Returns the states of a content, none if it has no files."""
    if isinstance(content, IcebergTable | IcebergView):
        yield TableState(
            content.id or "",
            str(key),
            content.type,
            content.metadata_location,
            content.snapshot_id if isinstance(content, IcebergTable) else None,
            live,
            reference,
            commit,
        )
    elif isinstance(content, DeltaLakeTable):
        for location in filter(
            None,
            (
                content.last_checkpoint,
                *content.metadata_location_history,
                *content.checkpoint_location_history,
            ),
        ):
            yield TableState(
                content.id or "", str(key), content.type, location, None, live, reference, commit
            )
