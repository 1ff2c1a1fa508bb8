"""What the previews of a merge and of a revert have in common."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.conflicts import MOST_DECIDED

MOST_PREVIEWED = 500
"""The most changes of a merge or revert that are previewed at once."""


def preview_page(
    call: PageCall,
    template: str,
    title: str,
    *,
    moved_from: object,
    message: str,
    is_large: bool,
    **values: Any,
) -> Reply:
    """Returns the page of a preview.

    `moved_from` is the shown state of what has moved since, if anything has; then a form that was
    sent gets status 409. A change that `is_large` is previewed only if the reader asks for it.
    `message` is the default message.
    """
    reply = call.page(
        template,
        title,
        moved_from=moved_from,
        was_sent=bool(call.form),
        is_large=is_large,
        most=MOST_PREVIEWED,
        most_decided=MOST_DECIDED,
        message=call.message(message),
        request=token_hex(16),
        **values,
    )
    return reply._replace(status=409) if moved_from and call.form else reply
