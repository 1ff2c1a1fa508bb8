"""Contents that were deleted and created again, recognised by their value.

A deleted content that comes back by a revert or a restoration gets another id. It is the same
table, under whatever key: to create it once more would put one table into the catalog twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from nessie_cli.model import Content, ContentKey, Namespace

State = Mapping[ContentKey, Content]


def ids_of_recreated(
    earlier: Iterable[tuple[ContentKey, Content]], taken: Collection[str | None], present: State
) -> dict[str | None, str | None]:
    """Returns the present ids of earlier contents that were created again.

    `taken` are the ids of contents that existed before: these were not created since. A content
    with the same key counts before others with the same value; of several others, none counts.
    Namespaces count only with their key. Costs O(earlier + present).
    """
    present_ids = {content.id for content in present.values()}
    elsewhere: dict[Content, list[Content]] = {}
    for content in present.values():
        if content.id not in taken and not isinstance(content, Namespace):
            elsewhere.setdefault(content.with_id(None), []).append(content)
    again: dict[str | None, str | None] = {}
    used = set(taken)
    for key, old in earlier:
        if old.id in present_ids or old.id in again:
            continue
        same_key = present.get(key)
        candidates = [same_key] if same_key and same_key.with_id(old.id) == old else []
        if not candidates and not isinstance(old, Namespace):
            candidates = elsewhere.get(old.with_id(None), [])
        if len(candidates) == 1 and candidates[0].id not in used:
            again[old.id] = candidates[0].id
            used.add(candidates[0].id)
    return again
