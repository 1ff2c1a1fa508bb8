"""`nessie tag`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.references.options import ReferenceOptions
from nessie_cli.cli.references.results import (
    DeletedReferencesResult,
    ReferencesResult,
    SingleReferenceResult,
    SingleTagResult,
    TagsResult,
    show,
)
from nessie_cli.cli.references.work import work
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference, ReferenceType, Tag
from nessie_cli.model.batches import batched
from nessie_cli.repository.base import Repository

__all__ = ["EXAMPLES", "Options", "run", "show"]

EXAMPLES = (
    "nessie tag",
    "nessie tag --sort -time --contains main~2",
    "nessie tag -m 'Figures of March' v1 main~1",
    "nessie tag -f v1 main",
    "nessie tag --move v1 release-1",
    "nessie tag -d release-1",
)
_AT_ONCE = 1000
"""The number of tags whose messages are read by one request."""


class Options(ReferenceOptions, frozen=True, kw_only=True):
    """List, create, delete, rename or assign tags.

    -v adds the time and the author of the tagged commit, and the first line of the tag's message.
    For a tag without a message, it is the first line of the commit's message.
    """

    WORDS: ClassVar[Mapping[str, str]] = {
        "reference": "tag",
        "references": "tags",
        "rename": "--move",
    }
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME [START]]",
            help="The tag to create, and the commit that it points at (default: HEAD). -l, -d,"
            " --move and -f take other arguments.",
        ),
    ] = None
    message: Annotated[
        str | None,
        typer.Option("-m", "--message", metavar="MSG", help="The message of a new tag."),
    ] = None

    @property
    def actions(self) -> tuple[str, ...]:
        """The options that select an action. At most one is allowed."""
        return super().actions if self.message is None else (*super().actions, "-m")


def run(
    options: Options,
    app: Invocation,
) -> (
    TagsResult
    | ReferencesResult
    | SingleTagResult
    | SingleReferenceResult
    | DeletedReferencesResult
    | None
):
    """Performs the selected action."""
    if options.message is not None and not options.message.strip():
        raise InvalidInput("-m: the message of the tag is empty")
    result = work(options, app, ReferenceType.TAG, options.message)
    if not (app.output.is_json or app.options.verbose or options.extended):
        return result
    if isinstance(result, ReferencesResult):
        tags = _with_messages(app.repository(), result.references)
        return TagsResult(references=tags, current=result.current, verbose=result.verbose)
    if isinstance(result, SingleReferenceResult) and result.reference.type is ReferenceType.TAG:
        return _single(options, app, result)
    return result


def _single(options: Options, app: Invocation, result: SingleReferenceResult) -> SingleTagResult:
    if result.action == "would create":
        tag = _tag(result.reference, options.message)
    else:
        [tag] = _with_messages(app.repository(), [result.reference])
    return SingleTagResult(tag, result.action, result.hint, result.current, result.verbose)


def _with_messages(repository: Repository, references: Iterable[Reference]) -> Iterator[Tag]:
    for batch in batched(references, _AT_ONCE):
        messages = repository.messages([reference.name for reference in batch])
        yield from (_tag(reference, messages.get(reference.name)) for reference in batch)


def _tag(tag: Reference, message: str | None) -> Tag:
    return Tag(tag.type, tag.name, tag.hash, tag.metadata, message)
