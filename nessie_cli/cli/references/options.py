"""The options that `nessie branch` and `nessie tag` share."""

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import typer
from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.render.text import counted


class ReferenceOptions(Struct, frozen=True, kw_only=True):
    """List, create, delete, rename or assign references of one type.

    `WORDS` are the words of the type, for the braces in the help texts.
    """

    WORDS: ClassVar[Mapping[str, str]]
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME [START]]",
            help="The branch to create, and the revision where it starts (default: HEAD). -l, -d,"
            " -m, -c and -f take other arguments.",
        ),
    ] = None
    list_: Annotated[
        bool,
        typer.Option(
            "-l",
            "--list",
            help="List all {references}, or those that match a name or a glob: -l [NAME...]."
            " Default if no name is given.",
        ),
    ] = False
    contains: Annotated[
        str | None,
        typer.Option("--contains", metavar="REV", help="List {references} that contain REV."),
    ] = None
    no_contains: Annotated[
        str | None,
        typer.Option(
            "--no-contains", metavar="REV", help="List {references} that do not contain REV."
        ),
    ] = None
    merged: Annotated[
        str | None,
        typer.Option(
            "--merged",
            metavar="[REV]",
            help="List {references} that are merged into REV. Default: HEAD.",
        ),
    ] = None
    no_merged: Annotated[
        str | None,
        typer.Option(
            "--no-merged",
            metavar="[REV]",
            help="List {references} that are not merged into REV. Default: HEAD.",
        ),
    ] = None
    points_at: Annotated[
        str | None,
        typer.Option("--points-at", metavar="REV", help="List {references} that point at REV."),
    ] = None
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="CEL",
            help="List {references} for which this expression over `ref`, `commit` and `refMeta`"
            " is true; see nessie-filters(7).",
        ),
    ] = None
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="KEY",
            help="Sort by name (default), time (of the last commit), ahead or behind. A leading -"
            " reverses, as in -time.",
        ),
    ] = None
    show_current: Annotated[
        bool,
        typer.Option("--show-current", help="Print the name of the current reference."),
    ] = False
    extended: Annotated[
        bool,
        typer.Option(
            "-x",
            "--extended",
            help="List with the same columns as -v.",
        ),
    ] = False
    delete: Annotated[
        bool,
        typer.Option(
            "-d",
            "--delete",
            help="Delete {references}: -d NAME... Exits with 8 if it deletes some and fails for"
            " others.",
        ),
    ] = False
    force_delete: Annotated[
        bool,
        typer.Option("-D", hidden=True, help="Delete the named references without confirmation."),
    ] = False
    rename: Annotated[
        bool,
        typer.Option(
            "--move", help="Rename OLD, or the current {reference}, to NEW: {rename} [OLD] NEW."
        ),
    ] = False
    assign: Annotated[
        bool,
        typer.Option(
            "-f",
            "--force",
            help="Assign: point the existing {reference} NAME at another commit: -f NAME TARGET.",
        ),
    ] = False
    allow_failed_run: Annotated[
        bool,
        typer.Option(
            "--allow-failed-run",
            help="With -f: allow commits of a run (`nessie run`) that failed or was discarded.",
        ),
    ] = False
    if_exists: Annotated[
        bool,
        typer.Option(
            "--if-exists",
            help="With -d, {rename} or -f: succeed if the {reference} does not exist.",
        ),
    ] = False
    if_not_exists: Annotated[
        bool,
        typer.Option(
            "--if-not-exists",
            help="When creating: succeed and do nothing if the {reference} NAME exists, even at"
            " another commit. START must exist.",
        ),
    ] = False
    expected_hash: Annotated[
        str | None,
        typer.Option(
            "--expected-hash",
            metavar="H",
            help="With -d, {rename} or -f: fail unless the {reference} is at this commit.",
        ),
    ] = None
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            "-y",
            help="Skip the confirmation. nessie asks only on a terminal, and only before it makes"
            " commits unreachable.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show what would be created, deleted, renamed or assigned, and do nothing.",
        ),
    ] = False
    hash_on_ref: Annotated[
        str | None,
        typer.Option("-o", "--hash-on-ref", metavar="HASH", hidden=True),
    ] = None

    @property
    def arguments(self) -> list[str]:
        """The positional arguments."""
        return self.names or []

    @property
    def deletes(self) -> bool:
        """Whether references are to be deleted."""
        return self.delete or self.force_delete

    @property
    def lists(self) -> bool:
        """Whether an option requests a list."""
        return self.list_ or self.extended or self.show_current or self.selects

    @property
    def selects(self) -> bool:
        """Whether an option filters or sorts the list."""
        return any(value is not None for value in self._selection)

    @property
    def texts(self) -> tuple[str | None, ...]:
        """All values that a user gives. None of them may be empty."""
        return (*self.arguments, self.expected_hash, self.hash_on_ref, *self._selection)

    @property
    def _selection(self) -> tuple[str | None, ...]:
        return (
            self.contains,
            self.no_contains,
            self.merged,
            self.no_merged,
            self.points_at,
            self.filter_,
            self.sort,
        )

    @property
    def actions(self) -> tuple[str, ...]:
        """The options that select an action. At most one is allowed."""
        chosen = {
            "-l": self.lists,
            "-d": self.deletes,
            self.WORDS["rename"]: self.rename,
            "-f": self.assign,
        }
        return tuple(option for option, given in chosen.items() if given)

    def between(self, least: int, most: int, usage: str) -> list[str]:
        """Returns the arguments. Raises `InvalidInput` for too few or too many."""
        count = len(self.arguments)
        if not least <= count <= most:
            raise InvalidInput(f"{counted(count, 'name')} given, expected: {usage}")
        return self.arguments

    def old_and_new(self, current: Callable[[], str], usage: str) -> tuple[str, str]:
        """Returns two names. The first one defaults to the current reference."""
        *old, new = self.between(1, 2, usage)
        return (old[0] if old else current()), new
