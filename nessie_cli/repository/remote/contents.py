"""Keys, contents and differences over REST v2.

Listings are iterators that fetch a page when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nessie_cli.kernel.forms import Kind, encode_value, object_id
from nessie_cli.model import Content, ContentKey, DiffEntry, Entry, KeyRange
from nessie_cli.repository.base import ALL_KEYS
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire import answers
from nessie_cli.wire.encode import encode_key
from nessie_cli.wire.extensions import WHOLE

KEYS_AT_ONCE = 500
"""Keys whose contents are asked for in one request, in its body."""
_MOST_ENTRIES = 1000
"""Entries in the largest page of a listing."""
_MOST_AT_ALL = 2**31 - 1
_LONGEST_KEYS = 3000
"""Characters of keys in one URL."""


def entries(
    session: Session, at: str, keys: KeyRange = ALL_KEYS, *, content: bool = False
) -> Iterator[Entry]:
    """The keys of a state.

    The hash of a content is computed here, so contents are always fetched.
    """
    path = f"trees/{segment('@' + at)}/entries"
    for part in _queries(session, keys):
        for entry in session.pages(
            path, "entries", {**part, "content": "true"}, _entry, most=_MOST_ENTRIES
        ):
            yield (
                entry
                if content
                else Entry(entry.key, entry.type, entry.content_id, entry.value_hash)
            )


def contents(session: Session, at: str, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
    """The contents of those keys that exist."""
    path = f"trees/{segment('@' + at)}/contents"
    wanted, found = sorted(set(keys)), {}
    for first in range(0, len(wanted), KEYS_AT_ONCE):
        body = {"requestedKeys": [encode_key(key) for key in wanted[first : first + KEYS_AT_ONCE]]}
        answer = session.transport.send("POST", path, body=body, safe=True)
        found.update(understood(answer, _contents, "contents"))
    return dict(sorted(found.items()))


def diff(
    session: Session, before: str, after: str, keys: KeyRange = ALL_KEYS, *, whole: bool = False
) -> Iterator[DiffEntry]:
    """Contents that differ between two commits."""
    path = f"trees/{segment('@' + before)}/diff/{segment('@' + after)}"
    for part in _queries(session, keys):
        query = {**part, WHOLE: "true"} if whole and session.server.extensions else part
        yield from session.pages(path, "diffs", query, _diff_entry)


def divisions(session: Session, at: str, most: int, prefix: ContentKey | None) -> list[ContentKey]:
    """The last key of each part of at most `most` keys but the last, by the extensions."""
    query: Query = {
        "at": at,
        "most": str(min(most, _MOST_AT_ALL)),
        "prefix-key": session.key_text(prefix) if prefix else None,
    }
    return understood(
        session.transport.get("divisions", query),
        lambda found: [answers.decode_key(key) for key in found["divisions"]],
        "divisions",
    )


def _queries(session: Session, keys: KeyRange) -> Iterator[Query]:
    """The parameters for a range of keys. Single keys may be too many for one URL."""
    if keys.minimum is not None and keys.maximum is not None and keys.minimum > keys.maximum:
        return

    def text(key: ContentKey | None) -> str | None:
        return session.key_text(key) if key is not None and key.elements else None

    bounds = {
        "min-key": text(keys.minimum),
        "max-key": text(keys.maximum),
        "prefix-key": text(keys.prefix),
    }
    if keys.keys is None:
        yield bounds
        return
    for group in _grouped(
        [session.key_text(key) for key in sorted(set(keys.keys)) if key.elements]
    ):
        yield {**bounds, "key": group}


def _grouped(texts: Sequence[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for text in texts:
        if group and len(text) + sum(map(len, group)) > _LONGEST_KEYS:
            yield group
            group = []
        group.append(text)
    if group:
        yield group


def _contents(answer: Any) -> dict[ContentKey, Content]:
    return {
        answers.decode_key(item["key"]): answers.decode_content(item["content"])
        for item in answer["contents"]
    }


def _entry(data: Any) -> Entry:
    content = answers.decode_content(data["content"]) if data.get("content") is not None else None
    return Entry(
        key=answers.decode_key(data["name"]),
        type=str(data["type"]),
        content_id=str(data.get("contentId") or (content.id if content else "") or ""),
        value_hash=object_id(Kind.VALUE, encode_value(content)).hex() if content else "",
        content=content,
    )


def _diff_entry(data: Any) -> DiffEntry:
    before, after = data.get("from"), data.get("to")
    return DiffEntry(
        answers.decode_key(data["key"]),
        None if before is None else answers.decode_content(before),
        None if after is None else answers.decode_content(after),
    )
