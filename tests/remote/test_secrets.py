"""Sources of tokens and passwords, and their secrecy: the real command, with --debug,
against servers that fail."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.command.process import Nessie, fresh
from tests.remote.issuer import CLIENT, SECRET, Issuer
from tests.remote.listening import CUT, Answer, Request, forward, listening

TOKEN = "t0ken-Of-Somebody"
PASSWORD = "p4ssw0rd:of/somebody"
BEARER = f"Bearer {TOKEN}"
BASIC = "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()


class Gate:
    """Accepts requests with the header, and records all headers; with `failing` it accepts none."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.wanted: str | None = None
        self.failing: Answer | None = None
        self.seen: list[str | None] = []
        self.url = ""

    def __call__(self, request: Request) -> Answer:
        header = request.headers.get("authorization")
        self.seen.append(header)
        if self.failing is not None:
            return self.failing
        if self.wanted is not None and header != self.wanted:
            # If a server repeats the request, we must not print it.
            body = {
                "status": 401,
                "reason": "Unauthorized",
                "message": f"{header} is not known",
                "errorCode": "UNAUTHORIZED",
            }
            return Answer(401, json.dumps(body).encode())
        return forward(self._server, request)


@pytest.fixture
def gate(server: str) -> Iterator[Gate]:
    gate = Gate(server)
    with listening(gate) as url:
        gate.url = url
        yield gate


def secret_file(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "secret"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_token_from_the_environment_is_sent(nessie: Nessie, gate: Gate) -> None:
    gate.wanted = BEARER
    nessie.ok("log", env={"NESSIE_ENDPOINT": gate.url, "NESSIE_AUTH_TOKEN": TOKEN})
    assert set(gate.seen) == {BEARER}


def test_a_token_from_a_file_is_sent(nessie: Nessie, gate: Gate, tmp_path: Path) -> None:
    gate.wanted = BEARER
    nessie.ok(
        "log",
        env={
            "NESSIE_ENDPOINT": gate.url,
            "NESSIE_AUTH_TOKEN_FILE": secret_file(tmp_path, TOKEN + "\n"),
        },
    )


def test_a_password_is_sent(nessie: Nessie, gate: Gate, tmp_path: Path) -> None:
    gate.wanted = BASIC
    nessie.ok(
        "log",
        env={
            "NESSIE_ENDPOINT": gate.url,
            "NESSIE_AUTH_USERNAME": "ann",
            "NESSIE_AUTH_PASSWORD": PASSWORD,
        },
    )


def test_type_none_sends_nothing(nessie: Nessie, gate: Gate) -> None:
    nessie.ok(
        "log",
        env={"NESSIE_ENDPOINT": gate.url, "NESSIE_AUTH_TYPE": "none", "NESSIE_AUTH_TOKEN": TOKEN},
    )
    assert set(gate.seen) == {None}


def test_a_password_from_netrc_is_not_sent(nessie: Nessie, gate: Gate) -> None:
    netrc = Path(nessie.environment["HOME"]) / ".netrc"
    netrc.write_text("machine 127.0.0.1 login ann password nobody-asked-for-it\n")
    netrc.chmod(0o600)
    nessie.ok("log", env={"NESSIE_ENDPOINT": gate.url})
    assert set(gate.seen) == {None}


def test_a_profile_has_its_own_access_settings(nessie: Nessie, gate: Gate, tmp_path: Path) -> None:
    gate.wanted = BEARER
    for name, value in {
        "store": gate.url,
        "auth-type": "bearer",
        "token-file": secret_file(tmp_path, TOKEN),
    }.items():
        nessie.ok("config", "set", f"profile.work.{name}", value, "--user")
    nessie.ok("log", "--profile", "work")
    nessie.ok("log", env={"NESSIE_PROFILE": "work"})
    assert nessie("log", "--store", gate.url).code == 6
    nessie.ok("config", "set", "default-profile", "work", "--user")
    nessie.ok("log")
    nessie.ok("log", "--store", gate.url)


def test_a_workspace_has_its_own_access_settings(
    nessie: Nessie, gate: Gate, tmp_path: Path
) -> None:
    gate.wanted = BEARER
    nessie.ok("init", "--store", gate.url, env={"NESSIE_AUTH_TOKEN": TOKEN})
    assert nessie("log").code == 6
    secret_file(nessie.folder, TOKEN)
    nessie.ok("config", "set", "access.token-file", "secret")
    nessie.ok("log")
    (nessie.folder / "below").mkdir()
    nessie.ok("log", cwd=nessie.folder / "below")
    nessie.ok("init")


def test_a_secret_is_only_sent_to_its_server(nessie: Nessie, gate: Gate, tmp_path: Path) -> None:
    for name, value in {
        "store": "http://127.0.0.1:1/api/v2",
        "token-file": secret_file(tmp_path, TOKEN),
    }.items():
        nessie.ok("config", "set", f"profile.work.{name}", value, "--user")
    nessie.ok("config", "set", "default-profile", "work", "--user")
    nessie.ok("log", "--store", gate.url)
    assert set(gate.seen) == {None}


def test_a_token_from_an_oauth2_server_is_shared_by_commands(
    nessie: Nessie, gate: Gate, issuer: Issuer
) -> None:
    gate.wanted = "Bearer token-1"
    env = oauth2(gate, issuer)
    nessie.ok("log", env=env)
    nessie.ok("branch", env=env)
    assert issuer.grants == ["client_credentials"]


def test_a_refused_token_is_replaced_once(nessie: Nessie, gate: Gate, issuer: Issuer) -> None:
    gate.wanted = "Bearer token-2"
    nessie.ok("log", env=oauth2(gate, issuer))
    assert gate.seen[:2] == ["Bearer token-1", "Bearer token-2"]
    gate.wanted = "Bearer nobody's"
    refused = nessie("log", env=oauth2(gate, issuer))
    assert (refused.code, issuer.grants) == (6, ["client_credentials"] * 3)
    assert "does not take the token" in refused.err


def test_a_sign_in_without_a_terminal_is_refused(
    nessie: Nessie, gate: Gate, issuer: Issuer
) -> None:
    refused = nessie("log", env=oauth2(gate, issuer) | {"NESSIE_OAUTH2_GRANT_TYPE": "device_code"})
    assert refused.code == 6
    assert "must sign in on a terminal" in refused.err
    assert issuer.asked == []


KEYRING = """
from keyring.backend import KeyringBackend

class Backend(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        return {PASSWORDS}.get((service, username))

    def set_password(self, service, username, password):
        raise AssertionError
"""


def test_a_token_from_the_keyring_is_only_sent_to_its_server(gate: Gate, tmp_path: Path) -> None:
    nessie = fresh(tmp_path, None)
    kept = {("nessie:token", f"{gate.url}/api/v2"): TOKEN}
    (tmp_path / "one_keyring.py").write_text(KEYRING.replace("{PASSWORDS}", repr(kept)))
    keyring = {
        "PYTHONPATH": str(tmp_path),
        "PYTHON_KEYRING_BACKEND": "one_keyring.Backend",
        "NESSIE_AUTH_TYPE": "bearer",
    }
    gate.wanted = BEARER
    nessie.ok("log", env={"NESSIE_ENDPOINT": gate.url, **keyring})
    elsewhere = nessie(
        "log", env={"NESSIE_ENDPOINT": gate.url.replace("127.0.0.1", "localhost"), **keyring}
    )
    elsewhere.expect(2, "auth-type bearer needs a token")


def oauth2(gate: Gate, issuer: Issuer) -> dict[str, str]:
    return {
        "NESSIE_ENDPOINT": gate.url,
        "NESSIE_OAUTH2_ISSUER_URL": f"{issuer.url}/realm",
        "NESSIE_OAUTH2_CLIENT_ID": CLIENT,
        "NESSIE_OAUTH2_CLIENT_SECRET": SECRET,
    }


# -- wrong secrets -------------------------------------------------------------------------------
class Wrong(NamedTuple):
    env: Mapping[str, str]
    line: str


WRONG = {
    "type": Wrong(
        {"NESSIE_AUTH_TYPE": "aws"},
        "NESSIE_AUTH_TYPE: 'aws' is not one of none, basic, bearer, oauth2",
    ),
    "no token": Wrong(
        {"NESSIE_AUTH_TYPE": "bearer"}, "auth-type bearer needs a token: NESSIE_AUTH_TOKEN, a file"
    ),
    "no user": Wrong(
        {"NESSIE_AUTH_TYPE": "basic"}, "auth-type basic needs username (NESSIE_AUTH_USERNAME)"
    ),
    "no password": Wrong(
        {"NESSIE_AUTH_USERNAME": "ann"},
        "auth-type basic needs a password: NESSIE_AUTH_PASSWORD, a file",
    ),
    "no client": Wrong({"NESSIE_AUTH_TYPE": "oauth2"}, "auth-type oauth2 needs client-id"),
    "no issuer": Wrong({"NESSIE_OAUTH2_CLIENT_ID": "me"}, "auth-type oauth2 needs issuer-url"),
    "no secret": Wrong(
        {"NESSIE_OAUTH2_CLIENT_ID": "me", "NESSIE_OAUTH2_ISSUER_URL": "http://127.0.0.1:1"},
        "needs a client-secret",
    ),
    "token with a space": Wrong(
        {"NESSIE_AUTH_TOKEN": "a b"}, "contains characters that are invalid in a header"
    ),
    "no file": Wrong({"NESSIE_AUTH_TOKEN_FILE": "/nowhere"}, "/nowhere: the secret cannot be read"),
    "timeout": Wrong(
        {"NESSIE_TIMEOUT": "soon"}, "NESSIE_TIMEOUT: 'soon' is not a positive number of seconds"
    ),
    "proxy": Wrong({"NESSIE_PROXY": "somewhere:80"}, "NESSIE_PROXY: write http://host:port"),
    "no CA": Wrong({"NESSIE_CA_FILE": "/nowhere"}, "/nowhere: no such file"),
    "key without certificate": Wrong({"NESSIE_KEY_FILE": "/nowhere"}, "needs its certificate too"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_reported_in_one_line(nessie: Nessie, gate: Gate, name: str) -> None:
    refused = nessie("log", env={"NESSIE_ENDPOINT": gate.url, **WRONG[name].env})
    assert refused.code == 2
    assert WRONG[name].line in refused.err
    assert len(refused.err.splitlines()) == 1
    assert gate.seen == []


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
def test_a_file_that_others_may_read_is_refused(
    nessie: Nessie, gate: Gate, tmp_path: Path, mode: int
) -> None:
    refused = nessie(
        "log",
        env={
            "NESSIE_ENDPOINT": gate.url,
            "NESSIE_AUTH_TOKEN_FILE": secret_file(tmp_path, TOKEN, mode),
        },
    )
    assert refused.code == 2
    assert "others may read this secret; `chmod 600" in refused.err


@pytest.mark.parametrize(
    "name",
    [
        "access.token",
        "access.password",
        "profile.work.token",
        "profile.work.client-secret",
        "access.auth.token",
    ],
)
def test_settings_cannot_contain_secrets(nessie: Nessie, name: str) -> None:
    nessie.ok("init")
    refused = nessie("config", "set", name, TOKEN)
    assert refused.code == 2
    assert "secrets are never written" in refused.err
    assert seen_in_files(nessie, TOKEN) == []


def test_settings_cannot_contain_the_password_of_a_proxy(nessie: Nessie) -> None:
    nessie.ok("init")
    refused = nessie("config", "set", "access.proxy", f"http://ann:{TOKEN}@proxy:3128")
    refused.expect(2, without=(TOKEN,))
    assert TOKEN not in refused.out


# -- secrecy -------------------------------------------------------------------------------------
FAILURES = {
    "401": None,
    "403": Answer(403, b"<html>no</html>", {"Content-Type": "text/html"}),
    "500": Answer(
        500, b'{"status": 500, "message": "failed", "errorCode": "UNKNOWN", "reason": "Internal"}'
    ),
    "503": Answer(503, b""),
    "cut": CUT,
    "page": Answer(200, b"<html>hello</html>", {"Content-Type": "text/html"}),
    "elsewhere": Answer(307, b"", {"Location": "http://127.0.0.1:1/api/v2/config"}),
}
CREDENTIALS = {
    "token": ({"NESSIE_AUTH_TOKEN": TOKEN}, [TOKEN]),
    "password": (
        {"NESSIE_AUTH_USERNAME": "ann", "NESSIE_AUTH_PASSWORD": PASSWORD},
        [PASSWORD, BASIC.partition(" ")[2]],
    ),
    "no-header": ({"NESSIE_AUTH_TOKEN": TOKEN + " \x07"}, [TOKEN]),
    "proxy": (
        {"NESSIE_PROXY": f"http://ann:{TOKEN}@127.0.0.1:1", "NESSIE_AUTH_TOKEN": TOKEN},
        [TOKEN],
    ),
    "in-url": ({"NESSIE_ENDPOINT": f"http://ann:{TOKEN}@127.0.0.1:1/api/v2"}, [TOKEN]),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", CREDENTIALS)
def test_secrets_are_never_shown(nessie: Nessie, gate: Gate, kind: str, failure: str) -> None:
    gate.wanted, gate.failing = "Bearer another", FAILURES[failure]
    env, secrets = CREDENTIALS[kind]
    failed = nessie("log", "--debug", "-v", "--json", env={"NESSIE_ENDPOINT": gate.url, **env})
    assert failed.code in (2, 4, 6, 7)
    assert "Traceback" in failed.err
    for secret in secrets:
        assert secret not in failed.out + failed.err
        assert seen_in_files(nessie, secret) == []


@pytest.mark.parametrize(
    "failing",
    [
        Answer(500, b"failed"),
        Answer(401, b'{"error": "invalid_client"}'),
        Answer(200, b"<html>"),
        CUT,
    ],
)
def test_client_secrets_are_never_shown(
    nessie: Nessie, gate: Gate, issuer: Issuer, failing: Answer
) -> None:
    issuer.failing = [failing] * 3
    failed = nessie("log", "--debug", "--json", env=oauth2(gate, issuer))
    assert failed.code in (6, 7)
    assert "Traceback" in failed.err
    assert SECRET not in failed.out + failed.err
    assert seen_in_files(nessie, SECRET) == []


def test_tokens_are_only_in_their_store(nessie: Nessie, gate: Gate, issuer: Issuer) -> None:
    issuer.refreshing, gate.failing = True, CUT
    failed = nessie("log", "--debug", env=oauth2(gate, issuer))
    assert "token-1" not in failed.out + failed.err
    (kept,) = seen_in_files(nessie, "token-1")
    assert kept.parts[-3:-1] == ("nessie", "tokens")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert seen_in_files(nessie, "refresh-1") == [kept]
    assert seen_in_files(nessie, SECRET) == []


def seen_in_files(nessie: Nessie, secret: str) -> list[Path]:
    folders = (nessie.folder, Path(nessie.environment["HOME"]))
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
