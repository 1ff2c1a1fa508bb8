"""`nessie resolve`."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar

import typer
from msgspec.structs import replace

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.global_options import carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.merge.advice import conflicts_of_merge
from nessie_cli.cli.merge.behaviors import (
    contents_of_files,
    is_empty,
    merge_options,
    meta_of_merge,
    meta_of_transplant,
    refuse_unknown,
    resolved_by_files,
    states_of_merge,
    states_of_transplant,
    with_a_side,
)
from nessie_cli.cli.merge.combining import combining
from nessie_cli.cli.merge.commits import (
    commits_to_transplant,
    pinned_commits,
    pinned_source,
    pinned_word,
)
from nessie_cli.cli.merge.decisions import Decisions
from nessie_cli.cli.merge.expected import expected_commit, refuse_changed
from nessie_cli.cli.merge.inverse import decisions_of, revert, reverted
from nessie_cli.cli.merge.options import WORDS_OF_MERGES, DecisionOptions, MergingOptions
from nessie_cli.cli.merge.outcome import Merged, print_outcome
from nessie_cli.cli.merge.patterns import patterns_of
from nessie_cli.cli.merge.resolution import resolve_batch, resolve_merge
from nessie_cli.cli.merge.reverted import RevertResult, print_revert
from nessie_cli.cli.merge.row_prompts import decide_rows
from nessie_cli.cli.merge.sides import OF_BATCH, OF_REVERT
from nessie_cli.cli.merge.staged_tables import StagedTables
from nessie_cli.cli.staging.batch import (
    BatchResult,
    changes_of,
    note_deletions,
    notes_of,
    print_changes,
)
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs, meta_of
from nessie_cli.cli.staging.committed import CommittedResult, print_committed
from nessie_cli.cli.staging.submission import (
    Submission,
    head_of_branch,
    nothing_staged,
    read_batch,
    refuse_elsewhere,
    submit,
    submit_file,
)
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, MergeResult
from nessie_cli.render.text import counted
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.workspace.staging import StagedList, proposed

EXAMPLES = (
    "nessie resolve",
    "nessie resolve merge feature --into main",
    "nessie resolve transplant main..feature --onto main",
    "nessie resolve revert main~1 -m 'revert the load'",
    "nessie resolve --proposed db.orders --current db.items -m 'nightly load'",
)
USAGE = "nessie resolve [merge FROM | transplant REV|RANGE... | revert REV|RANGE]"
_TRANSPLANT = ("transplant", "cherry-pick")
_COMMIT_REPORTS = "`nessie commit` reports the conflicts with the present state"


class Options(DecisionOptions, frozen=True, kw_only=True):
    """Resolve the conflicts of the batch, of a merge, transplant or revert, one by one.

    A table that both sides changed is combined, if that is safe. On a terminal, the command shows
    each other conflict that no option decides, and asks. Without a terminal, an undecided conflict
    is an error. The command does not ask about a namespace that blocks a merge or transplant: it
    fails, and prints the commands that help. --ours and --theirs decide about a merge, transplant
    or revert, --current and --proposed about the batch. An option for a key without a conflict is
    an error, except --ours and --theirs for a key that the operation changes.

    Then the command writes the merge, transplant or revert. It commits the batch only with -m. If
    you skip a conflict, no commit is written, but decisions about the batch are kept, and the exit
    status is 3.

    A staged change of the batch is that of one content: its key and its value. So --proposed keeps
    both, and finds the content by its id if it was renamed on the branch. If the change cannot be
    kept, the command fails. It also fails if it would have to delete contents below KEY that the
    batch does not delete, or if decisions for different sides would delete a content that no answer
    names.
    """

    WORDS: ClassVar[Mapping[str, str]] = {
        **WORDS_OF_MERGES,
        "ours": "Keep the target's state of this key; in a transplant, only if it conflicts.",
        "theirs": "Take the source's state of this key; in a revert, the state before the commits.",
        "message": "Without it, the batch stays staged, a merge or revert has"
        " its default message, and a transplant keeps its messages. Not for a transplant of several"
        " commits.",
        "fail": "Fail",
    }
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[merge FROM | transplant REV|RANGE... | revert REV|RANGE]",
            help="The operation with conflicts. Default: the staged batch.",
        ),
    ] = None
    current: Annotated[
        list[str] | None,
        typer.Option(
            "--current",
            metavar="KEY",
            help="Keep the current state of this key, and drop the staged change. Repeatable.",
        ),
    ] = None
    proposed: Annotated[
        list[str] | None,
        typer.Option(
            "--proposed", metavar="KEY", help="Keep the staged change of this key. Repeatable."
        ),
    ] = None
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            "--onto",
            "-b",
            metavar="REF",
            help="For a merge or transplant: the branch to write to. Default: the current branch.",
        ),
    ] = None
    unrelated: Annotated[
        bool,
        typer.Option(
            "--unrelated", help="For a merge: merge even if the histories share no commit."
        ),
    ] = False

    @property
    def decides_about_a_merge(self) -> bool:
        """Whether an option is given that applies only to a merge or transplant."""
        return any((self.into, self.unrelated))


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult | Merged | RevertResult:
    """Resolves the conflicts. Raises those that were skipped or that no decision resolves."""
    arguments = options.arguments or []
    refuse_empty(USAGE, *arguments, options.into, options.expected_hash)
    verb, *operands = arguments or [""]
    if options.unrelated and verb != "merge":
        raise InvalidInput("--unrelated belongs to `nessie resolve merge FROM`")
    if options.decides_about_a_merge and verb not in ("merge", *_TRANSPLANT):
        raise InvalidInput(
            "--into belongs to `nessie resolve merge FROM` and `nessie resolve transplant REV`"
        )
    if verb and (options.current or options.proposed):
        raise InvalidInput(
            f"--current and --proposed belong to the batch; for a {verb} they are --ours and"
            " --theirs"
        )
    if not verb and (options.engine or options.rows or options.whole_rows):
        raise InvalidInput("--engine and --rows belong to a merge, transplant or revert")
    if not verb and (options.ours or options.theirs):
        raise InvalidInput(
            "--ours and --theirs belong to a merge, transplant or revert; for the batch they are"
            " --current and --proposed"
        )
    if not verb:
        return _resolve_batch(options, app)
    if verb in _TRANSPLANT and operands:
        return _resolve_transplant(options, app, operands)
    if verb == "merge" and len(operands) == 1:
        return _resolve_merge(options, app, operands[0])
    if verb == "revert" and len(operands) == 1:
        return _resolve_revert(options, app, operands[0])
    raise InvalidInput(f"invalid arguments {' '.join(arguments)!r}: {USAGE}")


def show(result: BatchResult | CommittedResult | Merged | RevertResult, output: Output) -> None:
    """Prints the merge, the commit, or the remaining staged changes."""
    if isinstance(result, Merged):
        print_outcome(result, output)
    elif isinstance(result, RevertResult):
        print_revert(result, output)
    elif isinstance(result, CommittedResult):
        print_committed(result, output)
    else:
        print_changes(output, changes_of(result.staged))
        commit = command_line(*carried(output.options), "commit", "-m", "MSG")
        output.note(f"`{commit}` commits" if result.staged else "nothing is left to commit")


def _resolve_merge(options: Options, app: Invocation, source: str) -> Merged:
    branch = options.into or app.reference_name()
    repository, revision = app.repository(), app.revision(source)
    commit = repository.resolve(revision)
    hash_ = commit.hash
    # The answers are about this state of the source.
    pinned = pinned_source(revision, commit)
    refuse_unknown(repository, options, states_of_merge(repository, branch, hash_))

    def merge(merging: MergeOptions) -> MergeResult:
        with conflicts_of_merge(app, branch, source, pinned={source: pinned_word(pinned)}):
            return repository.merge(branch, pinned, merging)

    meta = meta_of_merge(app, options.message, source, branch)
    merging = replace(
        merge_options(app, branch, _for_sides(options), meta),
        unrelated=options.unrelated or is_empty(repository, branch),
    )
    contents, patterns = contents_of_files(with_a_side(options)[1]), patterns_of(options)
    combined = combining(
        app,
        merge,
        options,
        f"merge of {hash_} into {branch}",
        decided=contents.keys(),
        row_prompt=partial(decide_rows, app),
    )
    outcome = resolve_merge(app, combined, merging, contents, patterns=patterns)
    return Merged(outcome=outcome, verb="merged", source=source, source_hash=hash_)


def _resolve_transplant(options: Options, app: Invocation, revisions: list[str]) -> Merged:
    branch = options.into or app.reference_name()
    repository, commits = app.repository(), commits_to_transplant(app, revisions)
    pinned = pinned_commits(app, revisions)
    refuse_unknown(repository, options, states_of_transplant(repository, branch, commits))

    def transplant(merging: MergeOptions) -> MergeResult:
        with conflicts_of_merge(app, branch, " ".join(revisions), commits, pinned):
            return repository.transplant(branch, commits, merging)

    meta = meta_of_transplant(app, options.message, commits)
    merging = replace(merge_options(app, branch, _for_sides(options), meta), any_order=True)
    contents, patterns = contents_of_files(with_a_side(options)[1]), patterns_of(options)
    combined = combining(
        app,
        transplant,
        options,
        f"transplant onto {branch}",
        commits=len(commits),
        decided=contents.keys(),
        row_prompt=partial(decide_rows, app),
    )
    outcome = resolve_merge(app, combined, merging, contents, patterns=patterns)
    return Merged(outcome=outcome, verb="transplanted", source=counted(len(commits), "commit"))


def _resolve_revert(options: Options, app: Invocation, revision: str) -> RevertResult:
    branch = app.reference_name()
    head_of_branch(app.repository(), branch)
    to_revert = reverted(app, revision)

    def commit(decided: MergeOptions) -> RevertResult:
        with conflicts_of_merge(app, branch, pinned={revision: to_revert.revision}):
            return revert(app, branch, to_revert, decided)

    meta = meta_of(app, _message(options) or to_revert.message)
    expected = expected_commit(app, options.expected_hash)
    values = resolved_by_files(app, branch, with_a_side(options)[0])
    decided = MergeOptions(meta, [*decisions_of(options), *values], expected_hash=expected)
    contents, patterns = contents_of_files(with_a_side(options)[1]), patterns_of(options)
    combined = combining(
        app,
        commit,
        options,
        f"revert of {to_revert.revision}",
        decided=contents.keys(),
        reverts=to_revert,
        row_prompt=partial(decide_rows, app),
    )
    return resolve_merge(app, combined, decided, contents, OF_REVERT, patterns=patterns)


def _resolve_batch(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    branch, message = app.reference_name(), _message(options)
    decisions = Decisions(
        OF_BATCH, options.current or (), options.proposed or (), contents_of_files(options.resolve)
    )
    trial = Submission(branch, CommitMeta(""), dry_run=True)
    expected = expected_commit(app, options.expected_hash)
    with app.batch_file().changing() as file:
        batch, _ = read_batch(app, file)
        if batch is None:
            raise nothing_staged()
        refuse_elsewhere(app, batch, branch)
        tables = StagedTables(app, branch)
        try:
            staged, skipped = resolve_batch(
                app,
                batch,
                branch,
                lambda part: submit(app, part, trial),
                decisions,
                tables=tables if app.combines_tables and not options.no_combine else None,
            )
            if expected:
                _refuse_changed(app, branch, expected, decisions, before=batch.staged, after=staged)
        except BaseException:
            tables.discard()
            raise
        left = replace(batch, staged=staged, request_id=None) if staged else None
        file.write(left)
        if message is None or skipped or not staged:
            result = replace(BatchResult.of(left, branch), combinations=tables.combinations)
            if not skipped:
                return result
            for note in result.notes:
                app.output.note(note)
            raise skipped
        done = submit_file(app, file, Submission(branch, meta_of(app, message)))
    for note in notes_of(staged, tables.combinations):
        app.output.note(note)
    note_deletions(app.output, staged)
    return CommittedResult.of(done)


def _refuse_changed(
    app: Invocation,
    branch: str,
    expected: str,
    decisions: Decisions,
    *,
    before: StagedList,
    after: StagedList,
) -> None:
    """Raises `ReferenceMoved` if a branch has changed the staged contents since a commit."""
    keys, ids = {item.key for item in after}, _content_ids(before, after, decisions)
    repository = app.repository()
    now = repository.reference(branch)
    refuse_changed(repository, now, expected, keys, ids=ids, hint=_COMMIT_REPORTS)


def _content_ids(before: StagedList, after: StagedList, decisions: Decisions) -> set[str]:
    """Returns the ids of the contents that a batch changes, and of those whose change it keeps.

    A content that the branch renamed and deleted is restored under another key, or without its id.
    """
    keys = decisions.kept_changes
    items = [*after, *(item for item in before if item.key in keys)]
    contents = (content for item in items for content in (item.seen, proposed(item)))
    return {content.id for content in contents if content is not None and content.id}


def _for_sides(options: Options) -> MergingOptions:
    """Returns the options of the merge itself, with the decisions for a side."""
    return MergingOptions(
        message=options.message,
        ours=options.ours,
        theirs=options.theirs,
        resolve=with_a_side(options)[0],
        expected_hash=options.expected_hash,
        allow_failed_run=options.allow_failed_run,
    )


def _message(options: Options) -> str | None:
    return None if not options.message else message_of_paragraphs(options.message)
