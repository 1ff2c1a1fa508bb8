"""The plan of an export: what happens to each table, and every problem in advance.

The record of the last export says what the other catalog got. A table there whose metadata file is
that of the record is unchanged and may be updated; any other one is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.exporting.metadata import ExportFile, file_of, own_file
from nessie_cli.exporting.state import ExportRecord
from nessie_cli.exporting.target import Name, Target
from nessie_cli.iceberg.files import Files
from nessie_cli.model import (
    Content,
    ContentKey,
    Entry,
    IcebergTable,
    IcebergView,
    Namespace,
    RestoredFrom,
    type_label,
)
from nessie_cli.model.progress import Progress
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision

_AT_ONCE = 8
"""Metadata files that are read at the same time."""


class ExportAction(StrEnum):
    """What an export does with a name in the other catalog."""

    REGISTER = "register"
    UPDATE = "update"
    DROP = "drop"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    SKIPPED = "skipped"
    CONFLICT = "conflict"
    INVALID = "invalid"


WRITES = frozenset({ExportAction.REGISTER, ExportAction.UPDATE, ExportAction.DROP})
PROBLEMS = frozenset({ExportAction.CONFLICT, ExportAction.INVALID})


class ExportStep(Struct, frozen=True):
    """One name in the other catalog, and what the export does with it.

    `key` is that of the content here, None if it is deleted. `location` is the metadata file that
    is registered, and `earlier` the one that the catalog has: None without a table, empty if the
    catalog cannot load it. `needs_force` says that the step is a conflict without `force`.
    """

    action: ExportAction
    name: ContentKey
    key: ContentKey | None
    type: str
    location: str | None = None
    earlier: str | None = None
    reason: str = ""
    needs_force: bool = False


class ExportScope(Struct, frozen=True):
    """What is exported: selected keys, and the namespace that is put before them.

    `takes` says whether a key is selected. With `force`, tables that changed in the other catalog
    are replaced; with `prune`, tables that are not at the revision are dropped there.
    """

    takes: Callable[[ContentKey], bool]
    prefix: Name = ()
    force: bool = False
    prune: bool = False

    def name_of(self, key: ContentKey) -> ContentKey:
        """Returns the name in the other catalog. Raises `InvalidInput` if it is too long."""
        return ContentKey((*self.prefix, *key.elements))

    def key_of(self, name: ContentKey) -> ContentKey | None:
        """Returns the key that a name stands for, None for a name without the prefix."""
        length = len(self.prefix)
        inside = name.elements[:length] == self.prefix and len(name.elements) > length
        return ContentKey(name.elements[length:]) if inside else None


class ExportPlace(Struct, frozen=True):
    """The other catalog, the record of what it got, and the file systems of the tables."""

    target: Target
    record: ExportRecord
    files: Files


class ExportPlan(Struct, frozen=True):
    """The steps by name, the namespaces to create, and the changes of the record.

    `contents` and `origins` are those of `ExportRecord.begin`, and `gone` the names that leave the
    record. `new_files` are metadata files to write first.
    """

    steps: Sequence[ExportStep]
    namespaces: Sequence[tuple[Name, Mapping[str, str]]]
    contents: Mapping[ContentKey, Content]
    origins: Mapping[ContentKey, RestoredFrom]
    gone: Sequence[ContentKey]
    new_files: Mapping[str, bytes]

    @property
    def problems(self) -> list[ExportStep]:
        """The conflicts and invalid contents. Nothing is exported if there are any."""
        return [step for step in self.steps if step.action in PROBLEMS]

    @property
    def writes(self) -> list[ExportStep]:
        """The steps that change the other catalog."""
        return [step for step in self.steps if step.action in WRITES]

    @property
    def gaps(self) -> list[ExportStep]:
        """The tables that are replaced while readers may look for them."""
        return [step for step in self.steps if step.action is ExportAction.UPDATE]


def plan_export(
    repository: Repository,
    hash_: str,
    place: ExportPlace,
    scope: ExportScope,
    progress: Progress | None = None,
) -> ExportPlan:
    """Compares the contents at a commit, the record, and the other catalog. Writes nothing.

    Cost: one request to the catalog for each table, and one read of each metadata file whose table
    is not unchanged.
    """
    entries = list(repository.entries(Revision(None, hash_), content=True))
    return _Planner(hash_, place, scope, progress).plan(entries)


class _Planner:
    def __init__(
        self,
        hash_: str,
        place: ExportPlace,
        scope: ExportScope,
        progress: Progress | None,
    ) -> None:
        self._hash = hash_
        self._target = place.target
        self._record = place.record
        self._files = place.files
        self._scope = scope
        self._progress = progress
        self._steps: dict[ContentKey, ExportStep] = {}
        self._contents: dict[ContentKey, Content] = {}
        self._origins: dict[ContentKey, RestoredFrom] = {}
        self._gone: list[ContentKey] = []
        self._new_files: dict[str, bytes] = {}

    def plan(self, entries: Sequence[Entry]) -> ExportPlan:
        selected = {
            name: (entry.key, entry.content)
            for entry in entries
            if self._scope.takes(entry.key)
            and isinstance(entry.content, IcebergTable | IcebergView)
            and (name := self._name(entry)) is not None
        }
        self._skip_others(entries)
        exported = (
            name
            for name, content in self._record.contents.items()
            if isinstance(content, IcebergTable)
        )
        names = dict.fromkeys([*selected, *exported])
        there = self._target.locations([name.elements for name in names], self._progress)
        views = self._target.views(name.elements[:-1] for name in selected)
        self._add_gone(entries, selected, there)
        files = self._read(selected, there)
        for name, (key, content) in selected.items():
            outcome = files[name]
            if isinstance(outcome, InvalidInput):
                self._add(ExportAction.INVALID, name, key, content, reason=outcome.message)
                continue
            self._origins[name] = RestoredFrom(self._hash, key)
            if isinstance(content, IcebergView):
                self._add_view(name, key, content, there, views)
            else:
                self._add_table(name, key, outcome, there.get(name.elements), views)
        steps = [self._steps[name] for name in sorted(self._steps)]
        namespaces = self._namespaces(entries, steps)
        return ExportPlan(
            steps, namespaces, self._contents, self._origins, self._gone, self._new_files
        )

    # -- contents ---------------------------------------------------------------------------------

    def _name(self, entry: Entry) -> ContentKey | None:
        """Returns the name of a content; None for an invalid one, which is a step."""
        try:
            name = self._scope.name_of(entry.key)
        except InvalidInput as error:
            name, problem = entry.key, error.message
        else:
            problem = self._target.problem_of(name.elements) or ""
        if not problem:
            return name
        self._add(ExportAction.INVALID, name, entry.key, entry.content, reason=problem)
        return None

    def _skip_others(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            content = entry.content
            if isinstance(content, IcebergTable | IcebergView | Namespace):
                continue
            if self._scope.takes(entry.key):
                reason = f"a {type_label(entry.type)} has no place in an Iceberg catalog"
                self._add(ExportAction.SKIPPED, entry.key, entry.key, content, reason=reason)

    def _read(
        self,
        selected: Mapping[ContentKey, tuple[ContentKey, IcebergTable | IcebergView]],
        there: Mapping[Name, str],
    ) -> dict[ContentKey, ExportFile | InvalidInput]:
        """Reads the metadata files of contents that may have to be registered."""

        def read(name: ContentKey) -> ExportFile | InvalidInput:
            _, content = selected[name]
            forms = (content, own_file(content)) if isinstance(content, IcebergTable) else ()
            for form in forms:
                is_there = there.get(name.elements) == form.metadata_location
                if is_there and self._record.has(name, form):
                    return ExportFile(form)
            try:
                return file_of(content, self._files)
            except InvalidInput as error:
                return error

        with ThreadPoolExecutor(_AT_ONCE, "metadata") as pool:
            return dict(zip(selected, pool.map(read, selected), strict=True))

    # -- tables and views -------------------------------------------------------------------------

    def _add_table(
        self,
        name: ContentKey,
        key: ContentKey,
        file: ExportFile,
        earlier: str | None,
        views: set[Name],
    ) -> None:
        table, label = file.content, self._target.label
        action, reason, needs_force = ExportAction.UPDATE, "", False
        if name.elements in views:
            action, reason = ExportAction.CONFLICT, f"{label} has a view of this name"
        elif earlier == table.metadata_location:
            action = ExportAction.UNCHANGED
        elif earlier is None:
            action = ExportAction.REGISTER
            if name in self._record.contents and not self._record.is_interrupted:
                reason, needs_force = f"dropped or renamed in {label} since the last export", True
        elif not self._record.is_ours(name, earlier):
            was_exported = name in self._record.contents
            what = "changed in" if was_exported else "another table of this name is in"
            reason, needs_force = f"{what} {label}", True
        if needs_force and not self._scope.force:
            action = ExportAction.CONFLICT
        location = table.metadata_location
        self._add(
            action,
            name,
            key,
            table,
            location=location,
            earlier=earlier,
            reason=reason,
            needs_force=needs_force,
        )
        self._contents[name] = table
        if file.data is not None and action in WRITES:
            self._new_files[table.metadata_location] = file.data

    def _add_view(
        self,
        name: ContentKey,
        key: ContentKey,
        view: IcebergView,
        there: Mapping[Name, str],
        views: set[Name],
    ) -> None:
        label, location = self._target.label, view.metadata_location
        if not self._target.registers_views:
            reason = f"{label} cannot register views"
            self._add(ExportAction.SKIPPED, name, key, view, location=location, reason=reason)
        elif name.elements in there:
            reason = f"{label} has a table of this name"
            self._add(ExportAction.CONFLICT, name, key, view, location=location, reason=reason)
        elif name.elements not in views:
            self._add(ExportAction.REGISTER, name, key, view, location=location)
            self._contents[name] = view
        elif self._record.has(name, view):
            self._add(ExportAction.UNCHANGED, name, key, view, location=location)
        else:
            # A catalog may delete the metadata file of a view that is dropped.
            reason = f"{label} has a view of this name, and views are not replaced: change it there"
            self._add(ExportAction.SKIPPED, name, key, view, location=location, reason=reason)

    def _add(
        self,
        action: ExportAction,
        name: ContentKey,
        key: ContentKey | None,
        content: Content | None,
        *,
        location: str | None = None,
        earlier: str | None = None,
        reason: str = "",
        needs_force: bool = False,
    ) -> None:
        type_ = content.type if content is not None else ""
        self._steps[name] = ExportStep(
            action, name, key, type_, location, earlier, reason, needs_force
        )

    # -- what is gone -----------------------------------------------------------------------------

    def _add_gone(
        self,
        entries: Iterable[Entry],
        selected: Mapping[ContentKey, tuple[ContentKey, Content]],
        there: Mapping[Name, str],
    ) -> None:
        """Adds the names that were exported and whose content is renamed or deleted here."""
        keys = {entry.content.id: entry.key for entry in entries if entry.content is not None}
        names = {content.id: name for name, (_, content) in selected.items()}
        for name, content in self._record.contents.items():
            if name in selected or not isinstance(content, IcebergTable | IcebergView):
                continue
            moved_to = names.get(content.id)
            key = self._scope.key_of(name)
            if moved_to is not None:
                self._drop(name, content, there, f"renamed to {moved_to}")
            elif key is None or not self._scope.takes(key):
                continue
            elif (current := keys.get(content.id)) is not None:
                reason = f"renamed to {current}, which is not exported"
                self._add(ExportAction.KEPT, name, None, content, reason=reason)
            elif self._scope.prune and (self._scope.force or name.elements in there):
                self._drop(name, content, there, "not at this revision")
            elif self._scope.prune:
                # A view, or a table that was renamed there, needs the files that the record keeps.
                what = (
                    "views are not dropped"
                    if isinstance(content, IcebergView)
                    else f"dropped or renamed in {self._target.label}"
                )
                reason = f"not at this revision; {what}, so its files are kept until --force"
                self._add(ExportAction.KEPT, name, None, content, reason=reason)
            else:
                reason = "not at this revision; --prune drops it"
                self._add(ExportAction.KEPT, name, None, content, reason=reason)

    def _drop(
        self, name: ContentKey, content: Content, there: Mapping[Name, str], reason: str
    ) -> None:
        earlier, needs_force = there.get(name.elements), False
        if isinstance(content, IcebergView):
            action, reason = ExportAction.SKIPPED, f"{reason}; views are not dropped"
        elif earlier is None:
            action, reason = ExportAction.UNCHANGED, f"{reason}, and dropped there"
        elif self._record.is_ours(name, earlier):
            action = ExportAction.DROP
        else:
            reason, needs_force = f"{reason}, and changed in {self._target.label}", True
            action = ExportAction.DROP if self._scope.force else ExportAction.CONFLICT
        self._add(
            action, name, None, content, earlier=earlier, reason=reason, needs_force=needs_force
        )
        self._gone.append(name)

    # -- namespaces -------------------------------------------------------------------------------

    def _namespaces(
        self, entries: Iterable[Entry], steps: Iterable[ExportStep]
    ) -> list[tuple[Name, Mapping[str, str]]]:
        """Returns the missing namespaces of what is registered, and the selected ones."""
        properties = {
            (*self._scope.prefix, *entry.key.elements): entry.content.properties
            for entry in entries
            if isinstance(entry.content, Namespace)
        }
        names = {
            step.name.elements[:length]
            for step in steps
            if step.action is ExportAction.REGISTER
            for length in range(1, len(step.name.elements))
        }
        for entry in entries:
            if isinstance(entry.content, Namespace) and self._scope.takes(entry.key):
                name = (*self._scope.prefix, *entry.key.elements)
                names |= {name[:length] for length in range(1, len(name) + 1)}
        names = {name for name in names if self._target.holds_namespace(name)}
        return [(name, properties.get(name, {})) for name in self._target.missing_namespaces(names)]
