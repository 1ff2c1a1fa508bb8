"""The page that compares two revisions, with changed rows; and the changes of a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from nessie_cli.model import CommitMeta, ContentKey, Delete, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.server.runtime.row_request import RowLimits
from tests.cli.rows import write
from tests.server.guarding import guarded
from tests.server.row_server import DIFF, RowServer, guarded_rows, row_server
from tests.server.web.browser import Browser, Page
from tests.server.web.catalogs import keys_in, put
from tests.server.web.hostile import HOSTILE, check_shown_as_text

ROWS = "/ui/compare?from=main&to=dev&rows=db.t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RowServer]:
    """main has the rows 1, 2, 3 and dev the rows 1, 3, 7, 8."""
    with row_server(tmp_path) as server:
        yield server


@pytest.fixture
def sides(repository: Repository) -> Repository:
    """dev creates, updates, deletes and renames a table each; main creates another one."""
    operations = [put(name) for name in ("updated", "deleted", "old", "same")]
    repository.commit("main", operations, CommitMeta("m"))
    head = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    old, updated = (repository.content("main", ContentKey((n,))) for n in ("old", "updated"))
    operations = [
        put("created"),
        put("updated", snapshot=2, content_id=updated.id),
        Delete(ContentKey(("deleted",))),
        Delete(ContentKey(("old",))),
        Put(ContentKey(("new",)), old),
    ]
    repository.commit("dev", operations, CommitMeta("d"))
    repository.commit("main", [put("later")], CommitMeta("m"))
    return repository


def rows_of(page: Page) -> str:
    return page.text.partition("Change ")[2].partition(" The server reads")[0]


def test_a_comparison_has_numbers_then_details(browser: Browser, sides: Repository) -> None:
    page = browser.get("/ui/compare?from=main&to=dev")
    assert "What changed from main to dev" in page.text
    assert "1 created 1 updated 2 deleted 1 renamed" in page.text
    assert "renamed old -> new" in page.text
    assert "snapshot-id 1 2" in page.text
    assert "This server has no warehouse" in page.text
    assert "Changed rows" not in page.text
    assert keys_in(page, "/ui/content")
    for link in page.links:
        if link.startswith(("/ui/content", "/ui/compare")):
            assert browser.get(link).status == 200, link


def test_a_comparison_since_the_merge_base(browser: Browser, sides: Repository) -> None:
    page = browser.get("/ui/compare?from=main&to=dev&base=merge")
    assert "What merging dev into main would change" in page.text
    assert "1 created 1 updated 1 deleted 1 renamed" in page.text
    assert "later" not in page.text
    swapped = browser.get("/ui/compare?from=dev&to=main&base=merge")
    assert "What merging main into dev would change" in swapped.text
    assert "1 created This" in swapped.text
    assert "created later" in swapped.text
    assert "/ui/compare?from=dev&to=main&base=merge" in page.links
    assert "/ui/compare?from=main&to=dev" in page.links
    assert "/ui/merge?source=dev&into=main" in page.links


def test_the_address_of_a_comparison_can_be_fixed(browser: Browser, sides: Repository) -> None:
    ends = [sides.reference(name).hash for name in ("main", "dev")]
    for more in ("", "&base=merge"):
        page = browser.get(f"/ui/compare?from=main&to=dev{more}")
        # The base comes first in the address of a merge.
        [fixed] = [link for link in page.links if all(end in link for end in ends)][:1]
        sides.commit("dev", [put(f"more{len(more)}")], CommitMeta("d"))
        assert "1 updated" in browser.get(fixed).text
        assert f"more{len(more)}" not in browser.get(fixed).text
        ends[1] = sides.reference("dev").hash


def test_equal_revisions_do_not_differ(browser: Browser, sides: Repository) -> None:
    assert "Nothing differs" in browser.get("/ui/compare").text
    assert "Nothing differs" in browser.get("/ui/compare?from=dev&to=dev").text
    sides.create_reference(ReferenceType.BRANCH, "behind", sides.log("main").__next__().parent)
    page = browser.get("/ui/compare?from=main&to=behind&base=merge")
    assert "Nothing differs: main has all commits of behind" in page.text.replace(" :", ":")
    content = sides.content("main", ContentKey(("later",)))
    sides.create_reference(ReferenceType.BRANCH, "twice", sides.reference("main").hash)
    for snapshot in (2, 1):
        again = put("later", snapshot=snapshot, content_id=content.id)
        sides.commit("twice", [again], CommitMeta("p"))
    assert "Nothing differs, though" in browser.get("/ui/compare?from=main&to=twice").text


def test_one_key_can_be_compared(browser: Browser, sides: Repository) -> None:
    page = browser.get("/ui/compare?from=main&to=dev&key=updated")
    assert "1 updated" in page.text
    assert "created" not in page.text


def test_the_pages_of_a_comparison_have_every_change_once(
    browser: Browser, repository: Repository
) -> None:
    repository.commit("main", [put(f"t{n:03}") for n in range(65)], CommitMeta("m"))
    url, changes = "/ui/compare?from=main~1&to=main", []
    while url:
        page = browser.get(url)
        assert "65 created" in page.text
        changes += keys_in(page, "/ui/content")
        url = page.next
    assert changes == [f"t{n:03}" for n in range(65)]


def test_many_changes_are_cut_aloud(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [put(f"t{n:04}") for n in range(1100)], CommitMeta("m"))
    page = browser.get("/ui/compare?from=main~1&to=main")
    assert "1,000 created More than 1,000 contents differ" in page.text
    assert "more than 1,000 changes" in browser.get("/ui/commit?ref=main").text
    narrow = browser.get("/ui/compare?from=main~1&to=main&key=t1099")
    assert "1 created" in narrow.text


# -- metadata and rows -----------------------------------------------------------------------------


def test_metadata_shows_rows_and_files(server: RowServer) -> None:
    browser = Browser(server.client)
    page = browser.get("/ui/compare?from=main&to=dev")
    assert "+4 \N{MINUS SIGN}3 rows" in page.text
    assert "data files by the snapshots of 1 table, with rows" in page.text
    assert "rows 3 4" in page.text
    assert "+3 \N{MINUS SIGN}4 rows" in browser.get("/ui/compare?from=dev&to=main").text
    with server.lake.table("dev") as table, table.update_schema() as update:
        from pyiceberg.types import DoubleType

        update.add_column("extra", DoubleType())
    page = browser.get("/ui/commit?ref=dev")
    assert "column extra double" in page.text


def test_changed_rows_have_their_cells_marked(server: RowServer) -> None:
    browser = Browser(server.client)
    page = browser.get("/ui/compare?from=main&to=dev")
    [link] = [link for link in page.links if "rows=" in link]
    assert link == "/ui/compare?rows=db.t&from=main&to=dev"
    page = browser.get(link)
    assert "3 rows changed" in page.text
    assert rows_of(page) == "id v n deleted 2 x 1 inserted 7 x 1 inserted 8 x 1"
    marks = [e.attributes["class"] for e in page.elements if e.tag in ("ins", "del")]
    assert marks == ["cell-old"] * 3 + ["cell-new"] * 6
    assert "at most 1,024 MiB and 10,000,000 rows within 120 seconds" in page.text
    assert "1 row changed" in browser.get(f"{ROWS}&where={quote('id > 7')}").text
    assert "No rows differ where" in browser.get(f"{ROWS}&where={quote('id > 70')}").text
    assert "No rows differ." in browser.get(ROWS.replace("from=main", "from=dev")).text


def test_rows_since_the_merge_base(server: RowServer) -> None:
    server.lake.append("main", 20)
    browser = Browser(server.client)
    assert "4 rows changed" in browser.get(ROWS).text
    page = browser.get(f"{ROWS}&base=merge")
    assert "3 rows changed" in page.text
    assert "What merging dev into main would change" in page.text


def test_a_new_table_has_only_inserted_rows(server: RowServer) -> None:
    first = list(server.repository.log("main"))[-1].hash
    page = Browser(server.client).get(f"/ui/compare?from={first}&to=main&rows=db.t")
    assert "deleted" not in rows_of(page)
    assert rows_of(page).count("inserted") == 3


def test_updated_rows_show_both_values(server: RowServer) -> None:
    with server.lake.table("main") as table, table.update_schema() as update:
        update.set_identifier_fields("id")
    with server.lake.table("main") as table:
        import pyarrow as pa

        table.upsert(
            pa.table({"id": [2], "v": ["y" * 200], "n": [None]}, schema=table.schema().as_arrow())
        )
    page = Browser(server.client).get("/ui/compare?from=main~1&to=main&rows=db.t")
    assert f"updated 2 x {'y' * 120}… (80 more characters) 1 NULL" in rows_of(page)
    assert "paired by id" in page.text


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("from=main&to=dev&rows=db.nothing", "Could not find content"),
        ("from=main&to=dev&rows=db", "is not an Iceberg table"),
        (f"from=main&to=dev&rows=db.t&where={quote('id >')}", "is not a filter"),
        (f"from=main&to=dev&rows=db.t&where={quote('secret > 1')}", "secret"),
    ],
)
def test_rows_that_cannot_be_read_have_a_reason(server: RowServer, query: str, reason: str) -> None:
    assert reason in Browser(server.client).get(f"/ui/compare?{query}").text


def test_limits_are_reasons(tmp_path: Path) -> None:
    with row_server(tmp_path, limits=RowLimits(rows=2)) as server:
        page = Browser(server.client).get(ROWS)
        assert page.status == 200
        assert "not readable here: the server compares at most 2 rows" in page.text.replace(
            " :", ":"
        )
        assert "and 2 rows within" in page.text
    with row_server(tmp_path / "b", limits=RowLimits(at_once=0)) as server:
        assert Browser(server.client).get(ROWS).status == 503


def test_many_rows_are_cut_aloud(server: RowServer) -> None:
    server.lake.append("dev", *range(100, 300))
    page = Browser(server.client).get(ROWS)
    assert "More than 100 rows changed. The first 100 are shown." in page.text


def test_a_giant_text_that_compresses_well_is_refused(server: RowServer) -> None:
    """The server would have all of it in memory, and decode it while no other thread runs."""
    write(server.lake, "dev", {1: ("a" * 20_000_000, 1)})
    page = Browser(server.client).get(ROWS)
    assert "the server sends at most 8 MiB of rows of a table" in page.text
    server.rows()


def test_a_server_without_warehouses_reads_no_rows(browser: Browser, sides: Repository) -> None:
    page = browser.get("/ui/compare?from=main&to=dev&rows=updated")
    assert page.status == 200
    assert "has no warehouse, so it reads no rows" in page.text


def test_hostile_names_are_text(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [put(HOSTILE)], CommitMeta(HOSTILE))
    for url in ("/ui/compare?from=main~1&to=main", "/ui/commit?ref=main"):
        page = check_shown_as_text(browser, url)
        assert keys_in(page, "/ui/content")


def test_hostile_rows_are_text(server: RowServer) -> None:
    import pyarrow as pa

    with server.lake.table("main") as table:
        rows = {"id": [4], "v": [HOSTILE], "n": [1]}
        table.append(pa.table(rows, schema=table.schema().as_arrow()))
    check_shown_as_text(Browser(server.client), "/ui/compare?from=main~1&to=main&rows=db.t")


# -- commits ---------------------------------------------------------------------------------------


def test_a_branch_and_a_tag_can_be_created_at_a_commit(browser: Browser, sides: Repository) -> None:
    commit = list(sides.log("main"))[1].hash
    page = browser.get(f"/ui/commit?ref={commit}")
    forms = [form for form in page.forms if form["action"] == "/ui/references/create"]
    assert [form["fields"]["type"] for form in forms] == ["branch", "tag"]
    for form in forms:
        name = f"new-{form['fields']['type']}"
        browser.post(form["action"], **form["fields"] | {"name": name})
        assert sides.reference(name).hash == commit


# -- rights ----------------------------------------------------------------------------------------


def test_metadata_and_rows_need_the_right_to_read_rows(tmp_path: Path) -> None:
    with guarded_rows(tmp_path, DIFF) as (guarded_server, _):
        browser = Browser(guarded_server.as_("eve"))
        page = browser.get("/ui/compare?from=main&to=dev")
        assert "1 updated" in page.text
        assert "'READ_ROWS' is not allowed" in page.text
        assert "data files" not in page.text
        rows = browser.get(ROWS)
        assert rows.status == 200
        assert "'READ_ROWS' is not allowed" in rows.text
        assert "<ins" not in browser.answer("GET", ROWS).raw.decode()
        guarded_server.rule(DIFF, "op == 'READ_ROWS' && ref == 'dev'")
        assert "'READ_ROWS' is not allowed" in browser.get(ROWS).text
        guarded_server.rule(DIFF, "op == 'READ_ROWS' && path == 'db.t'")
        assert "3 rows changed" in browser.get(ROWS).text
        assert "rows 3 4" in browser.get("/ui/compare?from=main&to=dev").text


def test_what_is_hidden_is_not_compared(tmp_path: Path) -> None:
    rules = (
        "op in ['VIEW_REFERENCE', 'READ_ENTRIES'] && ref in ['main', 'dev']",
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && path.startsWith('open')",
    )
    with guarded(tmp_path, *rules) as server:
        repository = server.repository
        repository.commit("main", [put("open"), put("closed")], CommitMeta("m"))
        for name in ("dev", "secret"):
            head = repository.reference("main").hash
            repository.create_reference(ReferenceType.BRANCH, name, head)
        operations = [put("open2"), put("closed2"), Delete(ContentKey(("closed",)))]
        repository.commit("dev", operations, CommitMeta("m"))
        browser = Browser(server.as_("eve"))
        for url in ("/ui/compare?from=main&to=dev", "/ui/commit?ref=dev"):
            page = browser.get(url)
            assert "1 created" in page.text
            assert "closed" not in page.text
            assert "secret" not in page.text
        for query in ("from=secret&to=dev", "from=dev&to=secret", "from=secret&to=dev&rows=open"):
            assert browser.get(f"/ui/compare?{query}").status == 403
        hidden, missing = (
            browser.get(f"/ui/compare?from=main&to=dev&rows={key}") for key in ("closed", "nokey")
        )
        assert hidden.text == missing.text.replace("nokey", "closed")
