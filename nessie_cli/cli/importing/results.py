"""The results of `nessie import`: their JSON, and how people see them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from posixpath import basename
from typing import Self

from msgspec import Struct

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.committed import Committed, CommittedResult, print_committed
from nessie_cli.errors import (
    InvalidInput,
    NessieError,
    ReferenceConflict,
    StoreUnavailable,
)
from nessie_cli.importing.performing import ImportTarget
from nessie_cli.importing.plan import (
    Action,
    ImportPlan,
    PlannedContent,
    ProblemKind,
)
from nessie_cli.importing.selection import dotted, some
from nessie_cli.importing.source import SourceProblem
from nessie_cli.model import CommitResult, ContentKey, Namespace
from nessie_cli.render.spans import Column, Row, Span
from nessie_cli.render.text import counted
from nessie_cli.wire.contents import Key
from nessie_cli.wire.scalars import Count

_COLUMNS = (
    Column("KEY", "key", "fold"),
    Column("TYPE"),
    Column("ACTION"),
    Column("SOURCE FILE", room="cut"),
)
_STYLES = {Action.IMPORT: "created", Action.CREATE: "created", Action.UPDATE: "updated"}
_MOST_REASONS = 5
"""The number of reasons for which contents are left out that are printed for people."""
_MOST_PROBLEMS = 50
"""The number of problems that are printed for people."""
_EXIT_CODES = {ProblemKind.INVALID: 2, ProblemKind.CONFLICT: 3, ProblemKind.UNAVAILABLE: 7}
"""Exit codes of plans with problems; the first kind among them counts."""
_ERRORS: dict[ProblemKind, type[NessieError]] = {
    ProblemKind.INVALID: InvalidInput,
    ProblemKind.CONFLICT: ReferenceConflict,
    ProblemKind.UNAVAILABLE: StoreUnavailable,
}


class ImportedContent(Struct, rename="camel"):
    """A table or view of the source.

    `action` is "import", "update", "unchanged", "newer" (changed at the source, and not updated) or
    "changed here" (only here). `metadata` is the metadata file that is committed, if any.
    """

    name: list[str]
    key: Key
    type: str
    action: str
    source_metadata: str
    metadata: str | None
    adopted: bool

    @classmethod
    def of(cls, planned: PlannedContent) -> Self:
        """Returns the struct of a planned content."""
        return cls(
            list(planned.source.name),
            Key.of(planned.key),
            planned.source.kind,
            planned.action,
            planned.source.metadata_location,
            planned.content.metadata_location if planned.content else None,
            planned.row is not None and planned.row.adopted,
        )


class ImportedNamespace(Struct, rename="camel"):
    """A namespace that the import creates."""

    key: Key
    properties: dict[str, str]


class ImportProblem(Struct, rename="camel"):
    """A reason why contents are not imported: "invalid", "conflict" or "unavailable"."""

    kind: str
    names: list[list[str]]
    message: str


class LeftOut(Struct, rename="camel"):
    """What a source has and no import takes."""

    name: list[str]
    location: str
    message: str


class ImportCounts(Struct, rename="camel"):
    """The numbers of contents by action, of namespaces that are created, and of problems."""

    imported: Count
    updated: Count
    unchanged: Count
    newer: Count
    changed_here: Count
    namespaces: Count
    problems: Count

    @classmethod
    def of(cls, plan: ImportPlan) -> Self:
        """Returns the counts of a plan."""
        return cls(
            plan.count(Action.IMPORT),
            plan.count(Action.UPDATE),
            plan.count(Action.UNCHANGED),
            plan.count(Action.NEWER),
            plan.count(Action.CHANGED),
            len(plan.namespaces),
            len(plan.problems),
        )


class Import(Committed, kw_only=True):
    """An import: its commit, and everything that was planned.

    `record` is the name of the record of the source. `foreign` are keys of imported tables that
    another catalog may still write. `allowLocations` are the locations that a server has to allow.
    """

    source: str
    record: str
    counts: ImportCounts
    contents: list[ImportedContent]
    namespaces: list[ImportedNamespace]
    problems: list[ImportProblem]
    left_out: list[LeftOut]
    foreign: list[Key]
    allow_locations: list[str]
    warehouses_file: str | None


class ImportResult(CommittedResult, frozen=True, kw_only=True):
    """An import, or its plan. `is_dry_run` says that nothing is to be written."""

    plan: ImportPlan
    target: ImportTarget
    allow_locations: Sequence[str]
    is_dry_run: bool
    skips_invalid: bool
    pointers_only: bool
    warehouses_file: str | None = None

    @classmethod
    def of_plan(
        cls,
        plan: ImportPlan,
        result: CommitResult | None,
        target: ImportTarget,
        *,
        allow_locations: Sequence[str],
        is_dry_run: bool,
        skips_invalid: bool,
        pointers_only: bool,
    ) -> Self:
        """Returns the result of a plan, and of its commit if there is one."""
        return cls(
            result=result or CommitResult(plan.head, applied=False),
            was_repeated=False,
            keys=len(plan.operations),
            plan=plan,
            target=target,
            allow_locations=allow_locations,
            is_dry_run=is_dry_run,
            skips_invalid=skips_invalid,
            pointers_only=pointers_only,
        )

    @property
    def is_refused(self) -> bool:
        """Whether nothing is imported because of problems."""
        return bool(self.plan.problems) and not self.skips_invalid

    @property
    def foreign(self) -> Sequence[ContentKey]:
        """The keys of imported tables that another catalog may still write."""
        return [
            each.key
            for each in self.plan.committed
            if each.row is not None and not each.row.adopted
        ]

    @property
    def document(self) -> Import:
        """The JSON document."""
        plan = self.plan
        return Import.of_result(
            self.result,
            self.was_repeated,
            source=self.target.label,
            record=self.target.record,
            counts=ImportCounts.of(plan),
            contents=list(map(ImportedContent.of, plan.contents)),
            namespaces=[
                ImportedNamespace(Key(list(each.elements)), dict(each.properties))
                for each in plan.namespaces
            ],
            problems=[
                ImportProblem(each.kind, [list(name) for name in each.names], each.message)
                for each in plan.problems
            ],
            left_out=[
                LeftOut(list(each.name), each.location, each.message) for each in plan.left_out
            ],
            foreign=[Key.of(key) for key in self.foreign],
            allow_locations=list(self.allow_locations),
            warehouses_file=self.warehouses_file,
        )

    @property
    def exit_code(self) -> int:
        """2, 3 or 7 if nothing is imported because of problems."""
        if not self.is_refused:
            return 0
        kinds = {problem.kind for problem in self.plan.problems}
        return next(code for kind, code in _EXIT_CODES.items() if kind in kinds)

    @property
    def failures(self) -> Sequence[NessieError]:
        """The problems of contents that were skipped."""
        if self.is_refused:
            return ()
        return [_ERRORS[problem.kind](problem.message) for problem in self.plan.problems]

    @property
    def notes(self) -> Sequence[str]:
        """Remarks about what was imported, and about what was not."""
        return list(_notes(self))


def print_import(result: ImportResult, output: Output) -> None:
    """Prints the plan of a dry run, otherwise the commit. Problems go to stderr."""
    plan = result.plan
    if (result.is_dry_run or output.options.verbose) and not output.options.quiet:
        rows = dict(map(_namespace_row, plan.namespaces))
        rows |= dict(map(_row, _shown(plan, output)))
        if rows:
            output.out.print_table(_COLUMNS, [rows[key] for key in sorted(rows)], paged=True)
    if result.is_refused:
        _print_problems(result, output)
        return
    if counts := ", ".join(_counts(plan)):
        output.say(f"{result.target.label}: {counts}")
    if result.keys:
        print_committed(result, output)
    else:
        output.say(f"nothing to import into {plan.head.name}")


def _shown(plan: ImportPlan, output: Output) -> Iterator[PlannedContent]:
    """The contents of the table: all with `-v`, otherwise those with which something happens."""
    for each in plan.contents:
        if output.options.verbose or each.action is not Action.UNCHANGED:
            yield each


def _row(planned: PlannedContent) -> tuple[ContentKey, Row]:
    action = Span(planned.action, _STYLES.get(planned.action, ""))
    file = basename(planned.source.metadata_location)
    return planned.key, (str(planned.key), planned.source.kind, action, file)


def _namespace_row(namespace: Namespace) -> tuple[ContentKey, Row]:
    key = ContentKey(namespace.elements)
    return key, (str(key), "namespace", Span(Action.CREATE, _STYLES[Action.CREATE]), "")


def _counts(plan: ImportPlan) -> Iterator[str]:
    tables = [each for each in plan.contents if each.action is Action.IMPORT]
    for kind in ("table", "view"):
        if number := sum(each.source.kind == kind for each in tables):
            yield counted(number, f"new {kind}")
    for number, text in (
        (plan.count(Action.UPDATE), "updated"),
        (len(plan.namespaces), "new namespaces" if len(plan.namespaces) > 1 else "new namespace"),
        (plan.count(Action.UNCHANGED), "unchanged"),
        (plan.count(Action.NEWER), "newer at the source"),
        (plan.count(Action.CHANGED), "changed here only"),
        (len(plan.problems), "skipped"),
    ):
        if number:
            yield f"{number:,} {text}"


def _print_problems(result: ImportResult, output: Output) -> None:
    problems = result.plan.problems
    for problem in problems[:_MOST_PROBLEMS]:
        output.err.print_text(f"nessie: {problem.message}")
    if (more := len(problems) - _MOST_PROBLEMS) > 0:
        output.err.print_text(f"nessie: {counted(more, 'more problem')}, which --json lists")


def _notes(result: ImportResult) -> Iterator[str]:
    plan = result.plan
    if result.is_refused:
        fit = len(plan.committed)
        hint = ". Hint: --skip-invalid imports the rest" if fit else ""
        yield (
            f"nothing was imported: {counted(len(plan.problems), 'problem')}, and"
            f" {counted(fit, 'content')} without one{hint}"
        )
    if plan.left_out:
        yield from _left_out(plan.left_out)
    if newer := [str(each.key) for each in plan.contents if each.action is Action.NEWER]:
        yield f"newer at the source, which --update brings: {some(newer)}"
    if result.is_refused:
        return
    if foreign := [str(key) for key in result.foreign]:
        key = shlex.quote(foreign[0]) if len(foreign) == 1 else "KEY"
        yield (
            f"{result.target.label} may still write {counted(len(foreign), 'table')}:"
            f" {some(foreign)}. Let only one catalog write a table: two lose each other's changes."
            f" `nessie gc` deletes nothing in their folders until `nessie import --adopt {key}`"
        )
    pointers = [str(each.key) for each in plan.committed if each.source.kind == "table"]
    if pointers and result.pointers_only:
        yield (
            "--pointers-only: gc.enabled is as at the source, so an engine that expires snapshots"
            f" may delete files that branches and tags here need: {some(pointers)}"
        )
    if not result.allow_locations:
        return
    if result.warehouses_file is not None:
        yield f"{result.warehouses_file} allows {some(result.allow_locations)}"
    else:
        options = shlex.join(
            word for place in result.allow_locations for word in ("--allow-location", place)
        )
        yield f"so that Iceberg REST serves the tables, `nessie serve` needs: {options}"


def _left_out(entries: Sequence[SourceProblem]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in entries:
        by_reason.setdefault(each.message, []).append(
            dotted(each.name) if each.name else each.location
        )
    for reason, texts in list(by_reason.items())[:_MOST_REASONS]:
        yield f"not imported: {some(texts)}: {reason}"
    if (more := len(by_reason) - _MOST_REASONS) > 0:
        yield f"not imported for {counted(more, 'other reason')}: --json lists everything"
