"""The options that merge, transplant, resolve and revert share."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

import typer
from msgspec import Struct

from nessie_cli.cli.app.engines import EngineOption


class Behavior(StrEnum):
    """The values of `--behavior`."""

    NORMAL = "normal"
    FORCE = "force"
    DROP = "drop"


class SideOptions(Struct, frozen=True, kw_only=True):
    """The side of a conflict that is taken, by key.

    `WORDS` completes the help texts, which differ between a revert and a merge.
    """

    WORDS: ClassVar[Mapping[str, str]]
    ours: Annotated[
        list[str] | None, typer.Option("--ours", metavar="KEY", help="{ours} Repeatable.")
    ] = None
    theirs: Annotated[
        list[str] | None, typer.Option("--theirs", metavar="KEY", help="{theirs} Repeatable.")
    ] = None
    no_combine: Annotated[
        bool,
        typer.Option(
            "--no-combine",
            help="Do not combine the files of a table that both sides changed. Report a conflict.",
        ),
    ] = False
    engine: EngineOption = None
    rows: Annotated[
        bool,
        typer.Option(
            "--rows",
            help="If the files of a table do not combine, merge its rows by their keys, cell by"
            " cell. This reads the data files that differ, and writes new ones.",
        ),
    ] = False
    whole_rows: Annotated[
        bool,
        typer.Option(
            "--whole-rows",
            help="As --rows, but a row that both sides changed is a conflict. For tables whose"
            " columns depend on each other.",
        ),
    ] = False
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="[KEY=]COLUMNS",
            help="With --rows, the columns (separated by commas) that identify a row of all tables,"
            " or of the table KEY. Repeatable. Default: the identifier fields of the table.",
        ),
    ] = None
    rows_ours: Annotated[
        list[str] | None,
        typer.Option(
            "--rows-ours",
            metavar="KEY",
            help="With --rows, keep ours for the rows and cells of this table that are in conflict."
            " All others are merged. Repeatable.",
        ),
    ] = None
    rows_theirs: Annotated[
        list[str] | None,
        typer.Option(
            "--rows-theirs",
            metavar="KEY",
            help="With --rows, take theirs for the rows and cells of this table that are in"
            " conflict. All others are merged. Repeatable.",
        ),
    ] = None
    decisions: Annotated[
        str | None,
        typer.Option(
            "--decisions",
            metavar="FILE",
            help="With --rows, decide rows and cells as in this file of --write-decisions, whose"
            " column 'take' says ours or theirs (- is stdin).",
        ),
    ] = None
    write_decisions: Annotated[
        str | None,
        typer.Option(
            "--write-decisions",
            metavar="FILE",
            help="With --rows, write the rows and cells in conflict to a file: CSV if its name ends"
            " in .csv, otherwise JSON.",
        ),
    ] = None


WORDS_OF_MERGES: Mapping[str, str] = {
    "ours": "Keep the target branch's state of this content. A glob decides all conflicts"
    " that match.",
    "theirs": "Take the source's state of this content. A glob decides all conflicts that match.",
    "drop": "drop: always keep ours.",
    "fail": "Fail",
}
"""The words of `DecisionOptions` that merge and transplant share. Each adds `message`."""


class DecisionOptions(SideOptions, frozen=True, kw_only=True):
    """The options that decide conflicts of a merge or transplant."""

    message: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--message",
            metavar="MSG",
            help="The commit message; repeat for paragraphs. {message}",
        ),
    ] = None
    resolve: Annotated[
        list[str] | None,
        typer.Option(
            "--resolve",
            metavar="KEY=FILE",
            help="Resolve KEY with the content in FILE (`content show --raw` format; - is stdin)."
            " KEY keeps the content id that it has on the branch. Repeatable.",
        ),
    ] = None
    expected_hash: Annotated[
        str | None,
        typer.Option(
            "--expected-hash",
            "-c",
            metavar="H",
            help="{fail} unless this commit is in the first-parent history of the target branch,"
            " and no key to be changed or decided has changed since.",
        ),
    ] = None
    allow_failed_run: Annotated[
        bool,
        typer.Option(
            "--allow-failed-run",
            help="Allow commits of a run (`nessie run`) that failed or was discarded.",
        ),
    ] = False


class MergingOptions(DecisionOptions, frozen=True, kw_only=True):
    """The options of merge and transplant."""

    behavior: Annotated[
        Behavior,
        typer.Option(
            "--behavior",
            case_sensitive=False,
            help="For contents without --ours, --theirs or --resolve. normal: take the source's"
            " change; if both sides changed the content differently, it is a conflict."
            " force: always take theirs. {drop}",
        ),
    ] = Behavior.NORMAL
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would happen, and write nothing."),
    ] = False
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Requires --dry-run: show each changed field, with rows, files and schema from"
            " the metadata files.",
        ),
    ] = False
