"""Makes the plan of an import. It finds all problems, not only the first one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import absolute_location, shown
from nessie_cli.importing.metadata_files import (
    SourceMetadata,
    copy_location,
    folder_of,
    is_copy,
    is_earlier_view,
    names_in_log,
    normal_place,
)
from nessie_cli.importing.plan import (
    Action,
    ImportPlan,
    ImportRules,
    PlannedContent,
    PlanProblem,
    ProblemKind,
)
from nessie_cli.importing.reading import SourceReader
from nessie_cli.importing.selection import dotted, matches_any, some
from nessie_cli.importing.source import Listing, Name, SourceContent
from nessie_cli.importing.target import PlacedContent, Target, TargetFiles
from nessie_cli.model import (
    ContentKey,
    IcebergTable,
    IcebergView,
    ImportedTable,
    ImportRecord,
    Namespace,
    Reference,
    type_label,
)
from nessie_cli.model.progress import Progress
from nessie_cli.repository.reader import ReadableRepository


class _Item(NamedTuple):
    """A content of the source that could get a key, its row in the record, and where it is."""

    source: SourceContent
    key: ContentKey
    row: ImportedTable | None
    placed: PlacedContent | None
    """The content of the branch with the metadata file of the source or its copy."""


class Planner:
    """Plans the import of one listing, which is already the selected part of a source.

    It can plan again after the branch has moved, and reads the files of the source only once.
    """

    def __init__(
        self,
        repository: ReadableRepository,
        files: Files,
        listing: Listing,
        rules: ImportRules,
        label: str,
    ) -> None:
        self._repository = repository
        self._listing = listing
        self._rules = rules
        self._label = label
        self._target_files = TargetFiles(files)
        self._reader = SourceReader(files, copies=not rules.pointers_only)
        self._faults: list[PlanProblem] = []
        self._keys = self._keys_of_contents()
        self._rows_by_uuid: dict[str | None, ImportedTable] = {}
        self._rows_by_file: dict[str, ImportedTable] = {}

    def plan(
        self, head: Reference, record: ImportRecord | None, progress: Progress | None = None
    ) -> ImportPlan:
        """Returns the plan for a commit of a branch.

        Cost: one walk through the keys of the commit, and one read of each metadata file of the
        source that is not imported yet.
        """
        imported = record.tables if record else ()
        # The last row of a name is that of its present location.
        rows = {row.name: row for row in imported}
        self._rows_by_uuid = {row.uuid: row for row in imported}
        self._rows_by_file = {normal_place(row.metadata): row for row in imported}
        problems = [*self._faults]
        namespaces = self._namespace_keys(problems)
        contents = [each for each in self._listing.contents if each.name in self._keys]
        target = self._target(head, contents, rows, namespaces)
        blocked = self._blocking(target, namespaces, problems)
        items = [
            _Item(each, key, rows.get(each.name), _placed(target, each, rows.get(each.name)))
            for each in contents
            for key in (self._keys[each.name],)
            if not any(key.starts_with(above) for above in blocked)
        ]
        self._reader.read(
            (item.source for item in items if self._needs_metadata(item, target)), progress
        )
        items = self._without_duplicates(items, target, problems)
        planned = []
        for item in items:
            try:
                planned.append(self._planned(item, target))
            except _Refused as refusal:
                problems.append(refusal.problem(item.source))
        created = [
            content
            for key, content in namespaces.items()
            if target.at(key) is None and not any(key.starts_with(above) for above in blocked)
        ]
        return ImportPlan(
            head,
            tuple(sorted(planned, key=lambda each: each.key)),
            tuple(created),
            tuple(problems),
            tuple(self._listing.left_out),
        )

    # -- the source alone --------------------------------------------------------------------------

    def _keys_of_contents(self) -> dict[Name, ContentKey]:
        """Returns the keys of those contents that can be imported into some branch."""
        for problem in self._listing.problems:
            text = dotted(problem.name) if problem.name else shown(problem.location)
            names = (problem.name,) if problem.name else ()
            message = f"{text}: {problem.message}" if text else problem.message
            self._faults.append(PlanProblem(ProblemKind.INVALID, message, names))
        keys = {}
        namespaces = {each.name for each in self._listing.namespaces}
        guesses: dict[str, list[Name]] = {}
        for each in self._listing.contents:
            if each.guess and not self._rules.guess:
                guesses.setdefault(each.guess, []).append(each.name)
                continue
            try:
                keys[each.name] = self._key_of(each, is_namespace=each.name in namespaces)
            except _Refused as refusal:
                self._faults.append(refusal.problem(each))
        for reason, guessed in guesses.items():
            texts = some(list(map(dotted, guessed)))
            message = f"{texts}: {reason}. Hint: --guess imports such tables"
            self._faults.append(PlanProblem(ProblemKind.INVALID, message, tuple(guessed)))
        return keys

    def _key_of(self, content: SourceContent, *, is_namespace: bool) -> ContentKey:
        try:
            key = self._rules.selection.key_of(content.name)
        except InvalidInput as error:
            raise _Refused(ProblemKind.INVALID, error.message) from None
        if is_namespace:
            raise _Refused(
                ProblemKind.INVALID, f"the source has a {content.kind} and a namespace of this name"
            )
        return key

    def _namespace_keys(self, problems: list[PlanProblem]) -> dict[ContentKey, Namespace]:
        """Returns the namespaces that the branch needs, with those of the prefix, sorted."""
        prefix = self._rules.selection.prefix
        needed: dict[Name, Mapping[str, str]] = {
            prefix[:length]: {} for length in range(1, len(prefix) + 1)
        }
        needed |= {(*prefix, *each.name): each.properties for each in self._listing.namespaces}
        namespaces = {}
        for elements, properties in sorted(needed.items()):
            try:
                content = Namespace(elements=elements, properties=dict(properties))
                namespaces[ContentKey(elements)] = content
            except InvalidInput as error:
                name = elements[len(prefix) :]
                problems.append(
                    PlanProblem(ProblemKind.INVALID, f"{dotted(name)}: {error.message}", (name,))
                )
        return namespaces

    # -- the branch --------------------------------------------------------------------------------

    def _target(
        self,
        head: Reference,
        contents: Sequence[SourceContent],
        rows: Mapping[Name, ImportedTable],
        namespaces: Iterable[ContentKey],
    ) -> Target:
        imported = [row for each in contents if (row := rows.get(each.name)) is not None]
        keys = {*namespaces, *self._keys.values(), *(row.key for row in imported)}
        folders = {folder_of(absolute_location(each.metadata_location)) for each in contents}
        folders.update(folder_of(row.metadata) for row in imported)
        return Target(self._repository, head.hash, sorted(keys), folders)

    def _blocking(
        self, target: Target, namespaces: Iterable[ContentKey], problems: list[PlanProblem]
    ) -> list[ContentKey]:
        """Returns the keys of needed namespaces that have another content on the branch."""
        blocking = []
        for key in namespaces:
            content = target.at(key)
            if content is None or isinstance(content, Namespace):
                continue
            blocking.append(key)
            names = tuple(name for name, own in self._keys.items() if own.starts_with(key))
            kind = type_label(content.type_name)
            problems.append(
                PlanProblem(
                    ProblemKind.CONFLICT,
                    f"{key}: the branch has the type {kind} here, so it cannot be a namespace."
                    " Hint: --prefix KEY imports below another namespace",
                    names,
                )
            )
        return blocking

    def _needs_metadata(self, item: _Item, target: Target) -> bool:
        """Whether the file of the source has to be read: not if nothing can come of it."""
        if item.placed is not None:
            return self._is_new_name(item, item.placed)
        if item.row is None:
            return True
        # Another content can have the key of the row, so only the pointer proves anything.
        is_here = target.with_file([item.row.metadata]) is not None
        return self._rules.update or not is_here

    def _without_duplicates(
        self, items: Sequence[_Item], target: Target, problems: list[PlanProblem]
    ) -> list[_Item]:
        """Returns the contents that the source has under one name only."""
        places = {
            item.source.name: normal_place(absolute_location(item.source.metadata_location))
            for item in items
        }
        ids = {item.source.name: self._uuid(item, target) for item in items}
        duplicates: dict[str, list[Name]] = {}
        by_place, by_id = Counter(places.values()), Counter(ids.values())
        for name, place in places.items():
            if (id_ := ids[name]) is not None and by_id[id_] > 1:
                duplicates.setdefault(f"UUID {id_}", []).append(name)
            elif by_place[place] > 1:
                duplicates.setdefault(f"metadata file {shown(place)}", []).append(name)
        for reason, names in duplicates.items():
            problems.append(
                PlanProblem(
                    ProblemKind.INVALID,
                    f"{', '.join(map(dotted, names))}: the source has one content ({reason}) under"
                    f" {len(names)} names. Hint: --exclude all but one of them",
                    tuple(names),
                )
            )
        left = {name for names in duplicates.values() for name in names}
        return [item for item in items if item.source.name not in left]

    def _uuid(self, item: _Item, target: Target) -> str | None:
        if not self._needs_metadata(item, target):
            return None
        metadata = self._reader.metadata(item.source)
        return None if isinstance(metadata, NessieError) else metadata.uuid

    # -- one content -------------------------------------------------------------------------------

    def _planned(self, item: _Item, target: Target) -> PlannedContent:
        """Returns what the import does with a content. Raises `_Refused`."""
        source = item.source
        if item.placed is not None:
            return self._imported_before(item, item.placed, target)
        if not self._needs_metadata(item, target):
            assert item.row is not None
            tracked = target.with_file([item.row.metadata])
            assert tracked is not None
            return PlannedContent(source, tracked.key, Action.NEWER)
        metadata = self._metadata(source)
        row = self._row_of(item, metadata)
        same = self._same_content(metadata, item, row, target)
        if row is None or same is None:
            return self._new(item, metadata, target, same)
        if row.name != source.name and same.key != item.key:
            raise self._with_another_name(item, same, target)
        pointer = normal_place(same.content.metadata_location)
        has_moved = row.source_metadata != absolute_location(source.metadata_location)
        if (
            not has_moved
            and pointer != normal_place(row.metadata)
            and not self._is_earlier(same, row, source, target)
        ):
            return PlannedContent(source, same.key, Action.CHANGED)
        if not self._rules.update:
            return PlannedContent(source, same.key, Action.NEWER)
        self._check_update(same, row, metadata, source, target)
        content = metadata.content.with_id(same.content.id)
        assert isinstance(content, IcebergTable | IcebergView)
        return PlannedContent(
            source,
            same.key,
            Action.UPDATE,
            content,
            same.content,
            self._row(item, same.key, metadata),
            metadata.other_places,
            metadata.is_copied,
        )

    def _imported_before(
        self, item: _Item, placed: PlacedContent, target: Target
    ) -> PlannedContent:
        if not self._is_new_name(item, placed):
            return PlannedContent(item.source, placed.key, Action.UNCHANGED)
        if placed.key != item.key:
            raise self._with_another_name(item, placed, target)
        metadata = self._metadata(item.source)
        row = self._row(item, item.key, metadata, metadata_file=placed.content.metadata_location)
        return PlannedContent(item.source, item.key, Action.UNCHANGED, row=row)

    def _is_new_name(self, item: _Item, placed: PlacedContent) -> bool:
        """Returns whether a content was not imported with the name that the source gives it."""
        if item.row is None:
            return True
        row = self._rows_by_file.get(normal_place(placed.content.metadata_location), item.row)
        return row.name != item.source.name

    def _new(
        self,
        item: _Item,
        metadata: SourceMetadata,
        target: Target,
        same: PlacedContent | None,
    ) -> PlannedContent:
        if same is not None:
            raise self._with_another_name(item, same, target)
        there = target.at(item.key)
        if there is not None:
            raise _Refused(
                ProblemKind.CONFLICT,
                f"the branch has another content with this key ({type_label(there.type_name)})."
                " Hint: --prefix KEY imports below another namespace",
            )
        return PlannedContent(
            item.source,
            item.key,
            Action.IMPORT,
            metadata.content,
            row=self._row(item, item.key, metadata),
            other_places=metadata.other_places,
            is_copied=metadata.is_copied,
        )

    def _with_another_name(self, item: _Item, placed: PlacedContent, target: Target) -> _Refused:
        rows = self._rows_by_file
        is_row = normal_place(placed.content.metadata_location) in rows
        if is_row or any(row.key == placed.key for row in rows.values()):
            old, new = shlex.quote(str(placed.key)), shlex.quote(str(item.key))
            is_free = target.at(item.key) is None
            way = f"`nessie content rename {old} {new} -m MSG`"
            if not is_free:
                way = f"rename {placed.key} to {item.key} here, too, after the table that is there"
            reason = (
                f"imported with another name: the source renamed it. Hint: {way}, or --exclude"
                " leaves it out"
            )
        else:
            reason = (
                "but not from an import with this name. Hint: --as NAME names the record of an"
                " earlier import (`nessie import --list`)"
            )
        return _Refused(
            ProblemKind.CONFLICT,
            f"the branch has this {item.source.kind} as {placed.key}, {reason}",
        )

    def _check_update(
        self,
        same: PlacedContent,
        row: ImportedTable,
        metadata: SourceMetadata,
        source: SourceContent,
        target: Target,
    ) -> None:
        """Refuses an update of a content that was changed here, or that is another one now."""
        location = same.content.metadata_location
        uuids = {row.uuid, self._target_files.uuid(same.content)} - {None}
        if uuids - {metadata.uuid}:
            raise _Refused(
                ProblemKind.CONFLICT,
                f"the source has another {source.kind} with this name now. Hint: `nessie content"
                f" delete {shlex.quote(str(same.key))} -m MSG` makes room for it",
            )
        if normal_place(location) == normal_place(row.metadata):
            return
        if not self._is_earlier(same, row, source, target):
            raise _Refused(
                ProblemKind.CONFLICT,
                f"it was changed here ({same.key}) and at the source. Hint: without --update, it"
                " stays as it is",
            )

    def _is_earlier(
        self, same: PlacedContent, row: ImportedTable, source: SourceContent, target: Target
    ) -> bool:
        """Returns whether the branch has an earlier import of a content.

        The record has the last import into any branch. The content was changed here if the branch
        had the last one, too: then it was put back.
        """
        location = same.content.metadata_location
        is_earlier = is_copy(location)
        if not is_earlier:
            before = self._target_files.document(same.content)
            after = self._reader.document(source)
            is_earlier = normal_place(location) in names_in_log(after) or (
                before is not None and is_earlier_view(before, after)
            )
        return is_earlier and not target.had(same.key, row.metadata)

    def _row_of(self, item: _Item, metadata: SourceMetadata) -> ImportedTable | None:
        """Returns the row of a content: not that of its name if the source has renamed it."""
        row = item.row
        if metadata.uuid is None or (row is not None and row.uuid in (None, metadata.uuid)):
            return row
        return self._rows_by_uuid.get(metadata.uuid, row)

    def _same_content(
        self, metadata: SourceMetadata, item: _Item, row: ImportedTable | None, target: Target
    ) -> PlacedContent | None:
        """Returns the table or view of the branch that is the one of the source, or None.

        It has the metadata file of the record, or the UUID and a metadata file in the same folder.
        """
        if row is not None and (placed := target.with_file([row.metadata])) is not None:
            return placed
        places = [absolute_location(item.source.metadata_location)]
        if row is not None:
            places.append(row.metadata)
        candidates = {
            placed.key: placed for place in places for placed in target.in_folder_of(place)
        }
        same = [
            placed
            for placed in candidates.values()
            if metadata.uuid is not None
            and self._target_files.uuid(placed.content) == metadata.uuid
        ]
        preferred = (row.key if row else None, item.key)
        return min(same, key=lambda placed: placed.key not in preferred, default=None)

    def _metadata(self, source: SourceContent) -> SourceMetadata:
        metadata = self._reader.metadata(source)
        if not isinstance(metadata, NessieError):
            return metadata
        is_input = isinstance(metadata, InvalidInput)
        kind = ProblemKind.INVALID if is_input else ProblemKind.UNAVAILABLE
        raise _Refused(kind, metadata.message)

    def _row(
        self,
        item: _Item,
        key: ContentKey,
        metadata: SourceMetadata,
        *,
        metadata_file: str = "",
    ) -> ImportedTable:
        # The adoption of a table does not hold for another one that has its name now.
        was_adopted = item.row is not None and (
            (item.row.adopted, item.row.location) == (True, metadata.location)
            and item.row.uuid in (None, metadata.uuid)
        )
        return ImportedTable(
            item.source.name,
            key,
            metadata.location,
            absolute_location(item.source.metadata_location),
            metadata_file or metadata.content.metadata_location,
            was_adopted or matches_any(self._rules.adopted, key.elements),
            metadata.uuid,
        )


class _Refused(Exception):
    """A content cannot be imported."""

    def __init__(self, kind: ProblemKind, message: str) -> None:
        super().__init__(message)
        self._kind = kind
        self._message = message

    def problem(self, content: SourceContent) -> PlanProblem:
        """Returns the problem of a content."""
        return PlanProblem(self._kind, f"{dotted(content.name)}: {self._message}", (content.name,))


def _placed(
    target: Target, source: SourceContent, row: ImportedTable | None
) -> PlacedContent | None:
    """Returns the content of the branch that has the state of the source, or None."""
    original = absolute_location(source.metadata_location)
    files = [copy_location(source), original]
    # The copy of a file that has another content now is not the state of the source.
    is_exact = bool(source.version) and row is not None and is_copy(row.metadata)
    if row is not None and row.source_metadata == original and not is_exact:
        files.append(row.metadata)
    placed = target.with_file(files)
    state = source.content
    if placed is None or state is None or is_copy(placed.content.metadata_location):
        return placed
    # A server can have several states of one file.
    return placed if placed.content.with_id(None) == state.with_id(None) else None
