"""From the history to the states of tables and views in it: the live ones, then all others that were ever known.

What is live of a root is a piece of its history along first parents, from the root down as far as the policy of its reference goes, and what the
last commit of that piece still holds. The pieces of many roots are one forest: each commit is read once, however many roots share it.
What is staged in a workspace is live as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from nessie_cli.errors import DamagedObject, NotFound
from nessie_cli.gc.policies import Policies, Policy
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
    """One state of a content that names files: the fields of the dataset `contents`."""

    content_id: str
    key: str
    type: str
    metadata_location: str
    snapshot_id: int | None
    live: bool
    reference: str
    commit: str


def no_staged() -> Iterable[TableState]:
    """No workspace: nothing waits for its commit."""
    return ()


class History:
    """One walk over the history of a repository."""

    def __init__(
        self,
        repository: Repository,
        policies: Policies,
        told: Callable[[int], None] = lambda _: None,
        *,
        moves_since: datetime = EVER,
        staged: Callable[[], Iterable[TableState]] = no_staged,
    ) -> None:
        """Take what says how much is live, and what hears how many commits have been read.

        Moves before `moves_since` have expired. `staged` is called for the states of the staged batch and the stashes.
        """
        self.roots = Roots(repository, moves_since)
        self._repository = repository
        self._policies = policies
        self._told = told
        self._staged = staged
        self.vanished: list[Root] = []
        """The roots that were gone before all of their history was read."""
        self.commits = 0
        self._live: dict[bytes, bytes] = {}
        """The commits of live pieces, each with its first parent."""
        self._in_order = True
        """Whether all pieces so far were walked in the order of `_reach`: later roots come as they come."""
        self._last_end: str | None = None
        self._below: list[tuple[str, str]] = []
        """Where what is dead begins: a commit, and the reference that leads to it."""
        self._known_live: set[bytes] = set()
        self._known_dead: set[bytes] = set()

    def states(self) -> Iterator[TableState]:
        """Every state once, live ones first; of equal ones the first that is found. Cost: each commit of the repository read once.

        Beside that, one state is listed in full and one difference for each further piece that ends before the beginning of history.
        Memory: some 200 bytes for each commit, 100 for each state, 500 for each move of the reflog that has not expired.
        """
        yield from self.became_live()
        # References that were made meanwhile, at a commit that nothing else keeps.
        yield from self.became_live()
        yield from self._dead_states()

    def became_live(self) -> Iterator[TableState]:
        """The live states that were not told before: all of them at first, later those of references that were made or moved since.

        Cost, where nothing has changed: the references and one page of the reflog.
        """
        roots = self.roots.new()
        for state in self._staged():
            yield from self._fresh(state)
        yield from self._live_states(roots)

    # -- live -----------------------------------------------------------------------------------------------------------------------

    def _live_states(self, roots: Sequence[Root]) -> Iterator[TableState]:
        by_policy: dict[Policy, dict[bytes, Root]] = {}
        for root in roots:
            by_policy.setdefault(self._policies.of(root.name), {}).setdefault(root.id, root)
        for policy, waiting in sorted(by_policy.items(), key=lambda item: _reach(item[0])):
            while waiting:
                first = waiting.pop(next(iter(waiting)))
                piece = _Piece(first, policy, waiting)
                try:
                    for state in self._piece(piece):
                        yield from self._fresh(state)
                except NotFound:
                    if not self.roots.is_gone(first):
                        raise
                    self.vanished.append(first)
                    # Nobody may rely on a piece that is not complete.
                    for id_ in piece.commits:
                        del self._live[id_]
                    waiting.update(piece.passed)
        self._in_order = False

    def _piece(self, piece: _Piece) -> Iterator[TableState]:
        """What is live of one root and was not met before. Roots on the way are walked along with it.

        Policies come in the order of `_reach`. So where a piece meets another one, this one reaches at least as far, unless policies count
        commits or a root is a later one: then the other piece is followed in memory, and beyond its end.
        """
        policy, name = piece.policy, piece.root.name
        position, count, last = piece.root.id, 0, ""
        while position != _NO_ANCESTOR:
            if position in self._live:
                if policy.commits is None and self._in_order:
                    return
                position, count = self._beyond(piece, position, count)
                if _is_full(policy, count):
                    return
                # All that the live commits above hold is live already.
                last = ""
            for entry in self._log(position.hex()):
                id_ = bytes.fromhex(entry.hash)
                if id_ in self._live:
                    break
                count = 0 if piece.passes(id_) else count
                if count and _is_dead(policy, entry, count):
                    self._below.append((entry.hash, name))
                    if last:
                        yield from self._held(last, name)
                    return
                count, last, position = count + 1, entry.hash, self._take(entry, id_, name)
                piece.commits.append(id_)
                yield from _puts(entry, name, live=True)
            else:
                if last and position != _NO_ANCESTOR:
                    # What is older has been cut off.
                    yield from self._held(last, name)
                return
            position = id_

    def _beyond(self, piece: _Piece, position: bytes, count: int) -> tuple[bytes, int]:
        """The first commit below live ones that is not live, or where the policy ends; and the commits of the piece so far."""
        while position in self._live and not _is_full(piece.policy, count):
            count = 1 if piece.passes(position) else count + 1
            position = self._live[position]
        return position, count

    def _take(self, entry: LogEntry, id_: bytes, reference: str) -> bytes:
        """Note a live commit; answers its first parent."""
        parent = bytes.fromhex(entry.parent)
        self._live[id_] = parent
        self._below += [(merged, reference) for merged in entry.meta.parents[1:]]
        return parent

    def _held(self, at: str, reference: str) -> Iterator[TableState]:
        """All contents at the end of a piece: in full for the first one, by their difference from the end before for all others."""
        if self._last_end is None:
            for entry in self._repository.entries(f"@{at}", content=True):
                yield from states_of(entry.key, entry.content, reference, at, live=True)
        else:
            for difference in self._repository.diff(f"@{self._last_end}", f"@{at}"):
                yield from states_of(difference.key, difference.after, reference, at, live=True)
        self._last_end = at

    # -- dead -----------------------------------------------------------------------------------------------------------------------

    def _dead_states(self) -> Iterator[TableState]:
        seen: set[bytes] = set()
        # The newest moves come first: one walk from there passes most of the others.
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
                # History that nothing names need not be there any more; then nobody knows what it held.
                continue

    # -- both -----------------------------------------------------------------------------------------------------------------------

    def _log(self, start: str) -> Iterator[LogEntry]:
        if start == NO_ANCESTOR:
            return
        for entry in self._repository.log(f"@{start}", operations=True):
            self.commits += 1
            self._told(self.commits)
            yield entry

    def _fresh(self, state: TableState) -> Iterator[TableState]:
        """The state where it has not been told before; a live one also where it was told to be dead."""
        text = f"{state.content_id}\0{state.metadata_location}\0{state.snapshot_id}"
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest in self._known_live or (not state.live and digest in self._known_dead):
            return
        (self._known_live if state.live else self._known_dead).add(digest)
        yield state


class _Piece:
    """One root with what is walked from it: its commits, and the roots of the same policy that were passed on the way."""

    def __init__(self, root: Root, policy: Policy, waiting: dict[bytes, Root]) -> None:
        self.root = root
        self.policy = policy
        self.commits: list[bytes] = []
        self.passed: dict[bytes, Root] = {}
        self._waiting = waiting

    def passes(self, commit: bytes) -> bool:
        """Whether a commit is a root that waits to be walked; it need not be any more."""
        if commit not in self._waiting:
            return False
        self.passed[commit] = self._waiting.pop(commit)
        return True


def _reach(policy: Policy) -> tuple[int, datetime, int]:
    """Sorts policies: first those that keep all, then by the time that they go back to, then those that count, the highest number first."""
    if policy.commits is not None:
        return 2, EVER, -policy.commits
    return (0, EVER, 0) if policy.since is None else (1, policy.since, 0)


def _is_full(policy: Policy, count: int) -> bool:
    """Whether a policy that counts commits has so many."""
    return policy.commits is not None and count >= policy.commits


def _is_dead(policy: Policy, entry: LogEntry, count: int) -> bool:
    """Whether a commit that comes after `count` live ones is live no more."""
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
    """The states that a content names; none if it has no files."""
    if isinstance(content, IcebergTable):
        yield TableState(
            content.id or "",
            str(key),
            content.type,
            content.metadata_location,
            content.snapshot_id,
            live,
            reference,
            commit,
        )
    elif isinstance(content, IcebergView):
        yield TableState(
            content.id or "",
            str(key),
            content.type,
            content.metadata_location,
            None,
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
