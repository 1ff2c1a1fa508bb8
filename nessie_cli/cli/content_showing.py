"""One content for people and programs: its fields, content id, cache key, and its last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.errors import ContentNotFound, NotAllowed
from nessie_cli.model import CommitMeta, ContentKey, Entry, KeyRange

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation
    from nessie_cli.model import Reference
    from nessie_cli.repository.base import Repository


def show_content(call: Invocation, wanted: ContentKey, revision: str | None, *, raw: bool = False) -> None:
    """Print one content as it is at a revision; `raw` prints its JSON alone."""
    repository = call.repository()
    effective = repository.resolve(call.revision(revision))
    entry = next(iter(repository.entries(effective.hash, KeyRange(keys=(wanted,)), content=True)), None)
    if entry is None or entry.content is None:
        raise _missing(repository, effective, wanted)
    if raw:
        from nessie_cli.wire.encode import encode_content

        call.answer(encode_content(entry.content))
        return
    change = repository.last_change(effective.hash, wanted)
    if call.wants_json:
        from nessie_cli.wire.encode import encode_commit_meta, encode_content_response

        more = {"valueHash": entry.value_hash, "cacheKey": entry.cache_key, "lastChange": encode_commit_meta(change) if change else None}
        call.answer(encode_content_response(entry.content, effective) | more)
    else:
        _print(call, entry, change)


def _missing(repository: Repository, at: Reference, wanted: ContentKey) -> NotAllowed | ContentNotFound:
    """The error for a key that is not listed: listings leave out what the caller may not read, so the content itself is asked for."""
    try:
        repository.content(at.hash, wanted)
    except NotAllowed as refusal:
        return refusal
    except ContentNotFound:
        return ContentNotFound(f"Could not find content for key '{wanted}' in reference '{at.name or at.hash}'.", wanted)
    return NotAllowed(f"listing key '{wanted}' is not allowed")


def _print(call: Invocation, entry: Entry, change: CommitMeta | None) -> None:
    from nessie_cli.render.conflicts import commit_lines
    from nessie_cli.render.fields import fields
    from nessie_cli.render.spans import Span

    found = {"key": str(entry.key)} | (fields(entry.content) if entry.content else {}) | {"cache-key": entry.cache_key}
    width = max(map(len, [*found, "last-change"])) + 2
    for label, text in found.items():
        call.say(Span(f"{label:<{width}}", "label"), Span(text, "key" if label == "key" else ""))
    if change:
        for number, spans in enumerate(commit_lines(change, call.out, room=call.out.width - width)):
            call.say(Span(f"{'' if number else 'last-change':<{width}}", "label"), *spans)
