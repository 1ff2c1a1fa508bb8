"""API v1: log, entries, contents, diff."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, Entry, Reference
from nessie_cli.repository.base import ALL_KEYS
from nessie_cli.revisions import Revision
from nessie_cli.server.nessie import listings
from nessie_cli.server.nessie.listings import FilteredPage, ListingPage, key_token, limit
from nessie_cli.server.nessie.v1.requests import check_name_v1
from nessie_cli.server.nessie.v2.reading import content_not_found, contents_listing
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.table import NoRoute
from nessie_cli.server.pipeline.targets import (
    DETACHED,
    Target,
    named,
    parse_spec,
    plain_hash,
    read_at,
)
from nessie_cli.wire.commits import LogEntryV1
from nessie_cli.wire.contents import content_struct
from nessie_cli.wire.decode import decode_requested_keys
from nessie_cli.wire.entries import BareDiffEntry, EntryV1
from nessie_cli.wire.rest import (
    DiffResponseV1,
    EntriesResponseV1,
    LogResponseV1,
)

_NAMESPACE = "NAMESPACE"
_DOTS = "..."


def reference_at(
    call: Call, name: str, hash_: str | None, *, place: str, hash_name: str = "Expected hash"
) -> Reference:
    """Returns the reference at which to read: a name, and a hash with optional relative parts."""
    check_name_v1(name, place)
    spec = Target(None) if not hash_ else parse_spec(hash_, f"{place.partition('.')[0]}.hashOnRef")
    if name != DETACHED:
        named(call.repository, name)
    return read_at(call.repository, Target(name, spec.hash, spec.steps), hash_name)


def get_log(call: Call) -> Answer:
    """Returns a page of the log: `endHash` is where it begins, `startHash` where it ends."""
    oldest = call.text("startHash")
    if oldest is not None:
        plain_hash(oldest, "getCommitLog.params.startHash")
    start = reference_at(
        call,
        call.segments["ref"],
        call.text("endHash"),
        place="getCommitLog.refName",
        hash_name="Youngest hash",
    ).hash
    page_token = call.text("pageToken")
    if page_token:
        start = listings.token_start(call, page_token)
    page = listings.log(call, start, oldest and oldest.lower(), call.number("maxRecords"))
    return Answer(page.body(LogResponseV1, LogEntryV1.of))


# -- entries -------------------------------------------------------------------------------------
class _Name(NamedTuple):
    """An entry of the listing, with its key cut to the requested depth."""

    type: str
    key: ContentKey
    entry: Entry


def get_entries(call: Call) -> Answer:
    """Returns a page of keys.

    `namespaceDepth` selects those with that many elements, and the namespaces of longer ones.
    """
    depth = call.number("namespaceDepth") or 0
    records, page_token = call.number("maxRecords"), call.text("pageToken")
    at = reference_at(
        call, call.segments["ref"], call.text("hashOnRef"), place="getEntries.refName"
    )
    filter_ = listings.filter_of(call, "entries")
    rest, _ = listings.from_page(ALL_KEYS, page_token)

    def read() -> Iterator[_Name]:
        return _cut(call.repository.entries(Revision(None, at.hash), rest), depth)

    if filter_ is None:
        page = ListingPage(
            filter(_first_of_its_name(), read()), limit(records), lambda name: key_token(name.key)
        )
    else:
        # A page may end within a namespace.
        passes = filter_._replace(test=_first_of_its_name(filter_.test))
        page = FilteredPage(read, limit(records), lambda name: key_token(name.entry.key), passes)
    return Answer(page.body(EntriesResponseV1, EntryV1.of))


def _cut(entries: Iterable[Entry], depth: int) -> Iterator[_Name]:
    for entry in entries:
        elements = entry.key.elements
        if depth <= 0 or len(elements) == depth:
            yield _Name(entry.type, entry.key, entry)
        elif len(elements) > depth:
            yield _Name(_NAMESPACE, ContentKey(elements[:depth]), entry)


def _first_of_its_name(test: Callable[[Entry], bool] | None = None) -> Callable[[_Name], bool]:
    """Returns a test of sorted names: the first of equal ones whose entry passes."""
    last: ContentKey | None = None

    def passes(name: _Name) -> bool:
        nonlocal last
        if (test is not None and not test(name.entry)) or name.key == last:
            return False
        last = name.key
        return True

    return passes


# -- contents and differences --------------------------------------------------------------------
def _content_place(call: Call, method: str) -> tuple[Reference, str]:
    name = call.text("ref")
    if name is not None:
        check_name_v1(name, f"{method}.ref")
    at = reference_at(
        call, name or call.default_branch, call.text("hashOnRef"), place=f"{method}.ref"
    )
    return at, name or call.default_branch


def get_content(call: Call) -> Answer:
    """Returns a content."""
    key = call.path_key("key")
    at, name = _content_place(call, "getContent")
    content = (
        call.repository.contents(Revision(None, at.hash), [key]).get(key) if key.elements else None
    )
    if content is None:
        raise content_not_found(key, name)
    return Answer(content_struct(content))


def post_contents(call: Call) -> Answer:
    """Returns several contents."""
    requested = decode_requested_keys(call.needed_json("getMultipleContents.request"))
    at, _ = _content_place(call, "getMultipleContents")
    return Answer(contents_listing(call, at, requested, {}))


def get_diff(call: Call) -> Answer:
    """Returns the whole diff between two commits: `from[*hash]...to[*hash]`."""
    left, dots, right = call.segments["range"].partition(_DOTS)
    if not dots or not left or not right:
        raise NoRoute(())
    before, after = _side(call, left, '"From" hash'), _side(call, right, '"To" hash')
    page = listings.differences(call, before, after, ALL_KEYS, in_pages=False)
    return Answer(page.body(DiffResponseV1, BareDiffEntry.of))


def _side(call: Call, text: str, hash_name: str) -> Reference:
    name, _, hash_ = text.partition("*")
    if name:
        named(call.repository, name) if name != DETACHED else None
    spec = parse_spec(hash_, hash_name) if hash_ else Target(None)
    if not name and spec.hash is None:
        raise InvalidInput(f"{hash_name} must be provided.")
    return read_at(call.repository, Target(name or None, spec.hash, spec.steps), hash_name)
