"""Merges, transplants and batches from files, on a server: sent under an id that outlives the command, so that a repetition does nothing twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput, OutcomeUnknown

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation


@contextmanager
def once(call: Invocation, *what: object, dry_run: bool = False) -> Iterator[str | None]:
    """The request id for `what` is asked of the store; None where an embedded store answers for itself, or where no workspace can keep it."""
    url = call.store_url()
    if dry_run or call.workspace is None or not url.startswith(("http://", "https://")):
        yield None
        return
    from nessie_cli.cli.submission import new_request_id
    from nessie_cli.workspace.requests import Requests

    requests, text = Requests(call.workspace), repr((url, *what))
    request_id = requests.begin(text, new_request_id())
    try:
        yield request_id
    except (OutcomeUnknown, KeyboardInterrupt):
        raise
    except Exception:
        requests.end(text)
        raise
    requests.end(text)


def hints_for_unknown(error: OutcomeUnknown, call: Invocation) -> Sequence[str]:
    """What to do about an unknown outcome: repeat, where the repetition asks first; else look."""
    if _is_kept(error.request_id, call):
        return ["Repeat the command: it asks the store what became of it before anything is written again"]
    return ["`nessie log` and `nessie branch` show whether it happened; look before you repeat the command"]


def _is_kept(request_id: str, call: Invocation) -> bool:
    if not request_id or call.workspace is None:
        return False
    from nessie_cli.workspace.batch import BatchFile
    from nessie_cli.workspace.requests import Requests

    try:
        batch = BatchFile(call.workspace).read()
    except InvalidInput:
        batch = None
    return (batch is not None and batch.request_id == request_id) or Requests(call.workspace).has(request_id)
