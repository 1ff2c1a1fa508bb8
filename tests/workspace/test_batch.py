"""The batch file: it survives writing and reading, has one writer at a time, and is replaced
atomically."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.model import (
    UDF,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    Unchanged,
    UnknownContent,
)
from nessie_cli.workspace.batch import (
    BatchFile,
    Staged,
    StagedBatch,
    decode_batch,
    decode_document,
    encode_batch,
)
from nessie_cli.workspace.files import locked, read_text, replace_text
from nessie_cli.workspace.folder import absolute_store, find_workspace, make_workspace

ID = "11111111-2222-3333-4444-555555555555"
OLD = IcebergTable(id=ID, metadata_location="old", snapshot_id=1)
NEW = IcebergTable(id=ID, metadata_location="new", snapshot_id=2)


def staged_everything():
    key = [ContentKey((name, "x.y")) for name in "abcdef"]
    foreign = UnknownContent(id=ID, foreign_type="HUDI", foreign_attributes={"deep": [{"n": None}]})
    return (
        Staged(Put(key[0], NEW, OLD), OLD),
        Staged(Put(key[1], UDF(sql_text="ą\n\"'"))),
        Staged(Delete(key[2]), foreign),
        Staged(Put(key[2], Namespace(elements=("c",), properties={"a": "b"}))),
        Staged(Unchanged(key[3]), OLD),
        Staged(Put(key[4], foreign, foreign), foreign),
    )


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path, None)


@pytest.fixture
def file(workspace):
    return BatchFile(workspace)


def test_a_written_batch_can_be_read(file):
    batch = StagedBatch("abc", staged_everything(), "request", "main")

    file.write(batch)

    assert file.read() == batch


WRITTEN = StagedBatch("abc", (Staged(Put(ContentKey(("a",)), NEW, OLD), OLD),))


@pytest.mark.parametrize("content", ["content", "expectedContent"])
@pytest.mark.parametrize(
    "change",
    [
        {"snapshotId": True},
        {"snapshotId": 1.0},
        {"id": 7},
        {"schemaId": 2**31},
        {"type": "ICEBERG_VIEW"},
        {"metadataLocation": None},
    ],
)
def test_an_invalid_content_is_refused_with_its_place(content, change):
    item = encode_batch(WRITTEN)["operations"][0]

    with pytest.raises(InvalidInput, match=rf"^batch.json: operations\[0\].{content}\."):
        decode_document(
            encode_batch(WRITTEN) | {"operations": [item | {content: item[content] | change}]},
            "batch.json",
        )


@pytest.mark.parametrize(
    "item",
    [
        None,
        1,
        [],
        {},
        {"type": "PUT"},
        {"type": "DELETE", "key": {"elements": "ab"}},
        {"type": "DELETE", "key": []},
    ],
)
def test_an_invalid_operation_is_refused_with_its_place(item):
    with pytest.raises(InvalidInput, match=r"^batch.json: operations\[0\]"):
        decode_document(encode_batch(WRITTEN) | {"operations": [item]}, "batch.json")


def test_the_operations_of_the_file_are_rest_json(file):
    from nessie_cli.wire.decode import decode_operation

    operations = encode_batch(StagedBatch("abc", staged_everything()))["operations"]
    for operation in operations:
        # Of the operations of REST, only a PUT has it.
        if operation["type"] != "PUT":
            operation.pop("expectedContent", None)

    assert [decode_operation(o, allow_unknown=True) for o in operations] == [
        s.operation for s in staged_everything()
    ]


def test_an_empty_batch_has_no_file(file, workspace):
    file.write(StagedBatch("abc", staged_everything()))
    file.write(StagedBatch("abc", ()))

    assert not workspace.batch_path.exists()
    assert file.read() is None
    file.write(None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("null", "is not a batch file of version 1"),
        ('{"version": 1, "begunAt": "a", "operations": {}}', "missing or has the wrong type"),
        (
            '{"version": 1, "begunAt": "a", "requestId": 7, "operations": []}',
            "missing or has the wrong type",
        ),
        (
            '{"version": 1, "begunAt": "a", "requestId": "b", "branch": 7, "operations": []}',
            "missing or has the wrong type",
        ),
        (
            '{"version": 1, "begunAt": "a", "operations": [{"type": "DELETE", "key": {"elements": ["k"]}, "expectedContent": 3}]}',
            "expectedContent",
        ),
    ],
)
def test_the_error_for_an_invalid_batch_names_the_place(text, words):
    with pytest.raises(InvalidInput, match=words) as error:
        decode_batch(text, "the/file")

    assert error.value.message.startswith(("the/file: ", "the/file is "))


HOLD = """
import sys, time
from pathlib import Path
from nessie_cli.workspace.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_released(workspace):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(workspace.lock_path)], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    waiter = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(workspace.lock_path)], stdout=subprocess.PIPE
    )
    assert waiter.stdout is not None
    os.set_blocking(waiter.stdout.fileno(), False)
    time.sleep(0.5)
    assert waiter.stdout.read() is None

    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    os.set_blocking(waiter.stdout.fileno(), True)
    got = waiter.stdout.readline()

    waiter.kill()
    waiter.communicate()
    assert got == b"held\n"


ADD = """
import sys
from pathlib import Path
from nessie_cli.model import ContentKey, Delete
from nessie_cli.workspace.batch import Batch, BatchFile, Staged
from nessie_cli.workspace.folder import Workspace
file = BatchFile(Workspace(Path(sys.argv[1])))
for number in range(15):
    with file.changing():
        batch = file.read() or Batch("abc")
        file.write(Batch("abc", (*batch.staged, Staged(Delete(ContentKey((sys.argv[2], str(number))))))))
"""


def test_concurrent_processes_lose_no_staged_operations(workspace, file):
    processes = [
        subprocess.Popen([sys.executable, "-c", ADD, str(workspace.root), name]) for name in "abcd"
    ]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]

    batch = file.read()
    assert batch is not None
    assert len(set(batch.keys)) == 60


@pytest.fixture
def small_files():
    """Limits files to 2,000 bytes: a longer write fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_failed_write_leaves_the_old_batch_and_no_other_files(file, workspace, small_files):
    small = StagedBatch("abc", staged_everything()[:1])
    file.write(small)
    many = tuple(Staged(Delete(ContentKey((f"key{n}",)))) for n in range(200))

    with pytest.raises(StoreUnavailable, match=r"batch\.json cannot be written: "):
        file.write(StagedBatch("abc", many))

    assert file.read() == small
    assert sorted(path.name for path in workspace.folder.iterdir()) == [".gitignore", "batch.json"]


WRITE = """
import sys
from pathlib import Path
from nessie_cli.workspace.files import replace_text
print("go", flush=True)
while True:
    for letter in "ab":
        replace_text(Path(sys.argv[1]), letter * 100_000)
"""


def test_a_killed_writer_leaves_a_complete_file(tmp_path):
    path = tmp_path / "file"
    for delay in (0.02, 0.05, 0.1, 0.15):
        process = subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
        process.communicate()

        text = read_text(path)
        assert text is None or text in ("a" * 100_000, "b" * 100_000)


def test_unreadable_files_are_reported(tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(InvalidInput, match=r"latin is not UTF-8 text \(byte 3\)"):
        read_text(tmp_path / "latin")
    with pytest.raises(NotAllowed, match="cannot be read"):
        read_text(tmp_path)
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        replace_text(tmp_path / "none" / "file", "x")
    with (
        pytest.raises(StoreUnavailable, match="cannot be opened"),
        locked(tmp_path / "none" / "lock"),
    ):
        pass


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("sqlite:///a/b.sqlite", "sqlite:////root/a/b.sqlite"),
        ("sqlite:////abs/b.sqlite", "sqlite:////abs/b.sqlite"),
        ("a/b.sqlite", "/root/a/b.sqlite"),
        ("/abs/b.sqlite", "/abs/b.sqlite"),
        ("a:b/c", "a:b/c"),
        ("dir/a:b", "/root/dir/a:b"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("memory:", "memory:"),
    ],
)
def test_relative_paths_start_at_the_workspace(url, seen):
    from pathlib import Path

    assert absolute_store(url, Path("/root")) == seen


def test_the_nearest_workspace_upwards_is_found(tmp_path):
    inner = tmp_path / "a" / "b"
    deep = inner / "c" / "d"
    deep.mkdir(parents=True)
    make_workspace(tmp_path, None)
    make_workspace(inner, "sqlite:///x")

    assert [find_workspace(path).root for path in (deep, inner, tmp_path / "a")] == [
        inner,
        inner,
        tmp_path,
    ]
    assert find_workspace(inner).store() == f"sqlite:///{inner}/x"
