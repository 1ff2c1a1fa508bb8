"""Forms and addresses that no page sends are errors for people, not failures of the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import urlencode, urlsplit

import pytest

from nessie_cli import connect
from nessie_cli.repository.base import Repository
from nessie_cli.server.pages.call import MOST_FIELDS, MOST_FORM
from nessie_cli.server.pages.site import site
from tests.server.client import Client
from tests.server.guarding import guarded
from tests.server.serving import serving
from tests.server.web.browser import Browser
from tests.server.web.foreign_text import ForeignText

OWN = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
ENDPOINTS = [each for each in site(None, None) if "{" not in each.path]  # type: ignore[arg-type]
PAGES = sorted(each.path for each in ENDPOINTS if each.method == "GET")
FORMS = sorted(each.path for each in ENDPOINTS if each.method == "POST")
NAMES = (
    *("page", "ref", "key", "q", "all", "from", "to", "base", "rows", "was", "where", "source"),
    *("into", "source_hash", "target_hash", "request", "message", "name", "new", "hash", "type"),
    *("at", "number", "after", "skip", "author", "changes", "decide.", "decide.x", "older", "\0"),
)
VALUES = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1",
        "2147483648",
        "9" * 5_000,
        "1e9",
        "0x10",
        "\u0661",
        "NaN",
        "true",
        "null",
    ),
    *(
        "main",
        "dev",
        "dev@",
        "@",
        "main@" + "0" * 64,
        "0" * 64,
        "main~1",
        "main^9",
        "*",
        "../..",
        ".",
    ),
    *(
        "merge",
        "ours",
        "theirs",
        "tag",
        "main..dev",
        "a.b",
        "\0",
        "\x1f",
        "\ud800",
        "x" * 600,
        "[]",
    ),
    *(
        "id > 7",
        "((((",
        "' or 1=1 --",
        "javascript:alert(1)",
        "\u202e",
        "%",
        "%2e%2e",
        "%zz",
        "\r\n",
    ),
)


@pytest.fixture(scope="module")
def filled() -> Iterator[Repository]:
    with connect("memory:") as opened:
        ForeignText(opened, "text", "dev")
        yield opened


@pytest.fixture(scope="module")
def browser(filled: Repository) -> Iterator[Browser]:
    with serving(filled) as url:
        client = Client(url)
        yield Browser(client)
        client.close()


def encoded(fields: list[tuple[str, str]]) -> str:
    return urlencode(fields, errors="surrogatepass")


def check(browser: Browser, method: str, url: str, raw: bytes | None = None) -> int:
    """Sends a request; the answer is a page or leads to one, and the server does not fail."""
    answer = browser.answer(method, url, raw, OWN if raw is not None else None)
    assert answer.status < 500, (method, url[:500], (raw or b"")[:500], answer.raw.decode())
    assert "content-security-policy" in answer.headers
    return answer.status


def at_random(random: Random) -> str:
    """Returns up to eight parameters or fields, some of which may be repeated."""
    count = random.randrange(1, 9)
    return encoded([(random.choice(NAMES), random.choice(VALUES)) for _ in range(count)])


@pytest.mark.parametrize("path", PAGES)
def test_parameters_at_random(browser: Browser, path: str) -> None:
    random = Random(path)
    for _ in range(150):
        check(browser, "GET", f"{path}?{at_random(random)}")


@pytest.mark.parametrize("page", VALUES)
def test_numbers_of_pages(browser: Browser, page: str) -> None:
    for path in ("branches?", "reflog?", "commit?ref=main&", "compare?from=main&to=dev&"):
        check(browser, "GET", f"/ui/{path}{encoded([('page', page)])}")


@pytest.mark.parametrize("path", FORMS)
def test_fields_at_random(browser: Browser, path: str) -> None:
    random = Random(path)
    for _ in range(150):
        check(browser, "POST", path, at_random(random).encode())


@pytest.mark.parametrize("path", FORMS)
def test_large_forms_are_refused(browser: Browser, path: str) -> None:
    assert check(browser, "POST", path, b"a=" + b"x" * MOST_FORM) == 413
    assert check(browser, "POST", path, b"a=1&" * MOST_FIELDS + b"a=1") == 400
    for raw in (b"&" * 5_000, b"=", b"%", b"\xff\xfe=\xff", b"name", b'{"name": 1}'):
        assert check(browser, "POST", path, raw) < 500


@pytest.mark.parametrize("path", FORMS)
def test_a_repeated_field_has_its_first_value(browser: Browser, path: str) -> None:
    fields = [(name, value) for name in NAMES for value in ("nosuch", "main")]
    assert check(browser, "POST", path, encoded(fields).encode()) in (400, 404, 409)


@pytest.mark.parametrize("path", FORMS)
def test_other_origins_may_not_send_forms(browser: Browser, path: str, filled: Repository) -> None:
    before = [(each.name, each.hash) for each in filled.references()]
    for origin in ("http://127.0.0.1:1", "https://evil.example", "null", "http://", "http://[", ""):
        sent = {"content-type": OWN["content-type"], "origin": origin}
        assert browser.answer("POST", path, b"name=main&at=main", sent).status == 403
    for site_ in ("cross-site", "same-site", "none", "SAME-ORIGIN", "same-origin, cross-site"):
        sent = {"content-type": OWN["content-type"], "sec-fetch-site": site_}
        assert browser.answer("POST", path, b"name=main&at=main", sent).status == 403
    assert [(each.name, each.hash) for each in filled.references()] == before


@pytest.mark.parametrize("path", ["/ui/login", "/ui/logout", "/ui/undo"])
def test_forms_of_a_server_with_logins(tmp_path: Path, path: str) -> None:
    random = Random(path)
    with guarded(tmp_path, with_rules=False) as server:
        browser = Browser(server.as_(""))
        cookie = f"nessie-session-{urlsplit(server.url).port}"
        for _ in range(100):
            browser.cookies = {cookie: random.choice(("", "x", "\xff; a=b", "f" * 64))}
            check(browser, "POST", path, at_random(random).encode())
            check(browser, "GET", f"{path}?{at_random(random)}")


@pytest.mark.parametrize(
    ("current", "pushed"),
    [
        ("http://127.0.0.1/ui/branches?q=x#main", "/ui/branches?q=x"),
        ("http://elsewhere.example/ui/tags", "/ui/tags"),
        ("http://127.0.0.1/api/v2/trees", "false"),
        ("//elsewhere.example", "false"),
        ("http://[", "false"),
        ("", "false"),
    ],
)
def test_a_refusal_stays_at_the_page_with_its_form(browser, current, pushed):
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "sec-fetch-site": "same-origin",
        "hx-current-url": current,
    }
    answer = browser.answer("POST", "/ui/references/create", b"name=..&at=main", headers)
    assert answer.status == 400
    assert answer.headers["hx-push-url"] == pushed
