"""The pages of the web interface, as endpoints."""

from __future__ import annotations

from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pages import commits, history, references
from nessie_cli.server.pages.assets import asset
from nessie_cli.server.pages.call import MOST_FORM, PageCall
from nessie_cli.server.pages.html import redirect
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
    _shown("commit", commits.commit),
    _form("references/create", references.create),
    _form("references/rename", references.rename),
    _form("references/delete", references.delete),
)
"""All pages and forms."""
