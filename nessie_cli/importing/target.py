"""The state of the branch that an import goes into, as far as the import needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import Document, parse_document
from nessie_cli.importing.metadata_files import folder_of, normal_place, uuid_of
from nessie_cli.model import Content, ContentKey, IcebergTable, IcebergView, Put
from nessie_cli.repository.reader import ReadableRepository


class PlacedContent(NamedTuple):
    """A table or view of the branch, and its key."""

    key: ContentKey
    content: IcebergTable | IcebergView


class Target:
    """The contents at some keys of a commit, and those whose files are in some folders.

    Cost: one walk through the keys of the commit, and memory for what is in these folders.
    """

    def __init__(
        self,
        repository: ReadableRepository,
        hash_: str,
        keys: Iterable[ContentKey],
        folders: Collection[str],
    ) -> None:
        self._repository = repository
        self._at = f"@{hash_}"
        self._contents = repository.contents(self._at, keys)
        self._by_file: dict[str, PlacedContent] = {}
        self._by_folder: dict[str, list[PlacedContent]] = {}
        for entry in repository.entries(self._at, content=True):
            if not isinstance(entry.content, IcebergTable | IcebergView):
                continue
            folder = folder_of(entry.content.metadata_location)
            if folder in folders:
                placed = PlacedContent(entry.key, entry.content)
                self._by_folder.setdefault(folder, []).append(placed)
                self._by_file[normal_place(entry.content.metadata_location)] = placed

    def at(self, key: ContentKey) -> Content | None:
        """Returns the content of one of the keys, or None."""
        return self._contents.get(key)

    def with_file(self, locations: Iterable[str]) -> PlacedContent | None:
        """Returns the content that has one of these metadata files, or None."""
        return next(
            (
                placed
                for location in locations
                if (placed := self._by_file.get(normal_place(location))) is not None
            ),
            None,
        )

    def had(self, key: ContentKey, location: str) -> bool:
        """Whether a key had this metadata file at an earlier commit. Cost: its history."""
        place = normal_place(location)
        return any(
            isinstance(operation, Put)
            and operation.key == key
            and isinstance(operation.content, IcebergTable | IcebergView)
            and normal_place(operation.content.metadata_location) == place
            for entry in self._repository.log_of_key(self._at, key, operations=True)
            for operation in entry.operations or ()
        )

    def in_folder_of(self, location: str) -> Sequence[PlacedContent]:
        """Returns the contents whose metadata files are in the folder of a file."""
        return self._by_folder.get(folder_of(location), ())


class TargetFiles:
    """The metadata of contents of the branch. Each file is read once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._uuids: dict[str, str | None] = {}

    def document(self, content: IcebergTable | IcebergView) -> Document | None:
        """Returns the metadata of a content, or None if it cannot be read."""
        try:
            location = content.metadata_location
            return parse_document(self._files.read(location), location)
        except (InvalidInput, StoreUnavailable):
            return None

    def uuid(self, content: IcebergTable | IcebergView) -> str | None:
        """Returns the UUID of a table or view, or None if it is unknown."""
        location = content.metadata_location
        if location not in self._uuids:
            document = self.document(content)
            self._uuids[location] = uuid_of(document) if document is not None else None
        return self._uuids[location]
