"""Finds the newest metadata file in a folder, for tables whose catalog is the file system."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.files import first_line, read_file
from nessie_cli.iceberg.locations import local_path, scheme_of, shown

HINT = "version-hint.text"
_MOST_DIGITS = 10
"""Digits of a version: an integer of 32 bits has no more."""
_METADATA = re.compile(
    r"(?!\d{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\.)"
    r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?"
)
"""Matches `v3.metadata.json`, `00003-UUID.metadata.json`, and compressed files.

A UUID alone is not a version, even if it begins with eight digits: Iceberg's Hadoop catalog writes
such a file before it commits.
"""


def is_folder(uri: str) -> bool:
    """Whether a location is an existing local folder, or remote and not a metadata file."""
    if scheme_of(uri) in ("", "file"):
        return local_path(uri).is_dir()
    return ".metadata.json" not in uri


def version_of(name: str) -> int | None:
    """Returns the version in the name of a metadata file, None if it has none."""
    match = _METADATA.fullmatch(name)
    return int(match[1]) if match else None


def is_of_hadoop(name: str) -> bool:
    """Whether the name of a metadata file with a version is one of Iceberg's Hadoop catalog."""
    return name.startswith("v")


def as_version(text: str) -> int | None:
    """Returns the version that a hint names, None if it is not a number."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


def last_without_gap(hint: int, versions: Collection[int]) -> int:
    """Returns the last of the versions that follow a hint without a gap."""
    while hint + 1 in versions:
        hint += 1
    return hint


def newest_metadata(folder: str, properties: Mapping[str, str]) -> str:
    """Returns the location of the newest metadata file in a folder or its folder `metadata`.

    `version-hint.text` contains a version. A writer that stopped early may not have updated it, so
    the versions that follow it without a gap count as well, as in Iceberg's Hadoop catalog. Without
    the file, or if it is not a number, the highest version is the newest. `properties` are those of
    the file system. Raises `InvalidInput` if there is no metadata file, or if several have that
    version.
    """
    for place in (f"{folder.rstrip('/')}/metadata", folder.rstrip("/")):
        names = _names(place, properties)
        versions = [(v, name) for name in names if (v := version_of(name)) is not None]
        if not versions:
            continue
        hint = _hinted(place, properties) if HINT in names else None
        newest = max(versions)[0] if hint is None else last_without_gap(hint, dict(versions))
        files = [name for version, name in versions if version == newest]
        if len(files) == 1:
            return f"{place}/{files[0]}"
        if not files:
            raise InvalidInput(
                f"{shown(place)}: {HINT} names version {newest}, which does not exist"
            )
        raise InvalidInput(
            f"{shown(place)}: several files have version {newest}: {', '.join(sorted(files))}",
            hint="name one of them",
        )
    raise InvalidInput(f"{shown(folder)} has no metadata file of an Iceberg table or view")


def _names(folder: str, properties: Mapping[str, str]) -> list[str]:
    if scheme_of(folder) in ("", "file"):
        local = local_path(folder)
        return [file.name for file in local.iterdir()] if local.is_dir() else []
    from pyarrow.fs import FileSelector

    from nessie_cli.iceberg.filesystems import filesystem

    system, path = filesystem(folder, properties)
    try:
        files = system.get_file_info(FileSelector(path, allow_not_found=True))
    except OSError as error:
        raise StoreUnavailable(f"{shown(folder)} cannot be listed: {first_line(error)}") from None
    return [file.base_name for file in files]


def _hinted(folder: str, properties: Mapping[str, str]) -> int | None:
    """Returns the version in the hint, None if it is not a number: some writers name a file."""
    try:
        first, _, _ = read_file(f"{folder}/{HINT}", properties).partition(b"\n")
    except InvalidInput:
        return None
    return as_version(first.decode(errors="replace").strip())
