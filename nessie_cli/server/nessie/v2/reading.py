"""API v2: history, entries, diff, contents, recent changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, starmap
from time import thread_time

from nessie_cli.errors import ContentNotFound, DamagedObject, InvalidInput
from nessie_cli.model import NO_ANCESTOR, ContentKey, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.http.streams import ListingBody
from nessie_cli.server.nessie import listings
from nessie_cli.server.nessie.extensions import is_ours, log_of_key, log_page
from nessie_cli.server.nessie.v2.references import plain_name
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.targets import Target, parse_segment, read_at
from nessie_cli.wire import keys, rest
from nessie_cli.wire.commits import CommitMeta
from nessie_cli.wire.contents import content_struct
from nessie_cli.wire.decode import decode_requested_keys
from nessie_cli.wire.entries import BareDiffEntry, BareEntry
from nessie_cli.wire.references import reference_struct
from nessie_cli.wire.scalars import Json

MOST_SCANNED = 1000
"""The most commits that recent changes look through."""


def _at(call: Call, name: str = "ref", hash_name: str = "Expected hash") -> Reference:
    return read_at(
        call.repository, parse_segment(call.segments[name], call.default_branch), hash_name
    )


def get_history(call: Call) -> Answer:
    """Returns a page of the log."""
    target = parse_segment(call.segments["ref"], call.default_branch)
    start = read_at(call.repository, target, "Youngest hash").hash
    if (answer := log_of_key(call, start)) is not None:
        return answer
    oldest = listings.oldest_of(call.text("limit-hash"))
    limit = None if oldest is None else _oldest(call, target, oldest)
    page_token = call.text("page-token")
    if page_token:
        start = listings.token_start(call, page_token)
    page = listings.log(call, start, limit, call.number("max-records"))
    return Answer(
        log_page(page)
        if is_ours(call)
        else page.body(rest.LogResponse, call.log_entry_cache.log_entry)
    )


def _oldest(call: Call, start: Target, oldest: Target) -> str:
    """Returns the hash of the oldest commit of a log. It need not exist without relative parts."""
    if oldest.hash is not None and not oldest.steps:
        return oldest.hash.lower()
    return read_at(
        call.repository,
        Target(start.name if oldest.hash is None else None, oldest.hash, oldest.steps),
        "Oldest hash",
    ).hash


def get_entries(call: Call) -> Answer:
    """Returns a page of keys."""
    range_ = listings.key_range(call)
    at = _at(call)
    page = listings.entries(
        call,
        at,
        range_,
        records=call.number("max-records"),
        page_token=call.text("page-token"),
        content=call.flag("content"),
    )
    return Answer(page.body(rest.EntriesResponse, BareEntry.of, at))


def get_diff(call: Call) -> Answer:
    """Returns a page of a diff."""
    range_ = listings.key_range(call)
    before, after = _at(call, "from", '"From" hash'), _at(call, "to", '"To" hash')
    page = listings.differences(
        call,
        before,
        after,
        range_,
        records=call.number("max-records"),
        page_token=call.text("page-token"),
    )
    return Answer(page.body(rest.DiffResponse, BareDiffEntry.of, before, after))


def get_content(call: Call) -> Answer:
    """Returns a content."""
    key = call.path_key("key")
    if not key.elements:
        raise InvalidInput("getContent.key.elements: size must be between 1 and 2147483647")
    at = _at(call)
    content = call.repository.contents(Revision(None, at.hash), [key]).get(key)
    if content is None:
        raise content_not_found(key, at.name or f"DETACHED@{at.hash}")
    return Answer(rest.ContentResponse(content_struct(content), reference_struct(at)))


def content_not_found(key: ContentKey, where: str) -> ContentNotFound:
    """Returns the error for a key without content; `where` is the reference in its message."""
    return ContentNotFound(
        f"Could not find content for key '{key.plain}' in reference '{where}'.", key
    )


def get_contents(call: Call) -> Answer:
    """Returns several contents, their keys in the query."""
    return _contents(call, [keys.decode(text) for text in call.texts("key")])


def post_contents(call: Call) -> Answer:
    """Returns several contents, their keys in the body."""
    return _contents(call, decode_requested_keys(call.needed_json("getMultipleContents.request")))


def _contents(call: Call, requested: list[ContentKey]) -> Answer:
    at = _at(call)
    return Answer(
        contents_listing(call, at, requested, {"effectiveReference": reference_struct(at)})
    )


def contents_listing(
    call: Call, at: Reference, requested: Iterable[ContentKey], others: Json
) -> ListingBody:
    """Returns the contents of those keys that exist, with other attributes of the answer."""
    contents = call.repository.each_content(
        Revision(None, at.hash), [key for key in requested if key.elements]
    )
    return ListingBody("contents", starmap(rest.ContentOfKey.of, contents), lambda: others)


# -- recent changes ------------------------------------------------------------------------------
def get_recent_changes(call: Call) -> Answer:
    """Returns the recent positions of a reference, and whether its commits are intact."""
    reference = call.repository.reference(plain_name(call, "a reference history"))
    scanned = min(call.number("scan-commits") or 0, MOST_SCANNED)
    return Answer(
        rest.ReferenceHistoryResponse(
            reference_struct(reference),
            _state(call, reference.hash),
            [_state(call, hash_) for hash_ in _former_heads(call.repository, reference)],
            _scan(call, reference.hash, scanned) if scanned > 0 else "NOT_CHECKED",
        )
    )


def _state(call: Call, hash_: str) -> rest.ReferenceState:
    consistency, meta = "COMMIT_CONSISTENT", None
    if hash_ != NO_ANCESTOR:
        try:
            entry = call.repository.commit_at(Revision(None, hash_))
            meta = CommitMeta.of(entry.meta)
        except DamagedObject:
            consistency = "COMMIT_INCONSISTENT"
    return rest.ReferenceState(hash_, consistency, meta)


def _scan(call: Call, hash_: str, commits: int) -> str:
    """Reads commits with their operations. Raises `InvalidInput` if that takes too long."""
    until = thread_time() + call.filter_seconds
    entries = call.repository.log(Revision(None, hash_), operations=True)
    try:
        for number, _ in enumerate(islice(entries, commits), 1):
            if thread_time() > until:
                raise InvalidInput(
                    f"scan-commits: the scan ended after {call.filter_seconds:g} seconds, with"
                    f" {number:,} of {commits:,} commits; scan fewer"
                )
    except DamagedObject:
        return "COMMIT_INCONSISTENT"
    return "COMMIT_CONSISTENT"


_MOST_HEADS = 20
_AGE = timedelta(minutes=5)
"""The limits of the original server: the number of former HEADs, and their age."""


def _former_heads(repository: ReadableRepository, reference: Reference) -> list[str]:
    """Returns the former hashes of a reference, newest first, each move once.

    A reference that was deleted and created again has no former positions.
    """
    return list(islice(_heads(repository, reference.name, datetime.now(UTC) - _AGE), _MOST_HEADS))


def _heads(repository: ReadableRepository, name: str, since: datetime) -> Iterator[str]:
    for entry in repository.reflog(name, limit=10 * _MOST_HEADS):
        if entry.before is None or entry.after is None or entry.time < since:
            return
        if entry.before != entry.after:
            yield entry.before
