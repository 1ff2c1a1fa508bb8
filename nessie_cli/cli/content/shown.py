"""One content with its id, its cache key and its last change."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.errors import ContentNotFound, NotAllowed
from nessie_cli.inspection.fields import fields
from nessie_cli.model import CommitMeta, Content, ContentKey, Entry, KeyRange, Reference
from nessie_cli.render.conflicts import commit_lines
from nessie_cli.render.spans import Span
from nessie_cli.repository.base import Repository
from nessie_cli.wire import commits
from nessie_cli.wire.contents import AnyContent, content_struct
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Digest


class ShownContent(Document, frozen=True):
    """A content; `lastChange` is the newest first-parent commit with an operation on its key."""

    content: AnyContent
    effective_reference: AnyReference
    value_hash: Digest
    cache_key: str
    last_change: commits.CommitMeta | None


class ShownContentResult(Result, frozen=True):
    """A content with its key, and the newest first-parent commit that changed it."""

    document: ShownContent
    key: ContentKey
    content: Content
    last_change: CommitMeta | None


def shown_content(app: Invocation, key: ContentKey, revision: str | None) -> ShownContentResult:
    """Returns one content at a revision. Raises `ContentNotFound`."""
    repository = app.repository()
    effective = repository.resolve(app.revision(revision))
    entry, content = entry_at(repository, effective, key)
    change = repository.last_change(effective.hash, key)
    document = ShownContent(
        content_struct(content),
        reference_struct(effective),
        entry.value_hash,
        entry.cache_key,
        commits.optional_meta(change),
    )
    return ShownContentResult(document, key, content, change)


def entry_at(repository: Repository, at: Reference, key: ContentKey) -> tuple[Entry, Content]:
    """Returns the entry of a key and its content.

    Raises `ContentNotFound` if there is none, and `NotAllowed` if the caller may not read it.
    """
    wanted = KeyRange(keys=(key,))
    entry = next(iter(repository.entries(at.hash, wanted, content=True)), None)
    if entry is None or entry.content is None:
        raise _missing(repository, at, key)
    return entry, entry.content


def _missing(
    repository: Repository, at: Reference, key: ContentKey
) -> NotAllowed | ContentNotFound:
    """Returns the error for a key that is missing in a listing.

    A listing omits contents that the caller may not read, so this requests the content itself.
    """
    try:
        repository.content(at.hash, key)
    except NotAllowed as refusal:
        return refusal
    except ContentNotFound:
        where = at.name or at.hash
        return ContentNotFound(
            f"Could not find content for key '{key}' in reference '{where}'.", key
        )
    return NotAllowed(f"listing key '{key}' is not allowed")


def print_content(result: ShownContentResult, output: Output) -> None:
    """Prints one line for each field, and the last change."""
    texts = {
        "key": str(result.key),
        **fields(result.content),
        "cache-key": result.document.cache_key,
    }
    width = max(map(len, [*texts, "last-change"])) + 2
    for label, text in texts.items():
        output.out.print_line(
            Span(f"{label:<{width}}", "label"), Span(text, "key" if label == "key" else "")
        )
    if result.last_change is None:
        return
    lines = commit_lines(result.last_change, output.out, room=output.out.width - width)
    for number, spans in enumerate(lines):
        output.out.print_line(Span(f"{'' if number else 'last-change':<{width}}", "label"), *spans)
