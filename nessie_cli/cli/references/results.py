"""The results of `nessie branch` and `nessie tag`."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Result
from nessie_cli.errors import NessieError
from nessie_cli.model import Reference, Tag
from nessie_cli.render.references import print_references
from nessie_cli.render.spans import Span
from nessie_cli.render.text import short_hash
from nessie_cli.wire import documents
from nessie_cli.wire.record import NOT_JSON, OPTIONAL

DELETED = "deleted"
"""The action of a deletion."""


class References(Page, frozen=True, kw_only=True):
    """Branches or tags."""

    listing = "references"
    references: Iterable[Reference]
    current: Annotated[str | None, NOT_JSON]
    verbose: Annotated[bool, NOT_JSON]


class SingleReference(Result, frozen=True):
    """One reference."""

    reference: Reference
    action: Annotated[str | None, NOT_JSON] = None
    """The action on the reference, or None if it is only listed."""
    hint: Annotated[str | None, NOT_JSON] = None
    current: Annotated[str | None, NOT_JSON] = None
    verbose: Annotated[bool, NOT_JSON] = False


class Tags(References, frozen=True, kw_only=True):
    """Tags with their messages."""

    references: Iterable[Tag]


class SingleTag(SingleReference, frozen=True):
    """One tag with its message."""

    reference: Tag


class DeletedReferences(Result, frozen=True):
    """References that were deleted, if several were named; `errors` if some could not be."""

    references: Sequence[Reference]
    errors: Annotated[Sequence[NessieError], list[documents.Error], OPTIONAL]
    deletions: Annotated[Sequence[SingleReference], NOT_JSON]
    """Messages about each deletion, with the command that undoes it."""

    @property
    def failures(self) -> Sequence[NessieError]:
        """The references that could not be deleted, and why."""
        return self.errors


def show(result: Result, output: Output) -> None:
    """Prints a list, or a line for each reference that was changed."""
    if isinstance(result, References):
        print_references(
            result.references,
            output.out,
            current=result.current,
            verbose=result.verbose,
            tags=isinstance(result, Tags),
        )
    elif isinstance(result, DeletedReferences):
        for deletion in result.deletions:
            _show_action(deletion, output)
    elif isinstance(result, SingleReference) and result.action is None:
        print_references(
            [result.reference],
            output.out,
            current=result.current,
            verbose=result.verbose,
            tags=isinstance(result, SingleTag),
        )
    elif isinstance(result, SingleReference):
        _show_action(result, output)


def _show_action(result: SingleReference, output: Output) -> None:
    reference = result.reference
    before, after = (" (was ", ")") if result.action == DELETED else (" at ", "")
    output.say(
        f"{result.action} {reference.type.lower()} ",
        Span(reference.name, "name"),
        before,
        Span(short_hash(reference.hash), "hash"),
        after,
    )
    if result.hint:
        output.note(result.hint)
