"""Locations of files as text: their parts, and which location lies inside another one.

Writers spell the location of one file differently: Hadoop writes `s3a:`, Iceberg `s3:`, Java
`file:/lake`, PyIceberg `/lake` or `file:///lake`. Locations are compared for two purposes:

* Garbage collection gives two spellings that may mean one file the same normal form. It then keeps
  a file too many, but never deletes one that is needed.
* A server checks what clients write into tables, which may be any text. It compares all readings of
  a location (as written, and percent-decoded), because the server, Spark and object stores read one
  text differently. A location is allowed only if all its readings are.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput, NotAllowed

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""At least two characters, because one is a drive letter."""
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")
_SLASHES = re.compile(r"/{2,}")


def scheme_of(uri: str) -> str:
    """Returns the scheme of a URI in lower case, an empty string for a plain path."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else ""


def is_local(uri: str) -> bool:
    """Returns whether a location is local: a path or a `file:` URI."""
    return scheme_of(uri) in ("", "file")


def authority_of(uri: str) -> str:
    """Returns the scheme and host (or bucket) of a URI, an empty string for a plain path.

    >>> authority_of("s3://lake/db/t/1.json")
    's3://lake'
    """
    match = _AUTHORITY.match(uri)
    return match[0].lower() if match else ""


def shown(uri: str) -> str:
    """Returns a file name for a message of one line."""
    return uri if uri.isprintable() else repr(uri)


def absolute_location(uri: str) -> str:
    """Returns a location unchanged, but a relative path as an absolute one."""
    # Path.resolve would follow symbolic links. The table's writer uses the path with the links.
    return uri if scheme_of(uri) or Path(uri).is_absolute() else os.path.abspath(uri)  # noqa: PTH100


def local_path(uri: str) -> Path:
    """Returns the path of a plain path or a `file:` URI.

    Raises `InvalidInput` for another host or a relative URI. Iceberg writers do not percent-encode
    these URIs, but people do: the decoded path is used if only that one exists.
    """
    if not scheme_of(uri):
        return Path(uri)
    _, _, rest = uri.partition(":")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidInput(
                f"{shown(uri)} names the host {host!r}",
                hint="write file:/absolute/path or file:///absolute/path",
            )
        rest = slash + path
    if not rest.startswith("/"):
        raise InvalidInput(
            f"{shown(uri)} is a relative URI",
            hint="write file:/absolute/path, or the path without 'file:'",
        )
    decoded = unquote(rest) if "%" in rest else rest
    return (
        Path(rest)
        if decoded == rest or os.path.lexists(rest) or not os.path.lexists(decoded)
        else Path(decoded)
    )


def is_inside(location: str, base: str) -> bool:
    """Whether a normal location is a base or below it. `/lake/tables` is not inside `/lake/t`."""
    return location == base or location.startswith(base if base.endswith("/") else f"{base}/")


# -- normal forms, for garbage collection ----------------------------------------------------------


_SAME_AS = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb", "gcs": "gs"}


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


def probable_location(location: str) -> str:
    """Returns the probable location of a table by that of its metadata file.

    It is the folder that contains `metadata/`, and only used to protect files.
    """
    folder, _, _ = location.rstrip("/").rpartition("/")
    around, _, name = folder.rpartition("/")
    try:
        return normalised(
            around if name in ("metadata", "_delta_log") and around else folder or location
        )
    except InvalidInput:
        return location


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


# -- allowed locations, for servers ----------------------------------------------------------------


LOCAL = "file"
SCHEMES = {
    "file": LOCAL,
    "s3": "s3", "s3a": "s3", "s3n": "s3",
    "gs": "gs",
    "abfs": "abfs", "abfss": "abfs", "wasb": "wasb", "wasbs": "wasb",
    "oss": "oss",
    "hdfs": "hdfs",
}  # fmt: skip
"""The schemes of locations, with the one that stands for those that name the same files."""
_MOST_DECODINGS = 4
_MOST_CHARACTERS = 4096


class LocationRefused(NotAllowed):
    """A location is outside of the allowed places, or belongs to another table."""


class ParsedLocation(NamedTuple):
    """A location in parts: scheme, authority (the bucket) and path.

    Schemes that name the same files are one scheme.
    """

    scheme: str
    authority: str
    path: str

    @property
    def normal(self) -> str:
        """The text by which locations are compared: a path if it is local, otherwise a URI."""
        local = self.scheme == LOCAL
        return self.path if local else f"{self.scheme}://{self.authority}{self.path}"


def parse(location: str) -> ParsedLocation:
    """Returns the parts of a location, without any I/O.

    The path begins with a slash and does not end with one. It is neither decoded nor resolved.
    Raises `LocationRefused` unless the location is absolute and its scheme is known.
    """
    if not location.isprintable() or len(location) > _MOST_CHARACTERS:
        raise LocationRefused(
            f"location {shown(location[:100])} has characters that cannot be printed, or too many"
        )
    given = scheme_of(location)
    scheme = SCHEMES.get(given or LOCAL)
    if scheme is None:
        raise LocationRefused(
            f"location {location}: {given} is not a scheme of a warehouse. Schemes:"
            f" {', '.join(SCHEMES)}"
        )
    rest = location[len(given) + 1 :] if given else location
    authority = ""
    if given and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    if scheme == LOCAL:
        _check_local(location, authority, rest)
        authority = ""
    else:
        _check_remote(location, scheme, authority, rest)
    path = rest.rstrip("/")
    return ParsedLocation(scheme, authority, path or "/" if scheme == LOCAL else path)


def _check_local(location: str, authority: str, path: str) -> None:
    if authority not in ("", "localhost"):
        raise LocationRefused(f"location {location} names the host {authority!r}")
    if not path.startswith("/"):
        raise LocationRefused(f"location {location} is not absolute")


def _check_remote(location: str, scheme: str, authority: str, path: str) -> None:
    if not authority or (scheme == "s3" and not re.fullmatch(r"[A-Za-z0-9._-]+", authority)):
        raise LocationRefused(f"location {location} names no bucket")
    if "?" in path or "#" in path:
        # Some readers take what follows for a part of the name, others do not.
        raise LocationRefused(f"location {location} must not contain '?' or '#'")


def readings(path: str) -> tuple[str, ...]:
    """Returns a path as it is written, and percent-decoded once or more often.

    Raises `LocationRefused` for a path that decodes to other paths again and again.
    """
    paths = [path]
    while "%" in paths[-1] and (decoded := unquote(paths[-1])) != paths[-1]:
        if len(paths) > _MOST_DECODINGS or not decoded.isprintable():
            raise LocationRefused(f"location {path} is percent-encoded more than once")
        paths.append(decoded)
    return tuple(paths)


class Base(NamedTuple):
    """A location that a warehouse allows: as it is written, and with symbolic links resolved."""

    written: ParsedLocation
    resolved: ParsedLocation

    @classmethod
    def of(cls, location: str) -> Base:
        """Returns the base of a location. Raises `LocationRefused`."""
        place = parse(location)
        written = place._replace(path=without_dots(place.path))
        local = place.scheme == LOCAL
        return cls(written, place._replace(path=os.path.realpath(place.path)) if local else written)

    def find(self, place: ParsedLocation) -> ParsedLocation | None:
        """Returns a location with symbolic links resolved, if all its readings lie here."""
        mine = self.written
        if (place.scheme, place.authority) != (mine.scheme, mine.authority):
            return None
        paths = list(map(self._find_path, readings(place.path)))
        return None if paths[0] is None or None in paths else place._replace(path=paths[0])

    def _find_path(self, path: str) -> str | None:
        resolved = without_dots(path)
        if self.written.scheme != LOCAL:
            here = all(is_inside(text, self.written.path) for text in (path, resolved))
            return path if here else None
        # Symbolic links are looked at only if the text is here.
        if not any(is_inside(resolved, base.path) for base in self):
            return None
        # Behind a symbolic link, `..` is not the folder above in the text. Programs differ.
        try:
            real_paths = [os.path.realpath(text) for text in dict.fromkeys((path, resolved))]
        except OSError:  # a symbolic link changed meanwhile
            return None
        inside = all(is_inside(real, self.resolved.path) for real in real_paths)
        return real_paths[0] if inside else None


def without_dots(path: str) -> str:
    """Returns a path as programs read it that resolve its dots, but no links."""
    return _SLASHES.sub("/", normpath(path)) if path else path


class Allowed:
    """The places that a warehouse allows."""

    def __init__(self, locations: Iterable[str]) -> None:
        self._bases = tuple(map(Base.of, locations))

    def find(self, location: str) -> tuple[ParsedLocation, Base]:
        """Returns where a location lies, with symbolic links resolved, and the base that holds it.

        Raises `LocationRefused` if none does. There is no I/O except for looking at symbolic links.
        """
        place = parse(location)
        for base in self._bases:
            if resolved := base.find(place):
                return resolved, base
        raise LocationRefused(f"location {location} is not allowed in this warehouse")

    def holds(self, location: str) -> bool:
        """Whether a location is allowed."""
        try:
            self.find(location)
        except LocationRefused:
            return False
        return True


# -- folders of tables -----------------------------------------------------------------------------


METADATA_PATH = "write.metadata.path"
PATH_PROPERTIES = (
    "write.data.path",
    METADATA_PATH,
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties of tables and views that name folders: all those that Iceberg writes to.

Older writers use the last two.
"""
_NOT_FOR_FOLDERS = re.compile(r"[^\w.-]|^\.+")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ISSUED_FOLDER = re.compile(rf"[^/]*_({_UUID})")
"""The folder that a server issues for a table, with the content id of the table."""


def folder_for(base: str, names: Iterable[str]) -> str:
    """Returns a folder with these names below a base, without characters that need escapes."""
    folders = (_NOT_FOR_FOLDERS.sub("_", name) for name in names)
    return "/".join((base.rstrip("/"), *folders))


def issued_uuid(location: str) -> str | None:
    """Returns the UUID of the outermost folder `NAME_UUID` in which a location lies."""
    match = _ISSUED_FOLDER.fullmatch(issued_folder(location).rpartition("/")[2])
    return match[1] if match else None


def issued_folder(location: str) -> str:
    """Returns the location of the outermost folder `NAME_UUID`, or the location without one."""
    folders = location.split("/")
    for number, folder in enumerate(folders, 1):
        if _ISSUED_FOLDER.fullmatch(folder):
            return "/".join(folders[:number])
    return location


def refuse_issued(location: str, own: Collection[str | None]) -> None:
    """Refuse a folder that the server issued, unless its UUID is one of the table's own.

    Some programs decode a location or resolve its dots before they use it, so all of its readings
    count.
    """
    place = parse(location)
    for reading in readings(place.path):
        for path in (reading, without_dots(reading)):
            issued = issued_uuid(place._replace(path=path).normal)
            if issued is not None and issued not in own:
                raise LocationRefused(f"location {location} lies in the folder of another table")
