"""Records of imports in listings of settings: short, whatever number of tables they have."""

from __future__ import annotations

import pytest

from nessie_cli.importing.records import ImportedTable, ImportRecords
from nessie_cli.model import ContentKey

SUMMARY = "300 tables of thrift://hive:9083"


@pytest.fixture
def imported(catalog) -> str:
    names = [f"table_{number}" for number in range(300)]
    tables = [
        ImportedTable(
            ("db", name),
            ContentKey(("db", name)),
            f"/lake/{name}",
            f"/{name}.json",
            f"/{name}.json",
        )
        for name in names
    ]
    ImportRecords(catalog.repository).put("hive", "thrift://hive:9083", tables)
    value: str = catalog.repository.config().settings["import.hive"]
    return value


def test_the_list_of_settings_has_a_summary_and_json_the_value(nessie, imported) -> None:
    assert nessie("config", "list", "--repository").rows == [["import.hive", SUMMARY, "repository"]]
    listed = nessie("config", "list", "--repository", "--json").json["settings"]
    assert [setting["value"] for setting in listed] == [imported]
    assert nessie("config", "get", "import.hive", "--repository").out == imported + "\n"


def test_the_reflog_and_undo_have_a_summary(nessie, catalog, imported) -> None:
    records = ImportRecords(catalog.repository)
    records.adopt([ContentKey(("db", "table_1"))])
    assert [row[-1] for row in nessie("reflog", "setting:import.hive").rows] == [
        f"{SUMMARY} -> {SUMMARY}, 1 adopted",
        f"- -> {SUMMARY}",
    ]
    ran = nessie("undo", "setting:import.hive", "--yes")
    assert ran.out == f"restored setting import.hive = {SUMMARY}\n"
    assert f"changed setting import.hive from {SUMMARY}, 1 adopted" not in ran.out
    assert len(ran.err) < 300
    assert catalog.repository.config().settings["import.hive"] == imported
    unset = nessie("config", "unset", "import.hive", "--repository")
    assert unset.out == f"removed: import.hive = {SUMMARY}\n"


def test_only_the_import_writes_records(nessie, imported, catalog) -> None:
    nessie("config", "set", "import.hive", "{}", "--repository").expect(2, "`nessie import`")
    assert catalog.repository.config().settings["import.hive"] == imported


def test_a_damaged_record_and_another_long_value_are_cut(nessie, catalog) -> None:
    catalog.repository.put_setting("import.hive", "x" * 5_000)
    catalog.repository.put_setting("other", "y" * 5_000)
    rows = nessie("config", "list", "--repository").rows
    assert [len(row[1]) for row in rows] == [203, 203]
