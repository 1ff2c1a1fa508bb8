"""What a source of an import has to give: the names and metadata files of its contents.

A source is read once, before anything is decided or written. It opens no metadata file unless it
needs to: the plan of the import reads them all and checks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from nessie_cli.model import IcebergTable, IcebergView
from nessie_cli.model.progress import Progress

Name = tuple[str, ...]
"""The name of a namespace, table or view in its source, element by element."""


class SourceKind(StrEnum):
    """The type of a content in a source."""

    TABLE = "table"
    VIEW = "view"


class SourceContent(Struct, frozen=True):
    """A table or view of a source, with its current metadata file.

    `guess` says why the metadata file may not be the current one; it is empty if the source knows.
    `content` is the content of another Nessie server, with its id and its state of the metadata
    file, and None in other sources. `version` tells apart metadata files that have the same name
    one after the other, as those of tables of Hadoop's catalog that are dropped and created again.
    """

    name: Name
    kind: SourceKind
    metadata_location: str
    guess: str = ""
    content: IcebergTable | IcebergView | None = None
    version: str = ""


class SourceNamespace(Struct, frozen=True):
    """A namespace of a source."""

    name: Name
    properties: Mapping[str, str] = {}


class SourceProblem(Struct, frozen=True):
    """Something that the source has and that cannot be imported, with the reason.

    `name` is empty if the problem is about a place without a name, which `location` then is.
    """

    message: str
    name: Name = ()
    location: str = ""


class Listing(Struct, frozen=True):
    """Everything that a source has.

    `left_out` is what the source names or contains that no import takes, such as a dropped table
    in a folder, or a content of a type that a catalog of tables and views does not have.
    """

    namespaces: Sequence[SourceNamespace] = ()
    contents: Sequence[SourceContent] = ()
    problems: Sequence[SourceProblem] = ()
    left_out: Sequence[SourceProblem] = ()


class Source(Protocol):
    """A catalog, server or folder that is imported."""

    @property
    def label(self) -> str:
        """The source in messages and records, without secrets."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of PyIceberg's FileIO with which the files of the source are read."""

    def listing(self, namespaces: Sequence[Name], progress: Progress | None = None) -> Listing:
        """Reads the namespaces, and everything below them; all, if none is given.

        The namespaces above those given are listed as well. A namespace that does not exist is a
        problem, and so is a source without any content. Raises `StoreUnavailable` if the source
        does not answer, and `InvalidInput` or `NotAllowed` if it cannot be read at all. Cost: a few
        requests for each namespace, and one for each content unless the source lists metadata
        files.
        """

    def close(self) -> None:
        """Closes the connections to the source."""
