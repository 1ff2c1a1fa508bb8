import pytest

from tests.cli.conftest import Catalog
from tests.command.in_process import InProcess
from tests.repository.servers import Servers


def test_tags_are_listed_apart_from_branches(nessie, catalog) -> None:
    assert nessie("tag").rows == [["v1", catalog.head("v1")[:12]]]
    assert nessie("tag", "--json").json["references"] == [
        {"type": "TAG", "name": "v1", "hash": catalog.head("v1")}
    ]


def test_the_long_list_has_the_time_the_author_and_the_message(nessie, catalog) -> None:
    name, hash_, time, author, message = nessie("tag", "-v").rows[0]
    commit = nessie("log", "-n", "1", "v1", "--json").json["logEntries"][0]["commitMeta"]
    assert (name, hash_) == ("v1", catalog.head("v1")[:12])
    assert author == commit["authors"][0].partition(" <")[0]
    assert time.endswith(" ago") or time == "in the future"
    assert message == commit["message"].split("\n")[0]
    assert nessie("tag", "-x").rows == nessie("tag", "-v").rows
    assert nessie("tag", "-l", "v1", "-v").rows == nessie("tag", "-v").rows


def test_a_tag_is_created_moved_renamed_and_deleted(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    assert nessie("tag", "v2").out == f"created tag v2 at {catalog.head('main')[:12]}\n"
    assert nessie("tag", "v0", "main~2").code == 0
    assert nessie("tag", "-f", "v0", "main").code == 0
    assert catalog.head("v0") == catalog.head("main")
    assert nessie("tag", "--move", "v0", "v3").code == 0
    assert nessie("tag", "-d", "v3", "v2", "--yes").code == 0
    assert [row[0] for row in nessie("tag").rows] == ["v1"]


def test_names_are_shared_with_branches(nessie, catalog) -> None:
    assert nessie("tag", "main").code == 5
    nessie("branch", "feature")
    assert "is a branch, not a tag; use `nessie branch`" in nessie("tag", "-d", "v1", "feature").err
    assert len(nessie("tag").rows) == 1
    assert nessie("tag", "-l", "main").code == 2


def test_a_commit_stays_reachable_by_its_tag(nessie, catalog) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    nessie("tag", "keep", "feature")
    assert "no other reference reaches" not in nessie("branch", "-d", "feature").err
    assert "no other reference reaches" in nessie("tag", "-d", "keep").err


def test_a_tag_has_a_message(nessie: InProcess, catalog: Catalog) -> None:
    head = catalog.head("main")
    assert (
        nessie("tag", "-a", "v2", "-m", "Figures of March\n\nchecked").out
        == f"created tag v2 at {head[:12]}\n"
    )
    assert [row[-1] for row in nessie("tag", "-v").rows] == ["tables", "Figures of March"]
    v1 = {"type": "TAG", "name": "v1", "hash": catalog.head("v1")}
    v2 = {"type": "TAG", "name": "v2", "hash": head, "message": "Figures of March\n\nchecked"}
    assert nessie("tag", "--json").json["references"] == [v1, v2]
    assert nessie("tag", "-l", "v2", "--json").json == {"reference": v2}
    assert nessie("tag", "--move", "v2", "r2", "--json").json == {"reference": v2 | {"name": "r2"}}
    assert nessie("tag", "-d", "r2", "--yes").code == 0
    assert nessie("undo", "r2", "--yes").code == 0
    assert nessie("tag", "-l", "r2", "--json").json == {"reference": v2 | {"name": "r2"}}


def test_a_dry_run_shows_the_message_and_creates_nothing(
    nessie: InProcess, catalog: Catalog
) -> None:
    wanted = {"type": "TAG", "name": "v2", "hash": catalog.head("main"), "message": "two"}
    assert nessie("tag", "v2", "-m", "two", "--dry-run", "--json").json == {"reference": wanted}
    assert len(nessie("tag").rows) == 1


def test_the_message_of_a_new_tag_may_be_the_name_of_another(
    nessie: InProcess, catalog: Catalog
) -> None:
    assert nessie("tag", "-m", "v1", "main").code == 5
    assert nessie("tag", "-m", "v1", "v2").code == 0
    assert nessie("tag", "-l", "v2", "--json").json["reference"]["message"] == "v1"
    assert catalog.head("v1")


@pytest.mark.parametrize(
    "words", [["-d", "v1"], ["-f", "v1", "main"], ["--move", "v1", "v2"], ["-l"], []]
)
def test_only_a_new_tag_takes_a_message(
    nessie: InProcess, catalog: Catalog, words: list[str]
) -> None:
    assert nessie("tag", "-m", "a message", *words).code == 2
    assert nessie("tag").rows == [["v1", catalog.head("v1")[:12]]]


def test_a_message_is_not_empty(nessie: InProcess, catalog: Catalog) -> None:
    assert nessie("tag", "v2", "-m", " ").code == 2
    assert nessie("tag").rows == [["v1", catalog.head("v1")[:12]]]


def test_a_backup_keeps_messages(nessie: InProcess, catalog: Catalog) -> None:
    nessie("tag", "v2", "-m", "two")
    assert nessie("store", "backup", "lake.backup").code == 0
    assert nessie("store", "load", "lake.backup", "--store", "sqlite:///copy.sqlite").code == 0
    listed = nessie("--store", "sqlite:///copy.sqlite", "tag", "-l", "v2", "--json")
    assert listed.json["reference"]["message"] == "two"


def test_messages_over_a_server(nessie: InProcess, catalog: Catalog) -> None:
    servers = Servers()
    try:
        with servers.serving(f"sqlite:///{catalog.url}") as address:
            assert nessie("--store", address, "tag", "v2", "main", "-m", "two").code == 0
            listed = nessie("--store", address, "tag", "--json").json["references"]
    finally:
        servers.close()
    assert [tag.get("message") for tag in listed] == [None, "two"]
    assert [row[-1] for row in nessie("tag", "-v").rows] == ["tables", "two"]
