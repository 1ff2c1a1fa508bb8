"""What the commands of `nessie store` have in common: the store itself, and what they report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.store.records import Counts


def local_store_url(call: Invocation) -> str:
    """The store of the invocation; raises `InvalidInput` if it is behind a server."""
    url = call.store_url()
    if url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url}: is a server, and this command needs the store itself. Hint: name it by --store, where it is")
    return url


def report_copy(call: Invocation, sentence: str, url: str, file: str, counts: Counts) -> None:
    """Answer what was copied: `sentence` for a person, the counts as JSON."""
    if call.wants_json:
        call.answer(_document(url, file, counts))
    else:
        call.say(f"{sentence}: {_summary(counts)}")


def _document(url: str, file: str, counts: Counts) -> dict[str, Any]:
    return {
        "store": url,
        "file": file,
        "objects": counts.objects,
        "references": counts.references,
        "reflogEntries": counts.moves,
        "requests": counts.requests,
    }


def _summary(counts: Counts) -> str:
    """`900 objects, 1 reference, 301 reflog entries`."""
    return ", ".join(
        (
            counted(counts.objects, "object"),
            counted(counts.references, "reference"),
            counted(counts.moves, "reflog entry", "reflog entries"),
        )
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 key`, `2,000 keys`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
