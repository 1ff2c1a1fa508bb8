"""The page of one content: its fields, metadata, history, and its states on branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from nessie_cli.errors import NessieError, NotAllowed
from nessie_cli.iceberg.comparison import Description, describe
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.inspection.contents import entry_at
from nessie_cli.inspection.fields import changed_labels, fields
from nessie_cli.inspection.key_history import history_of_key
from nessie_cli.inspection.key_states import KeyState, states_of_key
from nessie_cli.inspection.snapshots import Snapshots, snapshots_of
from nessie_cli.model import (
    Content,
    ContentKey,
    Entry,
    IcebergTable,
    IcebergView,
    LogEntry,
    Namespace,
    Reference,
    ReferenceType,
)
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.plot import Plot, plot_of
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.wire.keys import encode_canonical

COMMITS = 20
"""The commits of a page of the history."""
BRANCHES = 100
"""The most branches that are compared."""
SNAPSHOTS = 50
"""The most snapshots of the plot and the table."""
MOST_FIELDS, MOST_COLUMNS, MOST_PROPERTIES = 100, 300, 100
"""The most fields, columns and properties that are shown."""


class Metadata(NamedTuple):
    """What a metadata file says, or why it is not readable here."""

    description: Description | None = None
    snapshots: Snapshots | None = None
    plot: Plot | None = None
    problem: str = ""


class HistoryRow(NamedTuple):
    """A commit that changed the content, and the labels of the changed fields."""

    entry: LogEntry
    change: ContentChange
    labels: Sequence[str]


class History(NamedTuple):
    """A page of the history. `older` are the query fields of the next one, None at the end."""

    rows: Sequence[HistoryRow] = ()
    older: Mapping[str, str] | None = None
    problem: str = ""


class Branches(NamedTuple):
    """The branches on which the content differs, and the number of equal ones.

    Of all `total` branches, `compared` were read.
    """

    differing: Sequence[KeyState]
    equal: int
    compared: int
    total: int


async def content(access: TableAccess, call: PageCall) -> Reply:
    """`GET /ui/content`: the content of `key`."""
    reply: Reply = await access.answer(call, partial(_content, access))
    return reply


def _content(access: TableAccess, call: PageCall) -> Reply:
    at, key = call.reference_named(), call.key_named()
    entry, value = entry_at(call.repository, at, key)
    return call.page(
        "content.html",
        str(key),
        at=at,
        key=key,
        above=[ContentKey(key.elements[:n]) for n in range(1, len(key.elements))],
        entry=entry,
        fields=list(fields(value).items()),
        most_fields=MOST_FIELDS,
        is_namespace=isinstance(value, Namespace),
        sql=getattr(value, "sql_text", None),
        metadata=_metadata(access, call, at, key, value),
        most_columns=MOST_COLUMNS,
        most_properties=MOST_PROPERTIES,
        history=_history(call, at, key),
        is_newest=not call.text("older"),
        branches=_branches(call, entry),
    )


def _metadata(
    access: TableAccess, call: PageCall, at: Reference, key: ContentKey, value: Content
) -> Metadata | None:
    """Returns what the metadata file says; None for a content that has none."""
    if not isinstance(value, IcebergTable | IcebergView):
        return None
    if not access.has_warehouses:
        return Metadata(problem="this server has no warehouse, so it reads no metadata files")
    with access.metadata(call.repository) as reader:
        try:
            document = reader.read(at.hash, key, value)
            description = describe(value, document)
            if isinstance(value, IcebergView):
                return Metadata(description)
            snapshots = snapshots_of(value, document, SNAPSHOTS)
        except NessieError as error:
            return Metadata(problem=error.message)
    numbers = [(each.time, each.rows) for each in snapshots.rows if each.rows is not None]
    return Metadata(description, snapshots, plot_of(numbers[::-1]))


def _history(call: PageCall, at: Reference, key: ContentKey) -> History:
    start, name = call.text("older") or at.hash, call.key("was") or key
    try:
        start = call.repository.resolve(start).hash
        commits = list(islice(history_of_key(call.repository, start, name), COMMITS + 1))
    except NotAllowed as refusal:
        return History(problem=refusal.message)
    rows = [
        HistoryRow(entry, change, changed_labels(change)) for entry, change in commits[:COMMITS]
    ]
    if len(commits) <= COMMITS:
        return History(rows)
    for row in rows:
        if row.change.old_key is not None:
            # The history continues under the old key, or stays at it if the content left it.
            name = row.change.old_key
    return History(rows, {"older": commits[COMMITS][0].hash, "was": encode_canonical(name)})


def _branches(call: PageCall, entry: Entry) -> Branches:
    branches: Any = list(call.repository.references(ReferenceType.BRANCH))
    # The default branch is compared in any case.
    branches.sort(key=lambda branch: branch.name != call.default_branch)
    states = list(states_of_key(call.repository, branches[:BRANCHES], entry.key))
    differing = [
        state for state in states if state.entry is None or state.entry.cache_key != entry.cache_key
    ]
    return Branches(differing, len(states) - len(differing), len(states), len(branches))
