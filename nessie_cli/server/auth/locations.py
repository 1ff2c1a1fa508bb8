"""The right to choose locations, in changes whose metadata files the server does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nessie_cli.errors import NotAllowed
from nessie_cli.model import IcebergTable, IcebergView
from nessie_cli.repository.changes import Commit, Merge, Transplant
from nessie_cli.repository.draft import Draft

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations
    from nessie_cli.server.auth.policy import Policy

_TYPES = (IcebergTable.type, IcebergView.type)


def check_locations(draft: Draft[Any], locations: RecordedLocations, policy: Policy | None) -> None:
    """Raises `NotAllowed` for a content whose location its caller may not choose.

    The caller needs `CHOOSE_LOCATION`, unless the metadata file lies in the folder that HEAD of the
    branch records for the content id. Without a policy, nobody has this right.
    """
    change = draft.change
    if draft.repeated or not isinstance(change, Commit | Merge | Transplant):
        return
    changes = list(draft.key_changes())
    recorded = {
        before.id: before
        for one in changes
        if one.type_before in _TYPES
        and isinstance(before := one.before, IcebergTable | IcebergView)
    }
    for one in changes:
        after = one.after if one.type_after in _TYPES else None
        if not isinstance(after, IcebergTable | IcebergView) or locations.accept(
            after, recorded.get(after.id)
        ):
            continue
        if policy is None or not policy.may_choose_location(change.branch, one.key, after.type):
            raise NotAllowed(
                (
                    f"'CHOOSE_LOCATION' is not allowed on content '{one.key.plain}': its metadata"
                    f" file {after.metadata_location} is not in the folder that the catalog records"
                    " for it"
                ),
                hint="create tables through the Iceberg REST catalog",
            )
