import apsw
import pytest


def test_a_clean_store_is_one_line(nessie, catalog) -> None:
    ran = nessie("fsck")
    assert (ran.code, len(ran.lines)) == (0, 1)
    assert ran.out.startswith("clean")
    assert nessie("fsck", "--json").json == {"clean": True, "problems": []}


@pytest.fixture
def damaged(nessie, catalog, tmp_path):
    """One object gone from the file."""
    with apsw.Connection(str(tmp_path / ".nessie" / "store.sqlite")) as file:
        tables = [
            name for (name,) in file.execute("select name from sqlite_master where type = 'table'")
        ]
        name = next(name for name in tables if "object" in name)
        file.execute(f"delete from {name} where rowid = (select min(rowid) from {name})")
    file.close()
    return catalog


def test_a_damaged_store_is_a_list_and_exit_code_1(nessie, damaged) -> None:
    ran = nessie("fsck")
    assert ran.code == 1
    assert ran.rows
    assert all(len(row) == 3 for row in ran.rows)
    found = nessie("fsck", "--json")
    assert found.code == 1
    assert found.json["clean"] is False
    assert found.json["problems"][0].keys() == {"kind", "where", "message"}
