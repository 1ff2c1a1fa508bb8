"""The stream of commits: offsets are hashes, so a batch that is planned again is the same."""

from __future__ import annotations

import pytest

from nessie_cli import connect
from nessie_cli.model import NO_ANCESTOR
from nessie_cli.spark.errors import TaskError
from nessie_cli.spark.source import NessieDataSource
from nessie_cli.spark.streaming import LogStream
from tests.repository.vocabulary import Catalog


def stream(url: str, **options: str) -> LogStream:
    source = NessieDataSource(
        {"url": url, **{name.rstrip("_"): value for name, value in options.items()}}
    )
    return source.streamReader(source.schema())


def batch(reader: LogStream, start: dict[str, str], end: dict[str, str]) -> list[str]:
    return [
        row["hash"]
        for part in reader.partitions(start, end)
        for found in reader.read(part)
        for row in found.to_pylist()
    ]


@pytest.mark.parametrize("pieces", ["2", "1000"])
def test_batches_are_the_history_without_gap_or_overlap(store: str, pieces: str) -> None:
    with connect(store) as repository:
        catalog = Catalog(repository)
        reader = stream(store, table="log", ref="dev", rowsPerPartition=pieces)
        offset = reader.initialOffset()
        assert offset == {"from": NO_ANCESTOR, "hash": NO_ANCESTOR}
        read: list[str] = []
        for number in range(4):
            latest = reader.latestOffset()
            found = batch(reader, offset, latest)
            assert batch(stream(store, table="log", ref="dev"), offset, latest) == found, (
                "another process plans the same batch"
            )
            read = found + read
            offset = latest
            for _ in range(number):
                catalog.write("dev", {f"more{number}": number, "raw.clicks": number + 50})
        assert read == catalog.hashes("dev")[-len(read) :]
        assert batch(reader, offset, offset) == []
        assert batch(reader, offset, reader.latestOffset()) == catalog.hashes("dev")[:3]


def test_a_stream_of_new_commits(store: str) -> None:
    with connect(store) as repository:
        reader = stream(store, table="operations", from_="main")
        offset = reader.initialOffset()
        assert offset == reader.latestOffset()
        Catalog(repository).write("main", {"db.t1": 7, "db.t2": 8})
        (part,) = reader.partitions(offset, reader.latestOffset())
        (found,) = reader.read(part)
        assert [(row["key"], row["operation"], row["reference"]) for row in found.to_pylist()] == [
            ("db.t1", "PUT", "main"),
            ("db.t2", "PUT", "main"),
        ]


def test_a_limit_of_commits_for_each_batch_also_after_a_restart(store: str) -> None:
    with connect(store) as repository:
        catalog = Catalog(repository)
        every = catalog.hashes("dev")
        reader = stream(store, table="log", ref="dev", maxCommitsPerBatch="20")
        offset, sizes, read = reader.initialOffset(), [], []
        while (latest := reader.latestOffset()) != offset:
            assert reader.latestOffset() == latest, (
                "asked for again, nothing has been planned meanwhile"
            )
            found = batch(reader, offset, latest)
            sizes.append(len(found))
            read = found + read
            offset = latest
            # Another process resumes the query. Spark passes it the last offset in an empty batch.
            reader = stream(store, table="log", ref="dev", maxCommitsPerBatch="20")
            assert batch(reader, offset, offset) == []
        assert read == every
        assert sizes == [20] * (len(every) // 20) + [len(every) % 20]
        assert sizes[-1] > 0


def test_the_first_batch_begins_at_the_planned_commit(store: str) -> None:
    with connect(store) as repository:
        catalog = Catalog(repository)
        reader = stream(store, table="log", from_="main")
        for number in range(3):
            catalog.write("main", {"db.t1": number})
        planned = reader.latestOffset()
        expected = batch(reader, reader.initialOffset(), planned)
        assert expected == catalog.hashes("main")[:3]
        # It failed, and the reference in `from` has moved meanwhile.
        catalog.write("main", {"db.t1": 4})
        again = stream(store, table="log", from_="main")
        assert batch(again, again.initialOffset(), planned) == expected
        latest = again.latestOffset()
        assert batch(again, planned, latest) == catalog.hashes("main")[:1]
        assert latest["from"] == planned["from"]


def test_a_query_resumes_from_a_checkpoint_of_hashes(store: str) -> None:
    with connect(store) as repository:
        catalog = Catalog(repository)
        offset = {"hash": catalog.head()}
        reader = stream(store, table="log")
        assert batch(reader, offset, offset) == []
        assert reader.latestOffset() == offset
        catalog.write("main", {"db.t1": 4})
        assert batch(reader, offset, reader.latestOffset()) == [catalog.head()]


def test_a_branch_that_no_longer_contains_the_last_commit_is_an_error(store: str) -> None:
    with connect(store) as repository:
        reader = stream(store, table="log")
        offset = reader.latestOffset()
        common = repository.resolve("main~2").hash
        repository.assign_reference("main", common, expected_hash=offset["hash"])
        with pytest.raises(
            TaskError,
            match=rf"commit {offset['hash']} was read before, .* the reference has been moved\. .*from={common}",
        ):
            reader.partitions(offset, reader.latestOffset())
        limited = stream(store, table="log", maxCommitsPerBatch="1")
        assert limited.partitions(offset, offset) == []
        with pytest.raises(TaskError, match="the reference has been moved"):
            limited.latestOffset()


def test_a_deleted_branch_is_an_error(store: str) -> None:
    with connect(store) as repository:
        reader = stream(store, table="log", ref="late")
        repository.delete_reference("late", expected_hash=repository.reference("late").hash)
        with pytest.raises(
            TaskError,
            match=r"^nessie: sqlite:.*, table log: Named reference 'late' not found; the stream has read up to commit [0-9a-f]{64} ",
        ):
            reader.latestOffset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "entries"}, "table entries is not a stream. Hint: log and operations are"),
        ({"table": "log", "ref": "*"}, "option ref: a stream follows one reference"),
        (
            {"table": "log", "at": "2030-01-01T00:00:00Z"},
            "option 'at' is not allowed, because a stream has no end",
        ),
    ],
)
def test_reads_that_are_not_streams(store: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(TaskError) as refused:
        stream(store, **options)
    assert message in str(refused.value)
