"""`nessie content put` with metadata files: the newest file, and ids that are not in it."""

import json
from pathlib import Path

import pytest

from tests.command.in_process import InProcess

METADATA = json.loads((Path(__file__).parents[1] / "manual/table-metadata.json").read_text())
LARGE = 4358109269123456789
"""A snapshot id that does not survive as a double: jq 1.6 rounds it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table's folder with three versions of its metadata."""
    metadata = METADATA | {
        "current-snapshot-id": LARGE,
        "snapshots": [METADATA["snapshots"][0] | {"snapshot-id": LARGE}],
        "refs": {},
    }
    place = tmp_path / "t" / "metadata"
    place.mkdir(parents=True)
    for name in ("00001-a.metadata.json", "00002-b.metadata.json", "00010-c.metadata.json"):
        (place / name).write_text(json.dumps(metadata))
    return place


def location(nessie: InProcess) -> str:
    found = nessie("content", "show", "t", "--raw").json["metadataLocation"]
    return Path(found).name


def test_the_highest_version_of_a_folder_is_the_newest(nessie, catalog, folder) -> None:
    ran = nessie("content", "put", "t", "--from-metadata", str(folder.parent), "-m", "t")
    ran.expect(0, "00010-c.metadata.json")
    assert location(nessie) == "00010-c.metadata.json"


def test_a_uuid_is_no_version_even_if_it_begins_with_digits(nessie, catalog, folder) -> None:
    # Iceberg's Hadoop catalog writes such a file before it commits.
    uncommitted = folder / "12345678-9abc-4def-8123-456789abcdef.metadata.json"
    uncommitted.write_bytes((folder / "00010-c.metadata.json").read_bytes())
    assert nessie("content", "put", "t", "--from-metadata", str(folder), "-m", "t").code == 0
    assert location(nessie) == "00010-c.metadata.json"


def test_a_version_hint_takes_precedence_over_the_highest_version(nessie, catalog, folder) -> None:
    (folder / "version-hint.text").write_text("2\n")
    assert nessie("content", "put", "t", "--from-metadata", str(folder), "-m", "t").code == 0
    assert location(nessie) == "00002-b.metadata.json"


def test_a_version_that_follows_the_hint_is_newer(nessie, catalog, folder) -> None:
    (folder / "version-hint.text").write_text("1\n")
    assert nessie("content", "put", "t", "--from-metadata", str(folder), "-m", "t").code == 0
    assert location(nessie) == "00002-b.metadata.json"


@pytest.mark.parametrize(
    "hint", ["00001-a", "00001-a.metadata.json", "", "\n2", "-1", "99999999999", "two", "\xb2"]
)
def test_a_version_hint_that_is_no_number_counts_as_none(nessie, catalog, folder, hint) -> None:
    (folder / "version-hint.text").write_text(hint)
    assert nessie("content", "put", "t", "--from-metadata", str(folder), "-m", "t").code == 0
    assert location(nessie) == "00010-c.metadata.json"


def test_only_the_first_line_of_a_version_hint_counts(nessie, catalog, folder) -> None:
    (folder / "version-hint.text").write_text("2 \n10\n")
    assert nessie("content", "put", "t", "--from-metadata", str(folder), "-m", "t").code == 0
    assert location(nessie) == "00002-b.metadata.json"


def test_a_version_hint_without_its_file_is_refused(nessie, catalog, folder) -> None:
    (folder / "version-hint.text").write_text("7")
    ran = nessie("content", "put", "t", "--from-metadata", str(folder))
    ran.expect(2, "version-hint.text names version 7")


def test_metadata_that_iceberg_refuses_is_refused_with_its_place(nessie, catalog, folder) -> None:
    file = folder / "00011-d.metadata.json"
    metadata = json.loads((folder / "00010-c.metadata.json").read_text())
    del metadata["schemas"][0]["fields"][0]["required"]
    file.write_text(json.dumps(metadata))
    ran = nessie("content", "put", "t", "--from-metadata", str(folder))
    ran.expect(2, str(file))
    assert "schemas[0].fields[0].required is missing" in ran.err
    assert nessie("status", "--porcelain").out == ""


def test_two_files_of_one_version_are_refused(nessie, catalog, folder) -> None:
    (folder / "00010-d.metadata.json").write_text("{}")
    ran = nessie("content", "put", "t", "--from-metadata", str(folder))
    ran.expect(2, "00010-c", "00010-d")


def test_a_folder_without_metadata_is_refused(nessie, catalog, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    assert nessie("content", "put", "t", "--from-metadata", str(tmp_path / "empty")).code == 2


def test_a_rounded_snapshot_id_is_refused_with_both_numbers(
    nessie, catalog, folder, tmp_path
) -> None:
    nessie("content", "put", "t", "--from-metadata", str(folder.parent), "-m", "t")
    content = nessie("content", "show", "t", "--raw").json
    file = tmp_path / "t.json"
    file.write_text(json.dumps(content | {"snapshotId": int(float(LARGE)) + 1024}))

    ran = nessie("content", "put", "t", "--content", str(file))
    ran.expect(2, str(LARGE), str(int(float(LARGE)) + 1024))
    assert nessie("content", "put", "t", "--schema-id", "77").code == 2
    file.write_text(json.dumps(content))
    assert nessie("content", "put", "t", "--content", str(file)).out == "nothing to stage for t\n"


def test_a_table_without_a_current_snapshot_is_exempt(nessie, catalog, folder) -> None:
    (folder / "00010-c.metadata.json").write_text(
        json.dumps(METADATA | {"current-snapshot-id": -1, "snapshots": [], "refs": {}})
    )
    words = (
        "--type",
        "iceberg-table",
        "--metadata-location",
        str(folder / "00010-c.metadata.json"),
        "--snapshot-id",
        "5",
    )
    assert nessie("content", "put", "t", *words).code == 0
