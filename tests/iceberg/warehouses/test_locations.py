"""Which locations a warehouse allows: every way out of it is refused, before any I/O."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.files import MissingFile
from nessie_cli.iceberg.locations import Allowed, LocationRefused, issued_uuid
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles, next_metadata_file
from nessie_cli.iceberg.warehouses.warehouse import (
    PATH_PROPERTIES,
    Warehouse,
    check_namespace_location,
    check_table_locations,
    new_location,
)
from nessie_cli.model import ContentKey, Namespace

OWN, OTHER = "01234567-89ab-4cde-8f01-23456789abcd", "99999999-89ab-4cde-8f01-23456789abcd"
KEY = ContentKey(("db", "orders"))
DOCUMENT = {"format-version": 2, "table-uuid": OWN}
TEXT = json.dumps(DOCUMENT).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The warehouse; a secret lies beside it."""
    (tmp_path / "secret.metadata.json").write_text('{"format-version": 2, "s3cret": 1}')
    (tmp_path / "lake2").mkdir()
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def warehouse(folder: Path) -> Warehouse:
    return from_options([str(folder)]).named(None)


@pytest.fixture
def files(warehouse: Warehouse) -> MetadataFiles:
    return MetadataFiles(warehouse)


def s3_warehouse(location: str = "s3://lake/wh") -> Warehouse:
    return from_options([location]).named(None)


WAYS_OUT = (
    "file:///etc/passwd",
    "/etc/passwd",
    "file:/etc/passwd",
    "FILE:///etc/passwd",
    "file://{lake}/../secret.metadata.json",
    "{lake}/../secret.metadata.json",
    "file://{lake}/%2e%2e/secret.metadata.json",
    "file://{lake}/%2E%2E%2Fsecret.metadata.json",
    "file://{lake}/%252e%252e/secret.metadata.json",
    "file://{lake}/a/../../secret.metadata.json",
    "file://{lake}2/a.metadata.json",
    "file://{lake}%2f..%2fsecret.metadata.json",
    "file://example.com{lake}/a.metadata.json",
    "http://169.254.169.254/latest/meta-data/",
    "https://example.com/a.metadata.json",
    "http:{lake}/a.metadata.json",
    "s3://lake/a.metadata.json",
    "s3://169.254.169.254/latest/meta-data",
    "ftp://localhost/a",
    "hdfs://localhost{lake}/a.metadata.json",
    "lake/a.metadata.json",
    "",
    " file://{lake}/a.metadata.json",
    "file://{lake}/a\n.metadata.json",
    "file://{lake}/a\0.metadata.json",
    "file://{lake}/" + "a" * 5000,
)


@pytest.mark.parametrize("location", WAYS_OUT)
def test_every_way_out_is_refused(files: MetadataFiles, folder: Path, location: str) -> None:
    location = location.replace("{lake}", str(folder))
    before = everything_below(folder.parent)
    for act in (files.check, files.read, lambda it: files.write(it, TEXT)):
        with pytest.raises(LocationRefused) as refused:
            act(location)
        assert "root:" not in str(refused.value)
        assert "s3cret" not in str(refused.value)
    files.remove(location)
    assert everything_below(folder.parent) == before


def everything_below(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def metadata_service() -> Iterator[tuple[str, list[bytes]]]:
    """A listener as that of a link-local metadata service, and whether anybody connected."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                seen.append(b"connected")
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", seen
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "s3", "hdfs", "abfs", "gs", "oss"])
def test_no_host_is_contacted_that_the_warehouse_does_not_name(
    files: MetadataFiles, metadata_service: tuple[str, list[bytes]], scheme: str
) -> None:
    host, seen = metadata_service
    with pytest.raises(LocationRefused):
        files.read(f"{scheme}://{host}/latest/meta-data/iam")
    assert seen == []


def test_a_symbolic_link_out_is_refused(files: MetadataFiles, folder: Path) -> None:
    secret = folder.parent / "secret.metadata.json"
    (folder / "link.metadata.json").symlink_to(secret)
    (folder / "up").symlink_to(folder.parent)
    (folder / "chain").symlink_to("up")
    for name in ("link.metadata.json", "up/secret.metadata.json", "chain/secret.metadata.json"):
        with pytest.raises(LocationRefused):
            files.read(f"file://{folder}/{name}")
        with pytest.raises(LocationRefused):
            files.write(f"file://{folder}/chain/new/{name}", TEXT)
    files.remove(f"file://{folder}/up/secret.metadata.json")
    assert secret.exists()
    assert not (folder.parent / "new").exists()


def test_a_link_behind_dots_is_refused_in_both_readings(files: MetadataFiles, folder: Path) -> None:
    (folder.parent / "elsewhere" / "deep").mkdir(parents=True)
    (folder.parent / "elsewhere" / "x.metadata.json").write_text('{"format-version": 2}')
    (folder / "in").symlink_to(folder.parent / "elsewhere" / "deep")
    with pytest.raises(LocationRefused):
        files.read(f"file://{folder}/in/../x.metadata.json")


def test_a_symbolic_link_inside_is_followed(files: MetadataFiles, folder: Path) -> None:
    files.write(f"file://{folder}/real/a.metadata.json", TEXT)
    (folder / "alias").symlink_to("real")
    assert files.read(f"file://{folder}/alias/a.metadata.json") == TEXT
    assert files.check(f"file://{folder}/alias/a.metadata.json") == f"{folder}/real/a.metadata.json"


def test_a_warehouse_behind_a_symbolic_link_works_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "lake").symlink_to("disk")
    files = MetadataFiles(from_options([f"file://{tmp_path}/lake"]).named(None))
    files.write(f"file://{tmp_path}/lake/t/a.metadata.json", TEXT)
    assert files.read(f"{tmp_path}/disk/t/a.metadata.json") == TEXT
    with pytest.raises(LocationRefused):
        files.read(f"{tmp_path}/lake/../secret")


def test_a_link_that_replaces_a_checked_folder_is_not_followed(
    files: MetadataFiles, folder: Path
) -> None:
    """The folder becomes a link and back all the time, also between the check and the opening."""
    (folder.parent / "outside").mkdir()
    (folder.parent / "outside" / "a.metadata.json").write_text('{"format-version": 2, "out": 1}')
    place, link, kept = folder / "t", folder / "link", folder / "kept"
    files.write(f"file://{place}/a.metadata.json", TEXT)
    link.symlink_to(folder.parent / "outside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            place.rename(kept)
            with suppress(OSError):  # a writer was faster and made the folder again
                link.rename(place)
                place.rename(link)
            while kept.exists():
                shutil.rmtree(place, ignore_errors=True)
                with suppress(OSError):  # a writer made the folder again
                    kept.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(400):
            try:
                assert b"out" not in files.read(f"file://{place}/a.metadata.json")
                files.write(f"file://{place}/b{number}.metadata.json", TEXT)
            except (LocationRefused, InvalidInput, StoreUnavailable):
                continue
    finally:
        done.set()
        thread.join()
    assert [p.name for p in (folder.parent / "outside").iterdir()] == ["a.metadata.json"]


def test_locations_inside_are_allowed_in_each_spelling(files: MetadataFiles, folder: Path) -> None:
    normal = f"{folder}/db/t/a.metadata.json"
    for spelling in (
        normal,
        f"file:{normal}",
        f"file://{normal}",
        f"file://localhost{normal}",
        f"file://{folder}//db/./t/../t/a.metadata.json",
    ):
        assert files.check(spelling) == normal


def test_a_percent_sign_is_part_of_the_name(files: MetadataFiles, folder: Path) -> None:
    files.write(f"file://{folder}/a%20b/x.metadata.json", TEXT)
    assert (folder / "a%20b" / "x.metadata.json").exists()
    assert files.read(f"file://{folder}/a%20b/x.metadata.json") == TEXT


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/wh2/a",
        "s3://lake/other",
        "s3://lake/wh/../other",
        "s3://lake/wh/%2e%2e/other",
        "s3://lake/wh%2f..%2fother",
        "s3://lake2/wh/a",
        "s3://lake//wh/a",
        "s3://lake/wh/a?b",
        "s3://lake/wh?b",
        "s3://lake/wh#b",
        "s3://key:secret@lake/wh/a",
        "s3:///wh/a",
        "gs://lake/wh/a",
        "file:///wh/a",
        "/wh/a",
    ],
)
def test_locations_outside_of_the_warehouse_in_s3_are_refused(location: str) -> None:
    with pytest.raises(LocationRefused):
        MetadataFiles(s3_warehouse()).check(location)


def test_one_bucket_has_three_schemes() -> None:
    files = MetadataFiles(s3_warehouse())
    for scheme in ("s3", "s3a", "s3n", "S3"):
        assert files.check(f"{scheme}://lake/wh/a%20b/*$") == "s3://lake/wh/a%20b/*$"
    assert MetadataFiles(s3_warehouse("s3a://lake")).check("s3://lake/any") == "s3://lake/any"


def test_more_locations_can_be_allowed(folder: Path, tmp_path: Path) -> None:
    warehouse = from_options([str(folder)], [str(tmp_path / "old"), "s3://old/x"]).named(None)
    files = MetadataFiles(warehouse)
    assert files.check(f"{tmp_path}/old/t") == f"{tmp_path}/old/t"
    assert files.check("s3://old/x/t") == "s3://old/x/t"
    with pytest.raises(LocationRefused):
        files.check(f"{tmp_path}/oldest")


def test_half_a_name_is_not_inside() -> None:
    for base, location in (("/lake/t", "/lake/tables"), ("/lake/t/", "/lake/tables")):
        with pytest.raises(LocationRefused):
            Allowed([base]).find(location)
    assert Allowed(["/"]).find("/lake")[0].path == "/lake"


# -- tables --------------------------------------------------------------------------------------
def located(location: str, **properties: str) -> dict[str, object]:
    return {**DOCUMENT, "location": location, "properties": properties}


def test_a_new_table_has_its_own_folder(warehouse: Warehouse) -> None:
    location = new_location(warehouse, Namespace(), KEY, OWN)
    assert location == f"{warehouse.location}/db/orders_{OWN}"
    assert issued_uuid(location) == OWN
    located_there = Namespace(properties={"location": "s3://b/here/"})
    assert new_location(warehouse, located_there, KEY, OWN) == f"s3://b/here/orders_{OWN}"


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "a?*$", "%2e%2e", "file:/etc", "a b"])
def test_no_name_of_a_table_leads_out(
    warehouse: Warehouse, files: MetadataFiles, name: str
) -> None:
    location = new_location(warehouse, Namespace(), ContentKey(("db", name)), OWN)
    inside = files.check(location).removeprefix(warehouse.location.removeprefix("file://"))
    assert inside.startswith("/db/")
    assert inside.count("/") == 2
    assert not set(inside) & set("?*$%: ")


def test_the_issued_location_is_always_fine(warehouse: Warehouse, files: MetadataFiles) -> None:
    location = new_location(warehouse, Namespace(), KEY, OWN)
    inside = {"write.data.path": f"{location}/data", "write.metadata.path": f"{location}/meta"}
    for may_choose in (False, True):
        check_table_locations(
            files.allowed, located(location, **inside), location, may_choose=may_choose
        )
        check_table_locations(
            files.allowed, located(f"{location}/"), location, may_choose=may_choose
        )


def test_a_chosen_location_needs_the_right(warehouse: Warehouse, files: MetadataFiles) -> None:
    issued, chosen = new_location(warehouse, Namespace(), KEY, OWN), f"{warehouse.location}/mine"
    check_table_locations(files.allowed, located(chosen), issued, may_choose=True)
    check_table_locations(files.allowed, located(chosen), None, may_choose=True)
    for known in (issued, None):
        with pytest.raises(LocationRefused, match="may not choose locations"):
            check_table_locations(files.allowed, located(chosen), known, may_choose=False)


@pytest.mark.parametrize("may_choose", [False, True])
def test_a_siblings_location_is_refused(
    warehouse: Warehouse, files: MetadataFiles, may_choose: bool
) -> None:
    issued = new_location(warehouse, Namespace(), KEY, OWN)
    sibling = new_location(warehouse, Namespace(), ContentKey(("db", "salaries")), OTHER)
    encoded = sibling.replace("salaries_", "salaries%5F")
    for location in (sibling, f"{sibling}/", f"{sibling}/data/x", encoded):
        with pytest.raises(LocationRefused):
            check_table_locations(files.allowed, located(location), issued, may_choose=may_choose)
        with pytest.raises(LocationRefused):
            check_namespace_location(files.allowed, location)
        for name in PATH_PROPERTIES:
            with pytest.raises(LocationRefused):
                check_table_locations(
                    files.allowed,
                    located(issued, **{name: location}),
                    issued,
                    may_choose=may_choose,
                )


@pytest.mark.parametrize("name", ["location", *PATH_PROPERTIES])
@pytest.mark.parametrize("bad", ["file:///etc", "http://169.254.169.254/", "{wh}/../x", "s3://b/x"])
def test_no_member_names_a_place_outside(
    warehouse: Warehouse, files: MetadataFiles, name: str, bad: str
) -> None:
    issued = new_location(warehouse, Namespace(), KEY, OWN)
    document = located(issued)
    bad = bad.replace("{wh}", warehouse.location)
    if name == "location":
        document["location"] = bad
    else:
        document["properties"] = {name: bad}
    with pytest.raises(LocationRefused):
        check_table_locations(files.allowed, document, issued, may_choose=True)


@pytest.mark.parametrize("bad", [None, 1, "", ["x"], {}])
def test_a_location_that_is_not_a_text_is_refused(files: MetadataFiles, bad: object) -> None:
    with pytest.raises(InvalidInput, match="location must be a non-empty string"):
        check_table_locations(files.allowed, {**DOCUMENT, "location": bad}, None, may_choose=True)


def test_paths_outside_of_the_table_need_the_right(
    warehouse: Warehouse, files: MetadataFiles
) -> None:
    issued = new_location(warehouse, Namespace(), KEY, OWN)
    document = located(issued, **{"write.data.path": f"{warehouse.location}/hot"})
    check_table_locations(files.allowed, document, issued, may_choose=True)
    with pytest.raises(LocationRefused, match=r"write\.data\.path"):
        check_table_locations(files.allowed, document, issued, may_choose=False)


def test_metadata_files_are_numbered_and_never_named_twice() -> None:
    first = next_metadata_file("s3://b/t/", {}, None)
    assert first.startswith("s3://b/t/metadata/00000-")
    assert first.endswith(".metadata.json")
    assert first != next_metadata_file("s3://b/t", {}, None)
    for current, number in (
        ("s3://b/t/metadata/00041-x.metadata.json", "00042-"),
        ("s3://b/t/metadata/00041-x.gz.metadata.json", "00042-"),
        ("s3://b/t/metadata/v41.metadata.json", "00042-"),
        ("s3://b/t/metadata/other.json", "00000-"),
    ):
        assert f"/{number}" in next_metadata_file("s3://b/t", {}, current)
    there = next_metadata_file("s3://b/t", {"write.metadata.path": "s3://b/m/"}, None)
    assert there.startswith("s3://b/m/00000-")


def test_a_deleted_file_is_missing(files: MetadataFiles, folder: Path) -> None:
    with pytest.raises(MissingFile):
        files.read(f"file://{folder}/db/t/a.metadata.json")
    with pytest.raises(InvalidInput):
        files.read(f"file://{folder}")
