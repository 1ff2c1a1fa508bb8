"""One content with its id, its cache key and its last change."""

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.inspection.contents import entry_at
from nessie_cli.inspection.fields import fields
from nessie_cli.model import CommitMeta, Content, ContentKey
from nessie_cli.render.commits import commit_lines
from nessie_cli.render.spans import Span
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
