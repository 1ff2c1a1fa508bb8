"""PyIceberg's catalog over a repository, embedded or on a server.

`load_catalog` opens it with the option `py-catalog-impl=nessie_cli.iceberg.catalog.NessieCatalog`.
Every change is one commit on the branch `ref`. If others change the same table at the same time,
the commit fails as PyIceberg expects, and PyIceberg retries it. Different tables never conflict.
docs/guides/pyiceberg.md has examples.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pyiceberg.catalog import (
    LOCATION,
    URI,
    WAREHOUSE_LOCATION,
    MetastoreCatalog,
    PropertiesUpdateSummary,
)
from pyiceberg.exceptions import (
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ValidationError,
    ViewAlreadyExistsError,
)
from pyiceberg.io import FileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, StagedTable, Table, TableProperties
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.types import transform_dict_value_to_str
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewVersion

from nessie_cli.errors import NessieError
from nessie_cli.iceberg import messages, namespaces, options, tables, views
from nessie_cli.iceberg.builder import table as table_builder
from nessie_cli.iceberg.builder.document import GC_ENABLED, check_requirements, creates_table
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.errors import pyiceberg_errors, reading_metadata
from nessie_cli.iceberg.metadata import content_of, read_content, read_document
from nessie_cli.iceberg.names import key_of, location_in, namespace_key
from nessie_cli.iceberg.reference import BoundReference, CatalogChange, PyIcebergState
from nessie_cli.iceberg.validity.metadata import check_additions
from nessie_cli.model import (
    Content,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Operation,
    Put,
    type_label,
)

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C", IcebergTable, IcebergView)


class NessieCatalog(MetastoreCatalog):
    """The tables, views and namespaces of one reference.

    Options:

    * `uri`: the store, as `nessie_cli.connect` takes it.
    * `ref`: a branch (default: the repository's default branch). A tag or commit (`main@2e1c…`,
      `main~3`) is read-only: writing raises `ForbiddenError`.
    * `warehouse`: the location of new tables and views.
    * `author`: the author of commits (default: `NESSIE_AUTHOR`).
    * `access.*`: the settings of nessie-access(7). Their environment variables take precedence.
    * All other options are PyIceberg's, for its FileIO.

    Methods raise PyIceberg's errors. A store or server that does not answer is
    `ServiceUnavailableError`, a commit with an unknown outcome `CommitStateUnknownException`, and a
    missing permission `ForbiddenError`. A missing reference is
    `nessie_cli.errors.ReferenceNotFound`, for which PyIceberg has no error.
    """

    def __init__(self, name: str, **properties: str) -> None:
        """Opens the repository. Raises `ValueError` for invalid options, and `connect`'s errors."""
        with pyiceberg_errors():
            super().__init__(name, **options.checked(properties))
            author, repository = options.author(self.properties), options.opened(self.properties)
        try:
            self._reference = BoundReference(repository, self.properties.get(options.REF), author)
        except BaseException:
            repository.close()
            raise

    def close(self) -> None:
        """Closes the store. The catalog and its tables cannot be used afterwards."""
        self._reference.close()

    @property
    def repository_created(self) -> datetime | None:
        """The creation of the repository, which no other one has. None if it is unknown."""
        return self._reference.repository.config().created

    def __reduce__(self) -> tuple[Callable[..., NessieCatalog], tuple[object, ...]]:
        """Pickles the options. Another process opens the store itself, at the same reference."""
        url = self._reference.repository.url
        if url == "memory:":
            raise TypeError(
                "memory is a store of one process. Hint: "
                "a catalog for several processes needs a file or a server"
            )
        return _opened_again, (
            type(self),
            self.name,
            {**self.properties, URI: url, options.REF: self._reference.revision},
        )

    # -- tables -----------------------------------------------------------------------------------

    def create_table(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Commits a new table. Raises `TableAlreadyExistsError`, `NoSuchNamespaceError`."""
        key = key_of(identifier)
        document, file = self._new_table(
            key, schema, location, partition_spec, sort_order, properties
        )
        table, content = self._table(key, document, file), content_of(document, file)

        def make(state: PyIcebergState) -> CatalogChange[None]:
            self._check_free(state, key)
            change = CatalogChange(messages.created(key), [Put(key, content)], None)
            return self._written(document, table.io, file, change)

        self._reference.change(make)
        return table

    def register_table(
        self, identifier: str | Identifier, metadata_location: str, overwrite: bool = False
    ) -> Table:
        """Adds the table of a metadata file.

        `overwrite` replaces an existing table. The content id stays if the table UUID is the same.
        """
        key, content = key_of(identifier), self._read(metadata_location, IcebergTable)
        # Raises an error before the commit if PyIceberg cannot read the table.
        self._load(key, content)

        def make(state: PyIcebergState) -> CatalogChange[None]:
            there = state.content(key)
            if overwrite and isinstance(there, IcebergTable):
                same = self._uuid(there) == self._uuid(content)
                operations: list[Operation] = (
                    [Put(key, content.with_id(there.id), there)]
                    if same
                    else [Delete(key), Put(key, content)]
                )
                return CatalogChange(f"register table {key} again", operations, None)
            self._check_free(state, key)
            return CatalogChange(f"register table {key}", [Put(key, content)], None)

        self._reference.change(make)
        return self.load_table(key.elements)

    def load_table(self, identifier: str | Identifier) -> Table:
        """Returns a table. Cost: two reads of the repository and one of the metadata file."""
        key = key_of(identifier, NoSuchTableError)
        return self._load(key, self._need_table(self._reference.state(), key))

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Whether there is a table of this name. Reads no metadata file."""
        return isinstance(self._reference.state().content(key_of(identifier)), IcebergTable)

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Returns the tables of a namespace. The empty tuple stands for the root."""
        return self._inside(namespace, IcebergTable)

    def drop_table(self, identifier: str | Identifier) -> None:
        """Deletes a table, but not its files, which other references and older commits need."""
        self._drop("table", key_of(identifier, NoSuchTableError), self._need_table)

    def purge_table(self, identifier: str | Identifier) -> None:
        """Drops a table and keeps its files. `nessie gc` deletes files that no reference needs."""
        self.drop_table(identifier)
        logger.warning(
            "dropped %s and kept its files: other references and older commits may need them",
            key_of(identifier),
        )

    def rename_table(
        self, from_identifier: str | Identifier, to_identifier: str | Identifier
    ) -> Table:
        """Moves a table. It keeps its content id, so that merges follow the rename."""
        old, new = key_of(from_identifier, NoSuchTableError), key_of(to_identifier)

        def make(state: PyIcebergState) -> CatalogChange[None]:
            there = self._need_table(state, old)
            if old == new:
                return CatalogChange("", (), None)
            self._check_free(state, new)
            return CatalogChange(
                f"rename table {old} to {new}", [Delete(old), Put(new, there)], None
            )

        self._reference.change(make)
        return self.load_table(new.elements)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Applies updates to the table's newest metadata if the requirements hold for it."""
        key = key_of(table.name(), NoSuchTableError)
        required, changes = (
            [tables.as_json(model) for model in given] for given in (requirements, updates)
        )

        def make(state: PyIcebergState) -> CatalogChange[CommitTableResponse]:
            current = self._to_change(state, key, required)
            base = tables.read(current, self.properties) if current else None
            with pyiceberg_errors():
                check_requirements(required, base)
                document = table_builder.updated(
                    base, changes, tables.now(), current.metadata_location if current else None
                )
                check_additions(document, base)
            if current and document is base:
                return CatalogChange("", (), _response(document, current.metadata_location))
            file = self._next_file(document, current)
            answer = _response(document, file)
            content = content_of(document, file).with_id(current.id if current else None)
            message = (messages.changed if current else messages.created)(key, changes)
            change = CatalogChange(message, [Put(key, content, current)], answer)
            return self._written(
                document, self._load_file_io(answer.metadata.properties, file), file, change
            )

        return self._reference.change(make)

    def _to_change(
        self, state: PyIcebergState, key: ContentKey, required: Sequence[Document]
    ) -> IcebergTable | None:
        """Returns the table that updates apply to, None for a table that they create."""
        if not creates_table(required):
            return self._need_table(state, key)
        there = state.content(key)
        if isinstance(there, IcebergTable):
            return there
        self._check_free(state, key)
        return None

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
        """Keeps them, because older commits need them. The table's properties are ignored."""

    # -- views ------------------------------------------------------------------------------------

    def create_view(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        view_version: ViewVersion,
        location: str | None = None,
        properties: Properties = EMPTY_DICT,
    ) -> View:
        """Commits a new view.

        Raises `ViewAlreadyExistsError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`.
        """
        key, given = key_of(identifier), transform_dict_value_to_str(properties)
        place = self._location(key, location)
        document = views.new(self._convert_schema_if_needed(schema), view_version, place, given)
        file = load_location_provider(place, given).new_table_metadata_file_location()
        io = self._load_file_io(given, file)
        content = content_of(document, file)
        view = views.loaded(key, document, file)

        def make(state: PyIcebergState) -> CatalogChange[None]:
            self._check_free(state, key, view=True)
            change = CatalogChange(f"create view {key}", [Put(key, content)], None)
            return self._written(document, io, file, change)

        self._reference.change(make)
        return view

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        """Adds the view of a metadata file.

        Raises `ViewAlreadyExistsError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`.
        """
        key, content = key_of(identifier), self._read(metadata_location, IcebergView)
        view = views.load(key, content, self.properties)

        def make(state: PyIcebergState) -> CatalogChange[None]:
            self._check_free(state, key, view=True)
            return CatalogChange(f"register view {key}", [Put(key, content)], None)

        self._reference.change(make)
        return view

    def load_view(self, identifier: str | Identifier) -> View:
        """Returns a view. Raises `NoSuchViewError`."""
        key = key_of(identifier, NoSuchViewError)
        return views.load(key, self._need_view(self._reference.state(), key), self.properties)

    def view_exists(self, identifier: str | Identifier) -> bool:
        """Whether there is a view of this name. Reads no metadata file."""
        return isinstance(self._reference.state().content(key_of(identifier)), IcebergView)

    def list_views(self, namespace: str | Identifier) -> list[Identifier]:
        """Returns the views of a namespace. The empty tuple stands for the root."""
        return self._inside(namespace, IcebergView)

    def drop_view(self, identifier: str | Identifier) -> None:
        """Deletes a view, but not its metadata files."""
        self._drop("view", key_of(identifier, NoSuchViewError), self._need_view)

    # -- namespaces -------------------------------------------------------------------------------

    def create_namespace(
        self, namespace: str | Identifier, properties: Properties = EMPTY_DICT
    ) -> None:
        """Creates a namespace, with missing parent namespaces in the same commit."""
        key = key_of(namespace, NoSuchNamespaceError)
        self._reference.change(lambda state: namespaces.create(state, key, properties))

    def drop_namespace(self, namespace: str | Identifier) -> None:
        """Deletes an empty namespace. Contents of any type make it non-empty."""
        key = key_of(namespace, NoSuchNamespaceError)
        self._reference.change(lambda state: namespaces.drop(state, key))

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Returns the child namespaces of a namespace. The empty tuple stands for the root."""
        return self._inside(namespace, Namespace)

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """Returns the properties of a namespace. Raises `NoSuchNamespaceError`."""
        return dict(
            namespaces.get(
                self._reference.state(), key_of(namespace, NoSuchNamespaceError)
            ).properties
        )

    def update_namespace_properties(
        self,
        namespace: str | Identifier,
        removals: set[str] | None = None,
        updates: Properties = EMPTY_DICT,
    ) -> PropertiesUpdateSummary:
        """Removes and sets properties of a namespace, and reports which ones changed."""
        key = key_of(namespace, NoSuchNamespaceError)

        def make(state: PyIcebergState) -> CatalogChange[PropertiesUpdateSummary]:
            there = namespaces.get(state, key)
            summary, properties = self._get_updated_props_and_update_summary(
                dict(there.properties), removals, updates
            )
            return namespaces.set_properties(
                key,
                there,
                properties,
                messages.names({*summary.updated, *summary.removed}),
                summary,
            )

        return self._reference.change(make)

    def _inside(self, namespace: str | Identifier, type_: type[Content]) -> list[Identifier]:
        """Returns the identifiers of the contents of a type directly in a namespace."""
        key, state = namespace_key(namespace), self._reference.state()
        if not namespaces.exists(state, key):
            raise NoSuchNamespaceError(f"Namespace does not exist: {key}")
        return [entry.key.elements for entry in state.inside(key) if entry.type == type_.type]

    # -- contents of keys -------------------------------------------------------------------------

    @staticmethod
    def _need_table(state: PyIcebergState, key: ContentKey) -> IcebergTable:
        there = state.content(key)
        if isinstance(there, IcebergTable):
            return there
        if isinstance(there, DeltaLakeTable):
            raise NoSuchIcebergTableError(f"{key} is a Delta Lake table, not an Iceberg table")
        raise NoSuchTableError(
            f"Table does not exist: {key}"
            f"{f' (its type is {type_label(there.type_name)})' if there else ''}"
        )

    @staticmethod
    def _need_view(state: PyIcebergState, key: ContentKey) -> IcebergView:
        there = state.content(key)
        if isinstance(there, IcebergView):
            return there
        raise NoSuchViewError(
            f"View does not exist: {key}"
            f"{f' (its type is {type_label(there.type_name)})' if there else ''}"
        )

    def _check_free(self, state: PyIcebergState, key: ContentKey, *, view: bool = False) -> None:
        """Raises PyIceberg's error if the key is taken or its namespace is missing."""
        there = state.content(key)
        if there is not None:
            _raise_existing(key, there, view=view)
        namespaces.check_parent(state, key)

    def _drop(
        self, type_name: str, key: ContentKey, need: Callable[[PyIcebergState, ContentKey], Content]
    ) -> None:
        """Deletes a key. `need` raises an error if its content has another type."""

        def make(state: PyIcebergState) -> CatalogChange[None]:
            need(state, key)
            return CatalogChange(f"drop {type_name} {key}", [Delete(key)], None)

        self._reference.change(make)

    # -- metadata files ---------------------------------------------------------------------------

    def _create_staged_table(  # noqa: PLR0917 - PyIceberg's signature
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> StagedTable:
        """As PyIceberg's, for namespaces of any depth. Writes nothing."""
        key = key_of(identifier)
        document, file = self._new_table(
            key, schema, location, partition_spec, sort_order, properties
        )
        made = self._table(key, document, file)
        return StagedTable(key.elements, made.metadata, file, made.io, self)

    def _new_table(  # noqa: PLR0917 - PyIceberg's arguments
        self,
        key: ContentKey,
        schema: Schema | pa.Schema,
        location: str | None,
        spec: PartitionSpec,
        order: SortOrder,
        properties: Properties,
    ) -> tuple[Document, str]:
        """Returns the metadata of a new table and the location of its file."""
        given = transform_dict_value_to_str({GC_ENABLED: "false", **properties})
        version = given.get(TableProperties.FORMAT_VERSION, TableProperties.DEFAULT_FORMAT_VERSION)
        converted = self._convert_schema_if_needed(schema, int(version))  # type: ignore[arg-type]
        self._check_free(self._reference.state(), key)
        place = self._location(key, location)
        document = tables.new(converted, spec, order, place, given)
        return document, self._next_file(document, None)

    @staticmethod
    def _next_file(document: Document, current: IcebergTable | None) -> str:
        """Returns a location for a metadata file, numbered after the current one."""
        number = 0
        if current:
            number = NessieCatalog._parse_metadata_version(current.metadata_location) + 1
        properties = tables.without_code(document)["properties"]
        provider = load_location_provider(document["location"], properties)
        return provider.new_table_metadata_file_location(number)

    def _location(self, key: ContentKey, given: str | None) -> str:
        """Returns the location of a new table or view.

        It is the given one, otherwise a folder in its namespace's `location` or in the warehouse.
        """
        if given:
            return given.rstrip("/")
        if key.parent and (
            folder := namespaces.get(self._reference.state(), key.parent).properties.get(LOCATION)
        ):
            return location_in(folder, key, below=len(key.elements) - 1)
        if folder := self.properties.get(WAREHOUSE_LOCATION):
            return location_in(folder, key)
        raise ValueError(
            "No default path is set, please specify a location when creating a table, "
            "or the option warehouse"
        )

    def _load(self, key: ContentKey, content: IcebergTable) -> Table:
        """Returns the table of a content."""
        document = tables.read(content, self.properties)
        return self._table(key, document, content.metadata_location)

    def _load_file_io(
        self,
        properties: Properties = EMPTY_DICT,  # noqa: ARG002 - PyIceberg's signature
        location: str | None = None,
    ) -> FileIO:
        """Returns what reads and writes a file, by the options of the catalog alone.

        Everybody who writes a table chooses its properties, and `py-io-impl` would name a class.
        """
        file_io: FileIO = super()._load_file_io(location=location)
        return file_io

    def _table(self, key: ContentKey, document: Document, file: str) -> Table:
        """Returns a table by its metadata and its metadata file."""
        metadata = tables.parsed(document, file)
        io = self._load_file_io(metadata.properties, file)
        return Table(key.elements, metadata, file, io, self)

    def _read(self, metadata_location: str, type_: type[C]) -> C:
        """Returns the content for a metadata file. Raises `ValidationError` for another type."""
        with reading_metadata(metadata_location):
            content = read_content(metadata_location, self.properties)
        if isinstance(content, type_):
            return content
        view = isinstance(content, IcebergView)
        raise ValidationError(
            f"{metadata_location} is the metadata of a {'view' if view else 'table'}, "
            f"not of a {'table' if view else 'view'}"
        )

    def _uuid(self, content: IcebergTable) -> object:
        """Returns the UUID of a table. Without one, the result equals no other value."""
        try:
            document = read_document(content.metadata_location, self.properties)
            return document.get("table-uuid") or object()
        except NessieError:
            return object()

    def _written(
        self, document: Document, io: FileIO, file: str, change: CatalogChange[T]
    ) -> CatalogChange[T]:
        """Writes a metadata file. Returns the change, which removes the file if it fails."""
        self._write_document(document, io, file)
        return change._replace(undo=lambda: self._remove(io, file))

    @staticmethod
    def _write_document(document: Document, io: FileIO, file: str) -> None:
        with io.new_output(file).create() as output:
            output.write(json.dumps(document, separators=(",", ":")).encode())

    @staticmethod
    def _remove(io: FileIO, file: str) -> None:
        """Removes a metadata file that no commit uses. A file that remains does no harm."""
        try:
            io.delete(file)
        except Exception:
            # Each file system has its own errors. None may hide the error of the commit.
            logger.warning(
                "Failed to delete the metadata file %s of a commit that was refused",
                file,
                exc_info=logger.isEnabledFor(logging.DEBUG),
            )


def _opened_again(
    kind: type[NessieCatalog], name: str, properties: dict[str, str]
) -> NessieCatalog:
    return kind(name, **properties)


def _response(document: Document, location: str) -> CommitTableResponse:
    return CommitTableResponse.model_validate(
        {"metadata": tables.parsed(document, location), "metadata-location": location}
    )


def _raise_existing(key: ContentKey, there: Content, *, view: bool) -> NoReturn:
    """Raises the error of a key that is taken."""
    if isinstance(there, IcebergTable):
        raise TableAlreadyExistsError(f"Table {key} already exists")
    if isinstance(there, IcebergView):
        raise (ViewAlreadyExistsError if view else TableAlreadyExistsError)(
            f"View {key} already exists"
        )
    raise (ViewAlreadyExistsError if view else TableAlreadyExistsError)(
        f"{key} already exists with type {type_label(there.type_name)}"
    )
