"""What the previews of a merge and of a revert have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.repository.draft import LargeMerge
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages.call import PageCall
from nessie_cli.server.pages.conflicts import MOST_DECIDED
from nessie_cli.server.pages.table_access import TableAccess

E = TypeVar("E", bound=Exception)
MOST_PREVIEWED = 500
"""The most changes of a merge or revert that are previewed at once."""
MOST_SHOWN = 10_000
"""The most changes of a merge or revert on pages. They take seconds, and 50 MB of memory."""


class Step(NamedTuple):
    """A step of a request about the changes of a merge or revert, and whether they are many.

    Those of large changes run one after the other.
    """

    answer: Any
    is_large: bool


async def first_step(
    access: TableAccess,
    call: PageCall,
    answer: Callable[[int, PageCall], Any],
    *,
    begun: bool = False,
) -> Step:
    """Returns what `answer` returns for the most changes that there may be.

    It raises `LargeMerge` if there are more. Raises `InvalidInput` for more than `MOST_SHOWN`.
    """
    try:
        few = partial(answer, MOST_PREVIEWED)
        return Step(await access.answer_with_files(call, few, begun=begun), False)
    except LargeMerge:
        pass
    try:
        many = partial(answer, MOST_SHOWN)
        return Step(await access.answer_with_files(call, many, large=True), True)
    except LargeMerge:
        raise InvalidInput(
            f"more than {MOST_SHOWN:,} contents change, which pages do not show",
            hint="`nessie merge` and `nessie revert` do it on the command line",
        ) from None


def without_frames(error: E) -> E:
    """Returns an error that is a result, without the frames that raised it.

    They refer to the error, so its conflicts would stay in memory as garbage.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


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
