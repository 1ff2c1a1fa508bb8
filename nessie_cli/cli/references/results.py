"""The results of `nessie branch` and `nessie tag`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET, UnsetType

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Page, Records, Result
from nessie_cli.errors import NessieError
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import Reference
from nessie_cli.render.references import references_table
from nessie_cli.render.spans import Span
from nessie_cli.wire import references
from nessie_cli.wire.documents import Error
from nessie_cli.wire.references import AnyReference, reference_struct

DELETED = "deleted"
"""The action of a deletion."""


class References(Page, frozen=True, kw_only=True):
    """Branches or tags."""

    listing = "references"
    references: Records[AnyReference]


class ReferencesResult(Result, frozen=True, kw_only=True):
    """Branches or tags, and how they are printed."""

    references: Iterable[Reference]
    current: str | None
    verbose: bool

    @property
    def document(self) -> References:
        """The JSON document."""
        return References(references=map(reference_struct, self.references))


class SingleReference(Document, frozen=True):
    """One reference."""

    reference: AnyReference


class SingleReferenceResult(Result, frozen=True):
    """One reference, and how it is printed."""

    reference: Reference
    action: str | None = None
    """The action on the reference, or None if it is only listed."""
    hint: str | None = None
    current: str | None = None
    verbose: bool = False

    @property
    def document(self) -> SingleReference:
        """The JSON document."""
        return SingleReference(reference_struct(self.reference))


class Tags(References, frozen=True, kw_only=True):
    """Tags with their messages."""

    references: Records[references.Tag]


class TagsResult(ReferencesResult, frozen=True, kw_only=True):
    """Tags with their messages, and how they are printed."""

    @property
    def document(self) -> Tags:
        """The JSON document."""
        return Tags(references=map(references.Tag.of, self.references))


class SingleTag(SingleReference, frozen=True):
    """One tag with its message."""

    reference: references.Tag


class SingleTagResult(SingleReferenceResult, frozen=True):
    """One tag with its message, and how it is printed."""

    @property
    def document(self) -> SingleTag:
        """The JSON document."""
        return SingleTag(references.Tag.of(self.reference))


class DeletedReferences(Document, frozen=True):
    """References that were deleted, if several were named; `errors` if some could not be."""

    references: list[AnyReference]
    errors: list[Error] | UnsetType = UNSET


class DeletedReferencesResult(Result, frozen=True):
    """Deleted references, and the errors of those that could not be deleted."""

    references: Sequence[Reference]
    errors: Sequence[NessieError]
    deletions: Sequence[SingleReferenceResult]
    """Messages about each deletion, with the command that undoes it."""

    @property
    def document(self) -> DeletedReferences:
        """The JSON document."""
        errors = list(map(Error.of, self.errors))
        return DeletedReferences(list(map(reference_struct, self.references)), errors or UNSET)

    @property
    def failures(self) -> Sequence[NessieError]:
        """The references that could not be deleted, and why."""
        return self.errors


def show(result: Result, output: Output) -> None:
    """Prints a list, or a line for each reference that was changed."""
    if isinstance(result, ReferencesResult):
        _print_references(result.references, result, output)
    elif isinstance(result, DeletedReferencesResult):
        for deletion in result.deletions:
            _show_action(deletion, output)
    elif isinstance(result, SingleReferenceResult) and result.action is None:
        _print_references([result.reference], result, output)
    elif isinstance(result, SingleReferenceResult):
        _show_action(result, output)


def _print_references(
    references: Iterable[Reference],
    result: ReferencesResult | SingleReferenceResult,
    output: Output,
) -> None:
    table = references_table(
        references,
        current=result.current,
        verbose=result.verbose,
        tags=isinstance(result, TagsResult | SingleTagResult),
    )
    output.out.print_table(*table, paged=True)


def _show_action(result: SingleReferenceResult, output: Output) -> None:
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
