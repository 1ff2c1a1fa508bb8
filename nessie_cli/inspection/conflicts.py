"""What is in conflict: what each side did to a content, and the fields that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.inspection.fields import Difference, differences
from nessie_cli.model import Conflict, Content, ContentKey, IcebergTable, IcebergView, Rename

if TYPE_CHECKING:
    from nessie_cli.iceberg.metadata import Document

LARGEST_FILE = 4 * 2**20
"""Metadata files larger than this are not read for a conflict report."""
MOST_COLUMNS = 8
"""If more columns differ, only their number is shown."""
_COLUMN = "column "
_LOCATION = "metadata-location"


class SideChange(NamedTuple):
    """What one side of a conflict did to a content since the base, in order; nothing: unchanged.

    `verbs` are some of created, renamed, changed and deleted. `old_key` is set if the base has no
    content at the key in conflict, because the side renamed another one to it.
    """

    verbs: Sequence[str]
    old_key: ContentKey | None = None


def side_changes(conflict: Conflict) -> tuple[SideChange, SideChange]:
    """Returns what ours and theirs did to the content."""
    base = conflict.expected
    return (
        _side_change(base, conflict.actual, conflict.target_rename),
        _side_change(base, conflict.proposed, conflict.source_rename),
    )


def _side_change(base: Content | None, state: Content | None, rename: Rename | None) -> SideChange:
    if state is None:
        return SideChange([] if base is None else ["deleted"])
    if base is None:
        return SideChange(["renamed"], rename.old) if rename else SideChange(["created"])
    return SideChange([*(["renamed"] if rename else []), *(["changed"] if base != state else [])])


def differing_fields(
    conflict: Conflict, more: Sequence[Mapping[str, str]] = ()
) -> list[Difference]:
    """Returns the fields that differ between base, ours and theirs, the metadata file last.

    `more` are further fields of each state, such as its `figures`. There are none if the states are
    not known.
    """
    states = (conflict.expected, conflict.actual, conflict.proposed)
    if not any(states):
        return []
    return sorted(differences(states, more), key=lambda each: each.label == _LOCATION)


def figures(conflict: Conflict) -> Sequence[Mapping[str, str]]:
    """Returns rows, files and columns of the three states, by label.

    Returns nothing if a metadata file is remote, large or unreadable: a report must not wait for a
    network.
    """
    try:
        return figures_read(conflict, _read_local)
    except NessieError:
        return ()


def figures_read(
    conflict: Conflict, read: Callable[[int, IcebergTable | IcebergView], Document]
) -> Sequence[Mapping[str, str]]:
    """Returns rows, files and columns of the three states, by label.

    `read` returns the metadata of a state: 0 is the base, 1 ours, 2 theirs. Raises its errors.
    """
    from nessie_cli.iceberg.comparison import figures_of

    states = (conflict.expected, conflict.actual, conflict.proposed)
    return _with_few_columns(
        [
            figures_of(state, read(side, state))
            if isinstance(state, IcebergTable | IcebergView)
            else {}
            for side, state in enumerate(states)
        ]
    )


def _read_local(_: int, content: IcebergTable | IcebergView) -> Document:
    from nessie_cli.iceberg.files import Files
    from nessie_cli.iceberg.locations import scheme_of
    from nessie_cli.iceberg.metadata import parse_document

    files, location = Files(), content.metadata_location
    if scheme_of(location) not in ("", "file") or files.size(location) > LARGEST_FILE:
        raise InvalidInput(f"{location} is remote or large")
    return parse_document(files.read(location), location)


def _with_few_columns(states: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Replaces the columns of the states by their number if many columns differ."""
    columns = {label for state in states for label in state if label.startswith(_COLUMN)}
    present = [state for state in states if state]
    differing = [label for label in columns if len({state.get(label) for state in present}) > 1]
    if len(differing) <= MOST_COLUMNS:
        return states
    return [
        {label: text for label, text in state.items() if label not in columns}
        | ({"columns": str(len(columns & set(state)))} if state else {})
        for state in states
    ]
