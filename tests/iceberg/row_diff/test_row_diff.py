"""Which files are read, and how the rows of two states are matched."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import MissingFile
from nessie_cli.iceberg.row_diff.changes import RowChanges
from nessie_cli.iceberg.row_diff.difference import Selection, compare_tables
from tests.iceberg.row_diff.tables import CountingFiles, Document, Folder, column, schema

IDS = {"id": 1, "v": 2}
COLUMNS = (column(1, "id", "long"), column(2, "v", "string"))
PLAIN = schema(*COLUMNS)
KEYED = schema(*COLUMNS, keys=[1])


def rows(*pairs: tuple[Any, Any]) -> pa.Table:
    ids, values = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.string())})


def path_of(entry: Document) -> str:
    return str(entry["data_file"]["file_path"])


def diff(
    before: Document | None,
    after: Document | None,
    files: CountingFiles | None = None,
    **selection: Any,
) -> list[tuple[Any, ...]]:
    files = files or CountingFiles()
    difference = compare_tables(before, after, files.read, Selection(**selection))
    table = RowChanges(difference, files).read_all()
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# -- which files are read -------------------------------------------------------------------------


def test_nothing_is_read_for_equal_states(folder: Folder) -> None:
    data = folder.data(rows((1, "a")), IDS)
    files = CountingFiles()
    assert diff(folder.state([data], PLAIN), folder.state([data], PLAIN), files) == []
    state = folder.state([data], PLAIN)
    assert diff(state, {**state, "properties": {"owner": "ann"}}, files) == []
    assert files.bytes_of == {}


def test_a_file_with_the_same_deletes_is_not_read(folder: Folder) -> None:
    data = folder.data(rows((1, "a"), (2, "b")), IDS)
    others = [folder.positions({path_of(data): [0]}, 2) for _ in range(2)]
    files = CountingFiles()
    before, after = (folder.state([data, other], PLAIN) for other in others)
    assert diff(before, after, files) == []
    assert path_of(data) not in files.bytes_of
    assert len(files.bytes_of) == 2


def big(start: int, count: int = 60_000) -> pa.Table:
    numbers = random.Random(start)
    return rows(*((start + n, f"{numbers.random()}") for n in range(count)))


def test_the_bytes_read_are_those_of_the_files_that_differ(folder: Folder) -> None:
    same, old = folder.data(big(0), IDS), folder.data(big(10**6), IDS)
    new = [folder.data(big(10**6).slice(1), IDS, 2), folder.data(big(2 * 10**6), IDS, 2)]
    before, after = folder.state([same, old], PLAIN), folder.state([same, *new], PLAIN)
    files = CountingFiles()
    difference = compare_tables(before, after, files.read)
    changes = RowChanges(difference, files).read_all()
    assert changes.num_rows == 1 + 60_000
    assert path_of(same) not in files.bytes_of
    sizes = sum(entry["data_file"]["file_size_in_bytes"] for entry in (old, *new))
    assert difference.bytes == sizes
    assert files.read_bytes <= 1.2 * sizes


def test_only_the_row_groups_with_deleted_rows_are_read(folder: Folder) -> None:
    data = folder.data(big(0), IDS, row_group_size=6_000)
    deletes = folder.positions({path_of(data): [7, 59_999]}, 2)
    files = CountingFiles()
    changes = diff(folder.state([data], PLAIN), folder.state([data, deletes], PLAIN), files)
    assert [row[:2] for row in changes] == [("DELETE", 7), ("DELETE", 59_999)]
    assert files.bytes_of[path_of(data)] < 0.35 * data["data_file"]["file_size_in_bytes"]


@pytest.mark.parametrize(("name", "limit"), [("id", 1.2), ("v", 1.1)])
def test_equality_deletes_read_a_file_at_most_once(name: str, limit: float, folder: Folder) -> None:
    """The column `v` is most of the file: the file is then copied, not read twice."""
    table = big(0)
    data = folder.data(table, IDS, row_group_size=6_000)
    row = table.slice(41_000, 1)
    equal = folder.equality(row.select([name]), {name: IDS[name]}, 2)
    files = CountingFiles()
    changes = diff(folder.state([data], PLAIN), folder.state([data, equal], PLAIN), files)
    assert [change[:2] for change in changes] == [("DELETE", 41_000)]
    assert files.bytes_of[path_of(data)] <= limit * data["data_file"]["file_size_in_bytes"]


def test_only_the_compared_columns_are_read(folder: Folder) -> None:
    old, new = folder.data(big(0), IDS), folder.data(big(5), IDS, 2)
    files = CountingFiles()
    changes = diff(folder.state([old], PLAIN), folder.state([new], PLAIN), files, columns=["id"])
    assert sorted(row[1] for row in changes) == [*range(5), *range(60_000, 60_005)]
    assert files.read_bytes < 0.4 * sum(e["data_file"]["file_size_in_bytes"] for e in (old, new))


MEMORY = """
import json, sys
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.row_diff.changes import RowChanges
from nessie_cli.iceberg.row_diff.difference import Selection, compare_tables

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024

before, after = (json.loads(open(path).read()) for path in sys.argv[1:])
files = Files()
start = peak()
changes = RowChanges(compare_tables(before, after, files.read, Selection(key=["id"])), files)
count = sum(batch.num_rows for batch in changes)
print(count, peak() - start)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_table(folder: Folder, tmp_path: Path) -> None:
    """Each state has 200 MB of decoded rows, all of them in other files."""
    text = "x" * 1000

    def table(start: int) -> pa.Table:
        return rows(*((n, f"{n}{text}") for n in range(start, start + 20_000)))

    old = [folder.data(table(n * 20_000), IDS) for n in range(10)]
    new = [folder.data(table(n * 20_000 + 1), IDS, 2) for n in range(10)]
    states = []
    for entries in (old, new):
        states.append(tmp_path / f"{len(states)}.json")
        states[-1].write_text(json.dumps(folder.state(entries, KEYED)))
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY, *map(str, states)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    count, megabytes = map(int, ran.stdout.split())
    assert count == 2
    assert megabytes < 200


# -- columns --------------------------------------------------------------------------------------


def test_columns_are_matched_by_their_ids(folder: Folder) -> None:
    """A renamed, a promoted, a moved and a new column change no row."""
    old = schema(column(1, "id", "int"), column(2, "v", "string"), column(3, "gone", "string"))
    new = schema(
        column(2, "name", "string"),
        column(1, "id", "long"),
        column(4, "more", "string", **{"initial-default": "none"}),
        id_=1,
    )
    first = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"], "gone": ["x", "y"]})
    data = folder.data(first, {"id": 1, "v": 2, "gone": 3})
    second = pa.table(
        {"name": ["a", "b", "c"], "id": [1, 2, 2**40], "more": ["none", "some", None]}
    )
    rewritten = folder.data(second, {"name": 2, "id": 1, "more": 4}, 2)
    before, after = folder.state([data], old), folder.state([rewritten], old, new, snapshots=(2,))
    assert diff(before, after) == [
        ("DELETE", "b", 2, "none"),
        ("INSERT", "b", 2, "some"),
        ("INSERT", "c", 2**40, None),
    ]
    backwards = diff(after, before, columns=["id", "v"])
    assert backwards == [("DELETE", 2**40, "c")]


def test_a_nested_field_is_matched_by_its_id(folder: Folder) -> None:
    def nested(*fields: Document, id_: int) -> Document:
        element = {"type": "struct", "fields": list(fields)}
        list_ = {"type": "list", "element-id": 2, "element": element, "element-required": False}
        return schema(column(1, "l", list_), id_=id_)

    mapping = [
        {
            "field-id": 1,
            "names": ["l"],
            "fields": [
                {
                    "field-id": 2,
                    "names": ["element"],
                    "fields": [
                        {"field-id": 3, "names": ["a", "b"]},
                        {"field-id": 4, "names": ["c"]},
                    ],
                }
            ],
        }
    ]
    properties = {"schema.name-mapping.default": json.dumps(mapping)}
    old, new = (
        nested(column(3, "a", "int"), id_=0),
        nested(column(4, "c", "int", **{"initial-default": 9}), column(3, "b", "long"), id_=1),
    )
    entries = [
        folder.data(pa.table({"l": [[{name: 1}, None], None, []]}), {}, sequence)
        for sequence, name in enumerate(("a", "b"), 1)
    ]
    before = folder.state([entries[0]], old, properties=properties)
    after = folder.state([entries[1]], old, new, snapshots=(2,), properties=properties)
    assert diff(before, after) == []


def test_files_without_ids_have_a_name_mapping(folder: Folder) -> None:
    mapping = json.dumps([{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["v", "old"]}])
    properties = {"schema.name-mapping.default": mapping}
    old = folder.data(pa.table({"id": [1], "old": ["a"]}), {})
    new = folder.data(pa.table({"v": ["a", "b"], "id": [1, 2]}), {}, 2)
    before, after = (folder.state([entry], PLAIN, properties=properties) for entry in (old, new))
    assert diff(before, after) == [("INSERT", 2, "b")]


def test_the_value_of_a_partition_may_be_missing_in_its_file(tmp_path: Path) -> None:
    field = {"name": "v", "transform": "identity", "source-id": 2, "field-id": 1000}
    folder = Folder(tmp_path, spec=[{**field, "avro": "string"}])
    added = folder.data(pa.table({"id": [1]}), {"id": 1}, partition={"v": "a"})
    rewritten = folder.data(rows((1, "a"), (2, "a")), IDS, 2, partition={"v": "a"})
    before, after = folder.state([added], PLAIN), folder.state([rewritten], PLAIN)
    assert diff(before, after) == [("INSERT", 2, "a")]


@pytest.mark.parametrize(("narrow", "wide"), [("int", "long"), ("float", "double")])
def test_equality_deletes_of_a_promoted_column(narrow: str, wide: str, folder: Folder) -> None:
    """Values of the wide type are not rounded, also if the later state is the older one."""
    types = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}
    first, second = (2**40, 2**40 + 1) if narrow == "int" else (0.1, 0.1 + 2**-50)
    old_rows = pa.table({"id": pa.array([1], types[narrow]), "v": ["a"]})
    new_rows = pa.table({"id": pa.array([first, second], types[wide]), "v": ["b", "c"]})
    deleted = pa.table({"id": pa.array([second], types[wide])})
    schemas = [
        schema(column(1, "id", type_), column(2, "v", "string"), id_=number)
        for number, type_ in enumerate((narrow, wide))
    ]
    data = folder.data(old_rows, IDS, 1)
    before = folder.state([data], schemas[0], snapshots=(1,))
    added = [folder.data(new_rows, IDS, 2), folder.equality(deleted, {"id": 1}, 3)]
    after = folder.state([data, *added], *schemas, snapshots=(1, 2, 3))
    assert diff(before, after, columns=["v"]) == [("INSERT", "b")]
    assert diff(after, before, columns=["v"]) == [("DELETE", "b")]


def test_equality_deletes_of_a_dropped_column(folder: Folder) -> None:
    old = schema(*COLUMNS, column(3, "k", "string"))
    new = schema(*COLUMNS, id_=1)
    data = folder.data(pa.table({"id": [1, 2], "v": ["a", "b"], "k": ["x", None]}), {**IDS, "k": 3})
    null = pa.table({"k": pa.array([None], pa.string())})
    deletes = folder.equality(null, {"k": 3}, 2)
    before = folder.state([data], old)
    after = folder.state([data, deletes], old, new, snapshots=(2,))
    assert diff(before, after) == [("DELETE", 2, "b")]


def test_equality_deletes_of_columns_with_one_id(folder: Folder) -> None:
    """Two branches gave one id to different columns, and only their deletes are read."""
    city, secret = (schema(*COLUMNS, column(3, name, "string")) for name in ("city", "secret"))
    data = folder.data(pa.table({"id": [1, 2], "v": ["a", "b"], "s": ["x", "y"]}), {**IDS, "s": 3})
    deletes = folder.equality(pa.table({"s": ["x"]}), {"s": 3}, 2)
    before = folder.state([data], city)
    after = folder.state([data, deletes], secret, snapshots=(2,))
    for states in ((before, after), (after, before)):
        with pytest.raises(InvalidInput, match="have the same id, 3"):
            diff(*states, columns=["id"])
        assert (
            compare_tables(*states, CountingFiles().read, Selection(rows=False)).changed.rows == 2
        )


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"columns": ["nothing"]}, "there is no column 'nothing'"),
        ({"key": ["nothing"]}, "there is no column 'nothing'"),
        ({"where": "nothing = 1"}, "there is no column 'nothing'"),
        ({"where": "id ="}, "'id =' is not a filter"),
        ({"where": "v = 'a'", "columns": ["id"]}, "there is no column 'v'"),
        (
            {"where": "v = 'a'", "columns": ["id"]},
            "there is no column 'v' among the compared columns. Hint: a filter can use only",
        ),
        ({"where": "w = 'a'", "columns": ["id"]}, "there is no column 'w'. Hint: columns: id, v"),
    ],
)
def test_a_wrong_selection(selection: dict[str, Any], message: str, folder: Folder) -> None:
    state = folder.state([folder.data(rows((1, "a")), IDS)], PLAIN)
    with pytest.raises(InvalidInput, match=message):
        diff(None, state, **selection)


@pytest.mark.parametrize("type_", ["double", {"type": "struct", "fields": []}])
def test_a_column_that_cannot_be_a_key(type_: Any, folder: Folder) -> None:
    state = folder.state([], schema(column(1, "k", type_)))
    with pytest.raises(InvalidInput, match="cannot be a key"):
        diff(None, state, key=["k"])


# -- updates --------------------------------------------------------------------------------------

OLD, NEW = (
    rows((1, "a"), (2, "b"), (3, "c"), (4, "d")),
    rows((1, "a"), (2, "B"), (4, "D"), (5, "e")),
)
UPDATED = [
    ("UPDATE_BEFORE", 2, "b"),
    ("UPDATE_AFTER", 2, "B"),
    ("DELETE", 3, "c"),
    ("UPDATE_BEFORE", 4, "d"),
    ("UPDATE_AFTER", 4, "D"),
    ("INSERT", 5, "e"),
]


@pytest.mark.parametrize("is_given", [True, False])
def test_rows_with_the_same_key_are_an_update(is_given: bool, folder: Folder) -> None:
    columns = PLAIN if is_given else KEYED
    before, after = (folder.state([folder.data(table, IDS)], columns) for table in (OLD, NEW))
    assert diff(before, after, key=["id"] if is_given else []) == UPDATED
    assert diff(before, after, key=["id"], where="v = 'B' or id = 3") == UPDATED[:3]
    assert diff(before, after, key=["id"], where="v = 'b'") == UPDATED[:2]
    assert diff(before, after, key=["id"], limit=1) == UPDATED[:2]
    assert diff(before, after, key=["id"], limit=2) == UPDATED[:3]
    assert diff(before, after, key=["id"], limit=9) == UPDATED
    assert diff(before, after, key=["id"], limit=0) == []
    assert diff(before, after, key=["id"], columns=["id"]) == [("DELETE", 3), ("INSERT", 5)]
    assert Counter(row[0] for row in diff(before, after, key=["v"])) == {"DELETE": 3, "INSERT": 3}


def test_a_key_of_several_rows_pairs_none(folder: Folder) -> None:
    files = CountingFiles()
    tables = rows((1, "a"), (1, "b"), (2, "x")), rows((1, "c"), (2, "y"))
    before, after = (folder.state([folder.data(table, IDS)], KEYED) for table in tables)
    changes = RowChanges(compare_tables(before, after, files.read), files)
    kinds = changes.read_all()["_change_type"].to_pylist()
    assert kinds == ["DELETE", "DELETE", "INSERT", "UPDATE_BEFORE", "UPDATE_AFTER"]
    assert changes.ambiguous_keys == 1


@pytest.fixture
def version3(tmp_path: Path) -> Folder:
    return Folder(tmp_path, version=3)


LINEAGE = {**IDS, "_row_id": 2147483540}


def with_row_ids(table: pa.Table, *ids: int | None) -> pa.Table:
    return table.append_column("_row_id", pa.array(ids, pa.int64()))


def test_rows_with_the_same_row_id_are_an_update(version3: Folder) -> None:
    """The base has the ids 0 to 3. Each branch then gave 100 and 101 to other rows."""
    base = version3.data(OLD, IDS, first_row_id=0)
    update = with_row_ids(rows((1, "a"), (2, "B"), (40, "D"), (5, "e")), 0, 1, 3, None)
    ours = version3.data(update, LINEAGE, 2, first_row_id=100)
    theirs = version3.data(rows((6, "f")), IDS, 2, first_row_id=100)
    numbers = {1: 0, 2: 100, 3: 100}
    before = version3.state([base, theirs], PLAIN, snapshots=(1, 2), first_row_ids=numbers)
    after = version3.state([ours], PLAIN, snapshots=(1, 3), first_row_ids=numbers)
    assert diff(before, after) == [
        ("UPDATE_BEFORE", 2, "b"),
        ("UPDATE_AFTER", 2, "B"),
        ("DELETE", 3, "c"),
        ("UPDATE_BEFORE", 4, "d"),
        ("UPDATE_AFTER", 40, "D"),
        ("DELETE", 6, "f"),
        ("INSERT", 5, "e"),
    ]


@pytest.mark.parametrize("snapshots", [(3,), (2, 3)])
def test_row_ids_of_separate_histories_pair_nothing(
    snapshots: tuple[int, ...], version3: Folder
) -> None:
    """Both states gave out the same ids: they share no snapshot, or one without row ids."""
    entries = [
        version3.data(table, IDS, number, first_row_id=0) for number, table in ((1, OLD), (2, NEW))
    ]
    first = {2: 0, 3: 0} if len(snapshots) == 1 else None
    before = version3.state(entries[:1], PLAIN, snapshots=(2,), first_row_ids=first)
    after = version3.state(entries[1:], PLAIN, snapshots=snapshots, first_row_ids=first)
    assert Counter(row[0] for row in diff(before, after)) == {"DELETE": 3, "INSERT": 3}


# -- states that cannot be compared ---------------------------------------------------------------


def test_another_table_is_not_compared(folder: Folder) -> None:
    state = folder.state([folder.data(rows((1, "a")), IDS)], PLAIN)
    with pytest.raises(InvalidInput, match="another table"):
        diff(state, {**state, "table-uuid": "c1a9e3b4-5a0f-4b0c-8f5f-1d6f6c1f2a3b"})


def test_types_that_do_not_fit(folder: Folder) -> None:
    before = folder.state([], schema(column(1, "id", "long")))
    after = folder.state([], schema(column(1, "id", "string")))
    with pytest.raises(InvalidInput, match="column id has the types long and string"):
        diff(before, after)


def test_a_type_that_is_not_supported(folder: Folder) -> None:
    with pytest.raises(InvalidInput, match="variant"):
        diff(None, folder.state([], schema(column(1, "x", "variant"))))


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda path: path.unlink(), MissingFile),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), InvalidInput),
        (lambda path: path.write_bytes(b""), InvalidInput),
    ],
)
@pytest.mark.parametrize("kind", ["data", "positions", "vector"])
def test_a_file_that_cannot_be_read_is_named(
    damage: Any, error: Any, kind: str, tmp_path: Path
) -> None:
    folder = Folder(tmp_path, version=3)
    data = folder.data(rows((1, "a")), IDS)
    deletes = {
        "data": data,
        "positions": folder.positions({path_of(data): [0]}, 2),
        "vector": folder.vectors({path_of(data): [0]}, 2)[0],
    }
    entry = deletes[kind]
    before, after = folder.state([], PLAIN), folder.state([data, entry][kind == "data" :], PLAIN)
    if kind == "vector" and error is InvalidInput:
        Path(path_of(entry)).write_bytes(b"PFA1")
    else:
        damage(Path(path_of(entry)))
    with pytest.raises(error, match=path_of(entry)):
        diff(before, after)


def test_other_formats_are_refused(folder: Folder) -> None:
    data = folder.data(rows((1, "a")), IDS, file_format="ORC")
    with pytest.raises(InvalidInput, match="of the format ORC"):
        diff(None, folder.state([data], PLAIN))


# -- tables of PyIceberg --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.parametrize("seed", range(6))
def test_tables_of_pyiceberg(seed: int, tmp_path: Path) -> None:
    numbers = random.Random(seed)
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("d")
    table = catalog.create_table("d.t", rows((1, "a")).schema)
    states = []
    for _ in range(4):
        for _ in range(numbers.randint(1, 3)):
            table.append(rows(*((numbers.randrange(20), numbers.choice("ab")) for _ in range(5))))
        table.delete(f"id < {numbers.randrange(10)}")
        table.overwrite(rows((numbers.randrange(20), "c")), f"id == {numbers.randrange(20)}")
        states.append(table.refresh().metadata_location)
    for _ in range(4):
        old, new = numbers.choices(states, k=2)
        documents = [json.loads(Path(s.removeprefix("file://")).read_text()) for s in (old, new)]
        live = [
            Counter(
                (row["id"], row["v"])
                for row in StaticTable.from_metadata(s).scan().to_arrow().to_pylist()
            )
            for s in (old, new)
        ]
        changes = diff(*documents)
        assert Counter(row[1:] for row in changes if row[0] == "INSERT") == live[1] - live[0]
        assert Counter(row[1:] for row in changes if row[0] == "DELETE") == live[0] - live[1]
