"""The pages of the web interface, as endpoints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages import (
    catalog,
    commits,
    compare,
    contents,
    history,
    references,
    reflog,
    search,
    server,
)
from nessie_cli.server.pages.assets import asset
from nessie_cli.server.pages.call import MOST_FORM, PageCall
from nessie_cli.server.pages.html import redirect
from nessie_cli.server.pages.merging import MergePages
from nessie_cli.server.pages.reverting import RevertPages
from nessie_cli.server.pages.table_access import TableAccess
from nessie_cli.server.pages.urls import HOME, ROOT
from nessie_cli.server.pipeline.table import (
    FORM,
    READS,
    WRITES,
    WRITES_FILES,
    Effect,
    Endpoint,
    Handler,
)

if TYPE_CHECKING:
    from nessie_cli.server.nessie.combination import TableCombinations


def _shown(
    path: str, handler: Handler, effect: Effect = READS, *, is_open: bool = False
) -> Endpoint:
    return Endpoint("GET", f"{ROOT}/{path}", handler, effect, is_open=is_open, is_page=True)


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


def site(access: TableAccess, combinations: TableCombinations | None) -> tuple[Endpoint, ...]:
    """Returns all pages and forms.

    `access` reads the files of tables. With `combinations`, merges and reverts combine tables.
    """
    merges = MergePages(access, combinations)
    reverts = RevertPages(access, combinations)
    return (
        *_PAGES,
        _shown("history", partial(history.history, access)),
        _shown("commit", partial(commits.commit, access)),
        _shown("content", partial(contents.content, access)),
        _shown("compare", partial(compare.compare, access)),
        _shown("search", partial(search.search, access)),
        _shown("revert", reverts.show, WRITES_FILES),
        _form("revert", reverts.revert, WRITES_FILES),
        _shown("merge", merges.show, WRITES_FILES),
        _form("merge", merges.merge, WRITES_FILES),
    )


_PAGES = (
    Endpoint("GET", ROOT, _home, is_page=True),
    _shown("assets/{name}", asset, is_open=True),
    _shown("branches", references.branches),
    _shown("tags", references.tags),
    _shown("reflog", reflog.reflog),
    _shown("server", server.server),
    _form("undo", reflog.undo),
    _shown("catalog", catalog.catalog),
    _form("references/create", references.create),
    _form("references/rename", references.rename),
    _form("references/delete", references.delete),
)
"""The pages and forms that read and write the catalog alone."""
