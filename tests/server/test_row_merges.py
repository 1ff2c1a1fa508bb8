"""The merge of rows in a process: its answer; and what the server writes of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nessie_cli.errors import NotAllowed, OutcomeUnknown, ReferenceConflict
from nessie_cli.iceberg.combination.merging import TableMerger, TableStates
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.metadata import parse_document
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.model import (
    Conflict,
    ConflictType,
    ContentKey,
    IcebergTable,
    ReferenceType,
)
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.opening import connect, create
from nessie_cli.server.nessie.merged_rows import MergedRowsCombiner
from nessie_cli.server.runtime.row_merge import merged_tables
from nessie_cli.server.runtime.row_merge_answer import MergedRows, ShownConflict, decode_merges
from nessie_cli.server.runtime.row_request import (
    LimitExceeded,
    RowLimits,
    RowMergeRequest,
    TableRows,
)
from nessie_cli.wire.rows import END, ROWS, Frame
from tests.cli.lake import Lake
from tests.cli.rows import write
from tests.server.row_files import move_out

KEY = ContentKey.parse("db.t")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Both sides change row 1, and theirs deletes row 2, which ours changes."""
    folder = tmp_path_factory.mktemp("rows")
    store = str(folder / "store.sqlite")
    create(store).close()
    lake = Lake(store, folder, "id")
    with connect(store) as repository:
        repository.create_reference(ReferenceType.TAG, "base", repository.reference("main").hash)
    write(lake, "main", {1: ("ours", 1), 2: ("ours", 1), 3: ("x", 1)})
    write(lake, "dev", {1: ("theirs", 2), 3: ("theirs", 1), 4: ("new", 1)})
    return lake


@pytest.fixture(scope="module")
def states(lake: Lake) -> list[IcebergTable]:
    """Base, ours and theirs."""
    with connect(str(lake.folder.parent / "store.sqlite")) as repository:
        found = [repository.content(ref, KEY) for ref in ("base", "main", "dev")]
    return [state for state in found if isinstance(state, IcebergTable)]


def table(lake: Lake, states: list[IcebergTable], **more: Any) -> TableRows:
    base, ours, theirs = states
    place = f"file://{lake.folder}"
    warehouse = Warehouse(name="w", location=place, allowed=(place,))
    return TableRows(key=KEY, base=base, ours=ours, theirs=theirs, warehouse=warehouse, **more)


def merged(states: TableRows, *, writes: bool = False, **limits: int) -> MergedRows:
    request = RowMergeRequest(
        tables=[states],
        description="merge",
        writes=writes,
        most_shown=10,
        limits=RowLimits(**limits),
    )
    data = Frame(ROWS, merged_tables(request)).encoded() + Frame(END, b"{}").encoded()
    [answer] = decode_merges(data, request.tables)
    return answer


def test_conflicts_are_shown_as_texts(lake: Lake, states: list[IcebergTable]) -> None:
    before = lake.files()
    merge = merged(table(lake, states)).merge
    one, two = merge.conflicts
    assert one == ShownConflict(one.digest, [("id", "1")], "v", "x", "ours", "theirs")
    assert two == ShownConflict(two.digest, [("id", "2")], None, "v: x", "v: ours", None)
    assert merge.content is None
    assert "rows are in conflict (2)" in merge.reason
    # Only manifests are read for the number of bytes.
    counted = merged(table(lake, states, reads=False), rows=0)
    assert (counted.merge.bytes, counted.merge.conflicts) == (merge.bytes, [])
    # A decision for one of them leaves the other one; a decision for all others settles it.
    part = merged(table(lake, states, decisions={one.digest: True, "0" * 16: True})).merge
    assert part.outdated == 1
    assert part.conflicts == [one, two]
    assert "rows are in conflict (1)" in part.reason
    whole = merged(table(lake, states, decisions={one.digest: True}, rest=False))
    assert whole.merge.combination is not None
    assert whole.merge.combination.notes == (
        "rows were merged by their keys: 1 inserted, 2 updated, 0 deleted",
    )
    # A preview needs no data files.
    assert [location for location, _ in whole.files] == [whole.merge.content.metadata_location]
    assert lake.files() == before


def test_files_outside_of_the_warehouse_are_not_read(
    lake: Lake, states: list[IcebergTable], tmp_path: Path
) -> None:
    base, ours, theirs = states
    moved = move_out(theirs.metadata_location, "data", tmp_path)
    theirs = structs.replace(theirs, metadata_location=moved.metadata)
    merge = merged(table(lake, [base, ours, theirs])).merge
    assert merge.bytes is not None
    assert merge.conflicts == []
    assert str(tmp_path) in merge.reason
    assert not merge.is_final


def test_rows_and_bytes_have_limits(lake: Lake, states: list[IcebergTable]) -> None:
    beyond = merged(table(lake, states, rest=True), rows=1).merge
    assert (beyond.reason, beyond.content) == ("the server compares at most 1 rows", None)
    assert not beyond.is_final
    with pytest.raises(LimitExceeded, match="writes at most 0 MiB"):
        merged(table(lake, states, rest=True), answer=1_000)


# -- what the server writes ------------------------------------------------------------------------


@pytest.fixture
def answer(lake: Lake, states: list[IcebergTable]) -> Iterator[MergedRows]:
    """The merge, of which no file may stay unless a test says so."""
    before = lake.files()
    yield merged(table(lake, states, rest=True), writes=True)
    for file in lake.files() - before:
        file.unlink()


def combiner(answer: MergedRows, check: Callable[..., None] = lambda *_: None) -> Any:
    return MergedRowsCombiner(
        [answer], Files(), permit=lambda _: None, check=check, parse=parse_document
    )


def states_of(answer: MergedRows) -> TableStates:
    return TableStates(None, "", KEY, KEY, KEY, KEY, *answer.states)


def written(answer: MergedRows) -> list[bool]:
    return [Path(location).exists() for location, _ in answer.files]


def conflict_of(answer: MergedRows) -> ReferenceConflict:
    base, ours, theirs = answer.states
    conflict = Conflict(ConflictType.VALUE_DIFFERS, KEY, "", base, ours, theirs)
    return ReferenceConflict("conflict", [conflict])


def test_a_merged_table_is_written_once_it_is_checked(answer: MergedRows) -> None:
    assert len(answer.files) > 2
    other = structs.replace(answer.states[1], snapshot_id=1)
    with pytest.raises(LocationRefused):
        combiner(answer).combine(structs.replace(states_of(answer), ours=other))

    def refuse(*documents: Any) -> None:
        assert [each["current-snapshot-id"] for each in documents] == [
            answer.states[1].snapshot_id,
            answer.merge.content.snapshot_id,
        ]
        raise NotAllowed("no")

    with pytest.raises(NotAllowed):
        combiner(answer, refuse).combine(states_of(answer))
    assert not any(written(answer))
    assert combiner(answer).combine(states_of(answer)) == answer.table
    assert all(written(answer))


@pytest.mark.parametrize(
    ("error", "stays"), [(ReferenceConflict("lost", []), False), (OutcomeUnknown("?", "id"), True)]
)
def test_files_of_an_abandoned_merge_are_removed(
    answer: MergedRows, error: Exception, stays: bool
) -> None:
    def do(options: MergeOptions) -> None:
        if not options.behaviors:
            raise conflict_of(answer)
        assert all(written(answer))
        raise error

    with pytest.raises(type(error)):
        TableMerger([combiner(answer)]).merge(do, MergeOptions())
    assert written(answer) == [stays] * len(answer.files)
