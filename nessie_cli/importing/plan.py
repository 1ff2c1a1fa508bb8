"""The plan of an import: what comes from a source into a branch, and what prevents it.

A plan is made from the listing of the source, the record of earlier imports and one commit of the
branch. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from nessie_cli.importing.selection import NamePattern, Selection
from nessie_cli.importing.source import Name, SourceContent, SourceProblem
from nessie_cli.model import (
    ContentKey,
    IcebergTable,
    IcebergView,
    ImportedTable,
    Namespace,
    Operation,
    Put,
    Reference,
)


class Action(StrEnum):
    """What an import does with a content or namespace.

    NEWER is a content that has changed at the source since it was imported, which only `--update`
    brings. CHANGED is one of which the branch has another state than the import, and which has not
    changed at the source.
    """

    IMPORT = "import"
    UPDATE = "update"
    CREATE = "create"
    UNCHANGED = "unchanged"
    NEWER = "newer"
    CHANGED = "changed here"


class ProblemKind(StrEnum):
    """Whether the source is at fault, the state of the branch, or a file system."""

    INVALID = "invalid"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"


class PlanProblem(Struct, frozen=True):
    """A reason why contents are not imported. `names` are those of the contents, if any."""

    kind: ProblemKind
    message: str
    names: tuple[Name, ...] = ()


class ImportRules(Struct, frozen=True):
    """The options of an import that its plan depends on.

    `adopted` matches the keys of tables that no other catalog writes.
    """

    selection: Selection = Selection()
    guess: bool = False
    update: bool = False
    pointers_only: bool = False
    adopted: tuple[NamePattern, ...] = ()


class PlannedContent(Struct, frozen=True):
    """A table or view of the source, and what the import does with it.

    `content` is the one that is committed, and `before` the one that it replaces. `row` is its row
    in the record. All three are None if nothing is done, except for a `row` that is missing there.
    `other_places` are those of new files outside of the table's folder, and `is_copied` says that
    `content` names a copy of the source's metadata file.
    """

    source: SourceContent
    key: ContentKey
    action: Action
    content: IcebergTable | IcebergView | None = None
    before: IcebergTable | IcebergView | None = None
    row: ImportedTable | None = None
    other_places: tuple[str, ...] = ()
    is_copied: bool = False

    @property
    def is_committed(self) -> bool:
        """Whether the import commits this content."""
        return self.content is not None

    @property
    def operation(self) -> Put:
        """The operation of a content that is committed."""
        assert self.content is not None
        return Put(self.key, self.content, self.before)


class ImportPlan(Struct, frozen=True):
    """What an import does on a commit of a branch. Contents and namespaces are sorted by key.

    `left_out` is what the source has and no import takes.
    """

    head: Reference
    contents: tuple[PlannedContent, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    problems: tuple[PlanProblem, ...] = ()
    left_out: tuple[SourceProblem, ...] = ()

    @property
    def committed(self) -> Sequence[PlannedContent]:
        """The contents that are imported or updated."""
        return [each for each in self.contents if each.is_committed]

    @property
    def rows(self) -> Sequence[ImportedTable]:
        """The rows that the record has to have before the commit."""
        return [each.row for each in self.contents if each.row is not None]

    @property
    def operations(self) -> list[Operation]:
        """The operations of the commit, namespaces first."""
        created = (Put(ContentKey(each.elements), each) for each in self.namespaces)
        return [*created, *(each.operation for each in self.committed)]

    @property
    def new_places(self) -> Iterator[str]:
        """Places of new files, of new namespaces and outside of the folders of new tables."""
        for namespace in self.namespaces:
            if place := namespace.properties.get("location"):
                yield place
        for each in self.contents:
            if each.action is Action.IMPORT:
                yield from each.other_places

    def count(self, *actions: Action) -> int:
        """Returns the number of contents with one of these actions."""
        return sum(each.action in actions for each in self.contents)

    def without(self, names: Iterable[Name], problems: Iterable[PlanProblem]) -> ImportPlan:
        """Returns the plan without some contents, and with these problems more."""
        left = set(names)
        return ImportPlan(
            self.head,
            tuple(each for each in self.contents if each.source.name not in left),
            self.namespaces,
            (*self.problems, *problems),
            self.left_out,
        )
