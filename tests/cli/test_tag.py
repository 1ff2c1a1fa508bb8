def test_tags_are_listed_apart_from_branches(nessie, catalog) -> None:
    assert nessie("tag").rows == [["v1", catalog.head("v1")]]
    assert nessie("tag", "--json").json["references"] == [{"type": "TAG", "name": "v1", "hash": catalog.head("v1")}]
    assert nessie("tag", "-v").rows[0][2:4] == ["", ""]


def test_a_tag_is_made_moved_renamed_and_deleted(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    assert nessie("tag", "v2").out == f"created tag v2 at {catalog.head('main')}\n"
    assert nessie("tag", "v0", "main~2").code == 0
    assert nessie("tag", "-f", "v0", "main").code == 0
    assert catalog.head("v0") == catalog.head("main")
    assert nessie("tag", "-m", "v0", "v3").code == 0
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
    assert "nothing else leads" not in nessie("branch", "-d", "feature").err
    assert "nothing else leads" in nessie("tag", "-d", "keep").err
