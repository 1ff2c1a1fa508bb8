"""Idempotent requests to a server: the workspace keeps the request id for a repetition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.errors import OutcomeUnknown

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


@contextmanager
def once(call: Invocation, *request: object, dry_run: bool = False) -> Iterator[str | None]:
    """Yields the request id of a write, or None if no id is needed.

    An embedded store always answers, and without a workspace no id is kept. `request` identifies
    the write: the same values get the same id until the outcome is known.
    """
    if dry_run or call.workspace is None or not call.repository().is_remote:
        yield None
        return
    from nessie_cli.cli.staging.submission import new_request_id
    from nessie_cli.workspace.requests import Requests

    requests, text = Requests(call.workspace), repr((call.store.url(), *request))
    request_id = requests.begin(text, new_request_id())
    try:
        yield request_id
    except (OutcomeUnknown, KeyboardInterrupt):
        raise
    except Exception:
        requests.end(text)
        raise
    requests.end(text)
