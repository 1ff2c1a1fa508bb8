"""Which commits a revision, a range or `--all` means, newest first, read as they are consumed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush, merge
from itertools import count, takewhile
from typing import TYPE_CHECKING

from nessie_cli.commitspec import CommitRange, CommitSpec, Step, StepKind
from nessie_cli.errors import InvalidInput
from nessie_cli.model import NO_ANCESTOR, KeyRange, LogEntry
from nessie_cli.repository.base import ALL_KEYS, Repository, Walk, outlining, surveying

if TYPE_CHECKING:
    from nessie_cli.render.changes import Change


def walk_of(meant: CommitRange | CommitSpec | None, *, first_parent: bool) -> Walk | None:
    """What `commits_of` reads, or for None `commits_of_all`, said to a repository that sifts; None for the first parents of a range."""
    if isinstance(meant, CommitRange):
        return None if first_parent else Walk(meant.end, meant.start, symmetric=meant.symmetric)
    return Walk(meant, first_parent=first_parent)


def commits_of(
    repository: Repository,
    meant: CommitRange | CommitSpec,
    *,
    first_parent: bool = False,
    operations: bool = False,
    since: datetime | None = None,
) -> Iterator[LogEntry]:
    """The history of a revision, or the commits of a range: those of its end that its start has not; with `A...B` those that only one has.

    What the newest commit before `since` has is left out of the history of a revision: O(commits after it), however long the history is.
    """
    if isinstance(meant, CommitSpec) and since is not None:
        before = Step(StepKind.TIME, time=since - timedelta(microseconds=1))
        meant = CommitRange(CommitSpec(meant.name, meant.hash, (*meant.steps, before)), meant)
    if isinstance(meant, CommitSpec):
        return repository.log(meant, operations=operations, all_parents=not first_parent)
    if first_parent:
        line = repository.log(meant.end, operations=operations)
        start = repository.merge_base(meant.start, meant.end) if meant.symmetric else meant.start
        return takewhile(lambda entry: not repository.is_ancestor(entry.hash, start), line)
    ours = repository.log_excluding(meant.end, [meant.start], operations=operations)
    if not meant.symmetric:
        return ours
    theirs = repository.log_excluding(meant.start, [meant.end], operations=operations)
    return merge(ours, theirs, key=_newest_first)


def _newest_first(entry: LogEntry) -> float:
    return -entry.meta.commit_time.timestamp() if entry.meta.commit_time else 0.0


def commits_of_all(repository: Repository, heads: Iterable[str], *, first_parent: bool = False, operations: bool = False) -> Iterator[LogEntry]:
    """The commits reachable from any of these hashes, each once, by commit time. Cost one small read per head and per commit consumed."""
    waiting: list[tuple[float, int, LogEntry]] = []
    seen = {NO_ANCESTOR}
    number = count()

    def add(hashes: Iterable[str]) -> None:
        for hash_ in hashes:
            if hash_ not in seen:
                seen.add(hash_)
                # As a text it would be looked for among the names first.
                entry = next(repository.log(CommitSpec(None, hash_), operations=operations))
                heappush(waiting, (_newest_first(entry), next(number), entry))

    add(heads)
    while waiting:
        entry = heappop(waiting)[2]
        yield entry
        add(entry.meta.parents[:1] if first_parent else entry.meta.parents)


def changes_in(repository: Repository, entry: LogEntry, keys: KeyRange = ALL_KEYS) -> list[Change]:
    """What a commit changed: the difference to its first parent. Cost O(changes · log keys)."""
    from nessie_cli.render.changes import changes_of

    # As texts they would be looked for among the names first.
    return changes_of(repository.diff(CommitSpec(None, entry.parent), CommitSpec(None, entry.hash), keys))


def counted_changes_in(repository: Repository, entry: LogEntry) -> list[Change]:
    """Their kinds and keys, without contents where the repository can tell so. Cost O(changes · log keys) or less."""
    if (outlined := outlining(repository)) is None:
        return changes_in(repository, entry)
    from nessie_cli.render.changes import outlined as changes_outlined

    return changes_outlined(outlined.outline(entry.hash))


def commits_to_transplant(repository: Repository, meant: Sequence[CommitRange | CommitSpec]) -> list[str]:
    """The hashes that revisions and ranges name, oldest first within a range; merges count along first parents. Raises `InvalidInput` for none."""
    hashes: list[str] = []
    for item in meant:
        if isinstance(item, CommitSpec):
            hashes.append(repository.resolve(item).hash)
        else:
            hashes += reversed([entry.hash for entry in commits_of(repository, item, first_parent=True)])
    if not hashes:
        raise InvalidInput("nothing to transplant: the range names no commit")
    return hashes


def only_references_to(repository: Repository, hash_: str, names: Collection[str]) -> bool:
    """Whether no other reference than these reaches a commit: losing them would lose commits from sight."""
    if hash_ == NO_ANCESTOR:
        return False
    others = (reference.hash for reference in repository.references() if reference.name not in names)
    if (survey := surveying(repository)) is not None:
        return not survey.descendants_among(set(others), hash_)
    return not any(repository.is_ancestor(CommitSpec(None, hash_), CommitSpec(None, other)) for other in others)
