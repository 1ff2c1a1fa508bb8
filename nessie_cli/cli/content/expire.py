"""`nessie content expire`."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.key_patterns import named_keys
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.content.keys import KeysArgument
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs, meta_of
from nessie_cli.cli.staging.committed import Committed, CommittedResult, print_committed
from nessie_cli.cli.staging.submission import head_of_branch, new_request_id
from nessie_cli.errors import (
    ContentNotFound,
    InvalidInput,
    NotAllowed,
    NotFound,
    ReferenceConflict,
    WriteRefused,
)
from nessie_cli.model import (
    CommitResult,
    ContentKey,
    IcebergTable,
    Reference,
    ReferenceType,
    type_label,
)
from nessie_cli.model.durations import parse_duration
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.render.spans import Column
from nessie_cli.render.text import counted, human_size
from nessie_cli.repository.base import Repository
from nessie_cli.wire.contents import Key
from nessie_cli.wire.scalars import Count
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.iceberg.expiration.tables import ExpiredKey, TableExpiry

EXAMPLES = (
    "nessie content expire db.orders --dry-run",
    "nessie content expire 'db.o*' --older-than 30d --keep-last 10",
    "nessie content expire db.orders --older-than 30d -m 'expire old snapshots'",
)
MOST_ATTEMPTS = 20
"""How often the expiry is computed while others change the same tables."""
_KEY = Column("KEY", "key", "fold")
_COUNTS = tuple(Column(name, right=True) for name in ("REMOVED", "KEPT", "SCHEMAS", "SPECS"))
_LATER = Column("FREED LATER", right=True)
_HELD = Column("HELD BY", "name", "fold")


class Options(Struct, frozen=True, kw_only=True):
    """Remove old snapshots from the metadata of Iceberg tables, in one commit.

    Schemas and partition specs that no other snapshot uses are removed, too. No file is deleted:
    `nessie gc` deletes the files as soon as no live commit names them. Iceberg's rules of retention
    apply, so snapshots of tags and branches inside a table stay. Snapshots that a merge with
    another branch needs stay as well: those since the last one that both branches have. Views and
    namespaces that a glob matches are skipped.
    """

    keys: Annotated[list[str], KeysArgument]
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="Remove only snapshots older than this, such as 30d. Default: the table's property"
            " history.expire.max-snapshot-age-ms, or 5d.",
        ),
    ] = None
    keep_last: Annotated[
        int | None,
        typer.Option(
            "--keep-last",
            metavar="N",
            min=1,
            help="Keep the N newest snapshots of each branch inside the table, however old."
            " Default: the table's property history.expire.min-snapshots-to-keep, or 1.",
        ),
    ] = None
    message: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--message",
            metavar="MSG",
            help="The commit message; repeat for paragraphs. Default: a message that names the"
            " table.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show what would be removed, and how many bytes `nessie gc` could delete."
            " Write nothing.",
        ),
    ] = False


class HoldingBranch(Struct, rename="camel"):
    """A branch that needs snapshots for its next merge, which would otherwise be removed."""

    branch: str
    snapshots: Count


class TableExpiration(Struct, rename="camel"):
    """What was removed from a table, or would be.

    `removed` and `kept` are numbers of snapshots, `schemas` and `specs` ids, and `references`
    branches and tags inside the table. `freedNow` and `freedLater` are the bytes that `nessie gc`
    can delete now, and after the retention of older commits: null without `--dry-run`, or if they
    are unknown.
    """

    key: Key
    removed: Count
    kept: Count
    schemas: list[int]
    specs: list[int]
    references: list[str]
    held_by: list[HoldingBranch]
    freed_now: Count | None
    freed_later: Count | None

    @classmethod
    def of(cls, expired: "ExpiredKey", freed_now: int | None) -> Self:
        """Returns the struct of a table."""
        done = expired.expiration
        return cls(
            Key.of(expired.key),
            len(done.snapshots),
            done.kept,
            list(done.schemas),
            list(done.specs),
            list(done.removed_refs),
            [HoldingBranch(hold.branch, hold.snapshots) for hold in done.holds],
            freed_now,
            expired.freed,
        )


class Expirations(Committed, kw_only=True):
    """The result of an expiry: the commit, and the tables with what was removed from them."""

    tables: list[TableExpiration]


class ExpiryResult(CommittedResult, frozen=True):
    """An expiry and its tables. `older_commits_live` is None without `--dry-run`."""

    tables: Sequence[Any] = ()
    older_commits_live: bool | None = None

    @property
    def document(self) -> Expirations:
        """The JSON document."""
        now = 0 if self.older_commits_live else None
        tables = [TableExpiration.of(each, now) for each in self.tables]
        return Expirations.of_result(self.result, self.was_repeated, tables=tables)

    @property
    def notes(self) -> Sequence[str]:
        """What keeps snapshots and files."""
        return list(self._notes())

    def _notes(self) -> Iterable[str]:
        branches = sorted({hold.branch for each in self.tables for hold in each.expiration.holds})
        if branches:
            yield (
                f"merges with {', '.join(branches)} need snapshots since the last common one:"
                " delete merged branches, and they can expire"
            )
        if self.older_commits_live is None or not self.keys:
            return
        later = sum(each.freed or 0 for each in self.tables)
        if self.older_commits_live:
            yield (
                "`nessie gc` can free 0 bytes now, because older commits name the files, and"
                f" {human_size(later)} after their retention"
            )
        else:
            yield f"`nessie gc` can free {human_size(later)} as soon as no live commit names them"


def run(options: Options, app: Invocation) -> ExpiryResult:
    """Expires snapshots, or raises `ReferenceConflict` if others change the tables too often."""
    repository, branch = app.repository(), app.reference_name()
    head_of_branch(repository, branch)  # a tag is refused first
    older_than = parse_duration(options.older_than) if options.older_than is not None else None
    message = message_of_paragraphs(options.message) if options.message else None
    expiry = _expiry(options, app, older_than)
    for attempt in count(1):
        head = Reference(ReferenceType.BRANCH, branch, head_of_branch(repository, branch))
        tables = _tables(options.keys, repository, head)
        with app.at_work("reading metadata files") as progress:
            results = expiry.expire(head, tables, progress)
        operations = [each.operation for each in results if not each.expiration.is_empty]
        result = CommitResult(head, applied=False)
        try:
            if operations:
                result = repository.commit(
                    branch,
                    operations,
                    meta_of(app, message or _message([each.key for each in operations])),
                    expected_hash=head.hash,
                    request_id=None if options.dry_run else new_request_id(),
                    dry_run=options.dry_run,
                )
        except ReferenceConflict:
            expiry.discard()
            if attempt == MOST_ATTEMPTS or head_of_branch(repository, branch) == head.hash:
                raise
        except WriteRefused:
            expiry.discard()
            raise
        else:
            live = _older_commits_live(app, branch) if options.dry_run else None
            return ExpiryResult(
                result, False, len(operations), tables=results, older_commits_live=live
            )
    raise AssertionError


def show(result: ExpiryResult, output: Output) -> None:
    """Prints a row for each table from which something is removed or held, then the commit."""
    is_dry_run = result.older_commits_live is not None
    shown = [
        each for each in result.tables if not each.expiration.is_empty or each.expiration.holds
    ]
    if shown and not output.options.quiet:
        columns = [_KEY, *_COUNTS, *([_LATER] if is_dry_run else []), _HELD]
        output.out.print_table(columns, [_row(each, is_dry_run=is_dry_run) for each in shown])
    if result.keys:
        print_committed(result, output)
    else:
        tables = counted(len(result.tables), "table")
        output.say(f"nothing to expire in {tables} of {result.result.reference.name}")


def _row(expired: "ExpiredKey", *, is_dry_run: bool) -> tuple[str, ...]:
    done = expired.expiration
    numbers = (len(done.snapshots), done.kept, len(done.schemas), len(done.specs))
    later = "" if expired.freed is None else human_size(expired.freed)
    return (
        str(expired.key),
        *(f"{number:,}" for number in numbers),
        *([later] if is_dry_run else []),
        ", ".join(hold.branch for hold in done.holds),
    )


def _expiry(options: Options, app: Invocation, older_than: timedelta | None) -> "TableExpiry":
    """Returns what expires tables. Raises `InvalidInput` if a package is missing."""
    try:
        from nessie_cli.iceberg.expiration.retention import ExpiryRule
        from nessie_cli.iceberg.expiration.tables import TableExpiry
        from nessie_cli.iceberg.files import Files
    except ImportError:
        raise InvalidInput(
            "a package is missing that reads the files of tables",
            hint="`pip install 'nessie-cli[iceberg]'`",
        ) from None
    now = int(app.now.timestamp() * 1000)
    before = None if older_than is None else now - older_than // timedelta(milliseconds=1)
    rule = ExpiryRule(before, options.keep_last)
    return TableExpiry(app.repository(), Files(of_s3()), rule, now, dry_run=options.dry_run)


def _tables(
    arguments: Sequence[str], repository: Repository, head: Reference
) -> dict[ContentKey, IcebergTable]:
    """Returns the tables that arguments select. Raises `InvalidInput` for a key of another type."""
    at = f"@{head.hash}"

    def existing(pattern: KeyPattern) -> list[ContentKey]:
        return [entry.key for entry in repository.entries(at, pattern.keys)]

    keys = named_keys(arguments, existing, f"key of {head.name}")
    contents = repository.contents(at, keys)
    by_name = {ContentKey.parse(text) for text in arguments if KeyPattern.parse(text) is None}
    for key in by_name:
        content = contents.get(key)
        if content is None:
            raise ContentNotFound(f"there is no content with key '{key}' on {head.name}", key)
        if not isinstance(content, IcebergTable):
            raise InvalidInput(
                f"key '{key}' has a content of type {type_label(content.type)}; only Iceberg tables"
                " have snapshots"
            )
    return {key: content for key in keys if isinstance(content := contents.get(key), IcebergTable)}


def _message(keys: Sequence[ContentKey]) -> str:
    what = str(keys[0]) if len(keys) == 1 else counted(len(keys), "table")
    return f"expire snapshots of {what}"


def _older_commits_live(app: Invocation, branch: str) -> bool:
    """Returns whether garbage collection keeps the files of the commit before the expiry.

    It does so for each move of a reference in the reflog, and by the policy NONE.
    """
    from nessie_cli.gc.policies import policies, repository_defaults

    repository = app.repository()
    try:
        if next(iter(repository.reflog(limit=1)), None) is not None:
            return True
    except (NotFound, NotAllowed, InvalidInput):
        pass  # Other servers have no reflog.
    defaults = repository_defaults(repository.config())
    rules = policies(defaults.default_cutoff or "NONE", defaults.cutoffs, app.now)
    return rules.of(branch).text == "NONE"
