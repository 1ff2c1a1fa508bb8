"""Normal forms of file locations, so that they can be compared.

Writers spell the location of one file differently: Hadoop writes `s3a:`, Iceberg `s3:`, Java
`file:/lake`, PyIceberg `/lake` or `file:///lake`. Two spellings that may mean one file get the same
form. Garbage collection then keeps a file too many, but never deletes one that is needed.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import local_path, scheme_of, shown

_SAME_AS = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb", "gcs": "gs"}
_SLASHES = re.compile(r"/{2,}")


def normalised(location: str) -> str:
    """Returns the normal form of an absolute location, without a slash at its end.

    It is a path for a local file, with symbolic links resolved, and `scheme://authority/path` for
    other files. `s3a:` and `s3n:` become `s3:`, and repeated slashes one slash. Percent-encoding is
    preserved. Raises `InvalidInput` for a relative location, and for a remote location with `?` or
    `#`, because only some readers take these for a part of the name.
    """
    scheme = scheme_of(location)
    if scheme in ("", "file"):
        return _local(location)
    if "?" in location or "#" in location:
        raise InvalidInput(f"{shown(location)} is ambiguous, because it contains '?' or '#'")
    authority, slash, path = location.partition(":")[2].removeprefix("//").partition("/")
    scheme = _SAME_AS.get(scheme, scheme)
    return f"{scheme}://{authority}{_SLASHES.sub('/', slash + path).rstrip('/')}"


def _local(location: str) -> str:
    path = str(local_path(location))
    if not path.startswith("/"):
        raise InvalidInput(f"{shown(location)} is not absolute")
    # Not os.path.normpath: after a symbolic link, `..` is not the parent in the text.
    folder, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        return _real_folder(path)
    resolved = f"{_real_folder(folder or '/').rstrip('/')}/{name}"
    # For each file of a lake; pathlib takes five times as long.
    return os.path.realpath(resolved) if os.path.islink(resolved) else resolved  # noqa: PTH114


@lru_cache(maxsize=65_536)
def _real_folder(path: str) -> str:
    return os.path.realpath(path)


def is_inside(location: str, base: str) -> bool:
    """Whether a normal location is a base or below it. `/lake/tables` is not inside `/lake/t`."""
    return location == base or location.startswith(base if base.endswith("/") else f"{base}/")


class LocationSet:
    """A set of base locations, without those inside another base. Lookups cost O(log n)."""

    def __init__(self, bases: Iterable[str]) -> None:
        """Takes normal locations."""
        outermost: list[tuple[str, str]] = []
        for base in sorted(_as_prefix(base) for base in bases):
            if not outermost or not base.startswith(outermost[-1][0]):
                outermost.append((base, base.rstrip("/") or "/"))
        self._prefixes = [prefix for prefix, _ in outermost]
        self.outermost = tuple(base for _, base in outermost)

    def around(self, location: str) -> str | None:
        """Returns the base that contains a normal location, or None."""
        prefix = _as_prefix(location)
        place = bisect_right(self._prefixes, prefix)
        return (
            self.outermost[place - 1]
            if place and prefix.startswith(self._prefixes[place - 1])
            else None
        )


def _as_prefix(base: str) -> str:
    return base if base.endswith("/") else f"{base}/"
