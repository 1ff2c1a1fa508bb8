"""The staged batch as JSON, and as one line per change."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.cli.staging.split_runs import SplitRunDocument, split_documents, split_notes
from nessie_cli.inspection.split_runs import SplitRun
from nessie_cli.inspection.text import visible
from nessie_cli.model import (
    Content,
    ContentKey,
    Delete,
    Put,
    TableCombination,
    Unchanged,
    type_label,
)
from nessie_cli.render.merges import combination_lines
from nessie_cli.render.spans import Span
from nessie_cli.render.text import counted
from nessie_cli.wire import merges as wire
from nessie_cli.wire.contents import AnyContent, Key, RestoredFrom, content_struct
from nessie_cli.wire.scalars import Hash
from nessie_cli.workspace import batch as workspace
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.staging import StagedList, renames

_STYLES = {
    "create": "created",
    "update": "updated",
    "replace": "updated",
    "rename": "renamed",
    "delete": "deleted",
    "unmodified": "label",
}
_LETTERS = {
    "create": "A",
    "update": "M",
    "replace": "M",
    "rename": "R",
    "delete": "D",
    "unmodified": "=",
}

Combinations = Mapping[str | None, TableCombination]
"""The tables that a command combined, by content id."""
MOST_DELETIONS = 20
"""The number of deleted contents that are named after a commit; the others are counted."""


# -- JSON ------------------------------------------------------------------------------------------


class StagedPut(Struct, rename="camel", tag_field="type", tag="PUT"):
    """A staged Put; `expectedContent` is the content on which it was staged.

    `restoredFrom` is where a deleted content was that comes back under its id. `combination` is set
    if a command has combined a table with later changes of the branch.
    """

    key: Key
    content: AnyContent
    expected_content: AnyContent | UnsetType = UNSET
    restored_from: RestoredFrom | UnsetType = UNSET
    combination: wire.TableCombination | UnsetType = UNSET


class StagedOther(Struct, rename="camel"):
    """A staged Delete, or a check that a key is unmodified."""

    type: Literal["DELETE", "UNCHANGED"]
    key: Key
    expected_content: AnyContent | UnsetType = UNSET


StagedOperation = Annotated[
    Any,
    Meta(
        extra_json_schema={"anyOf": [{"$ref": "StagedPut"}, {"$ref": "StagedOther"}]},
        extra={"structs": (StagedPut, StagedOther)},
    ),
]


class Batch(Document, frozen=True, kw_only=True):
    """The operations staged for a reference; `begunAt` is the hash at which the batch was begun.

    `begunAt` is null if nothing is staged. `splitRuns` are runs of which the command reverts
    some tables, but not all.
    """

    reference: str
    begun_at: Hash | None
    store: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    operations: list[StagedOperation]
    split_runs: list[SplitRunDocument] | UnsetType = UNSET


class BatchResult(Result, frozen=True):
    """The operations staged for a reference, and the keys that the command changed.

    `combinations` are the tables that the command combined, and `split_runs` the runs of which it
    reverts some tables only.
    """

    reference: str
    begun_at: str | None = None
    store: str | None = None
    request_id: str | None = None
    staged: StagedList = ()
    touched: tuple[ContentKey, ...] = ()
    combinations: Combinations = field(default_factory=dict)
    split_runs: Sequence[SplitRun] = ()

    @classmethod
    def of(
        cls,
        batch: workspace.StagedBatch | None,
        reference: str,
        touched: Iterable[ContentKey] = (),
    ) -> "BatchResult":
        """Returns the staged batch.

        `reference` is the current one, for a batch without a reference.
        """
        if batch is None:
            return cls(reference, touched=tuple(touched))
        return cls(
            batch.branch or reference,
            batch.begun_at,
            batch.store,
            batch.request_id,
            batch.staged,
            tuple(touched),
        )

    @property
    def document(self) -> Batch:
        """The JSON document."""
        return Batch(
            reference=self.reference,
            begun_at=self.begun_at,
            store=UNSET if self.store is None else self.store,
            request_id=UNSET if self.request_id is None else self.request_id,
            operations=[json_of(item, self.combinations) for item in self.staged],
            split_runs=split_documents(self.split_runs),
        )

    @property
    def notes(self) -> Sequence[str]:
        """The tables that were combined, and the runs that are split."""
        return [*notes_of(self.staged, self.combinations), *split_notes(self.split_runs)]


def notes_of(staged: StagedList, combinations: Combinations) -> list[str]:
    """Returns remarks about the tables that a command combined with the branch."""
    return [
        line
        for item in staged
        if (combination := _combination_of(item, combinations)) is not None
        for line in combination_lines(item.key, combination)
    ]


def _combination_of(item: Staged, combinations: Combinations) -> TableCombination | None:
    put = item.operation
    return combinations.get(put.content.id) if isinstance(put, Put) else None


def json_of(staged: Staged, combinations: Combinations) -> StagedPut | StagedOther:
    """Returns a staged operation as JSON."""
    operation = staged.operation
    key, expected = Key.of(operation.key), staged.seen
    if isinstance(operation, Put):
        expected = expected or operation.expected_content
        origin = operation.restored_from
        combination = _combination_of(staged, combinations)
        return StagedPut(
            key,
            content_struct(operation.content),
            _expected(expected),
            UNSET if origin is None else RestoredFrom.of(origin),
            UNSET if combination is None else wire.TableCombination.of(combination),
        )
    return StagedOther(
        "DELETE" if isinstance(operation, Delete) else "UNCHANGED", key, _expected(expected)
    )


def _expected(content: Content | None) -> Any:
    return UNSET if content is None else content_struct(content)


# -- changes ---------------------------------------------------------------------------------------


class StagedChange(NamedTuple):
    """A change in a batch: the verb, the key, and the content type or the new key of a rename."""

    verb: str
    key: str
    what: str


def changes_of(staged: StagedList) -> list[StagedChange]:
    """Returns the changes in the order of staging. A rename is one change."""
    moved = renames(staged)
    targets = set(moved.values())
    changes: dict[tuple[str, bool], StagedChange] = {}
    for item in staged:
        key, is_moved = str(item.key), item.key in moved
        if is_moved:
            changes[key, is_moved] = StagedChange("rename", key, str(moved[item.key]))
        if item.key in targets and item.seen and not is_moved and _is_another(item):
            changes[key, False] = StagedChange("delete", key, type_label(item.seen.type_name))
        if item.key in targets or (is_moved and isinstance(item.operation, Delete)):
            continue
        # Another content may be created under the old key of a rename.
        verb = "create" if is_moved else "replace" if (key, False) in changes else _verb(item)
        changes[key, False] = StagedChange(verb, key, _type(item))
    return list(changes.values())


def _is_another(item: Staged) -> bool:
    """Returns whether a Put gives a key another content than the one that it has."""
    put = item.operation
    return isinstance(put, Put) and item.seen is not None and put.content.id != item.seen.id


def _verb(item: Staged) -> str:
    if isinstance(item.operation, Delete):
        return "delete"
    if isinstance(item.operation, Unchanged):
        return "unmodified"
    if item.seen is None:
        return "create"
    return "update" if item.operation.content.id == item.seen.id else "replace"


def _type(item: Staged) -> str:
    content = item.operation.content if isinstance(item.operation, Put) else item.seen
    return type_label(content.type_name) if content else ""


def print_changes(output: Output, changes: Iterable[StagedChange]) -> None:
    """Prints the changes that a command made, unless `--quiet` is set."""
    if not output.options.quiet:
        list_changes(output, changes)


def note_deletions(output: Output, staged: StagedList, noted: Collection[ContentKey] = ()) -> None:
    """Names the contents that a committed batch deleted, without those that are noted already."""
    names = set(map(str, noted))
    gone = [
        change
        for change in changes_of(staged)
        if change.verb in ("delete", "replace") and change.key not in names
    ]
    for change in gone[:MOST_DELETIONS]:
        done = "replaced" if change.verb == "replace" else "deleted"
        output.note(f"{done} {visible(change.key)}  {change.what}".rstrip())
    if len(gone) > MOST_DELETIONS:
        output.note(f"and {counted(len(gone) - MOST_DELETIONS, 'more content')}")


def list_changes(output: Output, changes: Iterable[StagedChange], indent: str = "") -> None:
    """Prints one line for each change: verb, key, and content type or new key."""
    for change in changes:
        verb = Span(f"{indent}{change.verb:<10} ", _STYLES[change.verb])
        output.out.print_line(verb, Span(change.key, "key"), f"  {change.what}".rstrip())


def print_short(
    output: Output, changes: Iterable[StagedChange], conflicts: Collection[str]
) -> None:
    """Prints one line for each change, as `git status --short`.

    A line is a letter, C if a key of the change is in `conflicts`, and the key. A rename has both
    keys.
    """
    for change in changes:
        keys = [change.key, change.what] if change.verb == "rename" else [change.key]
        state = Span("C", "conflict") if set(keys) & set(conflicts) else Span(" ")
        letter = Span(_LETTERS[change.verb], _STYLES[change.verb])
        output.out.print_line(letter, state, Span(f" {' -> '.join(keys)}", "key"))
