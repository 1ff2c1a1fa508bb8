"""The result of a command, and its JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import UNSET, Struct, UnsetType, to_builtins
from msgspec.structs import replace

from nessie_cli.errors import NessieError
from nessie_cli.wire.documents import Error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nessie_cli.cli.app.output import Output

    Records = Iterable
else:
    Records = list
"""The records of a listing: an iterator, and a list in the schema."""


class Result(Struct, frozen=True):
    """The base class of results.

    A result whose fields are the attributes of the JSON is a `Document`. Any other has a field
    `document` for the JSON, beside the values that `show` prints.
    """

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return 0

    @property
    def failures(self) -> Sequence[NessieError]:
        """The parts of the work that failed.

        They are printed on stderr after the result; exit code 8.
        """
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """Remarks that are printed on stderr after the result, unless `--quiet` is set."""
        return ()


class Document(Result, frozen=True, rename="camel"):
    """The base class of the JSON documents of commands."""

    listing: ClassVar[str | None] = None
    """The field of which `--jsonl` prints one line each; None to print the document itself.

    It is an iterator, read while it is printed.
    """


class Listing(Document, frozen=True, kw_only=True):
    """A listing that is read while it is printed. `error` is set if it breaks off."""

    error: Error | UnsetType = UNSET


class Page(Listing, frozen=True, kw_only=True):
    """A listing in the form of a page of the REST API.

    `token` is always null here. `hasMore` is true if a limit cut the listing short.
    """

    has_more: bool = False
    token: str | None = None


def print_json(result: Any, output: Output) -> None:
    """Prints a result as one JSON document, or as JSON lines: a listing with `--jsonl`."""
    document = result if isinstance(result, Document) else result.document
    name = getattr(document, "listing", None)
    if name is None:
        output.print_document(document)
        return
    names = dict(zip(document.__struct_fields__, document.__struct_encode_fields__, strict=True))
    others = to_builtins(replace(document, **{name: []}))
    del others[names[name]]
    output.print_listing(names[name], getattr(document, name), **others)
