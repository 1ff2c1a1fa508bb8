"""`nessie content history`."""

from collections.abc import Iterator
from itertools import chain, islice, starmap
from typing import Annotated, Self

import typer
from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from nessie_cli.cli.app.arguments import limited, refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.cli.content.keys import KeyArgument
from nessie_cli.errors import ContentNotFound, InvalidInput
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.inspection.fields import changed_labels
from nessie_cli.inspection.key_history import history_of_key
from nessie_cli.model import ContentKey, LogEntry
from nessie_cli.render.moments import print_moments
from nessie_cli.wire import commits
from nessie_cli.wire.contents import AnyContent, Key, optional_content

EXAMPLES = (
    "nessie content history db.orders",
    "nessie content history db.orders --at main~3 -n 5 --json",
)


class Options(Struct, frozen=True, kw_only=True):
    """Show the commits that changed the content of a key, newest first, with the changed fields.

    Only commits along first parents are shown, so a merge is one commit. If the content was
    renamed, its history under the old key follows. If the key was deleted and created again, the
    history of the deleted content follows.
    """

    key: Annotated[str, KeyArgument]
    revision: Annotated[
        str | None,
        typer.Argument(metavar="[REV]", help="The revision to start from. Default: HEAD."),
    ] = None
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="REV", help="Same as REV."),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option("-n", "--max-count", metavar="N", min=0, help="Show at most N commits."),
    ] = None


KindOfChange = Annotated[
    str, Meta(extra_json_schema={"enum": ["CREATED", "UPDATED", "DELETED", "RENAMED"]})
]


class Moment(commits.LogEntry, kw_only=True):
    """A commit that changed a content: the key after it, the kind of change, the changed fields."""

    key: Key
    change: KindOfChange
    fields: list[str]
    before: AnyContent | None = field(name="from")
    after: AnyContent | None = field(name="to")
    renamed_from: Key | UnsetType = UNSET

    @classmethod
    def of_change(cls, entry: LogEntry, change: ContentChange) -> Self:
        """Returns the struct of a commit with its change of the content."""
        return cls(
            **structs.asdict(commits.LogEntry.of(entry)),
            key=Key.of(change.key),
            change=change.kind.name,
            fields=changed_labels(change),
            before=optional_content(change.before),
            after=optional_content(change.after),
            renamed_from=Key.of(change.old_key) if change.old_key else UNSET,
        )


class History(Page, frozen=True, kw_only=True):
    """The commits that changed one content, newest first."""

    listing = "history"
    history: Records[Moment]


class HistoryResult(Result, frozen=True):
    """The commits with their changes of the content."""

    document: History
    changes: Iterator[tuple[LogEntry, ContentChange]]


def run(options: Options, app: Invocation) -> HistoryResult:
    """Reads the history of the content."""
    refuse_empty("nessie content history KEY [REV]", options.key, options.revision, options.at)
    if options.at is not None and options.revision is not None:
        raise InvalidInput("REV and --at cannot be used together: both name the revision")
    key = ContentKey.parse(options.key)
    repository = app.repository()
    start = repository.resolve(app.revision(options.at or options.revision))
    history, has_more = limited(app, options.limit, history_of_key(repository, start.hash, key))
    first = list(islice(history, 1))
    if not first and options.limit != 0:
        where = start.name or start.hash
        raise ContentNotFound(f"key '{key}' never had a content in '{where}'", key)
    changes = chain(first, history)
    document = History(history=starmap(Moment.of_change, changes), has_more=has_more)
    return HistoryResult(document, changes)


def show(result: HistoryResult, output: Output) -> None:
    """Prints each commit and the fields that it changed."""
    print_moments(result.changes, output.out)
