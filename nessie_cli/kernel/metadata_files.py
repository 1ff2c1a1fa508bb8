"""Two contents with one metadata file, one of each side of a merge.

A table that was created again with its metadata file is another content. If the other side renamed
the first one, a merge would have one table under two keys, and dropping one of them could delete
the files of both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from nessie_cli.kernel.content_changes import ContentChanges, ContentStates, Position
from nessie_cli.kernel.content_merge import ContentMerge, Verdict
from nessie_cli.kernel.forms import content_id_of, payload_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import Content, IcebergTable, IcebergView

_PAYLOADS = (IcebergTable.payload, IcebergView.payload)


def metadata_file(content: Content) -> str | None:
    """Returns the metadata file of a table or view, which no other one has."""
    return content.metadata_location if isinstance(content, IcebergTable | IcebergView) else None


def second_entries(
    objects: Objects, merge: ContentMerge, changes: ContentChanges
) -> list[tuple[Verdict, bytes]]:
    """Returns the contents that arrive with the metadata file of a content that stays on ours.

    Each is returned with the key of that content. Contents that theirs has and ours does not are
    compared with those that theirs does not have, or not with this value: theirs has all others
    together. Reads the values if there are any of both.
    """
    arriving = [
        (verdict, verdict.result)
        for verdict in merge.verdicts
        if verdict.is_settled
        and verdict.states.ours is None
        and verdict.result is not None
        and payload_of(verdict.result.record) in _PAYLOADS
    ]
    if not arriving:
        return []
    staying = [p for p in _not_on_theirs(merge, changes) if payload_of(p.record) in _PAYLOADS]
    if not staying:
        return []
    contents = objects.each_content([position.record for position in staying])
    keys = {
        metadata_file(content): position.key
        for position, content in zip(staying, contents, strict=True)
    }
    contents = objects.each_content([result.record for _, result in arriving])
    return [
        (verdict, keys[file])
        for (verdict, _), content in zip(arriving, contents, strict=True)
        if (file := metadata_file(content)) in keys
    ]


def sharing_files(
    objects: Objects,
    merge: ContentMerge,
    changes: ContentChanges,
    contested: Collection[ContentStates],
) -> list[ContentStates]:
    """Returns the contents to which a side gave a metadata file that another one has, too.

    The other one got it from a side, or is contested. Reads the values of all contents that a side
    changed.
    """
    contents = {verdict.states: None for verdict in merge.verdicts}
    compared = {states.content_id for states in contents}
    for position in changes.values_of_ours():
        if content_id_of(position.record) not in compared:
            contents[merge.unchanged(position)] = None
    records = [
        (states, position.record)
        for states in contents
        for position in dict.fromkeys((states.ours, states.theirs))
        if position is not None
        and (states in contested or states.base is None or position.record != states.base.record)
        and payload_of(position.record) in _PAYLOADS
    ]
    values = objects.each_content([record for _, record in records])
    by_file: defaultdict[str | None, dict[ContentStates, None]] = defaultdict(dict)
    for (states, _), content in zip(records, values, strict=True):
        by_file[metadata_file(content)][states] = None
    return [states for sharing in by_file.values() if len(sharing) > 1 for states in sharing]


def _not_on_theirs(merge: ContentMerge, changes: ContentChanges) -> Iterator[Position]:
    """Yields the results of contents that ours has and theirs does not have, or not so."""
    compared = {verdict.states.content_id for verdict in merge.verdicts}
    for verdict in merge.verdicts:
        _, ours, theirs = verdict.states
        result = verdict.result if verdict.is_settled and ours is not None else None
        if result is not None and (theirs is None or theirs.record != result.record):
            yield result
    for position in changes.values_of_ours():
        if content_id_of(position.record) not in compared:
            yield position
