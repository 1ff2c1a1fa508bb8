"""What every page has: headers, escaping, forms of the same origin, errors for people."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import pytest
from jinja2 import Environment

from nessie_cli.server.pages import html
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving
from tests.server.web.browser import OF_OTHER_PAGES

FORM = {"content-type": "application/x-www-form-urlencoded"}
VENDORED = {
    # npm: htmx.org 4.0.1, dist/htmx.min.js
    "htmx.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
}
HOSTILE = "<script>alert(1)</script>\"' onload=x \u202e\x1b[31m{{ 7 * 7 }}"


def test_the_first_page_lists_branches(browser):
    page = browser.get("/")
    assert page.status == 200
    assert "Branches" in page.text
    assert "main" in page.text


def test_pages_allow_nothing_from_elsewhere(browser):
    answer = browser.answer("GET", "/ui/branches")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(rb'(src|href|action)="(?!/ui/)(?!#main)', answer.raw)


def test_each_template_is_compiled_once(repository, monkeypatch):
    """All threads that write files would compile them at once, and delay other requests."""
    html.environment.cache_clear()
    compiled = []
    compile_ = Environment.compile

    def counted(self, source, name=None, *more, **others):
        compiled.append(name)
        return compile_(self, source, name, *more, **others)

    monkeypatch.setattr(Environment, "compile", counted)
    with serving(repository) as url, ThreadPoolExecutor(8) as pool:
        clients = [Client(url) for _ in range(8)]
        clients[0].commit("main", EMPTY, put("a"))
        pages = pool.map(lambda each: each.get("/ui/merge?source=main&into=main"), clients)
        assert {page.status for page in pages} == {200}
        for each in clients:
            each.close()
    assert sorted(compiled) == sorted(set(compiled))
    assert "merge.html" in compiled


def test_templates_have_no_scripts_and_no_styles():
    for template in files("nessie_cli.server.pages").joinpath("templates").iterdir():
        text = template.read_text()
        assert not re.search(r"\bstyle=|\bon[a-z]+=|<style|<script(?! src)|\|safe|js:|hx-on", text)


def test_vendored_files_are_those_of_their_release():
    folder = files("nessie_cli.server.pages").joinpath("assets")
    for name, digest in VENDORED.items():
        assert hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() == digest, name


def test_files_of_pages_are_cached_for_ever(browser):
    page = browser.get("/ui/branches")
    scripts = [each.attributes["src"] for each in page.elements if each.tag == "script"]
    for path in scripts:
        answer = browser.answer("GET", path)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
    assert browser.get("/ui/assets/htmx.0000.js").status == 404


@pytest.mark.parametrize("headers", OF_OTHER_PAGES)
def test_forms_of_other_origins_are_refused(browser, client, headers):
    answer = browser.answer("POST", "/ui/references/create", b"name=dev&at=main", FORM | headers)
    assert answer.status == 403
    assert [each["name"] for each in client.get("/api/v2/trees").body["references"]] == ["main"]


def test_forms_of_the_own_origin_are_taken(browser):
    own = FORM | {"host": "localhost:1", "origin": "http://localhost:1"}
    assert browser.answer("POST", "/ui/references/create", b"name=a&at=main", own).status == 303
    page = browser.post("/ui/references/create", type="branch", name="dev", at="main")
    assert page.status == 200
    assert "History of dev" in page.text


def test_a_page_takes_no_json(browser):
    headers = {"content-type": "application/json", "sec-fetch-site": "same-origin"}
    assert browser.answer("POST", "/ui/references/create", b"{}", headers).status == 415


def test_an_unknown_page_is_an_error_for_people(browser):
    page = browser.get("/ui/nosuch")
    assert page.status == 404
    assert "no such page" in page.text


def test_an_unknown_reference_is_named(browser):
    page = browser.get("/ui/history?ref=nosuch")
    assert page.status == 404
    assert "'nosuch' not found" in page.text


def test_foreign_text_is_escaped_and_visible(browser, client):
    # A key holds no control characters.
    key = HOSTILE.replace("\x1b", "")
    client.commit("main", EMPTY, put(key), message=HOSTILE).expect(200)
    for url in ("/ui/branches", "/ui/history?ref=main", "/ui/commit?ref=main"):
        answer = browser.answer("GET", url)
        assert b"<script>alert" not in answer.raw
        assert "\u202e".encode() not in answer.raw
        page = browser.get(url)
        assert "\\x1b[31m{{ 7 * 7 }}" in page.text


def test_a_page_says_its_commit(browser, client):
    head = client.commit("main", EMPTY, put("a")).body["targetBranch"]["hash"]
    page = browser.get("/ui/history?ref=main")
    assert f"at {head[:12]}" in page.text
    assert f"/ui/history?ref={head}" in page.links
