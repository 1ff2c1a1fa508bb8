"""The tables of a branch on all other branches, and at the merge bases with them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from nessie_cli.errors import NotFound
from nessie_cli.model import (
    NO_ANCESTOR,
    Content,
    ContentKey,
    IcebergTable,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.revisions import Revision

Tables = Mapping[ContentKey, IcebergTable]


class OtherBranch(Struct, frozen=True):
    """A table on another branch: at its head, and at the merge base with the branch."""

    base: IcebergTable
    head: IcebergTable


def on_other_branches(
    repository: Repository, branch: Reference, tables: Tables
) -> dict[ContentKey, dict[str, OtherBranch]]:
    """Returns the tables of a branch on the other branches, by keys and the names of branches.

    A branch without commits of its own counts, because it can get some. A table that was renamed
    since is found by its content id. Cost: for each branch the commits since its merge base, and
    two reads of the tables; one listing for each commit without the key of a table.
    """
    others: dict[ContentKey, dict[str, OtherBranch]] = {key: {} for key in tables}
    states: dict[str, Mapping[ContentKey, IcebergTable]] = {}

    def at(commit: str) -> Mapping[ContentKey, IcebergTable]:
        if commit not in states:
            states[commit] = tables_at(repository, commit, tables)
        return states[commit]

    for other in repository.references():
        if other.type is not ReferenceType.BRANCH or other.name == branch.name:
            continue
        base = NO_ANCESTOR
        with suppress(NotFound):
            base = repository.merge_base(f"@{branch.hash}", f"@{other.hash}")
        if base == NO_ANCESTOR:
            continue
        bases, heads = at(base), at(other.hash)
        for key in bases.keys() & heads.keys():
            others[key][other.name] = OtherBranch(bases[key], heads[key])
    return others


def tables_at(repository: Repository, base: str, tables: Tables) -> dict[ContentKey, IcebergTable]:
    """Returns the earlier states of tables at a commit, by their present keys."""
    at = Revision(None, base)
    states: dict[ContentKey, Content] = dict(repository.contents(at, tables))
    elsewhere = {
        content.id: key
        for key, content in tables.items()
        if (state := states.get(key)) is None or state.id != content.id
    }
    if elsewhere:
        earlier = {
            entry.key: elsewhere[entry.content_id]
            for entry in repository.entries(at)
            if entry.content_id in elsewhere
        }
        renamed = repository.contents(at, earlier)
        states = {key: state for key, state in states.items() if tables[key].id == state.id}
        states |= {earlier[key]: content for key, content in renamed.items()}
    return {key: state for key, state in states.items() if isinstance(state, IcebergTable)}
