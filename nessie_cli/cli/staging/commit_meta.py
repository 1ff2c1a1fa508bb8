"""The metadata of a commit, from options."""

from collections.abc import Sequence

from nessie_cli.cli.app.input import pairs, read_text
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta
from nessie_cli.revisions import parse_time


def message_of_paragraphs(paragraphs: Sequence[str]) -> str:
    """Joins the paragraphs of `-m` to a message. Raises `InvalidInput` if it is empty."""
    return _not_empty("\n\n".join(paragraphs))


def message_of(paragraphs: Sequence[str] | None, file: str | None) -> str | None:
    """Returns the message of `-m` or of `-F`; None if there is neither.

    Raises `InvalidInput` for an empty message.
    """
    if paragraphs and file:
        raise InvalidInput("-m and -F cannot be used together: both give the message")
    if paragraphs:
        return message_of_paragraphs(paragraphs)
    return _not_empty(read_text(file, "-F")).rstrip("\n") if file is not None else None


def _not_empty(message: str) -> str:
    if not message.strip():
        raise InvalidInput("the commit message is empty")
    return message


def meta_of(
    app: Invocation,
    message: str,
    *,
    authors: Sequence[str] | None = None,
    signed_off_by: Sequence[str] | None = None,
    properties: Sequence[str] | None = None,
    author_time: str | None = None,
) -> CommitMeta:
    """Returns the metadata of a commit. The configured author is the default for `authors`."""
    all_properties: dict[str, tuple[str, ...]] = {}
    for name, value in pairs(properties or (), "--property"):
        all_properties[name] = (*all_properties.get(name, ()), value)
    default = None if authors else app.author()
    return CommitMeta(
        message=message,
        authors=tuple(authors or ([default] if default else ())),
        signed_off_by=tuple(signed_off_by or ()),
        properties=all_properties,
        author_time=parse_time(author_time, app.now) if author_time else None,
    )
