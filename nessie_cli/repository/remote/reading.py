"""Keys, contents and differences over REST v2: listings as iterators that fetch a page when it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nessie_cli.errors import ContentNotFound
from nessie_cli.kernel.forms import Kind, encode_value, object_id
from nessie_cli.model import Content, ContentKey, DiffEntry, Entry, KeyRange
from nessie_cli.repository.base import ALL_KEYS
from nessie_cli.repository.changes import Revision
from nessie_cli.repository.remote.history import RemoteHistory, at_hash
from nessie_cli.repository.remote.session import understood
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire import answers
from nessie_cli.wire.decode import decode_key
from nessie_cli.wire.encode import encode_key

KEYS_AT_ONCE = 500
"""Keys whose contents are asked for in one request, in its body."""
_LONGEST_KEYS = 3000
"""Characters of keys in one URL."""


class RemoteReading(RemoteHistory):
    """Everything that changes nothing."""

    def entries(self, at: Revision, keys: KeyRange = ALL_KEYS, *, content: bool = False) -> Iterator[Entry]:
        """See `Repository`. The hash of a content is made here, so contents are fetched also where nobody asks for them."""
        path = f"trees/{segment('@' + self._hash(at))}/entries"
        for part in self._ranges(keys):
            for entry in self._session.pages(path, "entries", {**part, "content": "true"}, _entry):
                yield entry if content else Entry(entry.key, entry.type, entry.content_id, entry.value_hash)

    def contents(self, at: Revision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """See `Repository`."""
        path = f"trees/{segment('@' + self._hash(at))}/contents"
        wanted, found = sorted(set(keys)), {}
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            body = {"requestedKeys": [encode_key(key) for key in wanted[first : first + KEYS_AT_ONCE]]}
            answer = self._transport.send("POST", path, body=body, safe=True)
            found.update(understood(answer, _contents, "contents"))
        return dict(sorted(found.items()))

    def content(self, at: Revision, key: ContentKey) -> Content:
        """See `Repository`."""
        reference = self.resolve(at)
        found = self.contents(at_hash(reference.hash), [key])
        if key not in found:
            raise ContentNotFound(f"Could not find content for key '{key.plain}' in reference '{reference.name or reference.hash}'.", key)
        return found[key]

    def diff(self, before: Revision, after: Revision, keys: KeyRange = ALL_KEYS) -> Iterator[DiffEntry]:
        """See `Repository`."""
        path = f"trees/{segment('@' + self._hash(before))}/diff/{segment('@' + self._hash(after))}"
        for part in self._ranges(keys):
            yield from self._session.pages(path, "diffs", part, _diff_entry)

    def _ranges(self, keys: KeyRange) -> Iterator[Query]:
        """The parameters for a range of keys: several requests where single keys are too many for one URL."""
        if keys.minimum is not None and keys.maximum is not None and keys.minimum > keys.maximum:
            return

        def text(key: ContentKey | None) -> str | None:
            return self._session.key_text(key) if key is not None and key.elements else None

        bounds = {"min-key": text(keys.minimum), "max-key": text(keys.maximum), "prefix-key": text(keys.prefix)}
        if keys.keys is None:
            yield bounds
            return
        for group in _grouped([self._session.key_text(key) for key in sorted(set(keys.keys)) if key.elements]):
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
    return {decode_key(item["key"]): answers.decode_content(item["content"]) for item in answer["contents"]}


def _entry(data: Any) -> Entry:
    content = answers.decode_content(data["content"]) if data.get("content") is not None else None
    return Entry(
        key=decode_key(data["name"]),
        type=str(data["type"]),
        content_id=str(data.get("contentId") or (content.id if content else "") or ""),
        value_hash=str(data.get("valueHash") or (object_id(Kind.VALUE, encode_value(content)).hex() if content else "")),
        content=content,
    )


def _diff_entry(data: Any) -> DiffEntry:
    before, after = data.get("from"), data.get("to")
    return DiffEntry(
        decode_key(data["key"]),
        None if before is None else answers.decode_content(before),
        None if after is None else answers.decode_content(after),
    )
