"""Keys, contents and differences over REST v2.

Listings are iterators that fetch a page when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nessie_cli.kernel.forms import Kind, encode_value, object_id
from nessie_cli.model import Content, ContentKey, ContentPlace, DiffEntry, Entry, KeyRange
from nessie_cli.repository.base import ALL_KEYS
from nessie_cli.repository.remote.session import RestSession, understood
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire import answers
from nessie_cli.wire.contents import Key

NO_PARAMETERS: Mapping[str, str] = {}
KEYS_AT_ONCE = 500
"""Keys whose contents are asked for in one request, in its body."""
_MOST_ENTRIES = 1000
"""Entries in the largest page of a listing."""
_LONGEST_KEYS = 3000
"""Characters of keys in one URL."""


def entries(
    session: RestSession, at: str, keys: KeyRange = ALL_KEYS, *, content: bool = False
) -> Iterator[Entry]:
    """Yields the keys of a state.

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


def contents(
    session: RestSession, at: str, keys: Iterable[ContentKey]
) -> dict[ContentKey, Content]:
    """Returns the contents of those keys that exist."""
    path = f"trees/{segment('@' + at)}/contents"
    unique = sorted(set(keys))
    state: dict[ContentKey, Content] = {}
    for first in range(0, len(unique), KEYS_AT_ONCE):
        body = {"requestedKeys": list(map(Key.of, unique[first : first + KEYS_AT_ONCE]))}
        answer = session.transport.send("POST", path, body=body, safe=True)
        state.update(understood(answer, _contents, "contents"))
    return dict(sorted(state.items()))


def diff(
    session: RestSession,
    before: str,
    after: str,
    keys: KeyRange = ALL_KEYS,
    *,
    more: Mapping[str, str] = NO_PARAMETERS,
) -> Iterator[DiffEntry]:
    """Yields contents that differ between two commits. `more` are parameters of the request."""
    path = f"trees/{segment('@' + before)}/diff/{segment('@' + after)}"
    for part in _queries(session, keys):
        yield from session.pages(path, "diffs", {**part, **more}, _diff_entry)


class ContentReader:
    """Reads contents by commit and key, those of one commit together."""

    def __init__(self, session: RestSession) -> None:
        self._session = session
        self._keys: dict[str, set[ContentKey]] = {}
        self._states: dict[str, Mapping[ContentKey, Content]] = {}

    def add_keys(self, hash_: str, keys: Iterable[ContentKey | None]) -> None:
        """Adds keys that will be read. Nothing may have been read before."""
        self._keys.setdefault(hash_, set()).update(key for key in keys if key is not None)

    def state(self, hash_: str) -> Mapping[ContentKey, Content]:
        """Returns the contents of a commit under the added keys."""
        if hash_ not in self._states:
            keys = self._keys.get(hash_, set())
            self._states[hash_] = contents(self._session, hash_, sorted(keys)) if keys else {}
        return self._states[hash_]

    def content(self, hash_: str, key: ContentKey | None) -> Content | None:
        """Returns the content under a key, or None."""
        return None if key is None else self.state(hash_).get(key)

    def content_at(self, place: ContentPlace | None) -> Content | None:
        """Returns the content at a place, or None."""
        return None if place is None else self.content(place.hash, place.key)


def _queries(session: RestSession, keys: KeyRange) -> Iterator[Query]:
    """Yields the parameters for a range of keys. Single keys may be too many for one URL."""
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
