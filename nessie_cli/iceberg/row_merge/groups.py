"""Divides the files in which two sides of a table differ into groups that share no key.

Only groups that both sides changed must be merged by rows. Files belong together if it is not shown
that their rows have different keys, or if a delete file can be about rows of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.identifiers import MOST_PAIRS
from nessie_cli.iceberg.combination.key_evidence import KeyEvidence
from nessie_cli.iceberg.combination.states import FileContent, Identity, TableFile
from nessie_cli.iceberg.row_diff.scan import FilePair


class FileGroups(NamedTuple):
    """The data files and delete files in which two sides differ from their base.

    `of_both` are in groups that both sides changed, `of_ours` and `of_theirs` in groups that only
    one side changed.
    """

    of_both: frozenset[Identity]
    of_ours: frozenset[Identity]
    of_theirs: frozenset[Identity]

    def are_about(self, id_: Identity) -> bool:
        """Returns whether a file is in some group."""
        return any(id_ in group for group in self)


def file_groups(
    ours: Sequence[FilePair],
    theirs: Sequence[FilePair],
    evidence: KeyEvidence,
    scope: EqualityScope,
) -> FileGroups:
    """Divides the files that differ between the base and each side."""
    files = {pair.file.path: pair.file for pair in (*ours, *theirs)}
    links = _Links()
    for group in evidence.groups(list(files.values())):
        links.join(*(file.identity for file in group))
    for pair in (*ours, *theirs):
        for delete in _changed_deletes(pair):
            links.join(pair.file.identity, delete.identity)
    deletes = {d.identity: d for pair in (*ours, *theirs) for d in _changed_deletes(pair)}
    wide = [delete for delete in deletes.values() if delete.referenced is None]
    if len(wide) * len(files) > MOST_PAIRS:
        links.join(*(file.identity for file in files.values()))
    else:
        for delete in wide:
            links.join(delete.identity, *_reached(delete, files.values(), scope))
    roots = [{links.root(pair.file.identity) for pair in pairs} for pairs in (ours, theirs)]
    both, only_ours = roots[0] & roots[1], roots[0] - roots[1]
    ids = (*(file.identity for file in files.values()), *deletes)
    every = {id_: links.root(id_) for id_ in ids}
    return FileGroups(
        frozenset(id_ for id_, root in every.items() if root in both),
        frozenset(id_ for id_, root in every.items() if root in only_ours),
        frozenset(id_ for id_, root in every.items() if root not in roots[0]),
    )


def _changed_deletes(pair: FilePair) -> Iterator[TableFile]:
    """Yields the delete files that apply to a data file in one state only."""
    before, after = (
        {delete.identity: delete for delete in (*side.positions, *side.equality)} if side else {}
        for side in pair
    )
    for id_ in before.keys() ^ after.keys():
        yield before.get(id_) or after[id_]


def _reached(
    delete: TableFile, files: Iterable[TableFile], scope: EqualityScope
) -> Iterator[Identity]:
    """Yields the data files about which a delete file can be, whatever their numbers are.

    A merge can bring files together whose numbers come from different sides.
    """
    for file in files:
        if delete.content is FileContent.EQUALITY_DELETES:
            if scope.reaches(delete, file):
                yield file.identity
        elif (delete.spec_id, delete.partition) == (file.spec_id, file.partition):
            yield file.identity


class _Links:
    """Sets of files that belong together."""

    def __init__(self) -> None:
        self._parents: dict[Identity, Identity] = {}

    def root(self, id_: Identity) -> Identity:
        """Returns the file that stands for the set of a file."""
        path = [id_]
        while (parent := self._parents.get(path[-1], path[-1])) != path[-1]:
            path.append(parent)
        self._parents.update(dict.fromkeys(path, path[-1]))
        return path[-1]

    def join(self, *ids: Identity) -> None:
        """Joins the sets of some files."""
        roots = list(map(self.root, ids))
        self._parents.update(dict.fromkeys(roots, roots[0]) if roots else {})
