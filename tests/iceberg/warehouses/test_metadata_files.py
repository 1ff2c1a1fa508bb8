"""Metadata files: written once, read within limits, and never quoted."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.files import MissingFile
from nessie_cli.iceberg.locations import LocationRefused
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.metadata_files import MAX_BYTES, MetadataFiles
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from tests.gc.s3 import Store

DOCUMENT = b'{"format-version": 2, "unknown": {"\xc3\xa9": [1, 9223372036854775807, 0.1]}}'


@pytest.fixture(params=["file", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> MetadataFiles:
    if request.param == "file":
        return MetadataFiles(from_options([str(tmp_path)]).named(None))
    found: Store = request.getfixturevalue("store")
    return in_s3(found, f"s3://lake/{tmp_path.name}")


def in_s3(store: Store, location: str) -> MetadataFiles:
    return MetadataFiles(
        Warehouse(name="w", location=location, allowed=(location,), storage=store.properties)
    )


def place(files: MetadataFiles, name: str = "a.metadata.json") -> str:
    return f"{files.warehouse.location}/db/t_1/metadata/{name}"


def put(files: MetadataFiles, location: str, data: bytes, store: Store | None = None) -> None:
    """Bytes that this program would not write."""
    if location.startswith("file://"):
        path = Path(location.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    else:
        with files._file_io("s3", location).new_output(location).create() as stream:
            stream.write(data)


def test_a_file_is_read_as_it_was_written(files: MetadataFiles) -> None:
    files.write(place(files), DOCUMENT)
    assert files.read(place(files)) == DOCUMENT


def test_a_local_file_is_never_overwritten(tmp_path: Path) -> None:
    files = MetadataFiles(from_options([str(tmp_path)]).named(None))
    files.write(place(files), DOCUMENT)
    with pytest.raises(StoreUnavailable):
        files.write(place(files), b"{}")
    assert files.read(place(files)) == DOCUMENT


def test_a_removed_file_is_missing(files: MetadataFiles) -> None:
    files.write(place(files), DOCUMENT)
    files.remove(place(files))
    with pytest.raises(MissingFile):
        files.read(place(files))
    files.remove(place(files))


def requests_to(store: Store, do: Callable[[], object]) -> list[tuple[str, str]]:
    store.requests.clear()
    do()
    return list(store.requests)


def test_a_file_is_written_to_an_object_store_by_one_request(tmp_path: Path, store: Store) -> None:
    files = in_s3(store, f"s3://lake/{tmp_path.name}")
    location = place(files)
    path = location.removeprefix("s3:/")
    assert requests_to(store, lambda: files.write(location, DOCUMENT)) == [("PUT", path)]
    assert requests_to(store, lambda: files.read(location, committed=True)) == []
    # A file that no commit names yet has to be in the store.
    assert ("GET", path) in requests_to(store, lambda: files.read(location))


def test_a_file_is_read_from_an_object_store_once(tmp_path: Path, store: Store) -> None:
    writer = in_s3(store, f"s3://lake/{tmp_path.name}")
    writer.write(place(writer), DOCUMENT)
    reader = in_s3(store, f"s3://lake/{tmp_path.name}")
    for expected in (True, False):
        found = requests_to(store, lambda: reader.read(place(reader), committed=True))
        assert bool(found) is expected
    store.files.delete_file(place(reader).removeprefix("s3://"))
    with pytest.raises(MissingFile):
        reader.read(place(reader))


def test_a_cached_file_is_for_allowed_locations_only(tmp_path: Path, store: Store) -> None:
    files = in_s3(store, f"s3://lake/{tmp_path.name}")
    files.write(place(files), DOCUMENT)
    for location in (
        f"s3://lake/{tmp_path.name}/../{tmp_path.name}x/a.metadata.json",
        f"s3://other/{tmp_path.name}/db/t_1/metadata/a.metadata.json",
    ):
        with pytest.raises(LocationRefused):
            files.read(location, committed=True)


def test_the_file_of_a_refused_commit_is_forgotten(tmp_path: Path, store: Store) -> None:
    files = in_s3(store, f"s3://lake/{tmp_path.name}")
    files.write(place(files), DOCUMENT)
    files.remove(place(files))
    with pytest.raises(MissingFile):
        files.read(place(files), committed=True)


def test_compressed_files_are_read(files: MetadataFiles) -> None:
    put(
        files,
        place(files, "a.gz.metadata.json"),
        gzip.compress(DOCUMENT, mtime=0),
    )
    assert files.read(place(files, "a.gz.metadata.json")) == DOCUMENT


def test_a_table_with_a_first_metadata_file_is_seen(files: MetadataFiles) -> None:
    table = f"{files.warehouse.location}/db/t_1"
    assert not files.has_any(table)
    put(files, f"{table}/metadata/snap-1.avro", b"x")
    put(files, f"{table}/metadata/00001-a.metadata.json", b"x")
    assert not files.has_any(table)
    files.write(f"{table}/metadata/00000-a.metadata.json", DOCUMENT)
    assert files.has_any(table)
    with pytest.raises(LocationRefused):
        files.has_any("file:///")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            gzip.compress(b"root:x" * 100, mtime=0)[:-20],
            "truncated: the compressed data ends too early",
        ),
        (b"\x1f\x8bxxxx root:x", "damaged: it cannot be decompressed with gzip"),
        (gzip.compress(b" " * (MAX_BYTES + 1), mtime=0), "is larger than 64 MiB"),
    ],
)
def test_a_damaged_file_is_refused_and_not_quoted(
    tmp_path: Path, data: bytes, message: str
) -> None:
    files = MetadataFiles(from_options([str(tmp_path)]).named(None))
    put(files, place(files), data)
    with pytest.raises(InvalidInput) as error:
        files.read(place(files))
    assert message in error.value.message
    assert place(files) in error.value.message
    assert "root:" not in error.value.message
    assert error.value.__cause__ is None


def test_a_file_of_the_largest_size_is_read(files: MetadataFiles) -> None:
    data = b" " * MAX_BYTES
    files.write(place(files), data)
    assert files.read(place(files)) == data
    with pytest.raises(InvalidInput, match="is larger than 64 MiB"):
        files.write(place(files, "b.metadata.json"), data + b" ")
    put(files, place(files, "c.metadata.json"), data + b" ")
    with pytest.raises(InvalidInput, match="is larger than 64 MiB"):
        files.read(place(files, "c.metadata.json"))


def test_special_files_are_refused_without_waiting(tmp_path: Path) -> None:
    files = MetadataFiles(from_options([str(tmp_path)]).named(None))
    os.mkfifo(tmp_path / "pipe.metadata.json")
    with pytest.raises(InvalidInput, match="is not a regular file"):
        files.read(f"file://{tmp_path}/pipe.metadata.json")
    (tmp_path / "folder.metadata.json").mkdir()
    with pytest.raises(InvalidInput):
        files.read(f"file://{tmp_path}/folder.metadata.json")


def test_a_link_as_the_new_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.metadata.json").symlink_to(tmp_path / "lake" / "b.metadata.json")
    files = MetadataFiles(from_options([f"{tmp_path}/lake"]).named(None))
    files.write(f"file://{tmp_path}/lake/a.metadata.json", DOCUMENT)
    assert (tmp_path / "lake" / "b.metadata.json").exists()
    with pytest.raises(StoreUnavailable):
        files.write(f"file://{tmp_path}/lake/a.metadata.json", DOCUMENT)


def test_nothing_that_a_document_says_configures_the_file_system(store: Store) -> None:
    """The settings of the server are the only ones, whatever tables say."""
    files = in_s3(store, "s3://lake/settings")
    location = place(files)
    properties = {
        "py-io-impl": "os.system",
        "write.py-location-provider.impl": "os.system",
        "s3.endpoint": "http://169.254.169.254",
    }
    document = {"format-version": 2, "location": "s3://lake/settings", "properties": properties}
    poisoned = json.dumps(document).encode()
    files.write(location, poisoned)
    assert files.read(location) == poisoned
    assert files._file_io("s3", location).properties == store.properties


def test_a_refusal_of_the_storage_is_reported_without_its_text(store: Store) -> None:
    files = in_s3(store, "s3://lake/refused")
    store.refused.add(("PUT", "x.metadata.json"))
    with pytest.raises(StoreUnavailable) as error:
        files.write(place(files, "x.metadata.json"), DOCUMENT)
    assert "AKIA" not in error.value.message
    assert "127.0.0.1" not in error.value.message


def test_a_missing_bucket_is_reported(store: Store) -> None:
    files = in_s3(store, "s3://no-such-bucket")
    with pytest.raises((MissingFile, StoreUnavailable)):
        files.read("s3://no-such-bucket/a.metadata.json")
    with pytest.raises(LocationRefused):
        files.read("s3://lake/a.metadata.json")
