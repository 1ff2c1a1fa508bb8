"""Which locations a warehouse allows, and where new tables, views and metadata files lie.

A location is input: anybody who may commit can write any text into a table. Every check here is
made on all readings of a location (as written, and percent-decoded), because the server, Spark and
object stores read one text differently. A location is allowed only if all its readings are.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from posixpath import normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.iceberg.files import scheme_of, shown

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
PATH_PROPERTIES = (
    "write.metadata.path",
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties of tables and views that name folders: all those that Iceberg writes to."""

_SLASHES = re.compile(r"/{2,}")
_MOST_DECODINGS = 4
_MOST_CHARACTERS = 4096
_NOT_FOR_FOLDERS = re.compile(r"[^\w.-]|^\.+")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ISSUED_FOLDER = re.compile(rf"[^/]*_({_UUID})")
_METADATA_FILE = re.compile(r"(?:.*/)?v?(\d{1,18})(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


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


def is_inside(normal: str, base: str) -> bool:
    """Whether a normal location is a base or lies below it; never by half a name."""
    return normal == base or normal.startswith(base if base.endswith("/") else f"{base}/")


class Base(NamedTuple):
    """A location that a warehouse allows: as it is written, and with symbolic links resolved."""

    written: ParsedLocation
    resolved: ParsedLocation

    @classmethod
    def of(cls, location: str) -> Base:
        """Returns the base of a location. Raises `LocationRefused`."""
        place = parse(location)
        written = place._replace(path=_without_dots(place.path))
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
        resolved = _without_dots(path)
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


def _without_dots(path: str) -> str:
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


# -- where new tables and files lie ----------------------------------------------------------------


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
        for path in (reading, _without_dots(reading)):
            issued = issued_uuid(place._replace(path=path).normal)
            if issued is not None and issued not in own:
                raise LocationRefused(f"location {location} lies in the folder of another table")


def next_metadata_file(
    table_location: str, properties: Mapping[str, str], current: str | None
) -> str:
    """Returns the name of a table's or view's next metadata file.

    It is `.../metadata/NNNNN-UUID.metadata.json`.
    """
    folder = properties.get("write.metadata.path") or f"{table_location.rstrip('/')}/metadata"
    match = _METADATA_FILE.fullmatch(current) if current else None
    number = int(match[1]) + 1 if match else 0
    return f"{folder.rstrip('/')}/{number:05}-{uuid.uuid4()}.metadata.json"


def text_of(document: Mapping[str, Any], name: str) -> str:
    """Returns a member of a document that must be a string. Raises `InvalidInput`."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a non-empty string")
    return value
