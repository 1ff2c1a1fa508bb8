"""The pages of the web interface, as endpoints."""

from __future__ import annotations

from functools import partial

from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages import (
    catalog,
    commits,
    compare,
    contents,
    history,
    references,
    search,
)
from nessie_cli.server.pages.assets import asset
from nessie_cli.server.pages.call import MOST_FORM, PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.pages.urls import HOME, ROOT
from nessie_cli.server.pipeline.table import FORM, WRITES, Effect, Endpoint, Handler


def _shown(path: str, handler: Handler, *, is_open: bool = False) -> Endpoint:
    return Endpoint("GET", f"{ROOT}/{path}", handler, is_open=is_open, is_page=True)


def _form(path: str, handler: Handler, effect: Effect = WRITES) -> Endpoint:
    return Endpoint(
        "POST",
        f"{ROOT}/{path}",
        handler,
        effect,
        body=FORM,
        most_form=MOST_FORM,
        is_page=True,
    )


async def _home(_: PageCall) -> Reply:
    return redirect(HOME)


PAGES = (
    Endpoint("GET", ROOT, _home, is_page=True),
    _shown("assets/{name}", asset, is_open=True),
    _shown("branches", references.branches),
    _shown("tags", references.tags),
    _shown("history", history.history),
    _shown("catalog", catalog.catalog),
    _form("references/create", references.create),
    _form("references/rename", references.rename),
    _form("references/delete", references.delete),
)
"""The pages and forms that read and write the catalog alone."""


def table_pages(access: TableAccess) -> tuple[Endpoint, ...]:
    """Returns the pages that also read the files of tables, or take long."""
    return (
        _shown("commit", partial(commits.commit, access)),
        _shown("content", partial(contents.content, access)),
        _shown("compare", partial(compare.compare, access)),
        _shown("search", partial(search.search, access)),
    )
