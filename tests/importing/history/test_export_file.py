"""Exports of the original, in its format, and what they may contain beside whole histories."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.importing.history.export_file import ExportFile
from nessie_cli.importing.history.importing import ImportedHistory
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceType, UnknownContent
from nessie_cli.repository.opening import create
from nessie_cli.repository.store_repository import StoreRepository
from tests.importing.history.exporter import (
    Commit,
    Operation,
    commits_of,
    delimited,
    message,
    of_key,
    write_export,
)
from tests.importing.history.histories import assert_same, imported, write_varied_history
from tests.repository.vocabulary import Catalog, table

A, B, C, D, E = (letter * 64 for letter in "abcde")
IDS = [str(uuid4()) for _ in range(3)]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[StoreRepository]:
    with create(str(tmp_path / "target.sqlite"), who="importer") as repository:
        yield repository


def import_export(target: StoreRepository, path: Path) -> ImportedHistory:
    export = ExportFile(path)
    try:
        return imported(target, export)
    finally:
        export.close()


def import_commits(
    target: StoreRepository, folder: Path, commits: Sequence[Commit], main: str, **more: object
) -> ImportedHistory:
    references = [Reference(ReferenceType.BRANCH, "main", main)]
    return import_export(target, write_export(folder / "export.zip", commits, references, **more))


def put(text: str, number: int, content_id: str = IDS[0]) -> Operation:
    return Operation(of_key(text), table(number, content_id))


@pytest.mark.parametrize("name", ["export.zip", "export"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_history_comes_from_an_export(
    target: StoreRepository, tmp_path: Path, version: int, name: str
) -> None:
    with create(str(tmp_path / "source.sqlite"), who="ann") as source:
        write_varied_history(Catalog(source))
        path = write_export(
            tmp_path / name, commits_of(source), list(source.references()), version=version
        )
        result = import_export(target, path)
        assert assert_same(source, target) == result.commits == 13
    assert result.default_branch == "main"
    assert (result.cut, result.left_out, result.unreferenced) == ([], {}, 0)


def test_an_old_export_has_metadata_as_json(target: StoreRepository, tmp_path: Path) -> None:
    with create(str(tmp_path / "source.sqlite"), who="ann") as source:
        catalog = Catalog(source)
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2, "b": 1})
        catalog.write("main", {"c": 1})
        catalog.merge("dev")
        catalog.tag("v1")
        path = write_export(
            tmp_path / "export", commits_of(source), list(source.references()), version=1
        )
        import_export(target, path)
        assert_same(source, target)


def test_commits_that_no_reference_reaches_are_counted(
    target: StoreRepository, tmp_path: Path
) -> None:
    commits = [Commit(A, [NO_ANCESTOR], [put("a", 1)]), Commit(B, [NO_ANCESTOR], [put("b", 1)])]
    result = import_commits(target, tmp_path, commits, A)
    assert (result.commits, result.unreferenced) == (1, 1)
    assert Catalog(target).numbers() == {"a": 1}


def test_objects_and_keys_of_the_server_are_left_out(
    target: StoreRepository, tmp_path: Path
) -> None:
    commits = [Commit(A, [NO_ANCESTOR], [put("a", 1)], raw_keys=["M\0a\0X", "config"])]
    result = import_commits(target, tmp_path, commits, A, generic=["ct", "ct", "udf"])
    assert result.left_out == {"key of another kind": 2, "ct": 2, "udf": 1}
    assert Catalog(target).numbers() == {"a": 1}


def test_times_that_go_backwards_are_raised_and_counted(
    target: StoreRepository, tmp_path: Path
) -> None:
    commits = [
        Commit(A, [NO_ANCESTOR], [put("a", 1)], time=100),
        Commit(B, [A], [put("a", 2)], time=50),
        Commit(C, [B], [put("a", 3)], time=101),
        Commit(D, [C], [put("a", 4)], time=500),
    ]
    result = import_commits(target, tmp_path, commits, D)
    assert result.adjustments.raised_times == 2
    times = [entry.meta.commit_time for entry in target.log("main")]
    assert [time.microsecond for time in times if time] == [500, 102, 101, 100]
    assert list(target.check()) == []


def test_a_content_id_under_two_keys_is_imported_and_named(
    target: StoreRepository, tmp_path: Path
) -> None:
    commits = [
        Commit(A, [NO_ANCESTOR], [put("a", 1)], time=1),
        Commit(B, [A], [put("b", 2)], time=2),
        Commit(C, [B], [put("c", 3, IDS[1])], time=3),
    ]
    result = import_commits(target, tmp_path, commits, C)
    assert Catalog(target).numbers() == {"a": 1, "b": 2, "c": 3}
    added, at_head = result.duplicates
    assert added.replaceable is None
    assert at_head.where == "main"
    assert at_head.replaceable is not None
    branch, key = at_head.replaceable
    assert (branch, str(key)) in (("main", "a"), ("main", "b"))
    assert list(target.check()) == list(result.duplicates)


def test_content_ids_that_are_not_uuids_stay_the_same_content(
    target: StoreRepository, tmp_path: Path
) -> None:
    commits = [
        Commit(A, [NO_ANCESTOR], [put("a", 1, "my-id"), put("b", 1, "other")], time=1),
        Commit(B, [A], [Operation(of_key("a")), put("c", 2, "my-id")], time=2),
    ]
    result = import_commits(target, tmp_path, commits, B)
    assert result.adjustments.new_ids == 2
    ours = Catalog(target)
    assert ours.id("main", "c") == ours.id("main~1", "a") != ours.id("main", "b")


def test_unknown_types_keep_all_their_attributes(target: StoreRepository, tmp_path: Path) -> None:
    document = {"type": "MY_TYPE", "id": IDS[0], "big": 2**70, "list": [1.5, None]}
    commits = [Commit(A, [NO_ANCESTOR], [Operation(("a",), document)])]
    result = import_commits(target, tmp_path, commits, A)
    assert result.contents == {"MY_TYPE": 1}
    content = Catalog(target).content("main", "a")
    assert isinstance(content, UnknownContent)
    assert content.foreign_attributes == {"big": 2**70, "list": [1.5, None]}


@pytest.mark.parametrize(
    ("parent", "message"),
    [(A, "work"), (NO_ANCESTOR, "work [updated to remove parents on 2024-09-30T10:00:00Z]")],
)
def test_an_export_of_a_history_that_was_cut_off_is_refused(
    target: StoreRepository, tmp_path: Path, parent: str, message: str
) -> None:
    main = Reference(ReferenceType.BRANCH, "main", B)
    commit = Commit(B, [parent], [put("b", 1)], message)
    path = write_export(tmp_path / "export", [commit], [main])
    assert f"the history before commit {B} was deleted" in refused(target, path)


def test_deletions_without_effect_and_lost_merge_parents_are_counted(
    target: StoreRepository, tmp_path: Path
) -> None:
    commits = [
        Commit(B, [NO_ANCESTOR], [put("b", 1), Operation(("gone",))], time=2),
        Commit(C, [B, E], [put("c", 1, IDS[1])], time=3),
    ]
    result = import_commits(target, tmp_path, commits, C)
    assert result.cut == []
    assert result.adjustments.without_effect == 1
    assert result.adjustments.lost_parents == 1
    assert Catalog(target).numbers() == {"b": 1, "c": 1}
    assert list(target.check()) == []


# -- exports that cannot be read -------------------------------------------------------------------


def refused(target: StoreRepository, path: Path) -> str:
    before = Catalog(target).everything()
    with pytest.raises(InvalidInput) as error:
        import_export(target, path)
    assert Catalog(target).everything() == before
    return error.value.message


def one_commit(path: Path, **more: object) -> Path:
    main = Reference(ReferenceType.BRANCH, "main", A)
    return write_export(path, [Commit(A, [NO_ANCESTOR], [put("a", 1)])], [main], **more)


def test_files_that_are_no_exports_are_refused(target: StoreRepository, tmp_path: Path) -> None:
    assert "no such file" in refused(target, tmp_path / "missing")
    (tmp_path / "text").write_text("hello")
    assert "neither a ZIP file nor a folder" in refused(target, tmp_path / "text")
    (tmp_path / "folder").mkdir()
    assert "has no file export-metadata" in refused(target, tmp_path / "folder")


def test_a_later_version_is_refused(target: StoreRepository, tmp_path: Path) -> None:
    assert "export version is 4" in refused(target, one_commit(tmp_path / "e", version=4))


def test_incomplete_exports_are_refused(target: StoreRepository, tmp_path: Path) -> None:
    path = one_commit(tmp_path / "count", announced=2)
    assert "has 1 commits, but its metadata says 2" in refused(target, path)
    path = one_commit(tmp_path / "file")
    (path / "commits-00000001").unlink()
    assert "commits-00000001 is missing" in refused(target, path)
    path = one_commit(tmp_path / "end")
    data = (path / "commits-00000001").read_bytes()
    (path / "commits-00000001").write_bytes(data[:-3])
    assert "commits-00000001 is damaged" in refused(target, path)
    (path / "commits-00000001").write_bytes(b"\x05\xff\xff\xff\xff\xff")
    assert "commits-00000001 is damaged" in refused(target, path)
    (path / "commits-00000001").write_bytes(b"\xff" * 30)
    assert "commits-00000001 is damaged" in refused(target, path)


def test_a_damaged_zip_is_refused(target: StoreRepository, tmp_path: Path) -> None:
    path = one_commit(tmp_path / "export.zip")
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)
    path.write_bytes(data)
    assert "damaged" in refused(target, path)


def test_an_invalid_content_is_named_with_its_commit(
    target: StoreRepository, tmp_path: Path
) -> None:
    document = {"type": "ICEBERG_TABLE", "id": IDS[0]}
    main = Reference(ReferenceType.BRANCH, "main", A)
    path = write_export(
        tmp_path / "e", [Commit(A, [NO_ANCESTOR], [Operation(("a",), document)])], [main]
    )
    assert f"commit {A}: the content of a" in refused(target, path)


def test_a_missing_head_is_refused(target: StoreRepository, tmp_path: Path) -> None:
    main = Reference(ReferenceType.BRANCH, "main", B)
    path = write_export(tmp_path / "e", [Commit(A, [NO_ANCESTOR], [put("a", 1)])], [main])
    assert "reference 'main' of the source is at commit bbbb" in refused(target, path)


def test_a_cycle_is_refused(target: StoreRepository, tmp_path: Path) -> None:
    main = Reference(ReferenceType.BRANCH, "main", B)
    path = write_export(tmp_path / "e", [Commit(A, [B]), Commit(B, [A])], [main])
    assert "is its own ancestor" in refused(target, path)


def test_file_names_stay_inside(target: StoreRepository, tmp_path: Path) -> None:
    path = one_commit(tmp_path / "inside")
    shutil.copy(path / "commits-00000001", tmp_path / "outside")
    meta = (path / "export-metadata").read_bytes()
    meta = meta.replace(b"\x10commits-00000001", b"\x10../../../outside")
    (path / "export-metadata").write_bytes(meta)
    assert "outside of it" in refused(target, path)


@pytest.mark.parametrize("name", [b"..", b".", b"\x00", b"commits-0000000\x00"])
def test_names_that_no_file_can_have_are_refused(
    target: StoreRepository, tmp_path: Path, name: bytes
) -> None:
    path = one_commit(tmp_path / "named")
    meta = (path / "export-metadata").read_bytes()
    field = bytes([len(name)]) + name
    (path / "export-metadata").write_bytes(meta.replace(b"\x10commits-00000001", field))
    assert "outside of it" in refused(target, path)


def test_a_commit_that_comes_twice_is_refused(target: StoreRepository, tmp_path: Path) -> None:
    commits = [Commit(A, [NO_ANCESTOR], [put("a", 1)]), Commit(A, [NO_ANCESTOR], [put("b", 1)])]
    path = write_export(tmp_path / "e", commits, [Reference(ReferenceType.BRANCH, "main", A)])
    assert f"has commit {A} twice" in refused(target, path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_operations_without_a_key_are_refused(
    target: StoreRepository, tmp_path: Path, version: int
) -> None:
    path = one_commit(tmp_path / "e", version=version)
    file = path / "commits-00000001"
    stored = message((1, bytes.fromhex(A)), (3, bytes(32)), (6, message((1, 0), (5, b"{}"))))
    file.write_bytes(delimited([stored]))
    assert f"commit {A}: an operation has no key" in refused(target, path)


def test_unknown_operations_and_times_are_refused(target: StoreRepository, tmp_path: Path) -> None:
    path = one_commit(tmp_path / "e", version=1)
    file = path / "commits-00000001"
    unknown = message((1, 7), (2, "a"))
    file.write_bytes(
        delimited([message((1, bytes.fromhex(A)), (3, bytes(32)), (6, unknown), (8, "m"))])
    )
    assert f"commit {A}: a: unknown operation 7" in refused(target, path)
    late = Commit(A, [NO_ANCESTOR], [put("a", 1)], time=2**62)
    main = Reference(ReferenceType.BRANCH, "main", A)
    path = write_export(tmp_path / "late", [late], [main])
    assert f"commit {A}: its time is invalid" in refused(target, path)


def test_damaged_metadata_of_an_export_is_refused(target: StoreRepository, tmp_path: Path) -> None:
    path = one_commit(tmp_path / "e.zip")
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        offset = archive.getinfo("export-metadata").header_offset
    for at in range(offset + 45, offset + 80):
        data = bytearray(whole)
        data[at] ^= 0xFF
        path.write_bytes(data)
        assert "the file export-metadata is damaged" in refused(target, path)
    path.write_bytes(
        whole.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01").replace(
            b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
        )
    )
    assert "is encrypted" in refused(target, path)


def test_large_metadata_is_not_read_into_memory(target: StoreRepository, tmp_path: Path) -> None:
    path = tmp_path / "e.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export-metadata", bytes(1 << 25))
    assert "the file export-metadata is damaged: it is too large" in refused(target, path)
