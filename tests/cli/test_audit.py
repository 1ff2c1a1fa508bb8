"""`nessie audit` and `nessie stats`, on an intact catalog and on one with broken files."""

from __future__ import annotations

import sys

import pytest

from tests.command.outcome import Outcome
from tests.command.process import run
from tests.iceberg.lake import ROWS, lake_at


@pytest.fixture
def broken(nessie, catalog, tmp_path):
    """Two tables of one metadata file that ends in the middle; where it is."""
    path = tmp_path / "00001-a.metadata.json"
    path.write_text('{"format-version": 2, "table-uu')
    for key in ("db.broken", "db.worse"):
        assert (
            nessie(
                "content",
                "put",
                key,
                "--type",
                "iceberg-table",
                "--metadata-location",
                str(path),
                "-m",
                key,
            ).code
            == 0
        )
    return str(path)


def test_audit_lists_the_findings_and_exits_with_1(nessie, broken) -> None:
    ran = nessie("audit", "--prefix", "db.broken")
    assert ran.code == 1
    assert ran.rows == [
        [
            "METADATA_UNREADABLE",
            "db.broken",
            broken,
            "truncated: the JSON ends in line 1, in the middle of a value",
        ]
    ]
    assert "nessie restore db.broken --at" in ran.err
    assert "1 of 1 content has files, 1 file was checked" in ran.err

    (found,) = nessie("audit", "--prefix", "db.broken", "--json").json["findings"]
    assert found["key"] == {"elements": ["db", "broken"]}
    assert found["advice"].startswith("restore the file, or restore an earlier content")


def test_a_prefix_without_keys_is_an_error_at_any_revision(nessie, broken) -> None:
    ran = nessie("audit", "HEAD~2", "--prefix", "db.broken")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("nessie: no key is db.broken or below it\n")
    as_json = nessie("audit", "HEAD~2", "--prefix", "db.broken", "--jsonl")
    assert (as_json.code, as_json.json["error"]["errorCode"]) == (4, "CONTENT_NOT_FOUND")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("audit nowhere", 4, "nowhere"),
        ("audit --prefix db..x", 2, "an element is empty"),
        ("audit --engine flink", 2, "flink"),
        ("stats nowhere..main", 4, "nowhere"),
        ("stats -n 0", 2, "0"),
    ],
)
def test_invalid_options_are_one_error(nessie, catalog, line: str, code: int, said: str) -> None:
    ran = nessie(*line.split())
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err.splitlines()[0]


def test_statistics_are_a_table_for_each_subject(nessie, broken) -> None:
    ran = nessie("stats", "HEAD~2..HEAD", "-n", "1")
    assert ran.code == 0
    titles, headings, rows = (
        [block.split("\n")[n] for block in ran.out.split("\n\n")] for n in range(3)
    )
    assert titles == ["Authors", "Days", "Most changed keys"]
    assert headings[1].split()[:5] == ["DAY", "COMMITS", "CREATED", "UPDATED", "DELETED"]
    assert rows[1].split()[1:5] == ["2", "2", "0", "0"]
    assert rows[2].split()[:5] == ["db.broken", "iceberg-table", "1", "1", "0"]
    assert "2 commits changed 2 keys, 1 of which is not shown (-n)" in ran.err

    document = nessie("stats", "HEAD~2..HEAD", "--json").json
    assert (document["commits"], document["created"], document["keys"], document["sizes"]) == (
        2,
        2,
        2,
        None,
    )
    assert (
        document["since"]
        == nessie("log", "HEAD~2", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    )


def audited_without(package: str, key: str, folder) -> Outcome:
    """Audits a key in a process that cannot import a package."""
    program = (
        f"import sys; sys.modules['{package}'] = None; from nessie_cli.cli.main import run;"
        " sys.exit(run(sys.argv[1:]))"
    )
    return run("audit", "--prefix", key, cwd=folder, program=(sys.executable, "-c", program))


def test_without_the_library_of_manifest_lists_it_is_one_error_and_no_finding(
    nessie, catalog, tmp_path
) -> None:
    """The table is intact, but an audit without the library cannot check it."""
    with lake_at(catalog.url, tmp_path) as lake:
        lake.catalog("main").create_table("db.sound", ROWS.schema).append(ROWS)
    ran = audited_without("fastavro", "db.sound", tmp_path)
    ran.expect(2, out="")
    assert (
        ran.err
        == "nessie: fastavro is needed to read manifest lists. Hint: `pip install 'nessie-cli[iceberg]'`\n"
    )
    assert nessie("audit", "--prefix", "db.sound").code == 0


def test_without_the_library_of_remote_files_it_is_one_error_and_no_finding(
    nessie, catalog, tmp_path
) -> None:
    put = ("content", "put", "db.far", "--type", "iceberg-table", "-m", "far")
    assert nessie(*put, "--metadata-location", "s3://lake/1.metadata.json").code == 0
    ran = audited_without("pyiceberg", "db.far", tmp_path)
    ran.expect(2, "PyIceberg is needed", out="")
