"""Merges, transplants and reverts that combine the tables which both sides changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import replace

from nessie_cli.cli.app.engines import Engine, chosen, spark_session
from nessie_cli.cli.merge.reverted import RevertResult
from nessie_cli.cli.merge.rows import row_rules, write_decisions
from nessie_cli.cli.merge.server_combiner import ServerCombiner
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.errors import ReferenceConflict
from nessie_cli.iceberg.combination.merging import Combiner, TableMerger
from nessie_cli.model import (
    Collision,
    CombinationRules,
    Conflict,
    ContentKey,
    IcebergTable,
    RowDecision,
)
from nessie_cli.render.text import human_size
from nessie_cli.repository.base import CombiningServer
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.inverse import InvertedCommits

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.merge.inverse import Reverted
    from nessie_cli.cli.merge.options import SideOptions
    from nessie_cli.iceberg.files import Files

T = TypeVar("T")
RowPrompt = Callable[[ReferenceConflict], Sequence[RowDecision]]
"""Asks about the rows in conflict of an error. Returns decisions about some of them."""
ISOLATION = "merge.isolation"
IDENTIFIERS = "merge.identifiers"


def combining(
    app: Invocation,
    do: Callable[[MergeOptions], T],
    options: SideOptions,
    description: str,
    *,
    commits: int = 1,
    decided: Collection[ContentKey] = (),
    files: Files | None = None,
    reverts: Reverted | None = None,
    row_prompt: RowPrompt | None = None,
) -> Callable[[MergeOptions], T]:
    """Returns a merge, transplant or revert that combines tables in conflict, if it may.

    `description` names it in the snapshots of combined tables, `commits` is the number of
    transplanted commits, and the tables at the keys `decided` are left to the caller. `files` reads
    and writes the files of tables; by default, a dry run writes none. Without `files`, a server
    with warehouses combines the tables in them itself. `reverts` are the commits of a revert.
    Spark starts only for a table with many manifests to read. `row_prompt` asks about rows in
    conflict.
    """
    rows = row_rules(options)
    if options.no_combine or not (app.combines_tables or rows):
        return do
    rules = replace(rules_of(app, decided), rows=rows)
    # A server combines files only.
    server = app.repository().combining_server if files is None and rows is None else None
    if server is not None and reverts is None:
        do = _asking(do, rules)
    merge = _CombiningMerge(app, do, options, description, rules)
    merge.commits, merge.decided, merge.files = commits, decided, files
    merge.row_prompt = row_prompt
    if server is not None and reverts is not None:
        merge.server, merge.reverted = server, reverts.commits
    return merge.perform if rows is None else merge.perform_with_rows


class _CombiningMerge(Generic[T]):
    """A merge, transplant or revert that combines tables in conflict."""

    commits = 1
    decided: Collection[ContentKey] = ()
    files: Files | None = None
    server: CombiningServer | None = None
    reverted: InvertedCommits | None = None
    row_prompt: RowPrompt | None = None

    def __init__(
        self,
        app: Invocation,
        do: Callable[[MergeOptions], T],
        options: SideOptions,
        description: str,
        rules: CombinationRules,
    ) -> None:
        self._app, self._do, self._options = app, do, options
        self._description, self._rules = description, rules
        self._announced: set[ContentKey] = set()

    def perform(self, merging: MergeOptions) -> T:
        """Performs it. Iceberg's libraries are loaded only if a table conflicts."""
        try:
            return self._do(merging)
        except ReferenceConflict as error:
            if not any(map(_may_combine, error.conflicts)):
                raise
            conflict = error
        with ExitStack() as stack:
            try:
                combiners = _combiners(
                    self._by_server(merging), partial(self._by_files, merging, stack)
                )
            except ImportError:
                conflict.conflicts = tuple(map(without_package, conflict.conflicts))
                raise conflict from None
            merger = TableMerger(combiners, excluded=self.decided, commits=self.commits)
            result = merger.merge(self._do, merging)
        if isinstance(result, BatchResult | RevertResult):
            return replace(result, combinations=merger.combinations)
        return result

    def perform_with_rows(self, merging: MergeOptions) -> T:
        """Performs it, and asks about rows in conflict until all are decided."""
        while True:
            try:
                return self.perform(merging)
            except ReferenceConflict as error:
                more = self.row_prompt(error) if self.row_prompt is not None else ()
                rows = self._rules.rows
                if not more or rows is None:
                    write_decisions(self._app, self._options.write_decisions, error)
                    raise
                # The answers are about this state of the branch, and count for later attempts.
                merging = replace(merging, expected_hash=merging.expected_hash or error.head)
                rows = replace(rows, decisions=(*rows.decisions, *more))
                self._rules = replace(self._rules, rows=rows)

    def _by_server(self, merging: MergeOptions) -> Combiner | None:
        if self.server is None or self.reverted is None:
            return None
        return ServerCombiner(
            self.server,
            self._app.reference_name(),
            self.reverted,
            self._rules,
            self._description,
            dry_run=merging.dry_run,
        )

    def _by_files(self, merging: MergeOptions, stack: ExitStack) -> Combiner:
        from nessie_cli.iceberg.combination.file_combiner import FileCombiner

        files = self.files or table_files(dry_run=merging.dry_run)
        engine = row_engine = None
        if (spark := _spark(self._app, self._options, stack)) is not None:
            from nessie_cli.spark import SparkEngine, SparkRows

            engine = SparkEngine(files, spark)
            # A dry run of several commits reads its new rows, which only this process has.
            if not (merging.dry_run and self.commits > 1):
                row_engine = partial(SparkRows, files, spark)
        return FileCombiner(
            files,
            self._description,
            self._rules,
            engine=engine,
            row_engine=row_engine,
            announce=self._announce,
        )

    def _announce(self, table: ContentKey, read: int, written: int) -> None:
        if read and table not in self._announced:
            self._announced.add(table)
            self._app.output.note(
                f"merging rows of {table} reads up to {human_size(read)} and writes up to about"
                f" {human_size(written)}"
            )


def _asking(
    do: Callable[[MergeOptions], T], rules: CombinationRules
) -> Callable[[MergeOptions], T]:
    """Returns a merge or transplant that asks its server to combine tables in conflict.

    Without such a conflict it is an ordinary request, however large.
    """

    def asking(merging: MergeOptions) -> T:
        try:
            return do(merging)
        except ReferenceConflict as error:
            if not any(map(_may_combine, error.conflicts)):
                raise
        return do(replace(merging, combination=rules))

    return asking


def _combiners(by_server: Combiner | None, by_files: Callable[[], Combiner]) -> list[Combiner]:
    """Returns those that combine tables here. Raises `ImportError` if there is none."""
    if by_server is None:
        return [by_files()]
    with suppress(ImportError):
        return [by_server, by_files()]
    return [by_server]


def _spark(app: Invocation, options: SideOptions, stack: ExitStack) -> Callable[[], Any] | None:
    """Returns a function that starts Spark until the stack ends, or None for another engine."""
    if chosen(options.engine) is not Engine.SPARK:
        return None
    import_module("pyspark")
    return cache(lambda: stack.enter_context(spark_session(app, brief=True)))


def rules_of(app: Invocation, decided: Collection[ContentKey] = ()) -> CombinationRules:
    """Returns the rules of the settings. Tables at the keys `decided` are not combined."""
    return CombinationRules(
        app.setting(ISOLATION) == "serializable",
        app.setting(IDENTIFIERS) == "conflict",
        tuple(decided),
    )


def _may_combine(conflict: Conflict) -> bool:
    """Whether a conflict is about a table, and a server has not said why it does not combine."""
    return isinstance(conflict.actual, IcebergTable) and not conflict.collisions


def without_package(conflict: Conflict) -> Conflict:
    """Returns a conflict that says why it is not combined: a package is missing."""
    if not _may_combine(conflict):
        return conflict
    missing = "a package is missing that reads its files: pip install 'nessie-cli[iceberg]'"
    return replace(conflict, collisions=(Collision(missing),))


def table_files(*, dry_run: bool) -> Files:
    """Returns the files of tables, with the user's settings. A dry run writes none."""
    from nessie_cli.iceberg.combination.file_combiner import UnwrittenFiles
    from nessie_cli.iceberg.files import Files
    from nessie_cli.workspace.environment import of_s3

    files = Files(of_s3())
    return UnwrittenFiles(files) if dry_run else files
