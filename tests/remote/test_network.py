"""Connections to a server: certificates, proxies, timeouts, and one line for each kind of
failure."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command.process import Nessie
from tests.remote.issuer import CLIENT, SECRET, Issuer
from tests.remote.listening import Answer, Request, forward, listening, server_tls
from tests.remote.proxy import Proxy, proxying
from tests.remote.tls import PASSWORD, TLS

CA = {"NESSIE_CA_FILE": str(TLS / "ca.pem")}
CLIENT_FILES = {
    "NESSIE_CERTIFICATE_FILE": str(TLS / "client.pem"),
    "NESSIE_KEY_FILE": str(TLS / "client.key"),
}


@contextmanager
def secure(server: str, *, client_certificates: bool = False) -> Iterator[str]:
    with listening(
        lambda request: forward(server, request),
        server_tls(client_certificates=client_certificates),
    ) as url:
        yield url


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with proxying() as found:
        yield found


def refused(nessie: Nessie, url: str, env: dict[str, str] | None = None, code: int = 7) -> str:
    """Returns the one line of a command that cannot reach its server."""
    outcome = nessie("log", env={"NESSIE_ENDPOINT": url, **(env or {})})
    lines = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (code, ""), outcome
    assert lines[0].startswith("nessie: ")
    return lines[0]


# -- certificates --------------------------------------------------------------------------------
def test_a_private_ca_can_be_trusted(nessie: Nessie, server: str) -> None:
    with secure(server) as url:
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, **CA})
        # Settings for nessie take precedence over those for all programs.
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, "REQUESTS_CA_BUNDLE": "/nowhere", **CA})
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, "REQUESTS_CA_BUNDLE": str(TLS / "ca.pem")})


def test_a_server_with_an_unknown_ca_is_not_trusted(nessie: Nessie, server: str) -> None:
    with secure(server) as url:
        assert "its certificate is not accepted; give the CA's file" in refused(nessie, url)


def test_a_certificate_for_another_name_is_not_accepted(nessie: Nessie, server: str) -> None:
    with secure(server) as url:
        port = url.rpartition(":")[2]
        assert "its certificate is for another name" in refused(nessie, f"https://127.1:{port}", CA)


def test_a_client_can_use_a_certificate(nessie: Nessie, server: str) -> None:
    with secure(server, client_certificates=True) as url:
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, **CA, **CLIENT_FILES})


def test_a_missing_client_certificate_is_reported(nessie: Nessie, server: str) -> None:
    with secure(server, client_certificates=True) as url:
        assert "client certificate" in refused(nessie, url, CA) or "not reachable" in refused(
            nessie, url, CA
        )


def test_an_encrypted_key_is_used_with_its_password(
    nessie: Nessie, server: str, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    password.chmod(0o600)
    encrypted = {**CA, **CLIENT_FILES, "NESSIE_KEY_FILE": str(TLS / "client-encrypted.key")}
    with secure(server, client_certificates=True) as url:
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, **encrypted, "NESSIE_KEY_PASSWORD": PASSWORD})
        nessie.ok(
            "log",
            env={"NESSIE_ENDPOINT": url, **encrypted, "NESSIE_KEY_PASSWORD_FILE": str(password)},
        )
        assert "the key is encrypted; NESSIE_KEY_PASSWORD" in refused(
            nessie, url, encrypted, code=2
        )
        assert "the wrong password" in refused(
            nessie, url, {**encrypted, "NESSIE_KEY_PASSWORD": "sesame"}, code=2
        )


def test_missing_and_invalid_files_are_reported(nessie: Nessie, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate\n")
    url = "https://127.0.0.1:1"
    assert "holds no CA certificates" in refused(
        nessie, url, {"NESSIE_CA_FILE": str(tmp_path / "text")}, code=2
    )
    other = {**CLIENT_FILES, "NESSIE_KEY_FILE": str(TLS / "server.key")}
    assert "they belong to different pairs" in refused(nessie, url, other, code=2)


# -- proxies -------------------------------------------------------------------------------------
def test_a_proxy_can_be_set_in_the_environment(nessie: Nessie, server: str, proxy: Proxy) -> None:
    nessie.ok("log", env={"NESSIE_ENDPOINT": server, "HTTP_PROXY": proxy.url})
    assert proxy.seen[0].startswith(f"GET {server}/api/v2/config")


def test_a_secure_server_is_reached_through_a_tunnel(
    nessie: Nessie, server: str, proxy: Proxy
) -> None:
    with secure(server) as url:
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, "HTTPS_PROXY": proxy.url, **CA})
        assert set(proxy.seen) == {f"CONNECT {url.removeprefix('https://')}"}


def test_a_setting_takes_precedence_over_the_environment(
    nessie: Nessie, server: str, proxy: Proxy
) -> None:
    elsewhere = "http://127.0.0.1:1"
    nessie.ok(
        "log", env={"NESSIE_ENDPOINT": server, "HTTP_PROXY": elsewhere, "NESSIE_PROXY": proxy.url}
    )
    assert proxy.seen
    nessie.ok(
        "log", env={"NESSIE_ENDPOINT": server, "HTTP_PROXY": elsewhere, "NESSIE_PROXY": "none"}
    )


def test_some_servers_need_no_proxy(nessie: Nessie, server: str, proxy: Proxy) -> None:
    for name in ("HTTP_PROXY", "NESSIE_PROXY"):
        nessie.ok("log", env={"NESSIE_ENDPOINT": server, name: proxy.url, "NO_PROXY": "127.0.0.1"})
    assert proxy.seen == []


def test_a_proxy_may_require_authentication(nessie: Nessie, server: str, proxy: Proxy) -> None:
    proxy.wanted = "ann:secret"
    named = proxy.url.replace("http://", "http://ann:secret@")
    nessie.ok("log", env={"NESSIE_ENDPOINT": server, "NESSIE_PROXY": named})
    assert "its proxy requires authentication (407)" in refused(
        nessie, server, {"NESSIE_PROXY": proxy.url}
    )
    with secure(server) as url:
        nessie.ok("log", env={"NESSIE_ENDPOINT": url, "HTTPS_PROXY": named, **CA})
        assert "its proxy requires authentication (407)" in refused(
            nessie, url, {"NESSIE_PROXY": proxy.url, **CA}
        )


def test_a_missing_proxy_is_reported(nessie: Nessie, server: str) -> None:
    assert "the proxy for it does not work" in refused(
        nessie, server, {"NESSIE_PROXY": "http://127.0.0.1:1"}
    )


def test_an_oauth2_server_is_reached_with_the_same_settings(
    nessie: Nessie, server: str, issuer: Issuer, proxy: Proxy
) -> None:
    env = {
        "NESSIE_OAUTH2_ISSUER_URL": f"{issuer.url}/realm",
        "NESSIE_OAUTH2_CLIENT_ID": CLIENT,
        "NESSIE_OAUTH2_CLIENT_SECRET": SECRET,
    }
    nessie.ok("log", env={"NESSIE_ENDPOINT": server, "NESSIE_PROXY": proxy.url, **env})
    assert f"POST {issuer.url}/token" in proxy.seen


# -- timeouts ------------------------------------------------------------------------------------
def test_a_server_that_does_not_answer_times_out(nessie: Nessie) -> None:
    never = threading.Event()

    def silent(request: Request) -> Answer:
        # Half of the waiting time for a silent server: a client that ignores a setting gets this
        # answer.
        never.wait(30)
        return Answer()

    with listening(silent) as url:
        try:
            assert "no answer within 0.5 seconds (NESSIE_TIMEOUT)" in refused(
                nessie, url, {"NESSIE_TIMEOUT": "0.5"}
            )
        finally:
            never.set()


def test_timeouts_can_be_settings(nessie: Nessie, server: str) -> None:
    nessie.ok("init", "--store", server)
    nessie.ok("config", "set", "access.timeout", "30")
    nessie.ok("log")
    assert nessie("config", "set", "access.timeout", "never").code == 2


# -- wrong addresses -----------------------------------------------------------------------------
def test_unreachable_addresses_are_reported(nessie: Nessie) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        no_answer = free.getsockname()[1]
        assert "nothing listens there" in refused(nessie, f"http://127.0.0.1:{no_answer}")
    assert "its name is not known" in refused(nessie, "http://no-such-name.invalid/api/v2")


def test_http_and_https_are_not_confused(nessie: Nessie, server: str) -> None:
    with secure(server) as url:
        assert "does it speak https?" in refused(nessie, url.replace("https://", "http://"))
    assert "it does not speak https there" in refused(
        nessie, server.replace("http://", "https://"), CA
    )


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/"])
def test_the_address_of_another_version_is_reported(nessie: Nessie, server: str, path: str) -> None:
    assert "the address of version 2 ends in /api/v2" in refused(nessie, server + path, code=2)


@pytest.mark.parametrize("path", ["/api", "/v2", "/somewhere/else", "/api/v2/trees"])
def test_a_path_without_an_api_is_reported(nessie: Nessie, server: str, path: str) -> None:
    line = refused(nessie, server + path, code=4)
    assert "…/api/v2" in line or "no Nessie server" in line


def test_an_address_without_a_path_means_the_api(nessie: Nessie, server: str) -> None:
    nessie.ok("log", "--store", server)
    nessie.ok("log", "--store", f"{server}/")
    nessie.ok("log", "--store", f"{server}/api/v2/")


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https:///api/v2",
        "http://host:port/api/v2",
        "http://[::1",
        "http://h/api/v2?token=geheim",
        "http://a b/",
    ],
)
def test_an_invalid_url_is_reported(nessie: Nessie, url: str) -> None:
    line = refused(nessie, url, code=2)
    assert "geheim" not in line


ANSWERS = {
    "page": (
        Answer(200, b"<html>welcome</html>", {"Content-Type": "text/html"}),
        4,
        "the answer is not JSON",
    ),
    "another service": (
        Answer(200, b'{"hello": "world"}'),
        4,
        "what answers there is no Nessie server",
    ),
    "401": (Answer(401, b""), 6, "authentication required (401); set NESSIE_AUTH_TOKEN"),
    "403": (Answer(403, b"<html/>"), 6, "the server does not allow this (403)"),
    "429": (
        Answer(429, b"", {"Retry-After": "0"}),
        7,
        "the server answered 429, too many requests",
    ),
    "503": (
        Answer(503, b"", {"Retry-After": "0"}),
        7,
        "the server answered 503, it is busy or away",
    ),
    "moved": (
        Answer(301, b"", {"Location": "https://elsewhere.example.org/api/v2/config"}),
        2,
        "(301): https://elsewhere.example.org/api/v2; use",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_invalid_answer_is_reported_in_one_line(nessie: Nessie, name: str) -> None:
    answer, code, text = ANSWERS[name]
    with listening(lambda _: answer) as url:
        assert text in refused(nessie, url, code=code)


# -- temporary failures --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "answer",
    [
        Answer(503),
        Answer(502),
        Answer(504),
        Answer(429, b"", {"Retry-After": "0"}),
        Answer(cut=0),
        Answer(cut=30),
    ],
)
def test_a_read_is_retried(nessie: Nessie, server: str, answer: Answer) -> None:
    asked: list[str] = []

    def busy(request: Request) -> Answer:
        asked.append(str(request))
        return answer if len(asked) < 4 else forward(server, request)

    with listening(busy) as url:
        nessie.ok("branch", "--store", url)
    assert asked[:4] == ["GET /api/v2/config"] * 4


def test_a_read_is_not_retried_for_ever(nessie: Nessie) -> None:
    asked: list[str] = []

    def busy(request: Request) -> Answer:
        asked.append(str(request))
        return Answer(503, b"", {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"})

    with listening(busy) as url:
        assert nessie("branch", "--store", url).code == 7
    assert len(asked) == 4


def test_a_server_cannot_be_served(nessie: Nessie, server: str) -> None:
    outcome = nessie("serve", "--store", server, "--port", "0")
    assert outcome.code == 2
    assert "is already a server" in outcome.err


def test_init_without_a_server_creates_nothing(nessie: Nessie) -> None:
    with listening(lambda _: Answer(404, b"nothing here")) as url:
        for words in (("init", "--store", url), ("log", "--store", url)):
            ran = nessie(*words)
            assert (ran.code, ran.err) == (
                4,
                (
                    f"nessie: server {url}/api/v2: no Nessie server answers there; its API is at"
                    " …/api/v2\n"
                ),
            )
    assert list(nessie.folder.iterdir()) == []


def test_init_creates_a_workspace_on_a_server(nessie: Nessie, server: str) -> None:
    nessie.ok("init", "--store", f"{server}/api/v2")
    nessie.table("orders", 1, "-m", "first")
    assert nessie.messages() == ["first"]
    shutil.rmtree(nessie.folder / ".nessie")
    for name in ("NESSIE_STORE", "NESSIE_ENDPOINT"):
        assert [
            entry["commitMeta"]["message"]
            for entry in nessie.ok("log", "--json", env={name: server}).json["logEntries"]
        ] == ["first"]
