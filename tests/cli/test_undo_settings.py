"""Changes of settings are in the reflog, and are undone like other operations."""

from __future__ import annotations

from nessie_cli.repository.opening import connect
from tests.cli.conftest import EVA

NAME = "protect.release/*"


def set_to(nessie, value: str) -> None:
    assert nessie("config", "set", NAME, value, "--repository").code == 0


def value_in(catalog) -> str | None:
    with connect(catalog.url) as repository:
        return repository.config().settings.get(NAME)


def test_the_reflog_tells_who_changed_a_setting_and_how(nessie, catalog) -> None:
    set_to(nessie, "no-delete")
    set_to(nessie, "no-rewind")
    assert nessie("config", "unset", NAME, "--repository").code == 0
    entries = nessie("reflog", "--all", "-n", "3", "--json").json["reflogEntries"]
    assert [(one.get("valueBefore"), one.get("valueAfter")) for one in entries] == [
        ("no-rewind", None),
        ("no-delete", "no-rewind"),
        (None, "no-delete"),
    ]
    for entry in entries:
        assert (entry["type"], entry["reference"]) == ("SETTING", f"setting:{NAME}")
        assert (entry["who"], entry["before"], entry["after"]) == (EVA, None, None)
    rows = nessie("reflog", f"setting:{NAME}").rows
    assert [row[-1] for row in rows] == [
        "no-rewind -> -",
        "no-delete -> no-rewind",
        "- -> no-delete",
    ]
    assert "setting:" not in nessie("reflog").out


def test_undo_sets_a_setting_back_and_redoes_it(nessie, catalog) -> None:
    set_to(nessie, "no-delete")
    set_to(nessie, "no-rewind")
    ran = nessie("undo")
    assert (ran.code, ran.out) == (0, f"restored setting {NAME} = no-delete\n")
    assert f"changed setting {NAME} from no-delete to no-rewind, by {EVA}" in ran.err
    assert value_in(catalog) == "no-delete"
    assert nessie("undo").out == f"restored setting {NAME} = no-rewind\n"
    assert nessie("undo", "--json").json == {
        "reference": None,
        "wasApplied": True,
        "before": None,
        "after": None,
        "setting": NAME,
        "valueBefore": "no-rewind",
        "valueAfter": "no-delete",
    }


def test_undo_of_the_first_value_removes_a_setting(nessie, catalog) -> None:
    set_to(nessie, "no-delete")
    assert nessie("undo", "--dry-run").out == f"would remove setting {NAME}\n"
    assert value_in(catalog) == "no-delete"
    assert nessie("undo").out == f"removed setting {NAME}\n"
    assert value_in(catalog) is None
    assert nessie("undo").out == f"restored setting {NAME} = no-delete\n"


def test_a_setting_is_restored_to_its_value_after_an_operation(nessie, catalog) -> None:
    for value in ("no-delete", "no-rewind", "merge-only"):
        set_to(nessie, value)
    first = nessie("reflog", f"setting:{NAME}").rows[-1][0]
    for argv in (["--to", first], [f"setting:{NAME}", "--to", first]):
        assert nessie("undo", *argv).out == f"restored setting {NAME} = no-delete\n"
        assert value_in(catalog) == "no-delete"
        set_to(nessie, "merge-only")
    assert nessie("undo", f"setting:{NAME}").out == f"restored setting {NAME} = no-delete\n"
    ran = nessie("undo", f"setting:{NAME}", "--to", first)
    ran.expect(2, "has this value already")


def test_anothers_change_of_a_setting_needs_yes(nessie, catalog) -> None:
    set_to(nessie, "no-delete")
    with connect(catalog.url, who="etl") as repository:
        repository.put_setting(NAME, "merge-only")
    ran = nessie("undo")
    ran.expect(5, "has moved since")
    ran = nessie("undo", f"setting:{NAME}")
    ran.expect(2, "by etl, not by you")
    assert value_in(catalog) == "merge-only"
    assert nessie("undo", f"setting:{NAME}", "--yes").code == 0
    assert value_in(catalog) == "no-delete"


def test_a_branch_with_the_name_of_a_setting_is_another_thing(nessie, catalog) -> None:
    assert nessie("branch", "retention").code == 0
    assert nessie("config", "set", "retention", "1", "--repository").code in (0, 2)
    with connect(catalog.url) as repository:
        repository.put_setting("retention", "1")
    assert [row[1] for row in nessie("reflog", "retention").rows] == ["retention"]
    assert nessie("branch", "-d", "retention").code == 0
    assert nessie("undo", "retention").code == 0
    assert nessie("fsck").code == 0


def test_a_setting_without_a_reflog_is_reported(nessie, catalog) -> None:
    ran = nessie("undo", "setting:never")
    assert (ran.code, ran.out) == (4, "")
