"""`nessie import`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.cli.app.input import pairs
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.importing.history import HistoryResult, run_history, show_history
from nessie_cli.cli.importing.records import (
    ImportedRowsResult,
    adopt,
    list_imported,
    show_imported,
)
from nessie_cli.cli.importing.results import ImportResult, print_import
from nessie_cli.cli.staging.commit_meta import message_of_paragraphs, meta_of
from nessie_cli.cli.staging.submission import head_of_branch, new_request_id
from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import Files
from nessie_cli.importing.allowed_locations import locations_to_allow
from nessie_cli.importing.opening import SourceType, open_source
from nessie_cli.importing.performing import Imported, Importer, ImportTarget
from nessie_cli.importing.plan import Action, ImportPlan, ImportRules
from nessie_cli.importing.planning import Planner
from nessie_cli.importing.records import ImportRecords
from nessie_cli.importing.selection import NamePattern, Selection
from nessie_cli.importing.warehouse_files import allowed_in, with_locations
from nessie_cli.model import CommitMeta, ContentKey
from nessie_cli.render.text import counted
from nessie_cli.workspace.environment import of_s3
from nessie_cli.workspace.files import read_text, replace_text

if TYPE_CHECKING:
    from nessie_cli.importing.source import Listing, Source

EXAMPLES = (
    "nessie import prod --dry-run",
    "nessie import prod sales --into staging --prefix hive",
    "nessie import sqlite:////srv/catalog.db --include 'sales.*' --exclude 'sales.tmp*'",
    "nessie import /srv/warehouse --update",
    "nessie import --adopt 'sales.*'",
    "nessie import --list",
)
_TYPES = ", ".join(SourceType)


class Options(Struct, frozen=True, kw_only=True):
    """Import tables, views and namespaces from another catalog, Nessie server or folder.

    SOURCE is a catalog of PyIceberg's configuration, the URI of one, glue, the URL of another
    Nessie server, or the folder of a warehouse. Everything is checked first, and imported as one
    commit. The files of the tables stay where they are. For each table, a copy of its metadata file
    is written beside it, with gc.enabled=false, so that no engine deletes files of its history
    here.

    Run it again for what is new; if it was interrupted, too. Nothing is deleted. The exit status is
    0 only if everything selected is imported: 2 if contents of SOURCE are invalid, 3 if they
    conflict with the branch, 7 if files cannot be read or written, and 8 if --skip-invalid left
    some out.
    """

    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="What to import from.", show_default=False),
    ] = None
    namespaces: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMESPACE...]", help="Only these namespaces of SOURCE.", show_default=False
        ),
    ] = None
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help=f"The type of SOURCE, if its text does not say it: {_TYPES}.",
        ),
    ] = None
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME=VALUE",
            help="A property of SOURCE, or of the access to its files; repeatable. Secrets belong"
            " into the environment or PyIceberg's configuration.",
        ),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="REV",
            help="The branch, tag or commit of a Nessie server. Default: its default branch.",
        ),
    ] = None
    into: Annotated[
        str | None,
        typer.Option(
            "--into", metavar="BRANCH", help="The branch to import into. Default: the current one."
        ),
    ] = None
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="KEY", help="Import below this namespace."),
    ] = None
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="NAME",
            help="Import only this name of SOURCE and those below it, or those that match a glob"
            " such as 'sales.*'; repeatable.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="NAME",
            help="Leave out this name of SOURCE and those below it, or those that match a glob;"
            " repeatable.",
        ),
    ] = None
    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="The name of the record of this source, by which repeated imports know what came"
            " from it. Default: SOURCE.",
        ),
    ] = None
    message: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--message",
            metavar="MSG",
            help="The commit message; repeat for paragraphs. Default: a message with the source.",
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported. Write nothing.")
    ] = False
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid",
            help="Import everything that has no problem, and exit with 8 if something has one.",
        ),
    ] = False
    guess: Annotated[
        bool,
        typer.Option(
            "--guess",
            help="Import tables of a folder too if nothing says which metadata file is current.",
        ),
    ] = False
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Bring contents that were imported before to the state of SOURCE. One that was"
            " changed here is a conflict.",
        ),
    ] = False
    pointers_only: Annotated[
        bool,
        typer.Option(
            "--pointers-only",
            help="Register the metadata files of SOURCE themselves, and write nothing beside them."
            " Engines may then delete files that branches and tags here need.",
        ),
    ] = False
    adopt: Annotated[
        list[str] | None,
        typer.Option(
            "--adopt",
            metavar="KEY",
            help="Say that no other catalog writes these tables, so that `nessie gc` may delete"
            " files in their folders: a key, a namespace or a glob; repeatable. Without SOURCE, for"
            " tables that were imported before.",
        ),
    ] = None
    list_: Annotated[
        bool, typer.Option("--list", help="List the imported tables, with source and state.")
    ] = False
    write_warehouses: Annotated[
        Path | None,
        typer.Option(
            "--write-warehouses",
            metavar="FILE",
            help="Allow the locations of the imported tables in this file of `nessie serve"
            " --warehouses`, which is made if it does not exist.",
        ),
    ] = None
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Import all branches and tags with their commits, from a Nessie server or an"
            " export of the original (ZIP or folder), into a new store.",
        ),
    ] = False


def run(options: Options, app: Invocation) -> ImportResult | ImportedRowsResult | HistoryResult:
    """Imports, or lists or adopts what was imported."""
    if options.source is None:
        _refuse_others(options)
        return list_imported(app) if options.list_ else adopt(app, options.adopt or ())
    if options.list_:
        raise InvalidInput("--list takes no SOURCE: it lists the imports of all sources")
    properties = dict(pairs(options.property_ or (), "--property"))
    if options.history:
        _refuse_for_history(options)
        return run_history(app, options.source, properties, dry_run=options.dry_run)
    return _import(options, app, options.source, properties)


def show(result: ImportResult | ImportedRowsResult | HistoryResult, output: Output) -> None:
    """Prints the result."""
    if isinstance(result, ImportedRowsResult):
        show_imported(result, output)
    elif isinstance(result, HistoryResult):
        show_history(result, output)
    else:
        print_import(result, output)


def _refuse_others(options: Options) -> None:
    """Raises `InvalidInput` if SOURCE is missing, and for options that need it."""
    if options.list_ == bool(options.adopt):
        raise InvalidInput(
            "--list and --adopt cannot be used together" if options.list_ else "SOURCE is missing",
            hint="nessie import SOURCE [NAMESPACE...], nessie import --adopt KEY or nessie import"
            " --list",
        )
    alone = Options(adopt=options.adopt, list_=options.list_)
    if options != alone:
        raise InvalidInput(
            f"{'--list' if options.list_ else '--adopt without SOURCE'} takes no other options"
        )


def _refuse_for_history(options: Options) -> None:
    """Raises `InvalidInput` for options that have no meaning for a history."""
    refused = (
        ("NAMESPACE", options.namespaces),
        ("--into", options.into),
        ("--prefix", options.prefix),
        ("--include", options.include),
        ("--exclude", options.exclude),
        ("--as", options.as_),
        ("--from", options.from_),
        ("-m", options.message),
        ("--update", options.update),
        ("--skip-invalid", options.skip_invalid),
        ("--guess", options.guess),
        ("--pointers-only", options.pointers_only),
        ("--adopt", options.adopt),
        ("--write-warehouses", options.write_warehouses),
    )
    for name, value in refused:
        if value:
            raise InvalidInput(f"--history imports everything as it is, and takes no {name}")


def _import(
    options: Options, app: Invocation, text: str, properties: Mapping[str, str]
) -> ImportResult:
    kind = None
    if options.type_ is not None:
        kind = next((each for each in SourceType if each == options.type_), None)
        if kind is None:
            raise InvalidInput(f"--type {options.type_}: the types are {_TYPES}")
    repository = app.repository()
    branch = options.into or app.reference_name()
    head_of_branch(repository, branch)  # a tag is refused before the source is read
    try:
        with app.at_work("opening the source"):
            source = open_source(text, kind, properties, revision=options.from_, target=repository)
    except ImportError:
        raise _missing_package() from None
    try:
        return _import_from(source, options, app, branch)
    finally:
        source.close()


def _import_from(source: "Source", options: Options, app: Invocation, branch: str) -> ImportResult:
    rules = _rules(options)
    target = ImportTarget(branch, options.as_ or source.label, source.label)
    warehouses = _warehouses_text(options.write_warehouses)
    listing = _listing(source, options, app, rules)
    repository, files = app.repository(), Files({**of_s3(), **source.properties})
    planner = Planner(repository, files, listing, rules, source.label)
    message = message_of_paragraphs(options.message) if options.message else None

    def meta(plan: ImportPlan) -> CommitMeta:
        return meta_of(app, message or _message(plan, source.label))

    importer = Importer(repository, files, planner, target, meta)
    with app.at_work("reading metadata files") as work:
        if options.dry_run:
            imported = Imported(importer.plan(work))
        else:
            imported = importer.perform(
                new_request_id,
                skip_invalid=options.skip_invalid,
                progress=work,
                writing=lambda done, total: work.report("writing metadata files", done, total),
            )
    places = _places(imported, options, app, target, warehouses)
    result = ImportResult.of_plan(
        imported.plan,
        imported.result,
        target,
        allow_locations=places,
        is_dry_run=options.dry_run,
        skips_invalid=options.skip_invalid,
        pointers_only=options.pointers_only,
    )
    file = options.write_warehouses
    if file is None or options.dry_run or result.is_refused:
        return result
    if places:
        replace_text(file, with_locations(warehouses, places))
    return replace(result, warehouses_file=str(file))


def _rules(options: Options) -> ImportRules:

    return ImportRules(
        Selection.parse(options.include or (), options.exclude or (), options.prefix),
        guess=options.guess,
        update=options.update,
        pointers_only=options.pointers_only,
        adopted=tuple(map(NamePattern.parse, options.adopt or ())),
    )


def _listing(source: "Source", options: Options, app: Invocation, rules: ImportRules) -> "Listing":
    """Returns the selected part of the source."""
    names = [ContentKey.parse(text).elements for text in options.namespaces or ()]
    with app.at_work(f"listing {source.label}") as progress:
        listing = source.listing(names, progress)
    return rules.selection.of(listing, source.label)


def _places(
    imported: Imported, options: Options, app: Invocation, target: ImportTarget, text: str | None
) -> Sequence[str]:
    """Returns the locations that a server has to allow for what is new.

    With a file of warehouses, for everything from this source that the file does not allow yet: an
    earlier import may have ended before it wrote the file.
    """
    plan = imported.plan
    new = [each.row for each in plan.contents if each.action is Action.IMPORT and each.row]
    if options.write_warehouses is not None:
        record = ImportRecords(app.repository()).get(target.record)
        new += record.tables if record is not None else ()
    allowed = allowed_in(text) if text is not None else ()
    return locations_to_allow(new, plan.new_places, allowed)


def _warehouses_text(file: Path | None) -> str | None:
    """Returns the text of the file of warehouses, None if there is none. Raises `InvalidInput`."""
    if file is None:
        return None

    text = read_text(file)
    if text is not None:
        try:
            allowed_in(text)
        except InvalidInput as error:
            raise InvalidInput(f"--write-warehouses {file}: {error.message}") from None
    return text


def _message(plan: ImportPlan, label: str) -> str:
    number = len(plan.committed)
    what = counted(number, "table") if number else counted(len(plan.namespaces), "namespace")
    if number == 1:
        what = str(plan.committed[0].key)
    return f"import {what} from {label}"


def _missing_package() -> InvalidInput:
    return InvalidInput(
        "a package is missing that reads catalogs and files of tables",
        hint="`pip install 'nessie-cli[iceberg]'`",
    )
