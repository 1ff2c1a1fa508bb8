"""Merges and transplants for which the server combines the tables that both sides changed.

An extension (`wire.extensions`) of a server with warehouses. Files are read and written there, with
the settings of the warehouses alone, before the branch moves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from posixpath import dirname
from threading import BoundedSemaphore
from time import thread_time
from typing import Any

from msgspec import structs, to_builtins

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.iceberg.avro import OF_MERGES
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.file_combiner import (
    CollisionCache,
    FileCombiner,
    UnwrittenFiles,
)
from nessie_cli.iceberg.combination.merging import Combiner, NotStored, TableMerger, TableStates
from nessie_cli.iceberg.files import Files, MissingFile
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.metadata import content_of
from nessie_cli.iceberg.warehouses.metadata_files import (
    MetadataFiles,
    next_metadata_file,
    parsed,
)
from nessie_cli.iceberg.warehouses.warehouse import (
    LOCATION,
    NewMetadata,
    RecordedLocations,
    Warehouses,
    check_new_metadata,
    is_in,
    table_folder,
)
from nessie_cli.model import (
    CombinationRules,
    CombinedTable,
    Content,
    ContentKey,
    ContentPlace,
    IcebergTable,
    MergeBehavior,
    MergeDetail,
    MergeResult,
)
from nessie_cli.repository.changes import Merge, MergeOptions, Transplant
from nessie_cli.repository.draft import ChangeSubmission
from nessie_cli.repository.requests import digest
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.authorized import require_rows
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import LARGE
from nessie_cli.server.nessie.extensions import require_extensions
from nessie_cli.server.nessie.merged_rows import MergedRowsCombiner
from nessie_cli.server.nessie.v2.writing import answer_merge, answer_transplant, branch_of
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.table import WRITES_FILES, Endpoint
from nessie_cli.server.pipeline.targets import parse_segment
from nessie_cli.server.runtime.memory import LargeFiles
from nessie_cli.server.runtime.row_merge_answer import MergedRows
from nessie_cli.server.runtime.thread_pool import BUSY
from nessie_cli.wire import merges as wire
from nessie_cli.wire.bodies import Combination, TableCombinationRequest
from nessie_cli.wire.extensions import COMBINATION
from nessie_cli.wire.large_json import free
from nessie_cli.wire.validation import checked
from nessie_cli.wire.values import key_of

MOST_BYTES = 64 * 2**20
"""The most bytes of metadata files, manifest lists and manifests that a request reads."""
MOST_SECONDS = 60
"""The most seconds of processor time after which a request still reads a file.

Compressed manifests may have a thousand times the content of their bytes.
"""
MOST_RUNNING, MOST_ADMITTED = 2, 8
"""The most requests that combine tables at once, and those that run or wait.

They have threads of requests that write files, and others need these, too.
"""
LONGEST_WAIT = 30.0
_HASH = re.compile("[0-9a-f]{64}")


class _Repeated(NotStored):
    """Another server has carried out this request in the meantime."""


class TableCombinations:
    """The endpoints of merges and transplants that combine tables in some warehouses."""

    def __init__(self, warehouses: Warehouses, large_files: LargeFiles) -> None:
        self._files = [MetadataFiles(warehouse) for warehouse in warehouses.all]
        self._locations = RecordedLocations(warehouses.all)
        self._large_files = large_files
        self._running = BoundedSemaphore(MOST_RUNNING)
        self._admitted = BoundedSemaphore(MOST_ADMITTED)
        # Callers who are not trusted with locations read files in fewer places.
        self._collisions = {is_trusted: CollisionCache() for is_trusted in (False, True)}

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Waits until few others combine tables. Raises `Unavailable` if many wait."""
        if not self._admitted.acquire(blocking=False):
            raise Unavailable(BUSY)
        try:
            if not self._running.acquire(timeout=LONGEST_WAIT):
                raise Unavailable(BUSY)
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._admitted.release()

    def _cache_of(self, files: WarehouseFiles) -> Callable[[], CollisionCache]:
        return lambda: self._collisions[files.is_trusted]

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints."""
        path = "/api/v2/trees/{ref}/history/combining-"
        return (
            Endpoint("POST", f"{path}merge", self._post_merge, WRITES_FILES, body="Merge"),
            Endpoint(
                "POST", f"{path}transplant", self._post_transplant, WRITES_FILES, body="Transplant"
            ),
            Endpoint(
                "POST",
                "/api/v2/trees/{ref}/combined-table",
                self._post_table,
                WRITES_FILES,
                body="TableCombinationRequest",
            ),
        )

    def _post_merge(self, call: Call) -> Answer:
        """Merges, and combines the tables in conflict."""
        require_extensions(call)
        document = call.needed_json("mergeRefIntoBranch.merge")
        return answer_merge(call, document, self._submission(call, document))

    def _post_transplant(self, call: Call) -> Answer:
        """Transplants, and combines the tables in conflict."""
        require_extensions(call)
        document = call.needed_json("transplantCommitsIntoBranch.transplant")
        return answer_transplant(call, document, self._submission(call, document))

    def _post_table(self, call: Call) -> Answer:
        """Combines a table, for a client that computes a revert and stores the result."""
        require_extensions(call)
        body = checked(TableCombinationRequest, call.needed_json("combination"), "")
        target = parse_segment(call.segments["ref"], call.default_branch)
        branch = branch_of(call, target, "commit").name
        places = [
            ContentPlace(place.hash, key_of(place.key, f"{name}.key"))
            for name, place in (("base", body.base), ("ours", body.ours), ("theirs", body.theirs))
        ]
        base, ours, theirs = (_table_at(call, place) for place in places)
        if not base.id == ours.id == theirs.id:
            raise InvalidInput("the three states are not of one table")
        key = places[1].key
        call.check_may_update_table(branch, key)
        there = call.repository.contents(Revision(branch), [key]).get(key)
        if there is None or there.id != ours.id:
            # The rights for the branch decide what is read and answered.
            raise InvalidInput(f"{key}: is not this table on branch '{branch}'")
        states = TableStates(
            None, places[1].hash, key, key, places[0].key, places[2].key, base, ours, theirs
        )
        files = WarehouseFiles(self._files, self._locations, self._large_files)
        try:
            combiner = _combiner(
                call,
                branch,
                files,
                body.description,
                _rules_of(body.combination, "combination"),
                cache=self._cache_of(files),
                dry_run=body.is_dry_run,
            )
            with self._turn():
                table = combiner.combine(states)
        except LocationRefused:
            table = CombinedTable()
        finally:
            files.end_turn()
        return Answer(to_builtins(wire.CombinedTable.of(table)))

    def _submission(self, call: Call, document: Any) -> Callable[[Merge | Transplant], MergeResult]:
        """Returns the function that carries out the merge or transplant of a request."""
        rules = _rules(document)

        def submit(change: Merge | Transplant) -> MergeResult:
            return self.submit(call, change, rules)

        return submit

    def submit(
        self,
        call: Call,
        change: Merge | Transplant,
        rules: CombinationRules,
        most_changes: int | None = None,
        rows: Sequence[MergedRows] = (),
    ) -> MergeResult:
        """Merges or transplants, and combines the tables in conflict.

        Processes have merged the `rows` of some tables; their files are written here. Waits for its
        turn, for other writes, and for files: only for threads that may wait. Raises as
        `Call.submit` does, `Unavailable` if many others combine tables, and `LargeMerge` for a dry
        run of more changes than `most_changes`.
        """
        # Conflicts need their contents. The behaviors of combined tables are not the client's.
        asked = structs.replace(change, options=structs.replace(change.options, combination=rules))
        call.submission = ChangeSubmission(call.request_id, call.submission.digest or digest(asked))
        files = WarehouseFiles(self._files, self._locations, self._large_files)
        try:
            with self._turn():
                replayed = _replayed(call, change)
                merger = self._merger(call, change, rules, files, rows)
                return replayed or _merged(call, change, merger, most_changes)
        except _Repeated:
            replayed = _replayed(call, change)
            assert replayed is not None, "it was carried out"
            return replayed
        finally:
            files.end_turn()

    @contextmanager
    def reverting(
        self, call: Call, branch: str, description: str, *, dry_run: bool
    ) -> Iterator[TableMerger]:
        """Yields what combines the tables of a revert. Waits as `submit` does."""
        files = WarehouseFiles(self._files, self._locations, self._large_files)

        def permit(table: TableStates) -> None:
            call.check_may_update_table(branch, table.head_key)
            is_trusted = call.may_combine(branch, {table.key, table.head_key})
            files.restrict(table, is_trusted=is_trusted)

        combiner = FileCombiner(
            UnwrittenFiles(files) if dry_run else files,
            description,
            CombinationRules(),
            permit=permit,
            check=files.check,
            limits=OF_MERGES,
            cache=self._cache_of(files),
            parse=files.parse,
        )
        try:
            with self._turn():
                yield TableMerger([combiner])
        finally:
            files.end_turn()

    @staticmethod
    def describe(change: Merge | Transplant) -> str:
        """Returns what names a merge or transplant in the summaries of new snapshots."""
        return _description(change)

    def is_deleted(self, location: str) -> bool:
        """Whether a local file in a warehouse is missing. False for all other locations."""
        for files in self._files:
            try:
                files.local_file(location)
            except LocationRefused:
                continue
            except MissingFile:
                return True
            except InvalidInput:
                return False
            return False
        return False

    def _merger(
        self,
        call: Call,
        change: Merge | Transplant,
        rules: CombinationRules,
        files: WarehouseFiles,
        rows: Sequence[MergedRows],
    ) -> TableMerger:
        dry_run = change.options.dry_run
        combiner = _combiner(
            call,
            change.branch,
            files,
            _description(change),
            rules,
            cache=self._cache_of(files),
            dry_run=dry_run,
        )
        merged = MergedRowsCombiner(
            rows,
            UnwrittenFiles(files) if dry_run else files,
            permit=_permission(call, change.branch, files, writes_rows=True),
            check=files.check,
            parse=files.parse,
        )
        commits = len(change.commits) if isinstance(change, Transplant) else 1
        return TableMerger([merged, combiner], excluded=rules.excluded, commits=commits)


def _merged(
    call: Call, change: Merge | Transplant, merger: TableMerger, most_changes: int | None
) -> MergeResult:
    call.check_rights(change)

    def do(options: MergeOptions) -> MergeResult:
        asked = structs.replace(change, options=options)
        dry_run = options.dry_run
        result = call.preview(asked, most_changes) if dry_run else call.commit(asked)
        if call.repeated:
            raise _Repeated
        return result

    return merger.merge(do, change.options)


class WarehouseFiles(Files):
    """The metadata files and manifests of the tables in some warehouses, for one request."""

    def __init__(
        self,
        warehouses: Sequence[MetadataFiles],
        locations: RecordedLocations,
        large_files: LargeFiles,
    ) -> None:
        super().__init__()
        self._warehouses = warehouses
        self._locations = locations
        self._large_files = large_files
        self._bytes = 0
        self._begun = thread_time()
        self._documents: list[Any] = []
        """The documents that were parsed for this request."""
        self._has_turn = False
        self._is_trusted = False
        self._folders: set[str] | None = None
        self._ours: IcebergTable | None = None
        self._writes_rows = False

    def restrict(self, table: TableStates, *, is_trusted: bool, writes_rows: bool = False) -> None:
        """Sets the table that is read next.

        Unless its caller is trusted with locations, its files must be beside its metadata files.
        With `writes_rows`, new ones may be anywhere in its folder.
        """
        self._ours, self._is_trusted, self._writes_rows = table.ours, is_trusted, writes_rows
        sides = *table.bases, table.ours, table.theirs
        self._folders = None if is_trusted else {dirname(s.metadata_location) for s in sides}

    @property
    def is_trusted(self) -> bool:
        """Whether the files of the table may be anywhere in the warehouses."""
        return self._is_trusted

    def read(self, uri: str) -> bytes:
        """Returns the bytes of a file.

        Raises `LocationRefused`, and `InvalidInput` if a request has read too much.
        """
        self._refuse_more()
        if (
            self._folders is not None
            and self._locations.guards(uri)
            and not any(is_in(folder, uri) for folder in self._folders)
        ):
            raise LocationRefused(f"location {uri} is not in the folder of the table")
        data = self._warehouse_of(uri).read(uri)
        self._bytes += len(data)
        self._refuse_more()
        if self._bytes >= LARGE and not self._has_turn:
            self._large_files.begin(self._bytes)
            self._has_turn = True
        return data

    def _refuse_more(self) -> None:
        if self._bytes > MOST_BYTES:
            raise InvalidInput(
                f"the files that the request needs have more than {MOST_BYTES // 2**20} MiB"
            )
        if thread_time() - self._begun > MOST_SECONDS:
            raise InvalidInput(
                f"the request has computed for more than {MOST_SECONDS} seconds",
                hint="merge with access to the files",
            )

    def parse(self, data: bytes, location: str) -> Document:
        """Returns the document of a metadata file that was read. Raises `InvalidInput`."""
        document = parsed(data, location)
        self._documents.append(document)
        content_of(document, location)
        return document

    def check(self, ours: Document, combined: Document) -> None:
        """Checks the locations in the metadata of the table, like a commit to it does.

        Raises a plain `NotAllowed`, because the client must not combine a refused table either.
        """
        assert self._ours is not None
        warehouse = self._warehouse_of(self._ours.metadata_location)
        file = next_metadata_file(combined[LOCATION], combined["properties"], None)
        new = NewMetadata(self._ours, ours, combined, file)
        may_choose = warehouse.warehouse.choose_locations or self._is_trusted
        try:
            check_new_metadata(warehouse.allowed, self._locations, new, may_choose=may_choose)
        except LocationRefused as error:
            raise NotAllowed(error.message, hint=error.hint) from None

    def write(self, uri: str, data: bytes) -> None:
        """Writes a new file, in the warehouse of the present metadata file of ours.

        Where callers need a right to choose locations, it is beside that file, or in the folder of
        its table (`restrict`): the location in the metadata is theirs. Raises `LocationRefused` or
        `StoreUnavailable`.
        """
        assert self._ours is not None
        present = self._ours.metadata_location
        warehouse, folder = self._warehouse_of(present), dirname(present)
        is_own = is_in(folder, uri) or (
            self._writes_rows and is_in(table_folder(present), uri, directly=False)
        )
        if self._warehouse_of(uri) is not warehouse or (
            self._folders is not None and self._locations.guards(uri) and not is_own
        ):
            raise LocationRefused(f"location {uri} is not in the folder of the table")
        warehouse.write(uri, data)

    def remove(self, uri: str) -> None:
        """Removes a file that no commit names."""
        self._warehouse_of(uri).remove(uri)

    def end_turn(self) -> None:
        """Lets others read large files. Frees all documents by calls that are all short."""
        free(self._documents)
        if self._has_turn:
            self._has_turn = False
            self._large_files.end()

    def _warehouse_of(self, uri: str) -> MetadataFiles:
        """Returns the warehouse that allows a location. Raises `LocationRefused`."""
        for files in self._warehouses:
            try:
                files.check(uri)
            except LocationRefused:
                continue
            return files
        raise LocationRefused(f"location {uri} is not in a warehouse of the server")


class CallersCombiner(Combiner):
    """Combines tables of a branch for a caller.

    The files of a collision are left out unless the caller may read the rows of the table on the
    branch: their partitions have values of rows.
    """

    def __init__(self, combiner: FileCombiner, call: Call, branch: str) -> None:
        self._combiner = combiner
        self._call = call
        self._branch = branch

    def combine(self, states: TableStates) -> CombinedTable:
        """Combines a table. See `Combiner.combine`."""
        table = self._combiner.combine(states)
        if not table.collisions or self._may_read_rows(states.head_key):
            return table
        collisions = tuple(structs.replace(each, files=()) for each in table.collisions)
        return structs.replace(table, collisions=collisions)

    def discard(self, content: IcebergTable) -> None:
        """Removes the files of a combined table that no commit needs."""
        self._combiner.discard(content)

    def _may_read_rows(self, key: ContentKey) -> bool:
        try:
            at = Revision(self._branch)
            require_rows(self._call.repository, at, key, IcebergTable.type)
        except NotAllowed:
            return False
        return True


def _combiner(
    call: Call,
    branch: str,
    files: WarehouseFiles,
    description: str,
    rules: CombinationRules,
    *,
    cache: Callable[[], CollisionCache],
    dry_run: bool,
) -> Combiner:
    combiner = FileCombiner(
        UnwrittenFiles(files) if dry_run else files,
        description,
        rules,
        permit=_permission(call, branch, files),
        check=files.check,
        limits=OF_MERGES,
        cache=cache,
        parse=files.parse,
    )
    return CallersCombiner(combiner, call, branch)


def _permission(
    call: Call, branch: str, files: WarehouseFiles, *, writes_rows: bool = False
) -> Callable[[TableStates], None]:
    """Returns a function that raises `NotAllowed` for a table that the caller may not combine."""

    def permit(table: TableStates) -> None:
        is_trusted = call.may_combine(branch, {table.key, table.head_key})
        files.restrict(table, is_trusted=is_trusted, writes_rows=writes_rows)

    return permit


def _table_at(call: Call, place: ContentPlace) -> IcebergTable:
    if not _HASH.fullmatch(place.hash):
        raise InvalidInput(f"hash: {place.hash[:100]!r} is not the whole hash of a commit")
    content = call.repository.content(Revision(None, place.hash), place.key)
    if not isinstance(content, IcebergTable):
        raise InvalidInput(f"{place.key}: is not a table at {place.hash}")
    return content


def _rules_of(given: Combination, path: str) -> CombinationRules:
    """Returns the rules of a request."""
    excluded = (key_of(key, f"{path}.excluded[{i}]") for i, key in enumerate(given.excluded))
    return CombinationRules(given.is_serializable, given.refuses_same_keys, tuple(excluded))


def _rules(document: Any) -> CombinationRules:
    given = document.get(COMBINATION) if isinstance(document, Mapping) else None
    rules = checked(Combination, {} if given is None else given, COMBINATION)
    if isinstance(document, Mapping) and document.get("perContent") is not True:
        raise InvalidInput("perContent: must be true to combine tables")
    return _rules_of(rules, COMBINATION)


def _description(change: Merge | Transplant) -> str:
    if isinstance(change, Transplant):
        return f"transplant onto {change.branch}"
    return f"merge of {str(change.source).rpartition('@')[2]} into {change.branch}"


def _replayed(call: Call, change: Merge | Transplant) -> MergeResult | None:
    """Returns the result of this request, None if it was not made. Its details have no counts."""
    done = None if change.options.dry_run else call.done_before(change.branch)
    if done is None or call.request_id is None:
        return None
    after = done.reference.hash
    before = call.head_before(change.branch)
    entries = list(call.repository.diff(Revision(None, before), Revision(None, after)))
    last = change.commits[-1] if isinstance(change, Transplant) else change.source
    source = call.repository.resolve(last).hash
    theirs: Mapping[ContentKey, Content] = {}
    with suppress(NotAllowed):
        theirs = call.repository.contents(Revision(None, source), [each.key for each in entries])
    details = (
        MergeDetail(
            entry.key,
            MergeBehavior.NORMAL,
            target=entry.before,
            source=theirs.get(entry.key),
            result=entry.after,
            source_at=ContentPlace(source, entry.key) if entry.key in theirs else None,
            result_at=None if entry.after is None else ContentPlace(after, entry.key),
        )
        for entry in entries
    )
    base = None
    if isinstance(change, Merge):
        base = call.repository.merge_base(Revision(None, before), change.source)
    return MergeResult(
        target_branch=done.reference.name,
        effective_target_hash=before,
        resultant_hash=after,
        common_ancestor=base,
        expected_hash=change.options.expected_hash,
        applied=True,
        successful=True,
        details=tuple(details),
    )
