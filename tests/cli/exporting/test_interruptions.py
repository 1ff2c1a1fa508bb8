"""`nessie export` that ends early, and the same command again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.exporting.place import BRANCH, TAG, Place, sql_only
from tests.iceberg.lake import ROWS


def interrupted_after(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
    method: str = "register_table",
    *options: str,
) -> None:
    """Exports, and stops like Ctrl-C at a call of the other catalog."""
    kind = type(place.there)
    real: Callable[..., Any] = getattr(kind, method)
    count = 0

    def stopping(self: Any, *args: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count > calls:
            raise KeyboardInterrupt
        return real(self, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(kind, method, stopping)
        place.export(*options, code=130)


def test_an_interrupted_export_is_completed_by_the_same_command(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a", "db.b", "db.c")
    interrupted_after(place, monkeypatch, 1)
    assert place.references() == {BRANCH}
    assert [place.rows(f"db.{name}") for name in "abc"] == [3, None, None]
    place.append("db.a")
    assert place.actions() == {"db.a": "update", "db.b": "register", "db.c": "register"}
    assert [place.rows(f"db.{name}") for name in "abc"] == [6, 3, 3]
    assert place.references() == {TAG}

    place.append("db.a", "db.b", "db.c")
    interrupted_after(place, monkeypatch, 1)
    assert place.references() == {TAG, BRANCH}
    place.append("db.b")
    place.export()
    assert [place.rows(f"db.{name}") for name in "abc"] == [9, 9, 6]
    assert place.references() == {TAG}
    assert place.actions() == {}


def test_drops_of_an_interrupted_export_are_completed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a", "db.b", "db.c", "db.d")
    place.export()
    place.here.drop_table("db.a")
    place.here.drop_table("db.b")
    place.here.rename_table("db.c", "db.renamed")
    interrupted_after(place, monkeypatch, 1, "drop_table", "--prune")
    assert place.rows("db.a") is None
    assert place.references() == {TAG, BRANCH}
    place.append("db.d")
    assert place.actions("--", "db.d") == {"db.b": "drop", "db.c": "drop", "db.d": "update"}
    assert [place.rows(f"db.{name}") for name in ("a", "b", "c")] == [None] * 3
    assert (place.rows("db.renamed"), place.rows("db.d")) == (3, 6)
    assert place.references() == {TAG}


def test_a_table_that_an_interrupted_export_was_to_drop_and_that_changed_is_a_conflict(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a")
    place.export()
    place.here.drop_table("db.a")
    interrupted_after(place, monkeypatch, 0, "drop_table", "--prune")
    place.there.load_table("db.a").append(ROWS)
    assert place.actions(code=3) == {"db.a": "conflict"}
    assert place.rows("db.a") == 6
    assert place.references() == {TAG, BRANCH}, "the tag keeps its files"


@sql_only
def test_an_interruption_between_drop_and_register_registers_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    interrupted_after(place, monkeypatch, 0)
    assert place.rows("db.a") is None, "the gap"
    assert place.actions() == {"db.a": "register"}
    assert place.rows("db.a") == 6


@sql_only
def test_a_table_that_cannot_be_registered_again_keeps_its_former_state(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    kind = type(place.there)
    real = kind.register_table
    failures = [OSError("the disk is full")]

    def failing(self: Any, *args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(self, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "register_table", failing)
        ran = place.export(code=7)
    assert "other cannot be written: the disk is full" in ran.err
    assert place.rows("db.a") == 3
    place.export()
    assert place.rows("db.a") == 6


def test_a_table_that_changes_after_the_plan_stops_the_export(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nessie_cli.exporting import run

    place.create("db.a")
    place.export()
    place.append("db.a")
    real = run.write_files

    def meanwhile(*args: Any) -> None:
        place.there.load_table("db.a").append(ROWS)
        place.there.load_table("db.a").append(ROWS)
        real(*args)

    with monkeypatch.context() as patched:
        patched.setattr(run, "write_files", meanwhile)
        ran = place.export(code=3)
    assert "db.a has changed in other since the plan" in ran.err
    assert place.rows("db.a") == 9
    assert place.actions(code=3) == {"db.a": "conflict"}
