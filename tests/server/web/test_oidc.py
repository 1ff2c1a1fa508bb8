"""Logging in at an OpenID Connect issuer, which is a small one of this module over HTTP."""

import gzip
import time
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.model import Secret
from nessie_cli.server.auth import oidc
from nessie_cli.server.auth.bounded_fetch import MOST_BYTES
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.issuer import JwtSettings
from nessie_cli.server.auth.oidc import LOGIN_SECONDS, OidcLogin, OidcSettings, read_secret
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import Listeners, ServerSettings, application, serve
from tests.server.client import Client
from tests.server.serving import serving
from tests.server.slow_servers import SLOW, answering
from tests.server.web.browser import Browser
from tests.server.web.issuer import running_issuer

PUBLIC = "https://catalog.example.com"
CALLBACK = f"{PUBLIC}/ui/login/callback"


@pytest.fixture
def issuer():
    with running_issuer(CALLBACK) as issuer:
        yield issuer


class Clock:
    def __init__(self):
        self.ahead = 0

    def __call__(self):
        return time.time() + self.ahead


@contextmanager
def visiting(issuer, *, secret="s3cret", clock=time.time, log=None):
    """Yields a browser at a server whose people log in at the issuer, and its repository."""
    security = Security(jwt=JwtSettings(issuer.url, "api"))
    settings = OidcSettings(issuer.url, "web", Secret(secret) if secret else None)
    oidc = OidcLogin(settings, PUBLIC, lambda _: None, clock)
    parts = Parts(log=log, gate=open_gate(security), public_url=PUBLIC, oidc=oidc)
    with (
        connect("memory:") as repository,
        serving(app=application(repository, parts)) as url,
    ):
        client = Client(url)
        yield Browser(client), repository
        client.close()


@pytest.fixture
def browser(issuer):
    with visiting(issuer) as (browser, _):
        yield browser


def begin(browser, page="/ui/history?ref=main"):
    """Follows the link of the login page; returns the address at the issuer."""
    login = browser.get(page)
    [link] = [link for link in login.links if link.startswith("/ui/login/issuer")]
    answer = browser.answer("GET", link)
    assert answer.status == 303
    return answer.headers["location"]


def finish(browser, query):
    return browser.answer("GET", f"/ui/login/callback?{query}")


def refuse(browser, query):
    """Asserts that an answer of the issuer begins no session."""
    answer = finish(browser, query)
    assert answer.status == 401
    assert b"was not accepted" in answer.raw
    assert "__Host-nessie" not in browser.cookies
    assert browser.get("/ui/tags").text.count("Log in") >= 1
    assert browser.url.startswith("/ui/login")


def test_a_person_logs_in_at_the_issuer_and_comes_back(browser, issuer):
    url = begin(browser)
    assert url.startswith(f"{issuer.url}/authorize?tenant=1&")
    assert [*browser.cookies] == ["__Host-nessie-login"]
    answer = finish(browser, issuer.log_in(url))
    assert (answer.status, answer.headers["location"]) == (303, "/ui/history?ref=main")
    assert [*browser.cookies] == ["__Host-nessie"]
    page = browser.get("/ui/history?ref=main")
    assert "ada until" in page.text
    assert "Log out" in page.text


def test_the_session_counts_for_pages_only_and_has_the_name_of_the_claim(issuer):
    with visiting(issuer) as (browser, repository):
        finish(browser, issuer.log_in(begin(browser)))
        assert browser.post("/ui/references/create", name="dev", at="main").status == 200
        assert next(repository.reflog("dev")).who == "ada"
        assert browser.answer("GET", "/api/v2/config").status == 401


def test_the_cookie_of_a_login_is_short_and_for_this_server(browser):
    login = browser.get("/ui/tags")
    [link] = [link for link in login.links if link.startswith("/ui/login/issuer")]
    cookie = browser.answer("GET", link).headers["set-cookie"]
    assert cookie.startswith("__Host-nessie-login=")
    for part in ("HttpOnly", "SameSite=Lax", "Secure", f"Max-Age={LOGIN_SECONDS}"):
        assert f"; {part}" in cookie


def test_the_session_ends_with_the_id_token(issuer):
    clock = Clock()
    issuer.claims = {"exp": int(time.time()) + 120}
    with visiting(issuer, clock=clock) as (browser, _):
        answer = finish(browser, issuer.log_in(begin(browser)))
        cookie = answer.headers["set-cookie"].split("\n")[0]
        assert 100 < int(cookie.rpartition("Max-Age=")[2]) <= 120


def test_a_public_client_has_no_secret(issuer):
    issuer.secret = ""
    with visiting(issuer, secret="") as (browser, _):
        assert finish(browser, issuer.log_in(begin(browser))).status == 303


def test_another_browser_cannot_finish_a_login(browser, issuer):
    query = issuer.log_in(begin(browser))
    other = Browser(browser.client)
    refuse(other, query)
    begin(other)
    refuse(other, query)


def test_a_login_is_finished_once(browser, issuer):
    query = issuer.log_in(begin(browser))
    cookies = dict(browser.cookies)
    assert finish(browser, query).status == 303
    browser.cookies = {}
    refuse(browser, query)
    browser.cookies = cookies
    refuse(browser, query)


def test_a_login_takes_ten_minutes_at_most(issuer):
    clock = Clock()
    with visiting(issuer, clock=clock) as (browser, _):
        query = issuer.log_in(begin(browser))
        clock.ahead = LOGIN_SECONDS + 1
        refuse(browser, query)


@pytest.mark.parametrize(
    "change",
    [
        lambda query: query.replace("state=", "state=x"),
        lambda query: query.partition("&state")[0],
        lambda query: query.replace("code=", "other="),
        lambda query: query.replace("code-", "kode-"),
        lambda query: query.replace("iss=http", "iss=https"),
        lambda query: query + "&error=access_denied",
    ],
)
def test_a_changed_answer_is_refused(browser, issuer, change):
    refuse(browser, change(issuer.log_in(begin(browser))))


def test_an_issuer_that_promises_its_name_must_send_it(browser, issuer):
    issuer.document = {"authorization_response_iss_parameter_supported": True}
    refuse(browser, issuer.log_in(begin(browser)).partition("&iss")[0])


def test_an_issuer_may_omit_its_name(browser, issuer):
    assert finish(browser, issuer.log_in(begin(browser)).partition("&iss")[0]).status == 303


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "api"},
        {"aud": None},
        {"aud": ["web", "api"]},
        {"aud": ["web", "api"], "azp": "api"},
        {"azp": "api"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"sub": "ada\nroot"},
        {"roles": [1]},
    ],
    ids=str,
)
def test_a_wrong_id_token_begins_no_session(browser, issuer, claims):
    issuer.claims = claims
    refuse(browser, issuer.log_in(begin(browser)))


@pytest.mark.parametrize("claims", [{"aud": ["web"]}, {"aud": ["web", "x"], "azp": "web"}], ids=str)
def test_an_id_token_may_have_several_audiences(browser, issuer, claims):
    issuer.claims = claims
    assert finish(browser, issuer.log_in(begin(browser))).status == 303


def test_an_id_token_of_another_key_begins_no_session(browser, issuer):
    url = begin(browser)
    nonce = dict(parse_qsl(urlsplit(url).query))["nonce"]
    claims = {"iss": issuer.url, "aud": "web", "sub": "ada", "nonce": nonce, "exp": 2**33}
    other = rsa.generate_private_key(65537, 2048)
    forged = jwt.encode(claims, other, "RS256", headers={"kid": "k"})
    issuer.answer = (200, {"access_token": "a", "token_type": "Bearer", "id_token": forged})
    refuse(browser, issuer.log_in(url))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ((200, {"access_token": "a"}), 401),
        ((400, {"error": "invalid_grant"}), 401),
        ((200, b"no json"), 503),
        ((500, b""), 503),
        ((302, {}), 401),
        ((200, []), 503),
        pytest.param((200, b"[" * 100_000), 503, id="deep"),
        pytest.param((200, {"id_token": "x" * MOST_BYTES}), 503, id="large"),
        ((200, b" " * (2 << 20) + b"{}"), 503),
        pytest.param((200, gzip.compress(b"{}")), 503, id="compressed"),
        ((200, b'{"id_token": "", "expires_in": 1e400}'), 401),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_failing_issuer_begins_no_session(browser, issuer, answer, status):
    issuer.answer = answer
    reply = finish(browser, issuer.log_in(begin(browser)))
    assert reply.status == status
    assert "__Host-nessie" not in browser.cookies


@pytest.mark.parametrize("how", SLOW)
def test_a_slow_answer_with_tokens_holds_no_login(issuer, monkeypatch, how):
    monkeypatch.setattr(oidc, "_TIMEOUT", 0.5)
    with visiting(issuer) as (browser, _), answering(SLOW[how]) as url:
        issuer.document = {"token_endpoint": url}
        query = issuer.log_in(begin(browser))
        begun = time.monotonic()
        assert finish(browser, query).status == 503
        assert time.monotonic() - begun < 5


def test_a_document_of_another_issuer_is_refused(browser, issuer):
    issuer.document = {"issuer": "https://evil.example"}
    assert browser.answer("GET", "/ui/login/issuer").status == 503


@pytest.mark.parametrize("url", ["http://evil.example/authorize", "javascript:alert(1)", 7, None])
def test_a_login_goes_to_a_safe_address_only(browser, issuer, url):
    issuer.document = {"authorization_endpoint": url}
    assert browser.answer("GET", "/ui/login/issuer").status == 503


@pytest.mark.parametrize("cookie", ["x", "e30", "!!", "A" * 5000, "bnVsbA"])
def test_a_damaged_cookie_of_a_login_is_refused(browser, cookie):
    browser.cookies = {"__Host-nessie-login": cookie}
    refuse(browser, "code=a&state=b")


def test_a_login_leads_to_pages_of_this_server_only(browser, issuer):
    answer = browser.answer("GET", "/ui/login/issuer?next=//evil.example")
    answer = finish(browser, issuer.log_in(answer.headers["location"]))
    assert answer.headers["location"] == "/ui/branches"


def test_a_session_of_another_client_does_not_count(issuer, tmp_path):
    security = Security(jwt=JwtSettings(issuer.url, "api"))
    with connect("memory:") as repository:
        cookies = {}
        for client in ("web", "other"):
            settings = OidcSettings(issuer.url, client, Secret("s3cret"))
            oidc = OidcLogin(settings, PUBLIC, lambda _: None)
            parts = Parts(gate=open_gate(security), public_url=PUBLIC, oidc=oidc)
            with serving(app=application(repository, parts)) as url:
                browser = Browser(Client(url))
                if client == "web":
                    finish(browser, issuer.log_in(begin(browser)))
                    cookies = browser.cookies
                else:
                    browser.cookies = dict(cookies)
                    assert browser.answer("GET", "/ui/tags").status == 303
                browser.client.close()


def test_the_log_has_no_code_and_no_secret(issuer):
    lines = []
    with visiting(issuer, log=AccessLog(lines.append)) as (browser, _):
        query = issuer.log_in(begin(browser))
        finish(browser, query)
    text = b"".join(lines).decode()
    assert "/ui/login/callback" in text
    for secret in ("code-0", dict(parse_qsl(query))["state"], "s3cret"):
        assert secret not in text


# -- settings --
def test_the_secret_is_in_a_file_that_others_cannot_read(tmp_path):
    path = tmp_path / "secret"
    path.write_text("s3cret\n")
    path.chmod(0o644)
    with pytest.raises(NotAllowed, match="others may read"):
        read_secret(path)
    path.chmod(0o600)
    assert read_secret(path).reveal() == "s3cret"
    path.write_text("\n")
    with pytest.raises(InvalidInput, match="has no text"):
        read_secret(path)


def test_an_issuer_needs_a_public_url():
    settings = ServerSettings(
        security=Security(jwt=JwtSettings("https://a.example", "api")),
        oidc=OidcSettings("https://a.example", "web"),
    )
    with pytest.raises(InvalidInput, match="--oidc-client needs --public-url"):
        serve(lambda: connect("memory:"), settings, Listeners(lambda _: None))


def test_the_issuer_of_logins_is_a_url():
    with pytest.raises(InvalidInput, match="must be an https"):
        OidcLogin(OidcSettings("accounts", "web"), PUBLIC, lambda _: None)
