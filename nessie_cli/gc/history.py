"""From the history to the states of tables and views in it: the live ones, then all others that were ever known.

What is live of a reference is a piece of its history along first parents, from its HEAD down as far as its policy goes, and what the last commit of
that piece still holds. The pieces of many references are one forest: each commit is read once, however many references share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from nessie_cli.errors import DamagedObject, InvalidInput, NotAllowed, NotFound
from nessie_cli.gc.policies import Policies, Policy
from nessie_cli.gc.run import Pinned
from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, DeltaLakeTable, IcebergTable, IcebergView, LogEntry, Put
from nessie_cli.repository.base import Repository

_NO_ANCESTOR = bytes.fromhex(NO_ANCESTOR)
_EVER = datetime.min.replace(tzinfo=UTC)


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


def pin(repository: Repository) -> tuple[Pinned, ...]:
    """All branches and tags, and where they stand."""
    return tuple(Pinned(found.name, found.type.value, found.hash) for found in repository.references())


class History:
    """One walk over the history of a repository."""

    def __init__(self, repository: Repository, policies: Policies, told: Callable[[int], None] = lambda _: None) -> None:
        """Take what says how much is live, and what hears how many commits have been read."""
        self._repository = repository
        self._policies = policies
        self._told = told
        self.references: list[Pinned] = []
        """All that were walked, where they stood."""
        self.vanished: list[Pinned] = []
        """Those of them that were deleted before all of their history was read."""
        self.commits = 0
        self._live: dict[bytes, bytes] = {}
        """The commits of live pieces, each with its first parent."""
        self._first_end: str | None = None
        self._below: list[tuple[str, str]] = []
        """Where what is dead begins: a commit, and the reference that leads to it."""
        self._known: set[bytes] = set()

    def states(self) -> Iterator[TableState]:
        """Every state once, live ones first; of equal ones the first that is found. Cost: each commit of the repository read once.

        Beside that, one state is listed in full and one difference for each further piece that ends before the beginning of history.
        Memory: some 200 bytes for each commit, 100 for each state.
        """
        yield from self._live_states(pin(self._repository))
        # References that were made meanwhile, at a commit that nothing else keeps.
        yield from self._live_states(self._new())
        yield from self._dead_states()

    def _new(self) -> Sequence[Pinned]:
        return [found for found in pin(self._repository) if found not in self.references]

    # -- live -----------------------------------------------------------------------------------------------------------------------

    def _live_states(self, references: Sequence[Pinned]) -> Iterator[TableState]:
        self.references += references
        for _, reference in sorted(((_reach(self._policies.of(found.name)), found) for found in references), key=lambda pair: pair[0]):
            new: list[bytes] = []
            try:
                for state in self._piece(reference, self._policies.of(reference.name), new):
                    yield from self._fresh(state)
            except NotFound:
                if not self._is_gone(reference):
                    raise
                self.vanished.append(reference)
                # Nobody may rely on a piece that is not complete.
                for id_ in new:
                    del self._live[id_]

    def _is_gone(self, reference: Pinned) -> bool:
        try:
            self._repository.reference(reference.name)
        except NotFound:
            return True
        return False

    def _piece(self, reference: Pinned, policy: Policy, new: list[bytes]) -> Iterator[TableState]:
        """What is live of one reference and was not met before; `new` is given the commits.

        References come in the order of `_reach`. So where a piece meets another one, this one reaches at least as far, unless policies count
        commits: then it is followed in memory, and beyond its end.
        """
        position, count, last = bytes.fromhex(reference.hash), 0, ""
        while position != _NO_ANCESTOR:
            if position in self._live:
                if policy.commits is None:
                    return
                while count < policy.commits and position in self._live:
                    position = self._live[position]
                    count += 1
                if count >= policy.commits:
                    return
                continue
            for entry in self._log(position.hex()):
                id_ = bytes.fromhex(entry.hash)
                if id_ in self._live:
                    break
                if count and _is_dead(policy, entry, count):
                    self._below.append((entry.hash, reference.name))
                    yield from self._held(last, reference.name)
                    return
                count, last, position = count + 1, entry.hash, self._take(entry, id_, reference.name)
                new.append(id_)
                yield from _puts(entry, reference.name, live=True)
            else:
                if position != _NO_ANCESTOR:
                    # What is older has been cut off.
                    yield from self._held(last, reference.name)
                return
            position = id_

    def _take(self, entry: LogEntry, id_: bytes, reference: str) -> bytes:
        """Note a live commit; answers its first parent."""
        parent = bytes.fromhex(entry.parent)
        self._live[id_] = parent
        self._below += [(merged, reference) for merged in entry.meta.parents[1:]]
        return parent

    def _held(self, at: str, reference: str) -> Iterator[TableState]:
        """All contents at the end of a piece: in full for the first one, by their difference from that for all others."""
        if self._first_end is None:
            for entry in self._repository.entries(f"@{at}", content=True):
                yield from _states(entry.key, entry.content, reference, at, live=True)
            self._first_end = at
        else:
            for difference in self._repository.diff(f"@{self._first_end}", f"@{at}"):
                yield from _states(difference.key, difference.after, reference, at, live=True)

    # -- dead -----------------------------------------------------------------------------------------------------------------------

    def _dead_states(self) -> Iterator[TableState]:
        seen: set[bytes] = set()
        waiting = [*self._moves(), *reversed(self._below)]
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

    def _moves(self) -> Iterator[tuple[str, str]]:
        """Where references have been, as far as the repository tells: deleted branches, and what was assigned away."""
        try:
            for move in self._repository.reflog():
                if move.before and bytes.fromhex(move.before) not in self._live:
                    yield move.before, move.reference
        except (NotFound, NotAllowed, InvalidInput):
            # Servers of other makers keep no reflog, and ours tells it to those who may see it.
            return

    # -- both -----------------------------------------------------------------------------------------------------------------------

    def _log(self, start: str) -> Iterator[LogEntry]:
        if start == NO_ANCESTOR:
            return
        for entry in self._repository.log(f"@{start}", operations=True):
            self.commits += 1
            self._told(self.commits)
            yield entry

    def _fresh(self, state: TableState) -> Iterator[TableState]:
        """The state where it has not been told before."""
        text = f"{state.content_id}\0{state.metadata_location}\0{state.snapshot_id}"
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if digest not in self._known:
            self._known.add(digest)
            yield state


def _reach(policy: Policy) -> tuple[int, datetime, int]:
    """Sorts policies: first those that keep all, then by the time that they go back to, then those that count, the highest number first."""
    if policy.commits is not None:
        return 2, _EVER, -policy.commits
    return (0, _EVER, 0) if policy.since is None else (1, policy.since, 0)


def _is_dead(policy: Policy, entry: LogEntry, count: int) -> bool:
    """Whether a commit that comes after `count` live ones is live no more."""
    if policy.commits is not None:
        return count >= policy.commits
    time = entry.meta.commit_time
    return policy.since is not None and time is not None and time < policy.since


def _puts(entry: LogEntry, reference: str, *, live: bool) -> Iterable[TableState]:
    for operation in entry.operations or ():
        if isinstance(operation, Put):
            yield from _states(operation.key, operation.content, reference, entry.hash, live=live)


def _states(key: ContentKey, content: Content | None, reference: str, commit: str, *, live: bool) -> Iterable[TableState]:
    if isinstance(content, IcebergTable):
        yield TableState(content.id or "", str(key), content.type, content.metadata_location, content.snapshot_id, live, reference, commit)
    elif isinstance(content, IcebergView):
        yield TableState(content.id or "", str(key), content.type, content.metadata_location, None, live, reference, commit)
    elif isinstance(content, DeltaLakeTable):
        for location in filter(None, (content.last_checkpoint, *content.metadata_location_history, *content.checkpoint_location_history)):
            yield TableState(content.id or "", str(key), content.type, location, None, live, reference, commit)
