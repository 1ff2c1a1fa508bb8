"""Gaps of a drop and a registration, kinds of catalogs, servers, and wrong input."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.repository.opening import connect
from tests.cli.exporting.place import PREFIX, TAG, Place, create_view, rest_only, sql_only
from tests.command.in_process import InProcess
from tests.repository.servers import Servers


@sql_only
def test_a_script_needs_an_option_for_gaps(place: Place) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    ran = place.nessie("export", "--to", "other")
    ran.expect(2, "sql cannot replace a table, so 1 table must be dropped", "--allow-gap")
    assert place.rows("db.a") == 3
    assert place.references() == {TAG}


@rest_only
def test_rest_needs_no_option(place: Place) -> None:
    place.create("db.a")
    assert place.nessie("export", "--to", "other").code == 0
    place.append("db.a")
    assert place.nessie("export", "--to", "other").code == 0
    assert place.rows("db.a") == 6


@sql_only
def test_a_terminal_is_asked_about_gaps(place: Place, answering) -> None:
    place.create("db.a")
    place.export()
    place.append("db.a")
    shown = answering("n\n", "export", "--to", "other")
    assert shown.code == 1
    assert "update  db.a" in shown.plain
    assert place.rows("db.a") == 3
    assert answering("y\n", "export", "--to", "other").code == 0
    assert place.rows("db.a") == 6


def test_a_catalog_that_is_down_is_reported_before_anything_is_written(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    for type_, uri in (("rest", "http://127.0.0.1:9"), ("sql", "sqlite:////nowhere/x/y.sqlite")):
        monkeypatch.setenv(f"{PREFIX}TYPE", type_)
        monkeypatch.setenv(f"{PREFIX}URI", uri)
        with ExitStack() as stack:
            place = Place(nessie, tmp_path, {"type": type_}, stack)
            place.here.create_namespace_if_not_exists("db")
            if not place.here.table_exists("db.a"):
                place.create("db.a")
            ran = nessie("export", "--to", "other")
            assert ran.code == 7, ran
            assert len(ran.err.splitlines()) == 1
            assert TAG not in place.references()


def test_an_unknown_catalog_and_the_repository_itself_are_refused(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    nessie("export", "--to", "nowhere").expect(4, "no catalog nowhere")
    nessie("export").expect(2, "--to")
    nessie("export", "--to", "").expect(2)
    monkeypatch.setenv(f"{PREFIX}PY_CATALOG_IMPL", "nessie_cli.iceberg.catalog.NessieCatalog")
    with connect(str(tmp_path / ".nessie" / "store.sqlite")) as repository:
        monkeypatch.setenv(f"{PREFIX}URI", repository.url)
    nessie("export", "--to", "other").expect(2, "other is this repository itself")


def test_an_export_over_a_server(place: Place, tmp_path: Path) -> None:
    place.create("db.orders")
    servers = Servers()
    try:
        with servers.serving(f"sqlite:///{tmp_path}/.nessie/store.sqlite") as address:
            place.export("--store", address)
            assert place.rows("db.orders") == 3
            place.here.rename_table("db.orders", "db.sales")
            place.export("--store", address)
    finally:
        servers.close()
    assert (place.rows("db.sales"), place.rows("db.orders")) == (3, None)
    assert place.references() == {TAG}


def test_an_export_from_a_server_without_extensions_does_not_follow_renames(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nessie_cli.repository.remote.session.ANNOUNCED", "nothing")
    place.create("db.orders")
    servers = Servers()
    try:
        with servers.serving(f"sqlite:///{tmp_path}/.nessie/store.sqlite") as address:
            at = ("--store", address)
            assert place.actions(*at) == {"db.orders": "register"}
            tag = place.repository.reference(TAG)
            assert place.actions(*at) == {}
            assert place.repository.reference(TAG) == tag
            place.append("db.orders")
            assert place.actions(*at) == {"db.orders": "update"}
            assert place.rows("db.orders") == 6
            place.here.rename_table("db.orders", "db.sales")
            actions = place.actions("--prune", *at)
            assert actions == {"db.sales": "register", "db.orders": "drop"}
    finally:
        servers.close()
    assert (place.rows("db.sales"), place.rows("db.orders")) == (6, None)


def test_another_store_of_nessie_is_a_target(
    nessie: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nessie("init").code == 0
    assert nessie("init", "other").code == 0
    implementation = "nessie_cli.iceberg.catalog.NessieCatalog"
    other = {
        "py-catalog-impl": implementation,
        "uri": f"{tmp_path}/other/.nessie/store.sqlite",
        "warehouse": f"{tmp_path}/other",
    }
    for name, value in other.items():
        monkeypatch.setenv(PREFIX + name.upper().replace("-", "_"), value)
    with ExitStack() as stack:
        place = Place(nessie, tmp_path, {"type": "nessie"}, stack)
        monkeypatch.setattr(place, "_other", other)
        place.create("db.a")
        create_view(place)
        assert place.actions() == {"db.a": "register", "db.v": "register"}
        place.append("db.a")
        assert nessie("export", "--to", "other").code == 0, "no gap"
        assert place.rows("db.a") == 6


@rest_only
def test_a_server_that_ignores_overwrite_is_reported_and_needs_the_option(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(place.there)
    real = kind.register_table

    def ignoring(self: Any, name: Any, location: str, overwrite: bool = False) -> Any:
        return real(self, name, location)

    place.create("db.a")
    place.export()
    place.append("db.a")
    with monkeypatch.context() as patched:
        patched.setattr(kind, "register_table", ignoring)
        ran = place.nessie("export", "--to", "other")
        ran.expect(2, "other cannot replace a table, so db.a must be dropped", "--allow-gap")
        assert place.rows("db.a") == 3
        place.export()
    assert place.rows("db.a") == 6
    assert place.references() == {TAG}
