"""The result of a command, and its JSON form."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args

from msgspec.structs import replace

from nessie_cli.errors import NessieError
from nessie_cli.wire import documents
from nessie_cli.wire.encode import encode, encoder
from nessie_cli.wire.record import OPTIONAL, Record
from nessie_cli.wire.shape import attributes

if TYPE_CHECKING:
    from nessie_cli.cli.app.output import Output


class Result(Record, frozen=True):
    """The base class of results: structs whose fields are the attributes of the JSON.

    `listing` names the field with a long listing. It is an iterator, read while it is printed.
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


class Listing(Result, frozen=True, kw_only=True):
    """A result with a listing that is read while it is printed."""

    error: Annotated[None, documents.Error, OPTIONAL] = None


class Page(Listing, frozen=True, kw_only=True):
    """A listing in the form of a page of the REST API.

    `token` is always null here. `hasMore` is true if a limit cut the listing short.
    """

    has_more: bool = False
    token: str | None = None


def print_json(result: Result, output: "Output") -> None:
    """Prints a result as one JSON document, or as JSON lines: a listing with `--jsonl`."""
    kind: Any = type(result)
    if kind.listing is None:
        output.print_document(encode(kind, result))
        return
    listed = next(one for one in attributes(kind) if one.source == kind.listing)
    item = get_args(listed.type)[0]
    records = getattr(result, kind.listing)
    others = encode(kind, replace(result, **{kind.listing: ()}))
    del others[listed.name]
    output.print_listing(listed.name, map(encoder(item), records), **others)
