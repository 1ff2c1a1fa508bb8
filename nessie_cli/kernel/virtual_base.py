"""The state that a merge compares both sides with, if they have several merge bases.

Each of two branches may have merged an older state of the other (a criss-cross history). As in git,
their merge bases are then merged themselves, with the merge bases of these as base, and so on: the
result is the virtual base. Contents that conflict in such a merge are *contested*, and so are those
that share keys with them, and contents with one metadata file: the sides agreed on no state, so
they have a conflict as soon as ours and theirs differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import root_of
from nessie_cli.kernel.content_changes import ContentChanges, ContentStates, Position
from nessie_cli.kernel.content_merge import merge_contents, merge_states
from nessie_cli.kernel.decisions import MergeSides, ThreeWay
from nessie_cli.kernel.edit import edit
from nessie_cli.kernel.forms import NO_COMMIT, Id, content_id_of
from nessie_cli.kernel.history import merge_bases
from nessie_cli.kernel.metadata_files import sharing_files
from nessie_cli.kernel.objects import Objects

_Contested = Mapping[bytes, Sequence[Position]]
"""The contested contents by id, with their positions in the states that were merged."""


class _State(NamedTuple):
    """A key tree without the contested contents."""

    root: Id
    contested: _Contested


def base_root(objects: Objects, bases: Sequence[Id], ours: Id, theirs: Id) -> Id:
    """Returns the root of the base of a merge. `ours` and `theirs` are the roots of its sides.

    Costs one merge for each further merge base, also of the merge bases' merge bases: in a history
    of n such merges crosswise, O(n d log N). The new nodes become part of the draft, as git writes
    the trees of virtual bases.
    """
    return _with_contested(objects, _virtual_base(objects, tuple(bases)), [ours, theirs])


_Bases = tuple[Id, ...]


def _virtual_base(objects: Objects, bases: _Bases) -> _State:
    """Merges merge bases, one after the other. A history can have more of them than calls nest."""
    states: dict[_Bases, _State] = {}
    steps: dict[_Bases, list[tuple[_Bases, Id]]] = {}
    waiting = [bases]
    while waiting:
        commits = waiting[-1]
        if commits not in steps:
            steps[commits] = [
                (tuple(merge_bases(objects, commits[:number], [commit])), commit)
                for number, commit in enumerate(commits[1:], 1)
            ]
        missing = [base for base, _ in steps[commits] if base not in states]
        if missing:
            waiting += missing
            continue
        state = _State(root_of(objects, commits[0]), {})
        for base, commit in steps[commits]:
            state = _merged(objects, states[base], state, root_of(objects, commit))
        states[waiting.pop()] = state
    return states[bases]


def _merged(objects: Objects, base: _State, ours: _State, theirs: Id) -> _State:
    """Merges a further state, without the contents in conflict.

    Contents that were contested at the base no longer are if both sides agree about them. Those of
    ours still are.
    """
    root = _with_contested(objects, base, [ours.root, theirs])
    changes = [ThreeWay(*states) for states in tree.three_way(objects, root, ours.root, theirs)]
    contents = ContentChanges(objects, MergeSides(root, ours.root, changes, NO_COMMIT, NO_COMMIT))
    merge = merge_contents(contents.states, contents.others)
    edits = merge.edits()
    edits |= dict.fromkeys(contents.doubled_keys(edits))
    contested = dict(ours.contested)
    conflicts = [each.states for v in merge.contested for each in (v, v.holder) if each]
    conflicts += [v.states for v in merge.verdicts if v.states.content_id in ours.contested]
    conflicts += sharing_files(objects, merge, contents, set(conflicts))
    # Contents that share keys with one in conflict were decided together with it.
    for states in merge.related(conflicts):
        id_ = states.content_id
        positions = [*base.contested.get(id_, ()), *contested.get(id_, ()), *filter(None, states)]
        contested[id_] = list(dict.fromkeys(positions))
        edits |= dict.fromkeys(states.keys)
    return _State(edit(objects, ours.root, edits), contested)


def _with_contested(objects: Objects, state: _State, sides: Sequence[Id]) -> Id:
    """Returns the root of a state with those contested contents in which the sides differ.

    A content gets the first of its earlier positions with which all different sides conflict. If
    there is none, it stays absent: then sides that both have it conflict, and one that has deleted
    it gets it from the other.
    """
    if not state.contested:
        return state.root
    at_sides = [_positions(objects, state, side) for side in sides]
    edits: dict[bytes, bytes | None] = {}
    for content_id, earlier in state.contested.items():
        different = {positions.get(content_id) for positions in at_sides}
        for key, record in earlier if len(different) > 1 else ():
            conflicts = (
                merge_states(ContentStates(Position(key, record), *pair))[1]
                for pair in combinations(different, 2)
            )
            if key not in edits and not tree.get(objects, state.root, [key]) and all(conflicts):
                edits[key] = record
                break
    return edit(objects, state.root, edits)


def _positions(objects: Objects, state: _State, side: Id) -> dict[bytes, Position]:
    """Returns the positions of the contested contents in a side, by content id."""
    return {
        content_id_of(record): Position(key, record)
        for key, _, record in tree.diff(objects, state.root, side)
        if record is not None and content_id_of(record) in state.contested
    }
