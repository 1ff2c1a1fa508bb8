"""Logging in by token, and the sessions of browsers."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from nessie_cli import connect
from nessie_cli.repository.sessions import MemorySessions, StoredSession
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.identity import Caller, Unauthenticated
from nessie_cli.server.auth.sessions import (
    EXTENDED_AFTER,
    IDLE,
    LONGEST,
    MOST_SESSIONS,
    Sessions,
)
from nessie_cli.server.auth.tokens import add_token, remove_tokens
from nessie_cli.server.http.cookies import Cookie
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.server.client import EMPTY, Client, put
from tests.server.guarding import guarded, with_gate
from tests.server.serving import serving
from tests.server.web.browser import OF_OTHER_PAGES, Browser

FORM = {
    "content-type": "application/x-www-form-urlencoded",
    "sec-fetch-site": "same-origin",
}


def issue(folder, name="ann", *roles, expires=None):
    return add_token(folder / "tokens", name, roles, expires, datetime.now(UTC))[0]


@pytest.fixture
def server(tmp_path):
    with guarded(tmp_path, with_rules=False) as running:
        yield running


@pytest.fixture
def browser(server):
    client = Client(server.url)
    yield Browser(client)
    client.close()


@pytest.fixture
def token(server, tmp_path):
    return issue(tmp_path)


def cookie_name(server):
    return f"nessie-session-{urlsplit(server.url).port}"


@pytest.fixture
def logged_in(browser, token):
    assert browser.post("/ui/login", token=token).status == 200
    return browser


# -- logging in and out --
def test_a_page_without_a_session_leads_to_the_login_and_back(browser, token):
    page = browser.get("/ui/history?ref=main")
    assert browser.url == "/ui/login?next=%2Fui%2Fhistory%3Fref%3Dmain"
    page = browser.post("/ui/login", **page.form("/ui/login") | {"token": token})
    assert browser.url == "/ui/history?ref=main"
    assert "History of main" in page.text
    assert "ann until 20" in page.text
    assert "Log out" in page.text


@pytest.mark.parametrize("url", ["/", "/ui", "/ui/nosuch"])
def test_other_addresses_lead_to_the_login_and_then_to_the_first_page(browser, token, url):
    page = browser.get(url)
    assert browser.url.partition("?")[0] == "/ui/login"
    page = browser.post("/ui/login", **page.form("/ui/login") | {"token": token})
    assert browser.url == "/ui/branches"


def test_the_cookie_is_for_this_server_and_no_script(browser, server, token):
    body = f"token={token}".encode()
    answer = browser.answer("POST", "/ui/login", body, FORM)
    name, *attributes = answer.headers["set-cookie"].split("; ")
    full_name, _, value = name.partition("=")
    assert full_name == cookie_name(server)
    assert len(value) == 43
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Lax", f"Max-Age={LONGEST}"]
    assert token not in str(answer)


@pytest.mark.parametrize("parts", [Parts(public_url="https://catalog.example.com")])
def test_over_tls_no_other_host_can_set_the_cookie(tmp_path, parts):
    (tmp_path / "tokens").touch(0o600)
    token = issue(tmp_path)
    gate = open_gate(Security(tokens=tmp_path / "tokens"))
    with (
        connect("memory:") as repository,
        serving(app=application(repository, parts._replace(gate=gate))) as url,
    ):
        browser = Browser(Client(url))
        assert browser.post("/ui/login", token=token).status == 200
        assert [*browser.cookies] == ["__Host-nessie"]
        answer = browser.answer("POST", "/ui/login", f"token={token}".encode(), FORM)
        assert "; Secure" in answer.headers["set-cookie"]
        browser.client.close()


def test_servers_on_two_ports_of_a_host_have_sessions_of_their_own(tmp_path, logged_in):
    (tmp_path / "other").mkdir()
    with guarded(tmp_path / "other", with_rules=False) as other:
        there = Browser(Client(other.url))
        # A browser sends the cookies of a host to all its ports.
        there.cookies = logged_in.cookies
        assert there.post("/ui/login", token=issue(tmp_path / "other")).status == 200
        for browser in (there, logged_in):
            browser.get("/ui/tags")
            assert browser.url == "/ui/tags"
        there.post("/ui/logout")
        logged_in.get("/ui/branches")
        assert logged_in.url == "/ui/branches"
        there.client.close()


def test_a_public_url_names_the_port(tmp_path):
    (tmp_path / "tokens").touch(0o600)
    token = issue(tmp_path)
    gate = open_gate(Security(tokens=tmp_path / "tokens"))
    parts = Parts(public_url="http://catalog.example.com:8080", gate=gate)
    with connect("memory:") as repository, serving(app=application(repository, parts)) as url:
        browser = Browser(Client(url))
        assert browser.post("/ui/login", token=token).status == 200
        assert [*browser.cookies] == ["nessie-session-8080"]
        browser.client.close()


def test_logging_out_ends_the_session_on_the_server(logged_in):
    cookies = dict(logged_in.cookies)
    logged_in.post("/ui/logout")
    assert logged_in.url == "/ui/login"
    assert not logged_in.cookies
    logged_in.cookies = cookies
    logged_in.get("/ui/branches")
    assert logged_in.url == "/ui/login"
    assert not logged_in.cookies


def test_a_login_has_a_new_id_and_ends_the_session_before(logged_in, token):
    before = dict(logged_in.cookies)
    logged_in.post("/ui/login", token=token)
    assert logged_in.cookies != before
    logged_in.cookies = before
    logged_in.get("/ui/branches")
    assert logged_in.url == "/ui/login"


def test_an_id_that_the_browser_chose_becomes_no_session(browser, server, token):
    cookie = cookie_name(server)
    browser.cookies = {cookie: "A" * 43}
    browser.post("/ui/login", token=token)
    assert browser.cookies[cookie] != "A" * 43


@pytest.mark.parametrize("given", ["", "x", "nessie_000000000000_" + "a" * 43])
def test_a_wrong_token_is_refused_and_never_shown(browser, given):
    answer = browser.answer("POST", "/ui/login", f"token={given}".encode(), FORM)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "set-cookie" not in answer.headers
    assert b"The token is not valid" in answer.raw
    assert b"nessie_0000" not in answer.raw


@pytest.mark.parametrize("headers", OF_OTHER_PAGES)
@pytest.mark.parametrize("path", ["/ui/login", "/ui/logout"])
def test_pages_of_others_log_nobody_in_or_out(logged_in, token, path, headers):
    kind = {"content-type": FORM["content-type"]}
    answer = logged_in.answer("POST", path, f"token={token}".encode(), kind | headers)
    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert logged_in.get("/ui/branches").status == 200


def test_a_large_form_is_refused(browser):
    assert browser.answer("POST", "/ui/login", b"token=" + b"a" * 9_000, FORM).status == 413


# -- leading back --
@pytest.mark.parametrize(
    "next_",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/ui/branches",
        "//evil.example/ui/branches",
        "/ui//evil.example",
        "/ui/../..//evil.example",
        "/%2Fevil.example",
        "/ui/branches%2F..%2F..%2F%2Fevil.example",
        "/ui/branches/\r\nset-cookie: a=b",
        "javascript:alert(1)",
        "/api/v2/config",
        "/ui/login",
        "/ui/assets/htmx.js",
        "/ui/references/create",
        "ui/branches",
        "/ui/nosuch",
        "/ui/\ud7ff",
        "%",
    ],
)
def test_a_login_leads_to_pages_of_this_server_only(browser, token, next_):
    fields = {"token": token, "next": next_}
    browser.post("/ui/login", **fields)
    assert browser.url == "/ui/branches"


def test_the_query_of_a_page_cannot_break_out_of_the_address(browser, token):
    next_ = "/ui/history?ref=main\r\nx: y&key=//evil.example#x"
    answer = browser.answer(
        "POST",
        "/ui/login",
        f"token={token}&next=%2Fui%2Fhistory%3Fref%3Dmain%0D%0Ax%3A%20y".encode(),
        FORM,
    )
    assert answer.headers["location"] == "/ui/history?ref=main%0Ax%3A+y"
    browser.post("/ui/login", token=token, next=next_)
    assert browser.url.startswith("/ui/history?ref=main")


def test_a_form_without_a_session_leads_back_to_its_page(browser, server):
    own = {"referer": f"{server.url}/ui/tags?q=v1"}
    answer = browser.answer("POST", "/ui/references/create", b"name=a", FORM | own)
    assert answer.headers["location"] == "/ui/login?next=%2Fui%2Ftags%3Fq%3Dv1"
    other = {"referer": "http://evil.example/ui/tags?q=v1"}
    answer = browser.answer("POST", "/ui/references/create", b"name=a", FORM | other)
    assert answer.headers["location"] == "/ui/login"


def test_htmx_leaves_the_page(browser):
    answer = browser.answer("GET", "/ui/history?ref=main", headers={"hx-request": "true"})
    assert answer.status == 401
    assert answer.headers["hx-redirect"] == "/ui/login?next=%2Fui%2Fhistory%3Fref%3Dmain"
    assert answer.raw == b""


# -- the session and its token --
def test_a_session_ends_with_its_token(logged_in, tmp_path):
    remove_tokens(tmp_path / "tokens", "ann")
    logged_in.get("/ui/branches")
    assert logged_in.url == "/ui/login"


def test_a_replaced_token_ends_the_session(logged_in, tmp_path):
    path = tmp_path / "tokens"
    entry = json.loads(path.read_text())
    path.write_text(json.dumps(entry | {"hash": "sha256:" + "0" * 64}) + "\n")
    logged_in.get("/ui/branches")
    assert logged_in.url == "/ui/login"


def test_an_expired_token_ends_the_session(browser, tmp_path, server):
    token = issue(tmp_path, expires=datetime.now(UTC) + timedelta(hours=1))
    browser.post("/ui/login", token=token)
    path = tmp_path / "tokens"
    entry = json.loads(path.read_text())
    path.write_text(json.dumps(entry | {"expires": "2026-01-01T00:00:00Z"}) + "\n")
    browser.get("/ui/branches")
    assert browser.url == "/ui/login"


def test_roles_are_those_of_the_token_file_now(tmp_path):
    rule = "'writer' in roles && op in ['VIEW_REFERENCE', 'CREATE_REFERENCE'] || op == 'VIEW_REFERENCE'"
    with guarded(tmp_path, rule) as server:
        browser = Browser(Client(server.url))
        browser.post("/ui/login", token=issue(tmp_path))
        assert browser.post("/ui/references/create", name="a", at="main").status == 403
        path = tmp_path / "tokens"
        entry = json.loads(path.read_text())
        path.write_text(json.dumps(entry | {"roles": ["admin"]}) + "\n")
        assert browser.post("/ui/references/create", name="a", at="main").status == 200
        browser.client.close()


def test_a_change_has_the_name_of_the_token(logged_in, server):
    logged_in.post("/ui/references/create", name="dev", at="main")
    assert next(server.repository.reflog("dev")).who == "ann"


@pytest.mark.parametrize(
    "path", ["/api/v2/config", "/api/v1/trees", "/iceberg/v1/config", "/q/metrics"]
)
def test_a_cookie_counts_for_pages_only(logged_in, path):
    assert logged_in.answer("GET", path, headers={"accept": "*/*"}).status in (401, 404)
    assert logged_in.client.get("/api/v2/config").status == 401


def test_a_cookie_commits_nothing_through_the_api(logged_in, server):
    cookie = "; ".join(f"{name}={value}" for name, value in logged_in.cookies.items())
    body = {"commitMeta": {"message": "m"}, "operations": [put("a")]}
    path = f"/api/v2/trees/main@{EMPTY}/history/commit"
    answer = logged_in.client.send("POST", path, body, {"cookie": cookie})
    assert answer.status == 401


def test_pages_take_tokens_in_headers(browser, token):
    answer = browser.answer("GET", "/ui/branches", headers={"authorization": f"Bearer {token}"})
    assert answer.status == 200
    assert b"Log out" not in answer.raw
    answer = browser.answer("GET", "/ui/branches", headers={"authorization": "Bearer x"})
    assert answer.status == 401


def test_a_wrong_token_in_the_header_counts_more_than_the_session(logged_in):
    answer = logged_in.answer("GET", "/ui/branches", headers={"authorization": "Bearer x"})
    assert answer.status == 401


@pytest.mark.parametrize("cookie", ["x", "A" * 43, "A" * 44, "", "../" * 9, "é" * 43, "\t"])
def test_a_damaged_cookie_is_no_session(browser, server, cookie):
    sent = f"a=b; {cookie_name(server)}={cookie}; c"
    answer = browser.answer("GET", "/ui/branches", headers={"cookie": sent})
    assert answer.status == 303


# -- servers without required logins --
def test_an_anonymous_server_has_a_link_to_the_login(tmp_path):
    with guarded(tmp_path, anonymous=True, with_rules=False) as server:
        browser = Browser(Client(server.url))
        page = browser.get("/ui/branches")
        assert "/ui/login" in page.links
        assert "Log out" not in page.text
        page = browser.post("/ui/login", token=issue(tmp_path))
        assert "Log out" in page.text
        remove_tokens(tmp_path / "tokens", "ann")
        # Nobody continues as another caller without seeing it.
        page = browser.get("/ui/tags")
        assert "Continue without logging in" in page.text
        assert "/ui/tags" in page.links
        assert browser.get("/ui/tags").status == 200
        assert browser.url == "/ui/tags"
        browser.client.close()


def test_a_server_without_authentication_has_no_login(tmp_path):
    with serving() as url:
        browser = Browser(Client(url))
        page = browser.get("/ui/branches")
        assert "Log in" not in page.text
        assert browser.get("/ui/login").status == 404
        browser.client.close()


def test_the_log_has_no_token_and_no_cookie(tmp_path):
    lines = []
    (tmp_path / "tokens").touch(0o600)
    token = issue(tmp_path)
    security = Security(tokens=tmp_path / "tokens")
    with (
        connect("memory:") as repository,
        serving(app=with_gate(repository, security, AccessLog(lines.append))) as url,
    ):
        browser = Browser(Client(url))
        browser.post("/ui/login", token=token)
        browser.get("/ui/tags")
        [value] = browser.cookies.values()
        browser.client.close()
    text = b"".join(lines).decode()
    records = [json.loads(line) for line in text.splitlines()]
    assert [each["principal"] for each in records] == ["", "ann", "ann"]
    assert token not in text
    assert token[-43:] not in text
    assert value not in text


def test_all_servers_of_a_store_share_sessions(tmp_path):
    (tmp_path / "tokens").touch(0o600)
    gate = open_gate(Security(tokens=tmp_path / "tokens"))
    parts = Parts(gate=gate, public_url="http://catalog.example.com")
    with (
        connect("memory:") as repository,
        serving(app=application(repository, parts)) as first,
        serving(app=application(repository, parts)) as second,
    ):
        browser = Browser(Client(first))
        browser.post("/ui/login", token=issue(tmp_path))
        other = Browser(Client(second))
        other.cookies = browser.cookies
        assert other.get("/ui/tags").status == 200
        assert other.url == "/ui/tags"
        browser.client.close()
        other.client.close()


# -- limits of time --
class Clock:
    def __init__(self):
        self.now = datetime.now(UTC).timestamp()

    def __call__(self):
        return self.now


class Table(MemorySessions):
    """A table that counts its writes."""

    extended = 0

    def extend(self, id_, ends):
        self.extended += 1
        super().extend(id_, ends)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def table():
    return Table()


@pytest.fixture
def sessions(tmp_path, clock, table):
    (tmp_path / "tokens").touch(0o600)
    gate = open_gate(Security(tokens=tmp_path / "tokens"))
    return Sessions(table, gate, Cookie("nessie", is_secure=False), clock=clock)


def test_a_session_ends_when_it_is_not_used(sessions, clock, tmp_path):
    id_ = sessions.log_in(issue(tmp_path), "").id
    clock.now += IDLE - 1
    assert sessions.admission(id_).caller.name == "ann"
    clock.now += IDLE - 1
    assert sessions.admission(id_) is not None
    clock.now += IDLE + 1
    assert sessions.admission(id_) is None


def test_a_session_ends_after_a_week_of_use(sessions, clock, tmp_path):
    start = clock.now
    id_ = sessions.log_in(issue(tmp_path), "").id
    while (admission := sessions.admission(id_)) is not None:
        assert admission.session_ends.timestamp() <= start + LONGEST
        clock.now += IDLE / 2
    assert LONGEST <= clock.now - start < LONGEST + IDLE


def test_a_session_ends_no_later_than_its_token(sessions, clock, tmp_path):
    expires = datetime.now(UTC) + timedelta(hours=1)
    session = sessions.log_in(issue(tmp_path, expires=expires), "")
    assert 3_500 < session.seconds <= 3_600
    assert sessions.admission(session.id).session_ends <= expires
    clock.now += 3_601
    assert sessions.admission(session.id) is None


def test_use_is_written_every_few_minutes_only(sessions, clock, table, tmp_path):
    id_ = sessions.log_in(issue(tmp_path), "").id
    for _ in range(100):
        sessions.admission(id_)
        clock.now += EXTENDED_AFTER / 50
    assert table.extended == 1


def test_a_login_removes_ended_sessions(sessions, clock, table, tmp_path):
    token = issue(tmp_path)
    for _ in range(3):
        sessions.log_in(token, "")
    clock.now += LONGEST
    sessions.log_in(token, "")
    assert table.expire(int(clock.now)) == 0
    assert len(table._sessions) == 1


def test_a_token_has_a_limited_number_of_sessions(sessions, clock, table, tmp_path):
    token, other = issue(tmp_path), issue(tmp_path, "bob")
    others = sessions.log_in(other, "").id
    ids = []
    for _ in range(MOST_SESSIONS):
        ids.append(sessions.log_in(token, "").id)
        clock.now += 1
    clock.now += EXTENDED_AFTER
    assert sessions.admission(ids[0]) is not None, "it is used, and the second one is not"
    table.put(StoredSession(b"damaged", b"{}", int(clock.now) + IDLE))
    ids.append(sessions.log_in(token, "").id)
    ended = [number for number, id_ in enumerate(ids) if sessions.admission(id_) is None]
    assert ended == [1]
    assert sessions.admission(others).caller.name == "bob"
    ids.append(sessions.log_in(token, ids[0]).id)
    ended = [number for number, id_ in enumerate(ids) if sessions.admission(id_) is None]
    assert ended == [0, 1], "the browser's own session makes room"


def test_a_caller_of_an_issuer_has_a_limited_number_of_sessions(sessions, clock, table):
    ann = Caller("ann", ("reader",))
    for number in range(3 * MOST_SESSIONS):
        caller = ann._replace(roles=(f"role{number}",)) if number % 2 else Caller("bob", ())
        sessions.log_in_by_issuer(caller, int(clock.now) + 3600, "")
    assert len(table.all()) == 2 * MOST_SESSIONS


def test_the_table_has_no_id(sessions, table, tmp_path):
    id_ = sessions.log_in(issue(tmp_path), "").id
    assert id_ not in str(table._sessions)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"type":"other"}', b"[1]"])
def test_a_damaged_row_is_no_session(sessions, table, tmp_path, data):
    id_ = sessions.log_in(issue(tmp_path), "").id
    [row] = table._sessions.values()
    table._sessions[row.id] = type(row)(row.id, data, row.ends)
    assert sessions.admission(id_) is None


def test_a_wrong_token_begins_no_session(sessions):
    with pytest.raises(Unauthenticated):
        sessions.log_in("nessie_" + "0" * 12 + "_" + "a" * 43, "")
