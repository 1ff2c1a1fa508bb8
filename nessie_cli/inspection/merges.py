"""What a merge or transplant does to the target, or a dry run of one would do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nessie_cli.model import (
    Content,
    ContentKey,
    DiffEntry,
    MergeDetail,
    MergeResult,
    Namespace,
)


class Displaced(NamedTuple):
    """A content that gives its key to another one, and is then absent from the target."""

    key: ContentKey
    content: Content
    is_ours: bool
    """Whether the target had the content. Otherwise it is one of theirs."""


def differences_of(result: MergeResult) -> Iterator[DiffEntry]:
    """Yields the changes of the target."""
    for detail in result.details:
        if detail.result != detail.target:
            yield DiffEntry(detail.key, detail.target, detail.result)


def is_combined(detail: MergeDetail) -> bool:
    """Returns whether the result is the content of neither side."""
    sides = (detail.source, detail.target)
    return detail.result is not None and not detail.conflict and detail.result not in sides


def displaced_contents(result: MergeResult) -> Iterator[Displaced]:
    """Yields each content that gives its key to another one and is then absent."""
    after = {detail.result.id for detail in result.details if detail.result}
    for detail in result.details:
        if detail.conflict or detail.result is None:
            continue
        for content, is_ours in ((detail.target, True), (detail.source, False)):
            if content is None or content.id in after:
                continue
            # Two namespaces with one key are one.
            if not (isinstance(content, Namespace) and isinstance(detail.result, Namespace)):
                yield Displaced(detail.key, content, is_ours)
