"""HTML: the templates of the pages, filled with values.

Everything that a template prints is made visible (hidden characters) and escaped. Templates contain
no scripts, no styles and no addresses of other sites, as the policy of the answers demands.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from secrets import token_hex
from threading import RLock
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from nessie_cli.inspection.text import name_of, short_hash, visible
from nessie_cli.model import NO_ANCESTOR, described_setting, type_label
from nessie_cli.server.http.messages import Headers, Reply
from nessie_cli.server.pages.assets import assets
from nessie_cli.server.pages.urls import page_url
from nessie_cli.wire.keys import encode_canonical

_LONG_NAME = 36
"""The length from which names of files are shortened."""
_LONGEST = 100_000
"""The most characters of a text on a page. Addresses and fields of forms are shorter."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of every page."""
SAFETY: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""The headers of every page."""


def html_reply(template: str, values: dict[str, Any], status: int = 200) -> Reply:
    """Returns a page: a template filled with values."""
    with _compiling:
        page = environment().get_template(template)
    body = page.render(values).encode()
    return Reply(status, [(b"content-type", b"text/html; charset=utf-8"), *SAFETY], body)


def redirect(url: str) -> Reply:
    """Returns the answer that leads to a page of this server after a form was processed."""
    return Reply(303, [(b"location", url.encode()), *SAFETY])


class _Templates(Environment):
    """Templates that are compiled when they are used first, by one thread at a time.

    Otherwise all threads would compile the templates of the first pages, for seconds.
    """

    def get_template(self, *names: Any, **values: Any) -> Template:
        """Returns a template. Templates get those that they extend or import from here, too."""
        with _compiling:
            return super().get_template(*names, **values)


_compiling = RLock()


@cache
def environment() -> Environment:
    """Returns the templates."""
    templates = _Templates(
        loader=PackageLoader("nessie_cli.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals.update(
        url=page_url,
        asset=lambda name: assets()[name].path,
        no_commit=NO_ANCESTOR,
        request_id=lambda: token_hex(16),
    )
    templates.filters.update(
        short=short_hash,
        person=name_of,
        utc=_utc,
        iso=_iso,
        count=_count,
        lines=_lines,
        counted=_counted,
        path=encode_canonical,
        label=type_label,
        cut=_cut,
        end=_end,
        setting=_setting,
    )
    return templates


def _finalized(value: Any) -> Any:
    """Makes the hidden characters of a text visible, and cuts it. Templates print no None."""
    if value is None:
        return ""
    if isinstance(value, Markup) or value == "\n":
        return value
    return visible(_cut(str(value), _LONGEST) or "")


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _count(number: int) -> str:
    return f"{number:,}"


def _counted(number: int | None, noun: str) -> str:
    if number is None:
        return f"an unknown number of {noun}s"
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _cut(text: str | None, most: int = 1_000) -> str | None:
    left_out = len(text or "") - most
    if text is None or left_out <= 0:
        return text
    return f"{text[:most]}… ({left_out:,} more characters)"


def _setting(value: str | None, name: str) -> str | None:
    """Returns the value of a setting in its short form."""
    return None if value is None else described_setting(name, value)


def _end(path: str) -> str:
    """Returns the last element of a path, a long one without its middle."""
    end = path[path.rfind("/", 0, -1) :]
    return end if len(end) <= _LONG_NAME else f"{end[:18]}…{end[-14:]}"


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")
