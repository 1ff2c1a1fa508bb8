"""Contents for tests of pages, and the links of a page."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from nessie_cli.model import ContentKey, IcebergTable, Namespace, Put
from tests.server.web.browser import Page


def put(*elements: str, snapshot: int = 1, content_id: str | None = None) -> Put:
    """Returns the operation that puts a table."""
    location = f"file:/{'/'.join(elements)}-{snapshot}.json"
    table = IcebergTable(id=content_id, metadata_location=location, snapshot_id=snapshot)
    return Put(ContentKey(elements), table)


def namespace(*elements: str, **properties: str) -> Put:
    """Returns the operation that puts a namespace."""
    return Put(ContentKey(elements), Namespace(id=None, elements=elements, properties=properties))


def decisions_of(page: Page) -> list[str]:
    """Returns the names of the fields with decisions on a page, in order."""
    names = (each.attributes.get("name", "") for each in page.elements)
    return list(dict.fromkeys(name for name in names if name.startswith("decide.")))


def keys_in(page: Page, place: str) -> list[str]:
    """Returns the keys in the links of a page to a place, in order."""
    links = [urlsplit(link) for link in page.links]
    keys = [parse_qs(link.query).get("key", [""])[0] for link in links if link.path == place]
    return [key for key in keys if key]
