"""The page of one content."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    IcebergView,
    Put,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.server.http import messages
from nessie_cli.server.runtime.threads import PACKED_ON_LOOP
from tests.server.client import Client
from tests.server.guarding import guarded
from tests.server.iceberg_rest.lake import lake
from tests.server.row_server import DIFF, KEY, RowServer, guarded_rows, row_server
from tests.server.web.browser import Browser
from tests.server.web.catalogs import namespace, put
from tests.server.web.hostile import HOSTILE, check_shown_as_text

PAGE = "/ui/content?ref=main&key=db.t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RowServer]:
    with row_server(tmp_path) as server:
        yield server


def test_a_table_shows_its_metadata(server: RowServer) -> None:
    for _ in range(2):
        server.lake.append("main", 4)
    page = Browser(server.client).get(PAGE)
    assert page.status == 200
    assert server.table().metadata_location in page.text
    assert "id long required v string n int" in page.text
    assert "Partitioned by nothing" in page.text
    assert "append 5 3" in page.text
    [line] = [each for each in page.elements if each.tag == "polyline"]
    assert len(line.attributes["points"].split()) == 5
    assert len([each for each in page.elements if each.tag == "circle"]) == 3


def test_a_table_shows_its_history_and_branches(server: RowServer) -> None:
    page = Browser(server.client).get(PAGE)
    assert "created" in page.text
    assert "etl" in page.text
    assert "1 of 2 has this state" in page.text
    assert "dev another state" in page.text
    assert f"/ui/compare?from=main&to=dev&key={KEY}" in page.links


def test_a_server_without_warehouses_says_why_there_is_no_metadata(
    browser: Browser, repository: Repository
) -> None:
    repository.commit("main", [put("t")], CommitMeta("m"))
    page = browser.get("/ui/content?key=t")
    assert "not readable here: this server has no warehouse" in page.text.replace(": ", ": ")
    assert "file:/t-1.json" in page.text


@pytest.mark.parametrize("place", ["file:///etc/hostname", "s3://other/file", "http://localhost/x"])
def test_no_file_outside_of_a_warehouse_is_read(server: RowServer, place: str) -> None:
    server.move("main", place)
    page = Browser(server.client).get(PAGE)
    assert page.status == 200
    assert "not in a warehouse of this server" in page.text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        (b'{"format-version": 2}', "not readable here"),
        (b'{"format-version": 2, "location": 1, "schemas": 7}', "not readable here"),
        (b"{" * 1000, "not readable here"),
        (b" " * (17 << 20), "at most 16 MiB"),
        (None, "no such file"),
    ],
)
def test_a_damaged_file_is_a_reason(server: RowServer, text: bytes | None, reason: str) -> None:
    place = server.lake.folder / "bad.metadata.json"
    if text is not None:
        place.write_bytes(text)
    server.move("main", f"file://{place}")
    for url in (PAGE, "/ui/compare?from=dev&to=main", "/ui/commit?ref=main"):
        page = Browser(server.client).get(url)
        assert page.status == 200
        assert reason in page.text


def test_damaged_snapshots_are_a_reason(server: RowServer) -> None:
    import json

    from tests.server.row_files import path_of

    table = server.table()
    document = json.loads(path_of(table.metadata_location).read_bytes())
    for value in ("x", 10**40, None, {}):
        document["snapshots"][0]["timestamp-ms"] = value
        place = server.lake.folder / "odd.metadata.json"
        place.write_text(json.dumps(document))
        server.move("main", f"file://{place}")
        page = Browser(server.client).get(PAGE)
        assert page.status == 200
        assert "not readable here" in page.text


def test_a_view_shows_its_sql(tmp_path: Path) -> None:
    with lake(tmp_path) as server:
        server.main.namespace("db").expect(200)
        server.main.view("db", "v").expect(200)
        page = Browser(server.client).get("/ui/content?key=db.v")
        assert "SQL spark select 1" in page.text
        assert "Snapshots" not in page.text


def test_old_views_have_their_sql_in_the_content(browser: Browser, repository: Repository) -> None:
    view = IcebergView(
        id=None, metadata_location="x", version_id=1, schema_id=1, sql_text="select 7\nfrom t",
        dialect="hive",
    )  # fmt: skip
    repository.commit("main", [Put(ContentKey(("v",)), view)], CommitMeta("m"))
    assert "SQL select 7 from t" in browser.get("/ui/content?key=v").text


def test_a_namespace_shows_its_properties(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [namespace("db", owner="ann")], CommitMeta("m"))
    page = browser.get("/ui/content?key=db")
    assert "properties.owner ann" in page.text
    assert "/ui/catalog?ref=main&key=db" in page.links


def test_the_pages_of_a_history_have_every_commit_once(
    browser: Browser, repository: Repository
) -> None:
    """Across two renames."""
    repository.commit("main", [put("a")], CommitMeta("first"))
    names = iter("bc")
    name = "a"
    for number in range(2, 60):
        table = repository.content("main", ContentKey((name,)))
        if number in (19, 42):
            new = next(names)
            operations = [Delete(ContentKey((name,))), Put(ContentKey((new,)), table)]
            repository.commit("main", operations, CommitMeta("rename"))
            name = new
            continue
        again = put(name, snapshot=number, content_id=table.id)
        repository.commit("main", [again], CommitMeta(f"n{number}"))
    url, commits = "/ui/content?ref=main&key=c", []
    while url:
        page = browser.get(url)
        commits += [link for link in page.links if link.startswith("/ui/commit?")]
        url = page.next.partition("#")[0]
    assert commits == [f"/ui/commit?ref={entry.hash}" for entry in repository.log("main")]


def test_many_branches_are_cut_aloud(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [put("t")], CommitMeta("m"))
    head = repository.reference("main").hash
    for number in range(120):
        repository.create_reference(ReferenceType.BRANCH, f"b{number:03}", head)
    page = browser.get("/ui/content?key=t")
    assert "Of 121 branches, 100 were compared. 100 of 100 have this state." in page.text


def test_a_missing_key_is_not_found(browser: Browser, repository: Repository) -> None:
    page = browser.get("/ui/content?key=nothing")
    assert page.status == 404
    assert "nothing" in page.text
    assert browser.get("/ui/content").status == 400


def test_hostile_texts_are_text(browser: Browser, repository: Repository) -> None:
    content = namespace(HOSTILE, **{HOSTILE: HOSTILE})
    repository.commit("main", [content], CommitMeta(HOSTILE, authors=(HOSTILE,)))
    head = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    key = quote(f".{HOSTILE.replace('*', '**').replace('.', '*.')}")
    page = check_shown_as_text(browser, f"/ui/content?key={key}")
    assert page.text.count("alert(1)") >= 5


def test_hostile_metadata_is_text(tmp_path: Path) -> None:
    from tests.server.iceberg_rest.lake import VIEW_VERSION

    with lake(tmp_path) as server:
        server.main.namespace("db").expect(200)
        sql = [{"type": "sql", "sql": HOSTILE, "dialect": HOSTILE}]
        version = VIEW_VERSION | {"representations": sql}
        server.main.view(
            "db", "v", **{"view-version": version, "properties": {HOSTILE: HOSTILE}}
        ).expect(200)
        server.main.create("db", "t", properties={HOSTILE: HOSTILE}).expect(200)
        browser = Browser(server.client)
        for name in ("v", "t"):
            check_shown_as_text(browser, f"/ui/content?key=db.{name}")
        check_shown_as_text(browser, "/ui/commit?ref=main")


# -- rights ----------------------------------------------------------------------------------------


def test_metadata_needs_the_right_to_read_rows(tmp_path: Path) -> None:
    with guarded_rows(tmp_path, DIFF) as (guarded_server, server):
        browser = Browser(guarded_server.as_("eve"))
        page = browser.get(PAGE)
        assert page.status == 200
        assert "'READ_ROWS' is not allowed" in page.text
        assert "id long" not in page.text
        assert "The history is not visible to you" in page.text
        guarded_server.rule(DIFF, "op == 'READ_ROWS' && path == 'db.t' && ref == 'main'")
        assert "id long" in browser.get(PAGE).text
        other = browser.get(PAGE.replace("main", "dev"))
        assert "'READ_ROWS' is not allowed" in other.text
        assert server.table().metadata_location in page.text


def test_a_hidden_key_or_branch_does_not_exist(tmp_path: Path) -> None:
    rules = (
        "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'LIST_COMMIT_LOG'] && ref == 'main'",
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && path.startsWith('open')",
    )
    with guarded(tmp_path, *rules) as server:
        operations = [put("open"), put("closed")]
        server.repository.commit("main", operations, CommitMeta("m"))
        head = server.repository.reference("main").hash
        server.repository.create_reference(ReferenceType.BRANCH, "secret", head)
        browser = Browser(server.as_("eve"))
        page = browser.get("/ui/content?key=open")
        assert "1 of 1 has this state" in page.text
        assert "secret" not in page.text
        hidden, missing = (browser.get(f"/ui/content?key={key}") for key in ("closed", "nokey"))
        assert hidden.status == missing.status == 403
        assert hidden.text == missing.text.replace("nokey", "closed")
        assert browser.get("/ui/content?key=open&ref=secret").status == 403


def test_guarded_warehouses_are_readable(tmp_path: Path) -> None:
    with row_server(tmp_path, warehouse={"choose_locations": False}) as server:
        assert "id long" in Browser(server.client).get(PAGE).text


def test_a_file_of_another_warehouse_is_read_with_its_settings(tmp_path: Path) -> None:
    places = [f"file://{tmp_path}/other", f"file://{tmp_path}/lake"]
    warehouses = Warehouses(
        [
            Warehouse(name=f"w{n}", location=place, allowed=(place,))
            for n, place in enumerate(places)
        ]
    )
    with row_server(tmp_path, warehouses=warehouses) as server:
        assert "id long" in Browser(server.client).get(PAGE).text
        assert isinstance(server.table(), IcebergTable)


def test_large_contents_are_cut_aloud(browser: Browser, repository: Repository) -> None:
    texts = {f"p{number:04}": "x" * 3_000 for number in range(400)}
    repository.commit("main", [namespace("db", **texts)], CommitMeta("m"))
    for url in ("/ui/content?key=db", "/ui/commit?ref=main", "/ui/compare?from=main~1&to=main"):
        answer = browser.answer("GET", url)
        assert answer.status == 200
        assert "(2,000 more characters)" in answer.raw.decode()
        assert len(answer.raw) < 500_000
    assert "The first 100 of 403 are shown" in browser.get("/ui/content?key=db").text
    assert "102 more differences not shown" in browser.get("/ui/commit?ref=main").text


def test_long_texts_of_commits_are_cut_aloud(browser: Browser, repository: Repository) -> None:
    """One page of long messages would be 200 MB of HTML, made while no other thread runs."""
    for number in range(12):
        meta = CommitMeta("<" * 900_000, authors=("<" * 100_000,))
        repository.commit("main", [namespace(f"n{number}")], meta)
    pages = (
        "history",
        "history?author=%3C",
        "commit",
        "branches",
        "catalog?changes=1",
        "content?key=n1",
        "reflog",
    )
    for page in pages:
        answer = browser.answer("GET", f"/ui/{page}")
        assert answer.status == 200
        assert "more characters)" in answer.raw.decode(), page
        assert len(answer.raw) < 400_000, page


def test_the_event_loop_does_not_compress_large_pages(
    client: Client, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def compress(data: bytes, level: int) -> bytes:
        threads.append((len(data) > PACKED_ON_LOOP, threading.current_thread().name))
        return gzip.compress(data, level)

    monkeypatch.setattr(messages, "gzip", SimpleNamespace(compress=compress))
    repository.commit("main", [namespace("db")], CommitMeta("<" * 15_000))
    for page in ("commit?ref=main", "history"):
        answer = client.get(f"/ui/{page}", **{"accept-encoding": "gzip"})
        assert b"</html>" in gzip.decompress(answer.raw)
    [(is_large, name), (is_other_large, _)] = threads
    assert is_large
    assert not is_other_large
    assert name == "packer-0"
