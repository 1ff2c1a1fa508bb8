"""The revert of a commit or a range, as operations relative to HEAD."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import filterfalse
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.merge.expected import refuse_changed
from nessie_cli.cli.merge.names import ContentName
from nessie_cli.cli.merge.reverted import RevertResult
from nessie_cli.cli.staging.restoration import staged_edits
from nessie_cli.cli.staging.split_runs import ids_of
from nessie_cli.cli.staging.submission import head_of_branch, new_request_id
from nessie_cli.errors import InvalidInput, ReferenceConflict
from nessie_cli.iceberg.deleted_files import refuse_deleted
from nessie_cli.inspection.split_runs import SplitRun, split_runs
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Conflict,
    Content,
    ContentKey,
    KeyBehavior,
    MergeBehavior,
    MergeOption,
    Reference,
    ReferenceType,
)
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.repository.edits import operations_for
from nessie_cli.repository.inverse import Inverse, InvertedCommits, UnusedDecision, invert
from nessie_cli.repository.recreated import refuse_second_entries
from nessie_cli.revisions import RevisionRange
from nessie_cli.workspace.staging import StagedList, proposed

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.options import SideOptions
    from nessie_cli.repository.base import Repository
    from nessie_cli.repository.changes import MergeOptions


MOST_NAMED = 20
"""The maximum number of commits that the message of a range lists."""
MOST_TRIED = 10
"""The most conflicts whose decisions are tried on a server without our extensions."""
MOST_ATTEMPTS = 5
"""The maximum number of attempts if other commits change the same keys meanwhile."""
_OPTIONS = {
    MergeBehavior.DROP: "--ours",
    MergeBehavior.FORCE: "--theirs",
    MergeBehavior.NORMAL: "--resolve",
}


class Reverted(NamedTuple):
    """A commit or range to revert, and the default message.

    `revision` names it by hashes: it means the same after the branch has moved.
    """

    commits: InvertedCommits
    message: str
    revision: str


def reverted(app: Invocation, text: str) -> Reverted:
    """Reads `COMMIT`, or `A..B`: the commits after A up to B.

    Raises `InvalidInput` for `A...B`, for an empty range, and if A is not an ancestor of B.
    """
    repository, meant = app.repository(), app.revision_range(text)
    if not isinstance(meant, RevisionRange):
        entry = repository.commit_at(meant)
        message = f'Revert "{entry.meta.subject}"\n\nThis reverts commit {entry.hash}.'
        return Reverted(InvertedCommits(entry.hash, entry.parent), message, short_hash(entry.hash))
    if meant.symmetric:
        raise InvalidInput(
            f"{text}: a range to revert has two dots; A..B means the commits after A up to B"
        )
    first, last = (repository.resolve(side).hash for side in (meant.start, meant.end))
    if first == last:
        raise InvalidInput(f"{text}: there are no commits after {meant.start} up to {meant.end}")
    if not repository.is_ancestor(first, last):
        raise InvalidInput(
            f"{text}: {meant.start} is not an ancestor of {meant.end}; A..B reverts the commits"
            " after A up to B"
        )
    by_hashes = f"{short_hash(first)}..{short_hash(last)}"
    message = "".join(_about(repository, meant, text))
    return Reverted(InvertedCommits(last, first), message, by_hashes)


def _about(repository: Repository, meant: RevisionRange, text: str) -> Iterator[str]:
    """Yields the paragraphs of a message that lists the commits of a range, newest first."""
    entries = list(repository.log_excluding(meant.end, [meant.start]))
    ends = "..".join(_short(side) for side in text.split(".."))
    yield f"Revert {ends} ({len(entries)} commit{'' if len(entries) == 1 else 's'})\n"
    for entry in entries[:MOST_NAMED]:
        yield f'\nThis reverts commit {entry.hash} "{entry.meta.subject}".'
    if len(entries) > MOST_NAMED:
        yield f"\nAnd {len(entries) - MOST_NAMED} more."


def _short(revision: str) -> str:
    """Returns a revision with its full hashes abbreviated."""
    return re.sub(r"\b[0-9a-f]{13,64}\b", lambda match: short_hash(match[0]), revision)


def decisions_of(options: SideOptions) -> list[KeyBehavior]:
    """Returns the decisions of --ours and --theirs, without those of globs.

    Raises `InvalidInput` if a content is named twice.
    """
    behaviors: dict[ContentName, KeyBehavior] = {}
    for texts, behavior in (
        (options.ours, MergeBehavior.DROP),
        (options.theirs, MergeBehavior.FORCE),
    ):
        for name in map(ContentName.parse, filterfalse(KeyPattern.parse, texts or ())):
            if name in behaviors:
                raise InvalidInput(f"{name}: the key is named twice")
            if name.commit:
                raise InvalidInput(f"{name}: a decision about a revert is for all of its commits")
            behaviors[name] = KeyBehavior(name.key, behavior, content_id=name.content_id)
    return list(behaviors.values())


def operations_of(
    app: Invocation,
    branch: Reference,
    to_revert: Reverted,
    behaviors: Sequence[KeyBehavior] = (),
    expected: str | None = None,
) -> StagedList:
    """Returns the operations that revert commits on the hash of a branch.

    There are none if decisions keep every key that changed. Raises `ReferenceMoved` if a key of the
    revert has changed since the hash `expected`, `ReferenceConflict` with every conflict, and
    `InvalidInput` if there is nothing to revert, if the metadata file of an earlier state is
    deleted, or if a table would come back that has another key, on the branch or in the staged
    batch.
    """
    repository = app.repository()
    try:
        inverse = invert(repository, to_revert.commits, branch.hash, behaviors)
    except UnusedDecision as error:
        option = _OPTIONS[error.behavior.behavior]
        raise InvalidInput(f"{option} {error.message}") from None
    if expected is not None:
        keys = {*inverse.edits, *inverse.judged}
        refuse_changed(repository, branch, expected, keys, ids=inverse.decided_ids)
    # Before tables combine, which writes files.
    _refuse_deleted(inverse, behaviors)
    if inverse.conflicts:
        if not repository.restores_content_ids:
            conflicts = _with_possible_options(repository, branch, to_revert, inverse, behaviors)
            inverse = replace(inverse, conflicts=conflicts)
        raise _conflict(repository, branch, to_revert, inverse)
    refuse_second_entries(
        inverse.state | _staged_contents(app, branch.name), inverse.edits, carried(app.options)
    )
    staged = staged_edits(operations_for(inverse.edits, inverse.state, inverse.origins))
    if not staged and all(behavior.behavior is not MergeBehavior.DROP for behavior in behaviors):
        commit = f"commit {short_hash(to_revert.commits.last)}"
        if any(behavior.is_combined for behavior in behaviors):
            # It changed what no combination takes back, or an earlier revert did.
            reason = f"the revert of {commit} would change nothing"
        else:
            reason = f"{commit} {'changed nothing' if inverse.is_empty else 'is reverted already'}"
        raise InvalidInput(f"there is nothing to revert: {reason}")
    return staged


def _refuse_deleted(inverse: Inverse, behaviors: Sequence[KeyBehavior]) -> None:
    """Raises `InvalidInput` for a restored state whose metadata file is deleted.

    The contents of decisions are not earlier states. A dry run has not written their files.
    """
    resolved = (behavior.resolved for behavior in behaviors if behavior.resolved is not None)
    refuse_deleted(
        inverse.edits,
        [*inverse.state.values(), *resolved],
        "--ours KEY leaves a table as it is on the branch",
    )


def _staged_contents(app: Invocation, branch: str) -> dict[ContentKey, Content]:
    """Returns the contents that are staged for a branch."""
    batch = app.batch_file().read() if app.workspace is not None else None
    if batch is None or batch.branch not in (None, branch):
        return {}
    return {item.key: content for item in batch.staged if (content := proposed(item)) is not None}


def revert(
    app: Invocation, branch: str, to_revert: Reverted, options: MergeOptions
) -> RevertResult:
    """Commits the inverse of commits, with metadata, behaviors and `dry_run` of options.

    Nothing is written if decisions keep every key that changed. The inverse is computed again if
    other commits change the same keys meanwhile. Raises as `operations_of` does.
    """
    repository = app.repository()
    for attempt in range(1, MOST_ATTEMPTS + 1):
        head = head_of_branch(repository, branch)
        now = Reference(ReferenceType.BRANCH, branch, head)
        staged = operations_of(app, now, to_revert, options.behaviors, options.expected_hash)
        if not staged:
            return RevertResult.of_operations(CommitResult(now, applied=False), staged)
        try:
            result = _commit(repository, branch, staged, head, options)
        except ReferenceConflict:
            if attempt == MOST_ATTEMPTS or head_of_branch(repository, branch) == head:
                raise
        else:
            break
    return RevertResult.of_operations(
        result, staged, split_by_revert(repository, head, to_revert, staged)
    )


def split_by_revert(
    repository: Repository, head: str, to_revert: Reverted, staged: StagedList
) -> list[SplitRun]:
    """Returns the runs that the revert of commits splits by these operations."""
    commits = to_revert.commits
    return split_runs(repository, head, commits.before, ids_of(staged), commits.last)


def _commit(
    repository: Repository, branch: str, staged: StagedList, head: str, options: MergeOptions
) -> CommitResult:
    return repository.commit(
        branch,
        [item.operation for item in staged],
        options.meta or CommitMeta(""),
        expected_hash=head,
        request_id=None if options.dry_run else new_request_id(),
        dry_run=options.dry_run,
    )


def _with_possible_options(
    repository: Repository,
    branch: Reference,
    to_revert: Reverted,
    inverse: Inverse,
    behaviors: Sequence[KeyBehavior],
) -> list[Conflict]:
    """Returns the conflicts with those decisions that a plain server carries out.

    Tries only the first `MOST_TRIED` conflicts, because each decision costs several requests.
    """

    def is_possible(conflict: Conflict, option: MergeOption) -> bool:
        assert conflict.key is not None
        decision = KeyBehavior(conflict.key, option.behavior, content_id=conflict.content_id)
        try:
            tried = invert(repository, to_revert.commits, branch.hash, [*behaviors, decision])
            edits = operations_for(tried.edits, tried.state, tried.origins)
            if edits:
                operations, meta = [edit.operation for edit in edits], CommitMeta("")
                head = branch.hash
                repository.commit(branch.name, operations, meta, expected_hash=head, dry_run=True)
        except InvalidInput:
            return False
        except ReferenceConflict:
            # Such as a namespace that is missing: its report says what helps.
            return True
        return True

    tried = [
        replace(each, options=tuple(o for o in each.options if is_possible(each, o)))
        for each in inverse.conflicts[:MOST_TRIED]
    ]
    return [*tried, *inverse.conflicts[MOST_TRIED:]]


def _conflict(
    repository: Repository, branch: Reference, to_revert: Reverted, inverse: Inverse
) -> ReferenceConflict:
    """Returns the error with the conflicts of contents, and with those of namespaces."""
    from nessie_cli.model.conflicts import merge_message

    conflicts = list(inverse.conflicts)
    edits = operations_for(inverse.if_theirs, inverse.state, inverse.origins)
    try:
        if edits:
            operations = [edit.operation for edit in edits]
            meta, head = CommitMeta(""), branch.hash
            repository.commit(branch.name, operations, meta, expected_hash=head, dry_run=True)
    except InvalidInput:
        # A server without our extensions cannot take theirs of all contents.
        if repository.restores_content_ids:
            raise
    except ReferenceConflict as error:
        # A namespace that is in the way of theirs is decided with the content that needs its key.
        keys = {key for each in conflicts for key in (each.key, each.blocking_namespace)}
        conflicts += [conflict for conflict in error.conflicts if conflict.key not in keys]
    refusal = ReferenceConflict(
        merge_message(conflicts),
        conflicts,
        reference=branch.name,
        head=branch.hash,
        expected_hash=to_revert.commits.last,
    )
    refusal.decided = inverse.decided
    return refusal
