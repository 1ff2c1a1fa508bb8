"""Errors of reads: each is one line that names the repository and the table."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from nessie_cli import NessieError, connect, create
from nessie_cli.errors import NotFound, StoreUnavailable
from nessie_cli.spark import failure_of, nessie_errors
from nessie_cli.spark.errors import SparkFailure, TaskError
from nessie_cli.spark.source import NessieDataSource
from tests.repository.servers import Servers
from tests.repository.vocabulary import NS, Catalog
from tests.spark.reading import Frame, given, rows

ASKED = [
    (
        {"table": "logs"},
        (
            "option 'table': there is no table 'logs'. Hint: there are references, log, operations, "
            "entries, contents, diff, reflog, conflicts"
        ),
    ),
    ({}, "option 'table' is missing; .option('table', ...) is one of references, log"),
    (
        {"table": "log", "reff": "main"},
        (
            "option reff: table log has no such option. Hint: its options are at, from, "
            "maxCommitsPerBatch, ref, rowsPerPartition, table"
        ),
    ),
    ({"table": "entries", "from": "main"}, "option from: table entries has no such option"),
    (
        {"table": "log", "ref": "main", "to": "dev"},
        "options 'ref' and 'to' cannot be combined. Hint: set one of them",
    ),
    ({"table": "log", "ref": "main,*"}, "option ref: * stands for all references"),
    ({"table": "log", "ref": "gone"}, "table log: Named reference 'gone' not found"),
    ({"table": "log", "ref": "main", "at": "soon"}, "time 'soon': write an ISO instant"),
    (
        {"table": "log", "rowsPerPartition": "0"},
        "option rowsPerPartition: '0' is not a positive integer",
    ),
    (
        {"table": "log", "maxCommitsPerBatch": "many"},
        "option maxCommitsPerBatch: 'many' is not a positive integer",
    ),
    ({"table": "log", "maxCommitsPerBatch": "5"}, "option maxCommitsPerBatch is for streams"),
    (
        {"table": "diff", "maxCommitsPerBatch": "5"},
        (
            "option maxCommitsPerBatch: table diff has no such option. "
            "Hint: its options are at, from, prefix, ref"
        ),
    ),
    ({"table": "entries", "prefix": "a..b"}, "key 'a..b': an element is empty"),
    ({"table": "diff"}, "option 'from' is missing. Hint: set it to the earlier revision"),
    ({"table": "diff", "from": "main", "to": "main,dev"}, "option 'to' must be one revision"),
    ({"table": "conflicts"}, "option 'from' is missing. Hint: set it to the revision to merge"),
    (
        {"table": "conflicts", "from": "dev", "to": "v1"},
        "option 'to' must be one branch, the target of the merge",
    ),
    (
        {"table": "reflog", "ref": "main,dev"},
        "option ref: the reflog is that of one reference, or of all",
    ),
    (
        {"table": "log", "token": "s3cret"},
        (
            "option token: secrets are not options, because options are in Spark's plans. "
            "Hint: set NESSIE_AUTH_TOKEN"
        ),
    ),
    (
        {"table": "log", "url": "memory:"},
        "option 'url': memory is a store of one process",
    ),
    ({"table": "log", "url": ""}, "option 'url' is missing"),
    (
        {"table": "log", "url": "http://ann:s3cret@host/api/v2"},
        "a URL must not contain a user or password",
    ),
    ({"table": "log", "url": "sqlite:////nowhere/at/all.sqlite"}, "/nowhere/at/all.sqlite"),
]


@pytest.mark.parametrize(("options", "message"), ASKED, ids=lambda value: str(value)[:60])
def test_an_invalid_option_is_an_error_of_one_line(
    store: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(TaskError) as refused:
        rows(
            options.get("url", store),
            **{name: value for name, value in options.items() if name != "url"},
        )
    text = str(refused.value)
    assert text.startswith("nessie: ")
    assert message in text
    assert "\n" not in text
    assert "s3cret" not in text


def test_a_write_needs_a_message_and_has_no_other_options(store: str) -> None:
    for options, message in [
        ({}, "option 'message' is missing"),
        ({"message": "x", "table": "log"}, "option table: a write has no such option"),
    ]:
        with pytest.raises(TaskError, match=f"^nessie: df.write: {message}"):
            NessieDataSource({"url": store, **options}).writer(
                Frame(store, table="log").schema, overwrite=False
            )


def test_a_relative_path_is_relative_to_the_drivers_folder(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(store.removeprefix("sqlite:///"))
    monkeypatch.chdir(path.parent)
    frame = Frame(path.name, table="log")
    monkeypatch.chdir("/")
    assert len(frame.rows()) == len(rows(store, table="log"))


def test_a_worker_without_the_file_is_an_error(store: str, tmp_path: Path) -> None:
    path = Path(store.removeprefix("sqlite:///"))
    frame = Frame(store, table="log")
    reader = frame.source.reader(frame.schema)
    parts = reader.partitions()
    for file in path.parent.glob("catalog.sqlite*"):
        file.rename(tmp_path / f"away-{file.name}")
    with pytest.raises(
        TaskError,
        match=r"^nessie: sqlite:.*, table log: the worker \S+ has no such file; .*nessie serve",
    ):
        list(reader.read(parts[0]))
    with create(store) as another:
        Catalog(another).write("main", {"db": NS})
    with pytest.raises(TaskError, match="this file is another repository than the driver's"):
        list(reader.read(parts[0]))


def test_a_server_that_stops_meanwhile_is_one_error(store: str, servers: Servers) -> None:
    with connect(store) as repository:
        Catalog(repository).write(
            "main", {"many": NS, **{f"many.t{number}": number for number in range(5_000)}}
        )
    with servers.serving(store) as address:
        frame = Frame(address, table="entries")
        reader = frame.source.reader(frame.schema)
        batches = reader.read(reader.partitions()[0])
        assert next(batches).num_rows > 0
    with pytest.raises(
        TaskError,
        match=rf"^nessie: {address}, table entries: server {address}: .*\[SERVICE_UNAVAILABLE\]$",
    ):
        list(batches)


def test_a_store_whose_objects_are_damaged_names_them(store: str, tmp_path: Path) -> None:
    frame = Frame(store, table="log")
    path = store.removeprefix("sqlite:///")
    shutil.copy(path, tmp_path / "copy")
    data = bytearray(Path(path).read_bytes())
    start = data.find(b"SQLite format 3")
    assert start == 0
    Path(path).write_bytes(b"no store at all, but as long as one " * 1000)
    for beside in Path(path).parent.glob("catalog.sqlite-*"):
        beside.unlink()
    reader = frame.source.reader(frame.schema)
    with pytest.raises(TaskError, match=r"^nessie: sqlite:.*, table log: "):
        reader.partitions()


# -- back from Spark ------------------------------------------------------------------------------

TRACEBACK = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):
  File "source.py", line 1, in schema
nessie_cli.spark.errors.TaskError: nessie: http://h/api/v2, table log: Named reference 'gone' not found [REFERENCE_NOT_FOUND]
 SQLSTATE: 38000"""


def test_an_exception_of_spark_becomes_our_error() -> None:
    found = failure_of(PySparkException(TRACEBACK))
    assert type(found) is NotFound
    assert found.message == "nessie: http://h/api/v2, table log: Named reference 'gone' not found"
    with pytest.raises(NotFound, match=r"^nessie: http"), nessie_errors():
        raise PySparkException(TRACEBACK)


def test_other_exceptions_pass_through() -> None:
    assert failure_of(ValueError("nessie is nice")) is None
    with pytest.raises(ZeroDivisionError), nessie_errors():
        raise ZeroDivisionError


def test_every_error_code_is_restored() -> None:
    from nessie_cli import errors

    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, NessieError)
    ]
    for code in {kind.code for kind in kinds}:
        found = failure_of(RuntimeError(f"x\nTaskError: nessie: here: this [{code}]"))
        assert found is not None
        assert (found.code, found.message) == (code, "nessie: here: this")
    assert type(failure_of(RuntimeError("nessie: x [REFERENCE_CONFLICT]"))) is SparkFailure
    assert type(failure_of(RuntimeError("nessie: x [SERVICE_UNAVAILABLE]"))) is StoreUnavailable


def test_an_error_can_be_pickled() -> None:
    error = TaskError("here", StoreUnavailable("two\nlines"))
    assert str(pickle.loads(pickle.dumps(error))) == "nessie: here: two lines [SERVICE_UNAVAILABLE]"


def test_options_are_case_insensitive(store: str) -> None:
    assert given(store, {"rowsPerPartition": "2"})["rowsperpartition"] == "2"
    source = NessieDataSource({"URL": store, "TABLE": "log", "rowsPerPartition": "20"})
    reader = source.reader(source.schema())
    assert len(reader.partitions()) == 2
