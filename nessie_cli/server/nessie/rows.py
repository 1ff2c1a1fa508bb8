"""The changed rows of a table, read with the server's credentials: an extension to REST v2.

Callers need the right `READ_ROWS` besides those of a diff. A process of its own reads the rows, in
the warehouses of the server only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

from nessie_cli.errors import ContentNotFound, InvalidInput
from nessie_cli.iceberg.locations import Allowed, LocationRefused
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses, table_folder
from nessie_cli.model import Content, ContentKey, IcebergTable, KeyRange, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.authorized import may_choose_location, require_rows
from nessie_cli.server.auth.rules import READ_ENTRIES
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.pipeline.table import Doc, Endpoint, NoRoute
from nessie_cli.server.pipeline.targets import parse_segment, read_at
from nessie_cli.server.runtime.row_processes import RowProcesses
from nessie_cli.server.runtime.row_request import RowRequest
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.server.runtime.threads import Threads

_PACKAGES = ("pyarrow", "pyiceberg", "fastavro", "pyroaring")


def row_reads(parts: Parts, threads: Threads) -> RowReads | None:
    """Returns what reads rows, if the server has warehouses and the packages that read files."""
    if parts.warehouses is None or not all(map(find_spec, _PACKAGES)):
        return None
    return RowReads(parts.warehouses, threads.row_readers, RowProcesses(parts.rows))


class RowQuestion(NamedTuple):
    """A question for the rows of a table that differ between two commits.

    `old_key` is the key before a rename. The other attributes are those of `RowRequest`.
    """

    before: Reference
    after: Reference
    key: ContentKey
    old_key: ContentKey
    key_columns: Sequence[str] = ()
    columns: Sequence[str] = ()
    where: str | None = None
    limit: int | None = None
    rows: bool = True


TableSide = tuple[str, ContentKey]
"""The hash of a commit, and the key of a table there."""


class TablePlace(NamedTuple):
    """The warehouse of a table, and the folders in which its files have to lie, if any."""

    warehouse: Warehouse
    folders: Sequence[str]


class RowReads:
    """Answers requests for changed rows."""

    def __init__(
        self, warehouses: Warehouses, readers: ThreadPool, processes: RowProcesses
    ) -> None:
        self._warehouses = warehouses
        self._readers = readers
        self.processes = processes

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint."""
        doc = Doc("The changed rows of a table")
        return Endpoint(
            "GET", "/api/v2/trees/{from}/rows/{to}", self.get_rows, doc=doc, right=READ_ENTRIES
        )

    async def get_rows(self, call: Call) -> Reply:
        """The rows that differ between two states of a table, as frames (`wire.rows`)."""
        if not call.is_ours:
            raise NoRoute(())
        request = await self._readers.submit(partial(self._request, call))
        return await self.processes.reply(request, call.watch_client())

    def _request(self, call: Call) -> RowRequest:
        """Returns what the caller may read. Raises the errors of reading contents."""
        key = call.key("key")
        if key is None:
            raise InvalidInput("key: is missing (the content key of the table)")
        before, after = (
            read_at(call.repository, parse_segment(call.segments[name], call.default_branch), text)
            for name, text in (("from", '"From" hash'), ("to", '"To" hash'))
        )
        limit = call.number("limit")
        if limit is not None and limit < 0:
            raise InvalidInput("limit: must not be negative")
        question = RowQuestion(
            before,
            after,
            key,
            call.key("from-key") or key,
            call.texts("key-column"),
            call.texts("column"),
            call.text("where"),
            limit,
            rows=call.text("rows") != "false",
        )
        return self.request(call.repository, question)

    def request(self, repository: ReadableRepository, question: RowQuestion) -> RowRequest:
        """Returns what a process has to read for the caller.

        Raises the errors of reading contents, `NotAllowed` without `READ_ROWS`, `LocationRefused`
        for a table outside of the warehouses, and `InvalidInput` for what is not a table.
        """
        sides = (
            (question.before.hash, question.old_key),
            (question.after.hash, question.key),
        )
        tables = _tables(repository, *sides)
        warehouse = self._warehouse_of([table for table in tables if table is not None])
        return RowRequest(
            before=tables[0],
            after=tables[1],
            key=question.key_columns,
            columns=question.columns,
            where=question.where,
            limit=question.limit,
            rows=question.rows,
            warehouse=warehouse,
            folders=_folders(repository, warehouse, sides, tables),
            limits=self.processes.limits,
        )

    def place(
        self,
        repository: ReadableRepository,
        sides: Sequence[TableSide],
        tables: Sequence[IcebergTable],
    ) -> TablePlace:
        """Returns where the files of a table lie that a process has to read for the caller.

        The caller has read the table in these states. Raises `NotAllowed` without `READ_ROWS` for
        one of them, and `LocationRefused` for a table outside of the warehouses.
        """
        for (hash_, key), table in zip(sides, tables, strict=True):
            require_rows(repository, Revision(None, hash_), key, table.type_name)
        warehouse = self._warehouse_of(tables)
        return TablePlace(warehouse, _folders(repository, warehouse, sides, tables))

    def _warehouse_of(self, tables: Sequence[IcebergTable]) -> Warehouse:
        """Returns the warehouse in which all metadata files lie. Raises `LocationRefused`."""
        locations = [table.metadata_location for table in tables]
        for warehouse in self._warehouses.all:
            allowed = Allowed(warehouse.allowed)
            if all(map(allowed.holds, locations)):
                return warehouse
        raise LocationRefused(
            f"{' and '.join(dict.fromkeys(locations))}: not in a warehouse of this server, which"
            " reads rows only there"
        )


def _tables(
    repository: ReadableRepository, before: TableSide, after: TableSide
) -> tuple[IcebergTable | None, IcebergTable | None]:
    """Returns the table in both states, as the caller may read it.

    Raises `ContentNotFound` unless a diff would show it, and `NotAllowed` without `READ_ROWS`.
    """
    sides = (before, after)
    contents = [_content(repository, *side) for side in sides]
    if not _is_shown(repository, sides, contents):
        raise ContentNotFound(
            f"Could not find content for key '{after[1].plain}' in both references", after[1]
        )
    types = [content.type_name for content in contents if content is not None]
    # A key can have had a content of another type. An absent side has the type of the other one.
    for (hash_, key), type_ in zip(sides, (types[0], types[-1]), strict=True):
        require_rows(repository, Revision(None, hash_), key, type_)
    old, new = (content if isinstance(content, IcebergTable) else None for content in contents)
    if old is None and new is None:
        raise InvalidInput(f"{after[1]} is not an Iceberg table, so it has no rows")
    return old, new


def _content(repository: ReadableRepository, at: str, key: ContentKey) -> Content | None:
    entries = repository.entries(Revision(None, at), KeyRange(keys=(key,)), content=True)
    return next((entry.content for entry in entries), None)


def _is_shown(
    repository: ReadableRepository, sides: Sequence[TableSide], contents: Sequence[Content | None]
) -> bool:
    """Whether a diff shows these contents. One side may be hidden from the caller."""
    (before, old_key), (after, key) = sides
    old, new = contents
    if old is not None and new is not None:
        return old_key == key or old.id == new.id
    if old_key != key or (old is None and new is None):
        return False
    differences = repository.diff(
        Revision(None, before), Revision(None, after), KeyRange(keys=(key,))
    )
    return any(True for _ in differences)


def _folders(
    repository: ReadableRepository,
    warehouse: Warehouse,
    sides: Sequence[TableSide],
    tables: Sequence[IcebergTable | None],
) -> list[str]:
    """Returns the folders in which the files of a table have to lie; none if any will do.

    Where callers need a right to choose locations, the metadata of a table may name files of
    others, which the server would read for its writer.
    """
    if warehouse.choose_locations:
        return []
    folders = []
    for (hash_, key), table in zip(sides, tables, strict=True):
        if table is None:
            continue
        if may_choose_location(repository, Revision(None, hash_), key, table.type_name):
            return []
        folders.append(table_folder(table.metadata_location))
    return folders
