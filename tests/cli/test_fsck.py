import re
import shlex

import apsw
import pytest

from tests.repository.test_duplicate_ids import crafted
from tests.repository.vocabulary import key


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
    problem = r"[A-Z_]+ +\S+  \S.*"
    assert ran.lines
    assert all(re.fullmatch(problem, line) for line in ran.lines)
    found = nessie("fsck", "--json")
    assert found.code == 1
    assert found.json["clean"] is False
    assert found.json["problems"][0].keys() == {"kind", "where", "message"}


@pytest.mark.parametrize("name", ["db.items", "-x y"])
def test_the_printed_command_repairs_a_duplicate_content_id(nessie, catalog, name) -> None:
    """History keeps the duplicate."""
    hash_ = crafted(catalog.repository, "main", {"a": 0, name: 0})
    assert nessie("branch", "dev", "main").code == 0
    catalog.drop("main", "a")
    before = catalog.repository.content("dev", key("a"))

    ran = nessie("fsck")
    assert ran.code == 1
    assert [line.split()[:2] for line in ran.lines] == [
        ["DUPLICATE_ID", hash_],
        ["DUPLICATE_ID", "dev"],
    ]
    assert "under 2 keys: " in ran.lines[1]
    command = shlex.split(ran.lines[1].partition("`")[2].partition("`")[0])
    assert nessie(*command[1:]).code == 0

    assert [line.split()[1] for line in nessie("fsck").lines] == [hash_]
    contents = catalog.repository.contents("dev", [key("a"), key(name)])
    assert len({content.id for content in contents.values()}) == 2
    assert {content.with_id(before.id) for content in contents.values()} == {before}
    assert nessie("fsck", "--json").json["problems"][0]["kind"] == "DUPLICATE_ID"
