"""`nessie demo lake` makes the lake of the guides."""

from __future__ import annotations

import pytest

pytest.importorskip("pyiceberg", reason="the tables are written by PyIceberg")


def test_the_lake_has_two_branches_that_merge(nessie, tmp_path) -> None:
    made = nessie("demo", "lake", "lake")
    assert (made.code, made.out) == (
        0,
        f"made the example lake {tmp_path}/lake: branches main and nightly\n",
    )
    shown = nessie("-C", str(tmp_path / "lake"), "diff", "main...nightly", "--name-status").out
    assert shown == "M\tsales.customers\nM\tsales.orders\nA\tsales.totals\n"
    assert nessie("-C", str(tmp_path / "lake"), "status").out.startswith("on branch main at ")
    assert nessie("-C", str(tmp_path / "lake"), "audit").code == 0
    assert nessie("-C", str(tmp_path / "lake"), "merge", "nightly").code == 0


def test_with_a_conflict_the_merge_is_refused(nessie, tmp_path) -> None:
    assert nessie("demo", "lake", "lake", "--conflict").code == 0
    ran = nessie("-C", str(tmp_path / "lake"), "merge", "nightly")
    ran.expect(3, "sales.customers was changed on main and on nightly")
    assert (
        nessie("-C", str(tmp_path / "lake"), "merge", "nightly", "--theirs", "sales.customers").code
        == 0
    )


@pytest.mark.parametrize("name", [".nessie", "warehouse"])
def test_nothing_that_exists_is_changed(nessie, tmp_path, name) -> None:
    (tmp_path / "lake" / name).mkdir(parents=True)
    ran = nessie("demo", "lake", "lake")
    assert (ran.code, ran.err) == (
        5,
        f"nessie: {tmp_path}/lake/{name} already exists. Hint: name another folder\n",
    )
    assert [path.name for path in (tmp_path / "lake").rglob("*")] == [name]


def test_other_stores_are_left_alone(nessie, catalog, tmp_path) -> None:
    head = catalog.head("main")
    made = nessie("demo", "lake", "lake", "--store", str(tmp_path / ".nessie" / "store.sqlite"))
    assert made.code == 0
    assert catalog.head("main") == head
    assert nessie("-C", str(tmp_path / "lake"), "content", "list", "--json").json["entries"] != []
