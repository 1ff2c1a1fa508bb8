"""Facts about many commits, looked up together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from nessie_cli.kernel import history
from nessie_cli.kernel.commits import meta_of
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceMetadata, ReferenceType

if TYPE_CHECKING:
    from nessie_cli.kernel.ancestry import AncestryIndex

Tip = tuple[int, int]
"""Time and generation of a commit."""
Distance = tuple[int, int, Id]
"""Commits ahead and behind, and the common ancestor."""


class CommitFacts:
    """Looks up facts about many commits of a store."""

    def __init__(self, objects: Objects, ancestry: Callable[[], AncestryIndex]) -> None:
        self._objects = objects
        self._ancestry = ancestry

    def with_metadata(self, references: Sequence[Reference], default: Reference) -> list[Reference]:
        """Returns references with their metadata."""
        ids = list({bytes.fromhex(reference.hash) for reference in references} - {NO_COMMIT})
        heads = dict(zip(ids, self._objects.commits(ids), strict=True))
        heads_apart = {
            bytes.fromhex(reference.hash)
            for reference in references
            if _has_distance(reference, default)
        }
        distances = self.distances(heads_apart, bytes.fromhex(default.hash)) if heads_apart else {}
        return [
            _described(reference, heads, distances if _has_distance(reference, default) else {})
            for reference in references
        ]

    def tips(self, ids: Collection[Id]) -> dict[Id, Tip]:
        """Returns time and generation of commits, zeros for the empty history. One round trip."""
        stored = list(set(ids) - {NO_COMMIT})
        commits = zip(stored, self._objects.commits(stored), strict=True)
        tips = {id_: (commit.time, commit.generation) for id_, commit in commits}
        return {id_: tips.get(id_, (0, 0)) for id_ in ids}

    def distances(self, ids: Collection[Id], base: Id) -> dict[Id, Distance]:
        """Returns the first-parent distances of commits and `base` from their common ancestor.

        O(log commits) round trips.
        """
        objects = self._objects
        top = history.height_of(objects, base)
        heights = self._heights(ids)
        of_base = history.ancestors_at(objects, base, heights.values())
        pairs = [
            (id_, of_base[height])
            if height <= top
            else (history.ancestor_at(objects, id_, top), base)
            for id_, height in heights.items()
        ]
        common = history.common_first_parents(objects, pairs)
        met = self._heights(common)
        forks = dict(zip(heights, common, strict=True))
        return {
            id_: (heights[id_] - met[forks[id_]], top - met[forks[id_]], forks[id_]) for id_ in ids
        }

    def _heights(self, ids: Iterable[Id]) -> dict[Id, int]:
        stored = list(set(ids) - {NO_COMMIT})
        return {
            NO_COMMIT: 0,
            **{
                id_: commit.height
                for id_, commit in zip(stored, self._objects.commits(stored), strict=True)
            },
        }

    def ancestors_among(self, ids: Collection[Id], descendant: Id) -> set[Id]:
        """Returns the commits that are ancestors of another one.

        O(log commits) round trips, and as many for all merges.
        """
        return self._ancestry().ancestors_among(ids, descendant)

    def descendants_among(
        self, ids: Collection[Id], ancestor: Id, is_over: Callable[[], bool] | None = None
    ) -> set[Id]:
        """Returns the commits that are descendants of another one.

        O(log commits) round trips for those of a higher generation. Raises `TimeoutError` once
        `is_over` returns true.
        """
        tips = self.tips({*ids, ancestor})
        oldest = tips[ancestor][1]
        return self._ancestry().descendants_among(
            {id_ for id_ in ids if tips[id_][1] > oldest or id_ == ancestor}, ancestor, is_over
        )


def _has_distance(reference: Reference, default: Reference) -> bool:
    return (
        reference.type is ReferenceType.BRANCH
        and reference.name != default.name
        and reference.hash != NO_ANCESTOR
    )


def _described(
    reference: Reference, heads: Mapping[Id, StoredCommit], distances: Mapping[Id, Distance]
) -> Reference:
    if reference.hash == NO_ANCESTOR:
        return reference
    id_ = bytes.fromhex(reference.hash)
    head = meta_of(id_, heads[id_])
    metadata = ReferenceMetadata(head=head, total=heads[id_].height)
    if id_ in distances:
        ahead, behind, common = distances[id_]
        metadata = ReferenceMetadata(head, heads[id_].height, ahead, behind, common.hex())
    return Reference(reference.type, reference.name, reference.hash, metadata)
