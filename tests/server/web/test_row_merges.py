"""Merges of rows on the page of a merge: choices, rights, limits, and what is written."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from nessie_cli.model import CommitMeta
from nessie_cli.server.pages.row_choices import MOST_SHOWN
from tests.cli.lake import Lake
from tests.cli.rows import read, write
from tests.server.row_server import DIFF, LIMITS, RowServer, guarded_rows, lake_server
from tests.server.web import catalogs
from tests.server.web.browser import Browser, Page
from tests.server.web.catalogs import decisions_of

MERGE = "/ui/merge?source=dev&into=main"
HTML, CODES = "<script>alert(1)</script>", "\x1b[31mred"
COUNT = MOST_SHOWN + 10


def url_of(fields: dict[str, str]) -> str:
    return f"/ui/merge?{urlencode(fields)}"


def choices_of(page: Page) -> list[str]:
    """Returns the names of the fields with decisions about rows, in order."""
    names = (each.attributes.get("name", "") for each in page.elements)
    return list(dict.fromkeys(name for name in names if name.startswith("row.")))


def collide(lake: Lake) -> None:
    """Both sides change row 1, and theirs deletes row 2, which ours changes."""
    write(lake, "main", {1: ("ours", 1), 2: ("ours", 1), 3: ("x", 1)})
    write(lake, "dev", {1: ("theirs", 2), 3: ("theirs", 1), 4: ("new", 1)})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RowServer]:
    with lake_server(tmp_path, key=["id"]) as served:
        yield served


def test_rows_are_chosen_decided_and_merged(server: RowServer) -> None:
    lake, browser = server.lake, Browser(server.client)
    for ref in ("main", "dev"):
        with lake.table(ref) as table, table.update_schema() as update:
            update.rename_column("v", HTML)
    rows = dict.fromkeys(range(1, COUNT + 1), (HTML, 1))
    write_html(lake, "main", {**rows, COUNT + 1: ("ours", 1)})
    write_html(lake, "dev", dict.fromkeys(rows, (CODES, 1)))
    before = lake.files()
    page = browser.get(MERGE)
    [table] = decisions_of(page)
    assert "Merge the rows: reads " in page.text
    assert "bytes of data files, and the merge writes up to about" in page.text
    assert not choices_of(page)

    # The rows are read once that is chosen. A decision about a row without a conflict is refused.
    digest = table.partition(".")[2]
    rest, wrong = f"rest.{digest}", f"row.{digest}.0123456789abcdef"
    page = browser.post("/ui/merge", **page.form("/ui/merge") | {table: "rows", wrong: "ours"})
    assert page.status == 409
    assert "1 decision about rows no longer applies" in page.text
    assert len(choices_of(page)) == MOST_SHOWN
    assert "10 more are in conflict" in page.text
    assert f"rows are in conflict ({COUNT})" in page.text
    assert "1 conflict is left to decide" in page.text
    assert f"id : 1 {HTML} x {HTML} \\x1b[31mred" in page.text
    assert f"id : 4 {HTML} no row {HTML} \\x1b[31mred" in page.text
    assert not [each for each in page.elements if each.tag == "script" and not each.attributes]

    # The branch moves: nothing is merged, and the choices stay.
    first = choices_of(page)[0]
    chosen = {first: "ours", rest: "theirs"}
    server.repository.commit("main", [catalogs.put("late")], CommitMeta("late"))
    page = browser.post("/ui/merge", **page.form("/ui/merge") | chosen)
    assert page.status == 409
    assert "Nothing was merged. main has moved" in page.text
    assert lake.files() == before
    fields = page.form("/ui/merge")
    assert (fields[table], fields[first], fields[rest]) == ("rows", "ours", "theirs")
    assert (
        f"rows were merged by their keys: 0 inserted, {COUNT - 1} updated, 0 deleted" in page.text
    )
    assert "left to decide" not in page.text

    # Another choice for the table does not lose the choices for its rows.
    other = browser.get(url_of({**fields, table: "ours"}))
    assert other.form("/ui/merge")[first] == "ours"
    assert other.form("/ui/merge")[rest] == "theirs"
    assert "rows were merged" not in other.text

    page = browser.post("/ui/merge", **fields)
    assert "The merge is done" in page.text
    with lake.table("main") as merged:
        found = {row["id"]: row[HTML] for row in merged.scan().to_arrow().to_pylist()}
    assert found == {**dict.fromkeys(rows, CODES), 1: HTML, COUNT + 1: "ours"}


def write_html(lake: Lake, ref: str, rows: dict[int, tuple[str, int]]) -> None:
    """Replaces all rows of the table whose column `v` is called `HTML`."""
    with lake.table(ref) as table:
        schema = table.schema().as_arrow()
        columns = [list(rows), *(list(each) for each in zip(*rows.values(), strict=True))]
        arrays = dict(zip(schema.names, columns, strict=True))
        table.overwrite(pa.table(arrays, schema=schema))


def test_rows_need_the_right_to_read_them_in_every_state(tmp_path: Path) -> None:
    changes = "['LIST_COMMIT_LOG', 'COMMIT_CHANGE_AGAINST_REFERENCE', 'UPDATE_ENTITY']"
    rights = f"user == 'eve' && ({DIFF} || op in {changes})"
    warehouse = {"choose_locations": False}
    served = guarded_rows(tmp_path, rights, served=lake_server, key=["id"], warehouse=warehouse)
    with served as (guarded, server):
        collide(server.lake)
        browser, before = Browser(guarded.as_("eve")), server.lake.files()
        head = server.repository.reference("main").hash
        # The merge would show rows of theirs on main.
        guarded.rule(rights, "op == 'READ_ROWS' && ref == 'main'")
        page = browser.get(MERGE)
        assert page.status == 403
        assert "'READ_ROWS' is not allowed for role 'eve' on reference 'dev'" in page.text
        for part in ("false", "ref == 'dev'"):
            guarded.rule(rights, f"op == 'READ_ROWS' && {part}")
            page = browser.get(MERGE)
            assert "Merge the rows" not in page.text
            [table] = decisions_of(page)
            chosen = {**page.form("/ui/merge"), table: "rows"}
            for page in (browser.get(url_of(chosen)), browser.post("/ui/merge", **chosen)):
                assert "The rows cannot be merged here: 'READ_ROWS' is not allowed" in page.text
                assert "1 conflict is left to decide" in page.text
                assert "theirs" not in page.text
                assert not choices_of(page)
        assert server.repository.reference("main").hash == head
        assert server.lake.files() == before
        # The new files lie in the folder of the table, where this caller may write.
        guarded.rule(rights, "op == 'READ_ROWS'")
        theirs = {f"rest.{table.partition('.')[2]}": "theirs"}
        assert "The merge is done" in browser.post("/ui/merge", **chosen | theirs).text
        assert read(server.lake, "main") == read(server.lake, "dev")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (LIMITS._replace(seconds=0), "reads rows for at most 0 seconds"),
        (LIMITS._replace(at_once=0), "Too many requests for rows are running"),
    ],
)
def test_a_merge_beyond_a_limit_changes_nothing(tmp_path: Path, limits, message: str) -> None:
    with lake_server(tmp_path, limits, key=["id"]) as server:
        collide(server.lake)
        browser, before = Browser(server.client), server.lake.files()
        head = server.repository.reference("main").hash
        page = browser.get(MERGE)
        assert page.status == 200
        [table] = decisions_of(page)
        page = browser.post("/ui/merge", **page.form("/ui/merge") | {table: "rows"})
        assert message in page.text
        assert "1 conflict is left to decide" in page.text
        assert server.repository.reference("main").hash == head
        assert server.lake.files() == before


def test_the_rows_of_a_table_without_a_key_are_not_offered(tmp_path: Path) -> None:
    with lake_server(tmp_path) as server:
        collide(server.lake)
        browser = Browser(server.client)
        page = browser.get(MERGE)
        assert "Merge the rows" not in page.text
