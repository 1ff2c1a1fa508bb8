"""Logging in and out of the pages, and a session that ends meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nessie_cli import connect
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.issuer import JwtSettings
from nessie_cli.server.auth.oidc import OidcLogin, OidcSettings
from nessie_cli.server.auth.tokens import add_token, remove_tokens
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.browser.checks import check_page
from tests.browser.chromium import expect
from tests.server.guarding import guarded
from tests.server.serving import serving
from tests.server.web.issuer import running_issuer


@pytest.fixture
def server(tmp_path):
    with guarded(tmp_path, with_rules=False) as running:
        yield running


@pytest.fixture
def token(server, tmp_path):
    return add_token(tmp_path / "tokens", "ann", (), None, datetime.now(UTC))[0]


def log_in(tab, token):
    expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")
    tab.get_by_label("Token").fill(token)
    tab.get_by_role("button", name="Log in").click()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_reader_logs_in_and_out(visit, server, token, scripts):
    visitor = visit(server.url, java_script_enabled=scripts)
    tab = visitor.open("/ui/history?ref=main")
    log_in(tab, token)
    expect(tab.get_by_role("heading", level=1)).to_have_text("History of main")
    [cookie] = visitor.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    assert token not in cookie["value"]
    tab.get_by_role("button", name="Log out").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")
    tab.goto("/ui/branches")
    expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")


def test_a_wrong_token_is_refused(visit, server):
    visitor = visit(server.url)
    visitor.expect_status(401)
    tab = visitor.open()
    log_in(tab, "nessie_wrong")
    expect(tab.get_by_role("alert")).to_be_visible()
    check_page(tab, "login")


def test_a_session_that_ends_leads_to_the_login_and_back(visit, server, token, tmp_path):
    visitor = visit(server.url)
    visitor.expect_status(401)
    tab = visitor.open()
    log_in(tab, token)
    expect(tab.get_by_role("heading", level=1)).to_have_text("Branches")
    remove_tokens(tmp_path / "tokens", "ann")
    tab.get_by_role("link", name="Tags").click()
    again = add_token(tmp_path / "tokens", "ann", (), None, datetime.now(UTC))[0]
    log_in(tab, again)
    expect(tab.get_by_role("heading", level=1)).to_have_text("Tags")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_reader_logs_in_at_an_issuer(visit, scripts):
    with running_issuer() as issuer, connect("memory:") as repository:
        issuer.secret = None

        def app_at(url):
            issuer.callback = f"{url}/ui/login/callback"
            gate = open_gate(Security(jwt=JwtSettings(issuer.url, "api")))
            oidc = OidcLogin(OidcSettings(issuer.url, "web", None), url, lambda _: None)
            return application(repository, Parts(gate=gate, public_url=url, oidc=oidc))

        with serving(app_at=app_at) as url:
            visitor = visit(url, java_script_enabled=scripts)
            tab = visitor.open("/ui/history?ref=main")
            expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")
            if scripts:
                check_page(tab, "login")
            tab.get_by_role("link", name="Log in").click()
            expect(tab.get_by_role("heading", level=1)).to_have_text("History of main")
            expect(tab.locator(".who")).to_contain_text("ada")


def test_servers_on_two_ports_have_sessions_of_their_own(visit, server, token, tmp_path):
    (tmp_path / "other").mkdir()
    with guarded(tmp_path / "other", with_rules=False) as other:
        other_token = add_token(tmp_path / "other" / "tokens", "bob", (), None, datetime.now(UTC))
        visitor = visit(server.url)
        tab, there = visitor.open(), visitor.open(other.url)
        log_in(tab, token)
        expect(tab.locator(".who")).to_contain_text("ann")
        log_in(there, other_token[0])
        expect(there.locator(".who")).to_contain_text("bob")
        tab.reload()
        expect(tab.locator(".who")).to_contain_text("ann")
        there.get_by_role("button", name="Log out").click()
        tab.get_by_role("link", name="Tags").click()
        expect(tab.get_by_role("heading", level=1)).to_have_text("Tags")
