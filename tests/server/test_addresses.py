"""Addresses of the server: only this machine, without authentication or an explicit option."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nessie_cli import create
from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.server.auth.gate import Security
from nessie_cli.server.auth.issuer import JwtSettings
from nessie_cli.server.running import (
    ServerSettings,
    check_address,
    check_public_url,
    is_loopback,
)
from tests.command.preloaded import EVERYTHING
from tests.command.process import Forker
from tests.server.client import Client
from tests.server.processes import PATIENCE, started

FILE = Path("a file")


@pytest.mark.parametrize("url", ["https://catalog.example.com", "http://[::1]:19120/"])
def test_the_host_of_a_public_url_is_a_name_of_the_server(url):
    check_public_url(url)
    for host in ("127.0.0.1", "0.0.0.0"):
        hosts = ServerSettings(host, public_url=url).hosts
        assert hosts.allows("catalog.example.com" if "catalog" in url else "::1")
        assert not hosts.allows("evil.example")


@pytest.mark.parametrize(
    "url",
    [
        "catalog.example.com",
        "https://",
        "https://a/b",
        "https://a?b",
        "https://a#b",
        "https://u:p@a",
        "ftp://a",
        "https://a:x",
        "https://[a",
    ],
)
def test_another_public_url_is_refused(url):
    with pytest.raises(InvalidInput, match="must be a scheme and a host"):
        check_public_url(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "127.1"])
def test_loopback_addresses_are_allowed(host):
    assert is_loopback(host)
    check_address(ServerSettings(host))


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "0", "192.0.2.1", "2001:db8::1", "fe80::1", "::ffff:192.0.2.1", "1.2.3"],
)
def test_public_addresses_require_an_option(host):
    assert not is_loopback(host)
    with pytest.raises(NotAllowed, match=r"--tokens .*--insecure"):
        check_address(ServerSettings(host))
    check_address(ServerSettings(host, insecure=True))


@pytest.mark.parametrize(
    ("security", "allow_public"),
    [
        (Security(), True),
        (Security(tokens=FILE), False),
        (Security(jwt=JwtSettings("https://a", "b")), False),
        (Security(tokens=FILE, anonymous=True), True),
        (Security(tokens=FILE, anonymous=True, rules=FILE), False),
        (Security(anonymous=True, rules=FILE), False),
        (Security(anonymous=True), True),
    ],
)
def test_a_server_without_authentication_is_not_made_public(security, allow_public):
    settings = ServerSettings("0.0.0.0", security=security)
    if allow_public:
        with pytest.raises(NotAllowed):
            check_address(settings)
    else:
        check_address(settings)


def test_a_public_server_with_tokens_warns_that_they_are_sent_unencrypted(tmp_path):
    (tmp_path / "tokens").touch(0o600)
    options = ("--host", "0.0.0.0", "--tokens", str(tmp_path / "tokens"))
    with started("--store", "memory:", *options, first="unencrypted") as (_, url):
        client = Client(url.replace("0.0.0.0", "127.0.0.1"))
        assert client.get("/api/v2/config").status == 401
        client.close()


def test_the_environment_names_tokens_and_rules(tmp_path):
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "rules").write_text("")
    with started(
        "--store",
        "memory:",
        env={
            "NESSIE_SERVE_TOKENS": str(tmp_path / "tokens"),
            "NESSIE_SERVE_RULES": str(tmp_path / "rules"),
        },
    ) as (
        _,
        url,
    ):
        client = Client(url)
        assert client.get("/api/v2/config").status == 401
        client.close()


@pytest.fixture(scope="module")
def loaded():
    """A process that has loaded the server already; command lines are forked from it."""
    modules = (*EVERYTHING, "nessie_cli.server.running", "nessie_cli.server.workers")
    with Forker(modules) as forker:
        yield forker


@pytest.fixture
def refused(tmp_path, loaded):
    """Runs `nessie serve OPTIONS...` over a store, in a folder with unusable files for tokens
    and rules."""
    (tmp_path / "open").touch(0o644)
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "rules").write_text("")
    (tmp_path / "broken").write_text("# a comment\n" + json.dumps({"id": "x"}))
    (tmp_path / "broken").chmod(0o600)
    store = str(tmp_path / "s.sqlite")
    create(store).close()
    environment = {"PATH": os.defpath, "HOME": str(tmp_path)}

    def serve(*options):
        arguments = ["serve", "--store", store, "--port", "0", *options]
        return loaded.run(arguments, tmp_path, environment, seconds=PATIENCE)

    return serve


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--tokens", "nosuch"), 2, "token file nosuch cannot be read"),
        (("--tokens", "open"), 6, "chmod 600"),
        (("--tokens", "broken"), 2, "broken: line 2"),
        (("--anonymous", "--rules", "broken"), 2, "TOML"),
        (("--rules", "rules"), 2, "--anonymous"),
        (("--jwt-audience", "x"), 2, "--jwt-issuer"),
        (("--jwt-roles", "x"), 2, "--jwt-issuer"),
        (("--jwt-name", "x"), 2, "--jwt-issuer"),
        (("--jwt-issuer", "https://a.example"), 2, "--jwt-audience"),
        (("--jwt-issuer", "a", "--jwt-audience", "b"), 2, "https"),
        (("--jwt-issuer", "a", "--jwt-audience", "b", "--jwt-keys", "broken"), 2, "broken"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one", "two"])
def test_invalid_files_and_options_are_reported_in_one_line(
    refused, options, code, message, workers
):
    done = refused(*options, *workers)
    assert (done.code, done.out) == (code, ""), done
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
