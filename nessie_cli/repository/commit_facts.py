"""Facts about many commits, looked up together and cached on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from nessie_cli.kernel import history
from nessie_cli.kernel.commits import meta_of
from nessie_cli.kernel.forms import NO_COMMIT, Commit, Id
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import NO_ANCESTOR, Reference, ReferenceMetadata, ReferenceType
from nessie_cli.repository.fact_cache import FactCache, Facts

if TYPE_CHECKING:
    from nessie_cli.kernel.ancestry import AncestryIndex

GAINED = 1_000
"""The most new ancestors of a descendant that are read to update cached answers."""

Tip = tuple[int, int]
"""Time and generation of a commit."""
Distance = tuple[int, int, Id]
"""Commits ahead and behind, and the common ancestor."""


class CommitFacts:
    """Looks up facts about many commits of a store, and caches them in `fact_cache`."""

    def __init__(
        self, objects: Objects, ancestry: Callable[[], AncestryIndex], fact_cache: FactCache
    ) -> None:
        self._objects = objects
        self._ancestry = ancestry
        self._tips: Facts[Tip] = Facts(fact_cache, "tips", tuple[int, int])
        self._distances: Facts[Distance] = Facts(fact_cache, "distances", tuple[int, int, bytes])
        self._merged: Facts[bool] = Facts(fact_cache, "merged", bool)

    def with_metadata(self, references: Sequence[Reference], default: Reference) -> list[Reference]:
        """Returns references with their metadata."""
        ids = list({bytes.fromhex(found.hash) for found in references} - {NO_COMMIT})
        heads = dict(zip(ids, self._objects.commits(ids), strict=True))
        beside = {
            bytes.fromhex(found.hash) for found in references if _has_distance(found, default)
        }
        distances = self.distances(beside, bytes.fromhex(default.hash)) if beside else {}
        return [
            _described(found, heads, distances if _has_distance(found, default) else {})
            for found in references
        ]

    def tips(self, ids: Collection[Id]) -> dict[Id, Tip]:
        """Returns time and generation of commits, zeros for the empty history.

        One round trip for those that are not cached.
        """
        known = self._tips.known()[1]
        new = list({id_ for id_ in ids if id_ not in known} - {NO_COMMIT})
        if new:
            known = {
                **known,
                **{
                    id_: (found.time, found.generation)
                    for id_, found in zip(new, self._objects.commits(new), strict=True)
                },
            }
            self._tips.write(NO_COMMIT, known, set(ids) - {NO_COMMIT})
        return {id_: known[id_] if id_ != NO_COMMIT else (0, 0) for id_ in ids}

    def distances(self, ids: Collection[Id], base: Id) -> dict[Id, Distance]:
        """Returns the first-parent distances of commits and `base` from their common ancestor.

        O(log commits) round trips.
        """
        about, known = self._distances.known()
        if about != base:
            known = self._from_further(known, about, base)
        new = {id_ for id_ in ids if id_ not in known}
        if new:
            known = {**known, **self._measured(new, base)}
        if new or about != base:
            self._distances.write(base, known, ids)
        return {id_: known[id_] for id_ in ids}

    def _from_further(
        self, known: Mapping[Id, Distance], before: Id, base: Id
    ) -> dict[Id, Distance]:
        """Converts cached distances from `before` to distances from `base`.

        Returns nothing unless `before` is a first-parent ancestor of `base`.
        """
        if not self._is_first_parent(before, base):
            return {}
        further = history.height_of(self._objects, base) - history.height_of(self._objects, before)
        return {
            id_: (ahead, behind + further, common)
            for id_, (ahead, behind, common) in known.items()
            if behind
        }

    def _is_first_parent(self, before: Id, of: Id) -> bool:
        """Returns whether `before` is a first-parent ancestor; it may be of another store."""
        return (
            NO_COMMIT not in (before, of)
            and self._objects.find_commit(before) is not None
            and history.on_first_parents(self._objects, before, of)
        )

    def _measured(self, ids: Collection[Id], base: Id) -> dict[Id, Distance]:
        """Computes distances in O(log commits) round trips."""
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
        return {
            id_: (height - met[fork], top - met[fork], fork)
            for (id_, height), fork in zip(heights.items(), common, strict=True)
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
        about, known = self._merged.known()
        if about != descendant:
            gained = (
                history.new_ancestors(self._objects, descendant, about, GAINED)
                if self._is_first_parent(about, descendant)
                else None
            )
            known = (
                {} if gained is None else {id_: was or id_ in gained for id_, was in known.items()}
            )
        new = {id_ for id_ in ids if id_ not in known}
        if new:
            ancestors = self._ancestry().ancestors_among(new, descendant)
            known = {**known, **{id_: id_ in ancestors for id_ in new}}
        if new or about != descendant:
            self._merged.write(descendant, known, ids)
        return {id_ for id_ in ids if known[id_]}

    def descendants_among(self, ids: Collection[Id], ancestor: Id) -> set[Id]:
        """Returns the commits that are descendants of another one.

        O(log commits) round trips for those of a higher generation.
        """
        tips = self.tips({*ids, ancestor})
        oldest = tips[ancestor][1]
        return self._ancestry().descendants_among(
            {id_ for id_ in ids if tips[id_][1] > oldest or id_ == ancestor}, ancestor
        )


def _has_distance(reference: Reference, default: Reference) -> bool:
    return (
        reference.type is ReferenceType.BRANCH
        and reference.name != default.name
        and reference.hash != NO_ANCESTOR
    )


def _described(
    reference: Reference, heads: Mapping[Id, Commit], distances: Mapping[Id, Distance]
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
