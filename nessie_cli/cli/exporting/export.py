"""`nessie export`."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Meta, Struct

from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.questions import is_yes
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.staging.commit_meta import meta_of
from nessie_cli.errors import ContentNotFound, Interrupted, InvalidInput
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import ContentKey, Reference, type_label
from nessie_cli.model.key_patterns import KeyPattern
from nessie_cli.render.spans import Column
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import counted
from nessie_cli.wire.contents import Key
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.exporting.plan import ExportPlan, ExportStep
    from nessie_cli.exporting.target import Target

EXAMPLES = (
    "nessie export --to glue --dry-run",
    "nessie export --to hive v1 'sales.*' --allow-gap",
    "nessie export --to backup main --prefix lake --prune",
)
USAGE = "nessie export --to NAME [REV] [KEY...]"
CONFLICT, INVALID = 3, 2
"""Exit codes of problems in the plan."""
_COLUMNS = (Column("ACTION"), Column("NAME", "key", "fold"), Column("WHY", room="fold"))
_DONE = {"register": "registered", "update": "updated", "drop": "dropped"}


class Options(Struct, frozen=True, kw_only=True):
    """Register the tables of a revision in another Iceberg catalog.

    NAME is a catalog in PyIceberg's configuration. No file is copied: both catalogs name the same
    metadata files. While the tag exported/NAME exists, `nessie gc` deletes no file at the locations
    of these tables, so the other catalog may write them. It must not delete their files: an expiry
    of snapshots or a purge there deletes files that this repository needs. Delete the tag when that
    catalog no longer has the tables: `nessie tag -d exported/NAME`.

    A later export updates the tables that are unchanged there since the last one. A renamed table
    is registered under its new name, and dropped under the old one without its files.

    Nothing is exported if a table changed in the other catalog, or another table has its name (exit
    3), or if a metadata file or a name is invalid (exit 2). If an export is interrupted, run the
    same command again to complete it.

    Only REST catalogs replace a table in one step. All others drop it and register it again, and
    readers miss it for a moment: this needs a confirmation, or --allow-gap. Views are registered
    where the catalog can do it, and never replaced or dropped.
    """

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REV] [KEY...]",
            help="The revision to export (default: HEAD), and its keys or globs such as 'db.*'"
            " (* also matches dots). Keys without a revision follow `--`. Default: all keys.",
        ),
    ] = None
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NAME",
            help="The other catalog, by its name in PyIceberg's configuration.",
        ),
    ]
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix", metavar="KEY", help="Register all tables in this namespace: KEY.db.orders."
        ),
    ] = None
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Drop tables that an earlier export registered and that are not at the revision."
            " Their files stay.",
        ),
    ] = False
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace tables that changed in the other catalog, and other tables of the same"
            " name. The result names each with the metadata file that it had there.",
        ),
    ] = False
    allow_gap: Annotated[
        bool,
        typer.Option(
            "--allow-gap",
            help="Drop and register tables in a catalog that cannot replace them, without"
            " confirmation.",
        ),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be exported, and write nothing.")
    ] = False


Action = Annotated[
    str,
    Meta(
        extra_json_schema={
            "enum": [
                "register",
                "update",
                "drop",
                "unchanged",
                "kept",
                "skipped",
                "conflict",
                "invalid",
            ]
        }
    ),
]


class ExportedContent(Struct, rename="camel"):
    """A name in the other catalog, and what the export does with it.

    `key` is null for a content that is deleted or renamed here. `previousLocation` is the metadata
    file that the catalog had, null if it had no such table.
    """

    action: Action
    name: Key
    key: Key | None
    type: str
    metadata_location: str | None
    previous_location: str | None
    reason: str

    @classmethod
    def of(cls, step: "ExportStep") -> "ExportedContent":
        """Returns the struct of a step."""
        return cls(
            step.action.value,
            Key.of(step.name),
            Key.of(step.key) if step.key is not None else None,
            step.type,
            step.location,
            step.earlier,
            step.reason,
        )


class Exported(Document, frozen=True, kw_only=True):
    """An export, or its plan if `wasApplied` is false. `tag` keeps the files of the tables.

    A table is `kept` if it is no longer at the revision, and a content `skipped` if the catalog
    cannot have it.
    """

    catalog: str
    catalog_type: str
    effective_reference: AnyReference
    tag: str
    was_applied: bool
    namespaces: list[Key]
    contents: list[ExportedContent]


class ExportedResult(Result, frozen=True):
    """An export, or its plan."""

    document: Exported
    plan: Any
    has_gaps: bool

    @property
    def exit_code(self) -> int:
        """3 for a conflict, 2 for an invalid content."""
        actions = {step.action.value for step in self.plan.problems}
        return CONFLICT if "conflict" in actions else INVALID if actions else 0

    @property
    def notes(self) -> Sequence[str]:
        """What to do next."""
        return list(self._notes())

    def _notes(self) -> Iterator[str]:
        from nessie_cli.exporting.state import deletion_of

        if self.plan.problems:
            problems = counted(len(self.plan.problems), "problem")
            hint = ""
            if any(step.needs_force for step in self.plan.problems):
                hint = (
                    ". Hint: with --force, the tables here replace those there; changes that only"
                    f" {self.document.catalog} has are lost from it"
                )
            yield f"nothing was exported because of {problems}{hint}"
        elif self.has_gaps and not self.document.was_applied:
            yield f"{_gaps(self.plan, self.document.catalog_type)}"
        elif self.document.was_applied and self.plan.writes:
            yield (
                f"`nessie gc` keeps the files of these tables while the tag {self.document.tag}"
                f" exists. Hint: when {self.document.catalog} no longer has them, `nessie"
                f" {deletion_of(self.document.tag)}`"
            )


def run(options: Options, app: Invocation) -> ExportedResult:
    """Plans the export, and carries it out unless there is a problem."""
    refuse_empty(USAGE, options.to, options.prefix, *options.arguments or ())
    try:
        from nessie_cli.exporting.target import open_target
    except ModuleNotFoundError as error:
        if error.name != "pyiceberg":
            raise
        raise InvalidInput(
            "PyIceberg is needed to export", hint="`pip install 'nessie-cli[iceberg]'`"
        ) from None
    revision, keys = _split(options.arguments or [], app)
    repository = app.repository()
    source = repository.resolve(app.revision(revision))
    with closing(open_target(options.to, repository)) as target:
        return _export(options, app, source, keys, target)


def _export(
    options: Options, app: Invocation, source: Reference, keys: Sequence[str], target: "Target"
) -> ExportedResult:
    from nessie_cli.exporting.plan import ExportPlace, ExportScope, plan_export
    from nessie_cli.exporting.run import run_export
    from nessie_cli.exporting.state import SOURCE, ExportRecord
    from nessie_cli.iceberg.files import Files

    repository = app.repository()
    record = ExportRecord(repository, options.to)
    place = ExportPlace(target, record, Files({**of_s3(), **target.properties}))
    prefix = ContentKey.parse(options.prefix).elements if options.prefix else ()
    scope = ExportScope(_taking(keys), prefix, options.force, options.prune)
    with app.at_work("planning the export") as work:
        plan = plan_export(repository, source.hash, place, scope, work)
    if keys and not plan.steps and not plan.namespaces:
        raise ContentNotFound(f"no table or view matches '{keys[0]}'", ContentKey.parse(keys[0]))
    has_gaps = bool(plan.gaps) and not target.overwrites
    is_ready = not options.dry_run and not plan.problems
    is_needed = bool(plan.writes or plan.namespaces) or not record.is_complete(
        plan.contents, plan.gone
    )
    if is_ready and is_needed:
        if has_gaps and not options.allow_gap:
            _confirm(app, plan, target)
        message = f"export {source.name or short_hash(source.hash)} to {options.to}"
        meta = meta_of(app, message, properties=[f"{SOURCE}={source.hash}"])
        with app.at_work("exporting") as work:
            # A plan with gaps was confirmed.
            run_export(plan, place, meta, work, allow_gap=has_gaps or options.allow_gap)
    document = Exported(
        catalog=options.to,
        catalog_type=target.kind,
        effective_reference=reference_struct(source),
        tag=record.tag,
        was_applied=is_ready,
        namespaces=[Key.of(ContentKey(name)) for name, _ in plan.namespaces],
        contents=list(map(ExportedContent.of, plan.steps)),
    )
    return ExportedResult(document, plan, has_gaps)


def _split(arguments: Sequence[str], app: Invocation) -> tuple[str | None, list[str]]:
    """Returns the revision, and the keys: those after it, and those after `--`."""
    after = len(app.argv) - app.argv.index("--") - 1 if "--" in app.argv else 0
    before = list(arguments[: len(arguments) - after])
    keys = [*before[1:], *arguments[len(arguments) - after :]]
    return (before[0] if before else None), keys


def _taking(keys: Sequence[str]) -> Callable[[ContentKey], bool]:
    """Returns a predicate of the keys that arguments select, each a key or a glob."""
    patterns = [pattern for key in keys if (pattern := KeyPattern.parse(key)) is not None]
    plain = {ContentKey.parse(key) for key in keys if KeyPattern.parse(key) is None}
    if not keys:
        return lambda _: True
    return lambda key: key in plain or any(pattern.matches(key) for pattern in patterns)


def _gaps(plan: "ExportPlan", kind: str) -> str:
    tables = counted(len(plan.gaps), "table")
    return (
        f"a catalog of type {kind} cannot replace a table, so {tables} must be dropped and"
        " registered again; readers miss each for a moment"
    )


def _confirm(app: Invocation, plan: "ExportPlan", target: "Target") -> None:
    """Asks on a terminal. Raises `Interrupted` after a no, and `InvalidInput` in a script."""
    reason = _gaps(plan, target.kind)
    if app.output.is_json or not sys.stdin.isatty():
        raise InvalidInput(reason, hint="--allow-gap does it, and --dry-run lists the tables")
    _print_steps(plan, app.output.err)
    app.output.note(reason)
    if not is_yes(app.output.err, "Export?"):
        raise Interrupted("not confirmed, so nothing was done")


def show(result: ExportedResult, output: Output) -> None:
    """Prints a row for each name that changes or has a problem, and a summary."""
    document, plan = result.document, result.plan
    _print_steps(plan, output.out)
    counts = Counter(step.action.value for step in plan.steps)
    would = "" if document.was_applied else "would be "
    done = [f"{counts[action]:,} {would}{word}" for action, word in _DONE.items() if counts[action]]
    others = [
        f"{counts[action]:,} {action}"
        for action in ("unchanged", "kept", "skipped")
        if counts[action]
    ]
    if plan.problems:
        return
    source = document.effective_reference
    name = getattr(source, "name", None) or short_hash(source.hash)
    summary = ", ".join([*done, *others]) or "no tables"
    output.say(f"{name} to {document.catalog}: {summary}")


def _print_steps(plan: "ExportPlan", terminal: Terminal) -> None:
    rows = [
        (step.action.value, str(step.name), _reason(step))
        for step in plan.steps
        if step.action.value != "unchanged" or step.reason
    ]
    terminal.print_table(_COLUMNS, rows)


def _reason(step: "ExportStep") -> str:
    if step.needs_force and step.earlier:
        return f"{step.reason}: {step.earlier}"
    if not step.reason and step.action.value == "register":
        return type_label(step.type)
    return step.reason
