"""Earlier states of tables and views whose metadata files garbage collection has deleted.

Reverts and restores bring such states back without reading them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.locations import is_local, local_path, shown
from nessie_cli.model import Content, ContentKey, metadata_file

_MOST_NAMED = 3
"""The most files that an error names."""


def is_deleted_here(location: str) -> bool:
    """Whether a local file is missing from a folder that exists. Cost: at most two `stat` calls.

    False for remote locations, and if the folder is missing: then the files of the catalog may be
    on another machine. The root folder exists on all of them.
    """
    if not is_local(location):
        return False
    try:
        path = local_path(location)
        folder = path.parent
        return not path.exists() and folder != folder.parent and folder.is_dir()
    except (InvalidInput, OSError, ValueError):
        return False


def refuse_deleted(
    restored: Mapping[ContentKey, Content | None],
    present: Iterable[Content],
    hint: str,
    is_deleted: Callable[[str], bool] = is_deleted_here,
) -> None:
    """Raises `InvalidInput` for contents whose metadata files are deleted; it names the files.

    `restored` has the new contents by key, None for a deletion. Files that contents of the branch
    name (`present`) are not checked.
    """
    named = {location for content in present if (location := metadata_file(content)) is not None}
    deleted = [
        f"{key}: {shown(location)}: no such file"
        for key, content in sorted(restored.items())
        if (location := metadata_file(content)) is not None
        and location not in named
        and is_deleted(location)
    ]
    if deleted:
        names = "; ".join(deleted[:_MOST_NAMED])
        more = f"; and {len(deleted) - _MOST_NAMED} more" if len(deleted) > _MOST_NAMED else ""
        raise InvalidInput(
            f"an earlier state cannot be restored, its metadata file is deleted: {names}{more}",
            hint=hint,
        )
