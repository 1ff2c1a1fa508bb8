"""Which metadata file in the folder of a table is the current one, and who says so.

The file `version-hint.text` says it, as for Iceberg's Hadoop catalog: its version, and the versions
that follow without a gap. Without it, the current file is a guess: a catalog writes a metadata file
before it commits, so the newest one may never have been committed. The guess is the file that no
other one names in its metadata log, if there is only one.

A folder may contain the files of several tables: of one that was dropped and created again, of a
table that was staged and never created, or of the branches of a catalog such as Nessie. Files that
engines wrote for a repository that had imported the table do not count: their metadata logs name
the copy that the import wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.files import Files, MissingFile, NoAnswer
from nessie_cli.iceberg.locations import normalised, shown
from nessie_cli.iceberg.metadata import parse_document
from nessie_cli.iceberg.newest import HINT, as_version, is_of_hadoop, last_without_gap, version_of
from nessie_cli.importing.metadata_files import is_copy
from nessie_cli.importing.source import Name, SourceContent, SourceKind, SourceProblem

Document = Mapping[str, Any]

METADATA = "metadata"
"""The folder of the metadata files in the folder of a table."""
_MOST_COMPARED = 10
"""How many files that are not predecessors of the current one are read."""
_MOST_NAMED = 5
_NO_SNAPSHOT = (None, -1)


class Outcome(NamedTuple):
    """The content of a folder, if there is one, and what else there is to say about it."""

    content: SourceContent | None = None
    problems: Sequence[SourceProblem] = ()
    left_out: Sequence[SourceProblem] = ()


class _Refusal(Exception):
    """The folder has no current metadata file. `is_problem` is false if the user need not act."""

    def __init__(self, message: str, *, is_problem: bool = True) -> None:
        super().__init__(message)
        self.is_problem = is_problem


class TableFolder:
    """The folder of a table or view."""

    def __init__(self, location: str, names: Iterable[str], files: Files) -> None:
        """Takes the names of the files in its folder `metadata`."""
        self._location = location
        self._folder = f"{location.rstrip('/')}/{METADATA}"
        self._names = frozenset(names)
        self._files = files
        self._documents: dict[str, Document] = {}
        self._after_copies: set[str] = set()
        self._left_out: list[str] = []

    @property
    def has_metadata(self) -> bool:
        """Whether there is any metadata file."""
        return any(map(_is_metadata, self._names))

    def current(self, name: Name) -> Outcome:
        """Returns the content with its current metadata file. `name` is that of the content.

        Cost: a read of the hint and of the newest metadata file. Without a hint, also a read for
        each part of the metadata log, and of a few other files.
        """
        try:
            file, guess = self._chosen()
            document = self._document(file)
            location = self._location_in(document)
            if guess:
                self._check_manifest_list(file, document)
        except _Refusal as refusal:
            entry = SourceProblem(str(refusal), name, self._location)
            return Outcome(None, *(([entry], ()) if refusal.is_problem else ((), [entry])))
        except NoAnswer:
            raise
        except NessieError as error:
            return Outcome(None, [SourceProblem(error.message, name, self._location)])
        if self._after_copies:
            self._left_out.append(
                "metadata files that were written after an import of the table do not count"
            )
        kind = SourceKind.VIEW if "view-uuid" in document else SourceKind.TABLE
        return Outcome(
            SourceContent(
                name,
                kind,
                f"{location.rstrip('/')}/{METADATA}/{file}",
                guess,
                version=_version_in(document) if is_of_hadoop(file) else "",
            ),
            left_out=[SourceProblem(text, name, self._location) for text in self._left_out],
        )

    # -- the choice -------------------------------------------------------------------------------
    def _chosen(self) -> tuple[str, str]:
        """Returns the name of the current file, and why it is a guess, "" if it is none."""
        if HINT not in self._names:
            return self._guessed(f"there is no {HINT}")
        hint = self._hint()
        for file in (hint, f"{hint}.metadata.json"):
            if file in self._names and ".metadata.json" in file:
                return file, ""
        version = as_version(hint)
        if version is None:
            return self._guessed(f"{HINT} is not a number")
        return self._at_version(version)

    def _at_version(self, hint: int) -> tuple[str, str]:
        hadoop = self._versions(of_hadoop=True)
        if hint in hadoop:
            files = hadoop[last_without_gap(hint, hadoop)]
            if len(files) > 1:
                raise _Refusal(f"several files have one version: {_listed(files)}")
            if self._went_on(files[0]):
                return self._guessed(f"{HINT} names version {hint}, but another catalog went on")
            return files[0], ""
        numbered = self._versions(of_hadoop=False)
        if len(numbered.get(hint, ())) != 1:
            raise _Refusal(f"{HINT} names version {hint}, which does not exist")
        if hadoop or self._newest(of_hadoop=False) != numbered[hint]:
            return self._guessed(f"{HINT} names version {hint}, but there are newer files")
        return numbered[hint][0], ""

    def _went_on(self, file: str) -> bool:
        """Whether another catalog than Hadoop's has written metadata files after this one."""
        for tip in self._newest(of_hadoop=False):
            try:
                if file in self._predecessors(tip):
                    return True
            except InvalidInput:
                # A damaged file does not speak against the hint.
                continue
        return False

    def _guessed(self, reason: str) -> tuple[str, str]:
        newest = [*self._newest(of_hadoop=True), *self._newest(of_hadoop=False)]
        if not newest:
            names = list(filter(_is_metadata, self._names))
            raise _Refusal(
                f"no metadata file has a version in its name: {_listed(names)}", is_problem=False
            )
        if len(newest) > _MOST_NAMED:
            raise _Refusal(f"several metadata files may be current: {_listed(newest)}")
        lines = {tip: self._predecessors(tip) for tip in newest}
        tips = [
            tip
            for tip in newest
            if not any(tip in line for other, line in lines.items() if other != tip)
        ]
        if len(tips) > 1:
            raise _Refusal(f"several metadata files may be current: {_listed(tips)}")
        tip = tips[0] if tips else newest[0]
        self._check_staged(tip)
        others = self._compared(tip, lines[tip])
        # Views have no metadata log.
        has_log = "view-uuid" not in self._document(tip)
        more = f"; files that are not in its metadata log: {others}" if others and has_log else ""
        return tip, f"{reason}; the newest metadata file may never have been committed{more}"

    def _check_staged(self, tip: str) -> None:
        """Raises `_Refusal` for the only file of a table that was staged or is empty."""
        document = self._document(tip)
        count = sum(1 for name in self._names if version_of(name) is not None)
        if count == 1 and not is_of_hadoop(tip) and _is_staged(document):
            raise _Refusal(
                "its only metadata file has no snapshot: the table is empty, or it was staged and"
                " never created",
                is_problem=False,
            )

    def _compared(self, tip: str, line: frozenset[str]) -> int:
        """Compares the files that are neither the newest one nor its predecessors; their number.

        Raises `_Refusal` if one belongs to another table.
        """
        versions = {
            name: version
            for name in self._names - line - {tip}
            if (version := version_of(name)) is not None
        }
        ordered = sorted(versions, key=lambda name: (versions[name], name))
        half = _MOST_COMPARED // 2
        chosen = dict.fromkeys([*ordered[:half], *ordered[-half:]])
        uuid = _uuid(self._document(tip))
        for name in chosen:
            try:
                other = self._document(name)
            except InvalidInput:
                continue
            if _uuid(other) == uuid:
                continue
            if not _is_staged(other):
                raise _Refusal(
                    f"the folder has files of two tables: {tip} and {name} have different UUIDs"
                )
            self._left_out.append(
                f"{name} is of another table without a snapshot, which was staged and not created"
            )
        return len(versions)

    def _predecessors(self, tip: str) -> frozenset[str]:
        """Returns the names in the metadata log of a file, and in the logs of those, to the first.

        A log has the newest 100 files by default, so only every hundredth file is read.
        """
        return frozenset(self._names_in_logs(tip)) & self._names

    def _names_in_logs(self, tip: str) -> list[str]:
        """Returns the names in the metadata log of a file, and in the logs of those, newest first.

        They include names of files that no longer exist.
        """
        line: dict[str, None] = {}
        oldest = tip
        while True:
            try:
                log = self._document(oldest).get("metadata-log") or ()
            except InvalidInput:
                if oldest == tip:
                    raise
                return list(line)
            names = [_base_name(entry) for entry in reversed(log)]
            new = [name for name in names if name not in line]
            existing = [name for name in new if name in self._names]
            line.update(dict.fromkeys(new))
            if not existing:
                return list(line)
            oldest = existing[-1]

    # -- checks of the current file ---------------------------------------------------------------
    def _location_in(self, document: Document) -> str:
        """Returns the location of the table as its metadata file spells it.

        Raises `_Refusal` if this is another folder.
        """
        said = document.get("location")
        if not isinstance(said, str):
            return self._location
        here = normalised(self._location)
        if normalised(said) == here:
            return said
        if normalised(unquote(said)) == here:
            return self._location
        raise _Refusal(
            f"its metadata file says that it is in {shown(said)}: this folder is a copy, or it was"
            " moved"
        )

    def _check_manifest_list(self, file: str, document: Document) -> None:
        """Raises `_Refusal` if the files of the current snapshot were deleted."""
        current = document.get("current-snapshot-id")
        for snapshot in document.get("snapshots") or ():
            manifest_list = snapshot.get("manifest-list")
            if snapshot.get("snapshot-id") != current or not manifest_list:
                continue
            try:
                self._files.size(manifest_list)
            except MissingFile:
                raise _Refusal(
                    f"{file}: the manifest list of its snapshot is missing, so the table was"
                    " dropped, or its files were deleted",
                    is_problem=False,
                ) from None

    # -- files ------------------------------------------------------------------------------------
    def _newest(self, *, of_hadoop: bool) -> list[str]:
        """Returns the files with the highest version that no import precedes."""
        versions = self._versions(of_hadoop=of_hadoop)
        for version in sorted(versions, reverse=True):
            files = [name for name in versions[version] if not self._is_after_copy(name)]
            if files:
                return sorted(files)
        return []

    def _is_after_copy(self, name: str) -> bool:
        """Whether a file was written after an import, by an engine that works on its result."""
        if name not in self._after_copies:
            try:
                names = [name, *self._names_in_logs(name)]
            except InvalidInput:
                return False
            last = max((at for at, each in enumerate(names) if is_copy(each)), default=0)
            self._after_copies.update(names[:last])
        return name in self._after_copies

    def _versions(self, *, of_hadoop: bool) -> dict[int, list[str]]:
        """Returns the files with each version, of Hadoop's catalog (`v3`) or others (`00003-`)."""
        return self._by_version[of_hadoop]

    @cached_property
    def _by_version(self) -> dict[bool, dict[int, list[str]]]:
        files: dict[bool, dict[int, list[str]]] = {True: {}, False: {}}
        for name in sorted(self._names):
            version = version_of(name)
            if version is not None:
                files[is_of_hadoop(name)].setdefault(version, []).append(name)
        return files

    def _hint(self) -> str:
        try:
            first, _, _ = self._files.read(self._uri(HINT)).partition(b"\n")
        except InvalidInput:
            return ""
        return first.decode(errors="replace").strip()

    def _document(self, name: str) -> Document:
        if name not in self._documents:
            uri = self._uri(name)
            self._documents[name] = parse_document(self._files.read(uri), uri)
        return self._documents[name]

    def _uri(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _is_metadata(name: str) -> bool:
    """Whether a name is that of a metadata file. Copies that an import wrote begin with a dot."""
    return ".metadata.json" in name and not name.startswith(".")


def _is_staged(document: Document) -> bool:
    """Whether a metadata file is a table's first one, without a snapshot."""
    return (
        "view-uuid" not in document
        and not document.get("metadata-log")
        and document.get("current-snapshot-id") in _NO_SNAPSHOT
    )


def _version_in(document: Document) -> str:
    """Returns what differs between metadata files that have one name, one after the other."""
    return f"{_uuid(document)} {document.get('last-updated-ms', '')}"


def _uuid(document: Document) -> object:
    return document.get("view-uuid") or document.get("table-uuid")


def _base_name(entry: Any) -> str:
    location = entry.get("metadata-file") if isinstance(entry, Mapping) else None
    return location.rpartition("/")[2] if isinstance(location, str) else ""


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(sorted(names)[:_MOST_NAMED])
    return f"{first} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else first
