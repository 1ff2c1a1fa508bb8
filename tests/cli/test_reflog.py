import pytest

from nessie_cli.model import NO_ANCESTOR
from nessie_cli.store.opening import open_store


def test_moves_are_newest_first_with_the_new_hash_and_the_message(nessie, catalog) -> None:
    ran = nessie("reflog")
    assert ran.code == 0
    assert [row[1] for row in ran.rows] == ["main"] * 3
    assert ran.rows[0][2] == catalog.head("main")[:12]
    assert ran.rows[0][4:] == ["etl", "commit", "tables"]
    assert ran.rows[-1][2] == NO_ANCESTOR[:12]
    assert nessie("reflog", "main", "-n", "1").rows == ran.rows[:1]


def test_the_reflog_keeps_deleted_references(nessie, catalog) -> None:
    catalog.branch("gone")
    nessie("branch", "-d", "gone")
    assert [row[5] for row in nessie("reflog", "gone").rows] == ["delete", "create"]
    assert nessie("reflog", "gone").rows[0][2] == "-"
    assert nessie("reflog", "gone").rows[0][4] == "Eva"


def test_all_shows_every_reference(nessie, catalog) -> None:
    assert {row[1] for row in nessie("reflog", "--all").rows} == {"main", "v1"}
    numbers = [int(row[0]) for row in nessie("reflog", "--all").rows]
    assert numbers == sorted(numbers, reverse=True)


def test_json_holds_every_field(nessie, catalog) -> None:
    found = nessie("reflog", "v1", "--json").json["reflogEntries"]
    assert [
        (entry["reference"], entry["type"], entry["before"], entry["after"]) for entry in found
    ] == [("v1", "TAG", None, catalog.head("v1"))]
    assert len(nessie("reflog", "--jsonl").lines) == 3


@pytest.mark.parametrize(("limit", "more"), [(0, True), (2, True), (3, False), (4, False)])
def test_a_limit_says_whether_there_is_more(nessie, catalog, limit, more) -> None:
    found = nessie("reflog", "main", "-n", str(limit), "--json").json
    assert (len(found["reflogEntries"]), found["hasMore"]) == (min(limit, 3), more)


@pytest.mark.parametrize(
    ("argv", "code"), [(["never"], 4), ([""], 2), (["main", "--all"], 2), (["-n", "x"], 2)]
)
def test_wrong_input(nessie, catalog, argv, code) -> None:
    ran = nessie("reflog", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert nessie("reflog", *argv, "--json").json["error"]


@pytest.mark.parametrize(
    "line",
    [
        "reflog",
        "undo",
        "branch -d",
        "branch -l",
        "branch -f REF main",
        "branch -m REF x",
        "merge main --into",
    ],
)
def test_an_author_that_is_not_text_is_shown_as_unknown(nessie, catalog, line) -> None:
    words = line.replace("REF", "R\udcff").split() if "REF" in line else [*line.split(), "R\udcff"]
    ran = nessie(*words)
    assert (ran.code, ran.out, ran.err.count("nessie: ")) == (4, "", 1), ran


def test_a_limit_of_zero_is_valid(nessie, catalog) -> None:
    assert nessie("reflog", "-n", "0") == (0, "", "")


def test_a_reference_stays_when_its_operations_have_expired(nessie, catalog) -> None:
    store = open_store(catalog.repository.url)
    catalog.branch("last")
    with store.maintenance() as maintenance:
        maintenance.expire(2**62, 2**62, maintenance.last_move())
    store.close()
    for argv in (["reflog"], ["reflog", "main"]):
        ran = nessie(*argv)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    ran = nessie("undo", "main")
    assert ran.code == 2
    assert "there is nothing to undo: the operations on 'main' have expired" in ran.err
    for argv in (["reflog", "none"], ["undo", "none"]):
        ran = nessie(*argv)
        assert ran.code == 4
        assert "no reference 'none' exists, and the reflog has no operation on one" in ran.err
