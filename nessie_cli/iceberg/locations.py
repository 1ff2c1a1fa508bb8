"""Locations of files as texts that can be compared: one file has one normal form, however its writer has spelt it.

Writers of one lake spell differently: Hadoop's file system says `s3a:`, Iceberg's own `s3:`, Java `file:/lake`, PyIceberg `/lake` or
`file:///lake`. Where two forms may or may not be one file, they are taken for one: what is taken for needed too often stays, nothing is lost.
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
    """The normal form of an absolute location: a path for a local file, `scheme://authority/path` for all others, without a slash at its end.

    `s3a:` and `s3n:` are `s3:`; slashes that follow each other are one; percent-encoding is left as it is. Symbolic links of local files are
    followed (those of each folder once). Raises `InvalidInput` for what is not absolute, and for remote locations with `?` or `#`: some readers
    take what comes behind for a part of the name, others do not.
    """
    scheme = scheme_of(location)
    if scheme in ("", "file"):
        return _local(location)
    if "?" in location or "#" in location:
        raise InvalidInput(
            f"{shown(location)}: which file this is cannot be told, because of '?' or '#' in it"
        )
    authority, slash, path = location.partition(":")[2].removeprefix("//").partition("/")
    scheme = _SAME_AS.get(scheme, scheme)
    return f"{scheme}://{authority}{_SLASHES.sub('/', slash + path).rstrip('/')}"


def _local(location: str) -> str:
    path = str(local_path(location))
    if not path.startswith("/"):
        raise InvalidInput(f"{shown(location)}: is not absolute")
    # Not os.path.normpath: behind a symbolic link, `..` is not the folder above in the text.
    folder, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        return _real_folder(path)
    found = f"{_real_folder(folder or '/').rstrip('/')}/{name}"
    return os.path.realpath(found) if os.path.islink(found) else found  # noqa: PTH114 - pathlib takes five times as long, for each file of a lake


@lru_cache(maxsize=65_536)
def _real_folder(path: str) -> str:
    return os.path.realpath(path)


def is_inside(location: str, base: str) -> bool:
    """Whether a normal location is a base or lies below it; never by half a name: `/lake/tables` is not inside `/lake/t`."""
    return location == base or location.startswith(base if base.endswith("/") else f"{base}/")


class Places:
    """A set of bases; those that lie in others count as part of these. Asking costs O(log bases)."""

    def __init__(self, bases: Iterable[str]) -> None:
        """Take normal locations."""
        outermost: list[tuple[str, str]] = []
        for base in sorted(_as_prefix(base) for base in bases):
            if not outermost or not base.startswith(outermost[-1][0]):
                outermost.append((base, base.rstrip("/") or "/"))
        self._prefixes = [prefix for prefix, _ in outermost]
        self.outermost = tuple(base for _, base in outermost)

    def around(self, location: str) -> str | None:
        """The base that a normal location lies in, None for none."""
        prefix = _as_prefix(location)
        place = bisect_right(self._prefixes, prefix)
        return (
            self.outermost[place - 1]
            if place and prefix.startswith(self._prefixes[place - 1])
            else None
        )


def _as_prefix(base: str) -> str:
    return base if base.endswith("/") else f"{base}/"
