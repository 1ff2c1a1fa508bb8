"""Conditional loads."""

from __future__ import annotations

from pathlib import Path

from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of


def test_an_unchanged_table_is_answered_with_304(main: IcebergClient, served: Lake) -> None:
    created = main.create("db", "t")
    loaded = main.load("db", "t")
    tag = loaded.headers["etag"]
    assert created.headers["etag"] == tag
    for value in (tag, f"W/{tag}", f'"other", {tag}', f'"x", W/{tag}, "y"', "*"):
        answer = main.load("db", "t", if_none_match=value)
        assert (answer.status, answer.raw) == (304, b"")
        assert answer.headers["etag"] == tag
    for value in ('"other"', 'W/"other"', tag.strip('"')):
        assert main.load("db", "t", if_none_match=value).status == 200
    assert main.load("db", "t", "?snapshots=refs", if_none_match=tag).status == 200


def test_a_304_reads_no_file(main: IcebergClient) -> None:
    created = main.create("db", "t")
    Path(created.body["metadata-location"].removeprefix("file://")).unlink()
    assert main.load("db", "t", if_none_match=created.headers["etag"]).status == 304


def test_a_changed_table_is_sent(main: IcebergClient, served: Lake) -> None:
    tag = main.create("db", "t").headers["etag"]
    changed = main.set_properties("db", "t")
    assert changed.headers["etag"] != tag
    assert main.load("db", "t", if_none_match=tag).status == 200
    assert main.load("db", "t", if_none_match=changed.headers["etag"]).status == 304
    main.send("DELETE", "/namespaces/db/tables/t")
    assert error_of(main.load("db", "t", if_none_match="*")) == (404, "NoSuchTableException")


def test_a_recreated_table_has_another_etag(main: IcebergClient, served: Lake) -> None:
    location = main.create("db", "t").body["metadata-location"]
    first = main.load("db", "t").headers["etag"]
    main.send("DELETE", "/namespaces/db/tables/t")
    body = {"name": "t", "metadata-location": location}
    assert main.post("/namespaces/db/register", body).headers["etag"] != first
