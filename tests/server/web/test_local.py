"""`nessie ui`: the pages for one user on this machine."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from nessie_cli import connect, create
from tests.server.client import EMPTY, Client, put
from tests.server.processes import PATIENCE
from tests.server.web.browser import Browser


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.sqlite"
    create(str(path)).close()
    return str(path)


@contextmanager
def running(store, *arguments, **environment):
    """Runs `nessie ui` within the block, and yields the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nessie_cli", "ui", "--store", store, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NESSIE_AUTHOR": "Ann <ann@lake.example>"} | environment,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def visited(store, *arguments):
    """Yields a browser, and the path and query of the link that `nessie ui` prints."""
    with running(store, "--no-browser", *arguments) as process:
        parts = urlsplit(process.stdout.readline().strip())
        client = Client(f"http://{parts.netloc}")
        yield Browser(client), f"{parts.path}?{parts.query}"
        client.close()


def test_the_link_opens_the_pages_once(store):
    with visited(store) as (browser, link):
        assert browser.get("/ui/branches").status == 200
        assert "run the command again" in browser.get("/ui/branches").text
        assert browser.url == "/ui/login"
        page = browser.get(link)
        assert browser.url == "/ui/branches"
        assert "Ann <ann@lake.example>" in page.text
        assert "token" not in browser.url
        [cookie] = browser.cookies
        assert re.fullmatch("nessie-ui-[0-9a-f]{8}", cookie)
        other = Browser(browser.client)
        page = other.get(link)
        assert page.status == 403
        assert "was used before" in page.text
        assert not other.cookies
        assert browser.get("/ui/tags").status == 200
        assert browser.url == "/ui/tags"


def test_a_wrong_link_does_not_use_the_right_one_up(store):
    with visited(store) as (browser, link):
        for token in ("", "x", "%C3%A9", "%ED%A0%80", "a" * 43):
            assert browser.get(f"/ui/start?token={token}").status == 403
        assert browser.get(link).status == 200
        assert browser.cookies


def test_the_author_of_changes_is_the_user(store):
    with visited(store) as (browser, link):
        browser.get(link)
        assert browser.post("/ui/references/create", name="dev", at="main").status == 200
    with connect(store) as repository:
        assert next(repository.reflog("dev")).who == "Ann <ann@lake.example>"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/config",
        "/api/v1/trees",
        "/api/docs",
        "/api/openapi.json",
        "/iceberg/v1/config",
        "/iceberg/v1/oauth/tokens",
        "/q/metrics",
        "/q/health",
    ],
)
def test_there_is_no_api(store, path):
    with visited(store, "--warehouse", os.path.dirname(store)) as (browser, link):  # noqa: PTH120
        browser.get(link)
        assert browser.answer("GET", path).status in (401, 404)
        assert browser.answer("POST", path, b"{}").status in (401, 404)
        commit = f"/api/v2/trees/main@{EMPTY}/history/commit"
        body = {"commitMeta": {"message": "m"}, "operations": [put("a")]}
        assert browser.client.send("POST", commit, body).status in (401, 404)


def test_a_login_of_another_start_does_not_count(store):
    with visited(store) as (browser, link):
        browser.get(link)
        [value] = browser.cookies.values()
        with visited(store) as (other, its_link):
            other.get(its_link)
            [name] = other.cookies
            for cookies in (browser.cookies, {name: value}):
                other.cookies = dict(cookies)
                assert other.answer("GET", "/ui/branches").status == 303


def test_the_command_line_of_the_browser_has_no_secret(store, tmp_path):
    script, seen = tmp_path / "browser", tmp_path / "seen"
    script.write_text(f'#!/bin/sh\ncat "${{1#file://}}" > {seen}.html\necho "$@" > {seen}\n')
    script.chmod(0o700)
    with running(store, BROWSER=f"{script} %s") as process:
        deadline = time.monotonic() + PATIENCE
        while not seen.exists() or not seen.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        url = seen.read_text().strip()
        assert re.fullmatch(r"file:///\S+/nessie-ui-\w+/nessie\.html", url)
        file = Path(url.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        page = Path(f"{seen}.html").read_text()
        [link] = re.findall(r'content="0; url=http://127\.0\.0\.1:\d+(/ui/start[^"]+)"', page)
        line = process.stderr.readline()
        assert "pages of" in line
        assert link.partition("=")[2] not in line
        address = re.search(r"http://\S+:\d+", line)[0]
        browser = Browser(Client(address))
        assert browser.get(link).status == 200
        browser.client.close()
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=PATIENCE)
        assert (out, err) == ("", "")
    assert not file.parent.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_it_ends_with_the_terminal(store, number):
    with running(store, "--no-browser") as process:
        process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, 130, -number)


def test_a_store_that_can_only_be_read_is_shown(store):
    os.chmod(store, 0o400)  # noqa: PTH101
    with visited(store) as (browser, link):
        assert browser.get(link).status == 200
        assert browser.url == "/ui/branches"


def test_another_host_name_is_refused(store):
    with visited(store) as (browser, link):
        assert browser.answer("GET", link, headers={"host": "evil.example"}).status == 403
        assert browser.get(link).status == 200


def test_a_server_needs_no_pages_of_its_own():
    with running("http://127.0.0.1:1/api/v2") as process:
        _, err = process.communicate(timeout=PATIENCE)
        assert "is a server" in err
        assert process.returncode == 2
