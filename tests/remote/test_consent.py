"""Secrets are only sent to servers that the user named: attacks by a workspace of another
person, against a server that records headers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command.process import Nessie
from tests.remote.issuer import CLIENT, SECRET, Issuer
from tests.remote.listening import Answer, Request, forward, listening
from tests.remote.proxy import proxying

TOKEN = "t0ken-Of-Somebody"
BEARER = f"Bearer {TOKEN}"


class Recorder:
    """Forwards requests to a Nessie server and records their headers."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.url = ""
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        return forward(self._server, request)

    @property
    def sent(self) -> set[str | None]:
        """Returns the Authorization headers that arrived."""
        return {request.headers.get("authorization") for request in self.requests}


@pytest.fixture
def evil(server: str) -> Iterator[Recorder]:
    recorder = Recorder(server)
    with listening(recorder) as url:
        recorder.url = f"{url}/api/v2"
        yield recorder


def plant(nessie: Nessie, text: str, **files: str) -> None:
    """Creates a workspace that another person prepared, in a folder that belongs to this user,
    such as a clone."""
    folder = nessie.folder / ".nessie"
    folder.mkdir()
    (folder / "config.toml").write_text(text)
    for name, content in files.items():
        (folder / name).write_text(content)


def secret_file(path: Path, text: str = TOKEN) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


COMMANDS = {
    "status": ("status",),
    "log": ("log",),
    "commit": ("content", "put", "db", "--type", "namespace", "-m", "x"),
    "init": ("init",),
    "json": ("log", "--json"),
    "audit": ("audit",),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("secret", ["token", "password", "token-file"])
def test_a_server_named_by_a_workspace_gets_no_secret_from_the_environment(
    nessie: Nessie, evil: Recorder, tmp_path: Path, command: str, secret: str
) -> None:
    plant(nessie, f'store = "{evil.url}"\n')
    secrets = {
        "token": {"NESSIE_AUTH_TOKEN": TOKEN},
        "password": {"NESSIE_AUTH_USERNAME": "ann", "NESSIE_AUTH_PASSWORD": TOKEN},
        "token-file": {"NESSIE_AUTH_TOKEN_FILE": secret_file(tmp_path / "token")},
    }
    refused = nessie(*COMMANDS[command], env=secrets[secret])
    assert (refused.code, evil.requests) == (6, [])
    if command == "json":
        assert refused.error["status"] == 403
    assert f"run `nessie login {evil.url}`" in refused.err


@pytest.mark.parametrize("words", [("switch", ""), ("log", "ma"), ("content", "show", "d")])
def test_completion_sends_no_secret_and_stays_silent(
    nessie: Nessie, evil: Recorder, words: tuple[str, ...]
) -> None:
    plant(nessie, f'store = "{evil.url}"\n[access]\ntoken-file = "~/.pgpass"\n')
    secret_file(Path(nessie.environment["HOME"], ".pgpass"))
    asked = nessie("__complete", "--", *words, env={"NESSIE_AUTH_TOKEN": TOKEN})
    assert (asked.code, asked.out, asked.err, evil.requests) == (0, "", "", [])
    # Completion does not call such a server even without a secret.
    assert nessie("__complete", "--", *words).out == ""
    assert evil.requests == []


def test_a_secret_file_named_by_a_workspace_is_not_sent(nessie: Nessie, evil: Recorder) -> None:
    plant(nessie, f'store = "{evil.url}"\n[access]\ntoken-file = "~/.pgpass"\n')
    secret_file(Path(nessie.environment["HOME"], ".pgpass"))
    done = nessie("log")
    assert (done.code, evil.sent) == (0, {None})
    assert len(done.err.splitlines()) == 1
    assert "so its access.token-file is ignored; `nessie config set safe-directories" in done.err
    refused = nessie("log", env={"NESSIE_TRUSTED_ENDPOINTS": evil.url})
    assert (refused.code, evil.sent) == (0, {None})


@pytest.mark.parametrize("name", ["HEAD", "PREVIOUS", ".nessie"])
def test_a_secret_behind_a_link_of_a_workspace_is_not_sent(
    nessie: Nessie, evil: Recorder, name: str
) -> None:
    """The current reference is in the path of requests, and many tokens are valid names."""
    plant(nessie, f'store = "{evil.url}"\n')
    folder = nessie.folder / ".nessie"
    if name == ".nessie":
        (folder / "HEAD").write_text(f"{TOKEN}\n")
        folder.rename(nessie.folder / "elsewhere")
        folder.symlink_to(nessie.folder / "elsewhere")
    else:
        secret_file(nessie.folder / "token")
        (folder / name).symlink_to(nessie.folder / "token")
    for command in (("status",), ("content", "list"), ("switch", "-"), ("reflog",), ("log", "x")):
        assert TOKEN not in nessie(*command).err
    assert not [request for request in evil.requests if TOKEN in request.path]


def test_a_trusted_workspace_may_send_its_file_to_an_accepted_server(
    nessie: Nessie, evil: Recorder
) -> None:
    plant(nessie, f'store = "{evil.url}"\n[access]\ntoken-file = "~/token"\n')
    secret_file(Path(nessie.environment["HOME"], "token"))
    trusted = {"NESSIE_SAFE_DIRECTORIES": str(nessie.folder)}
    refused = nessie("log", env=trusted)
    assert (refused.code, evil.requests) == (6, [])
    nessie.ok("log", env=trusted | {"NESSIE_TRUSTED_ENDPOINTS": evil.url})
    assert evil.sent == {BEARER}


@pytest.mark.parametrize("trusted", [False, True])
def test_a_client_secret_is_not_sent_to_an_issuer_named_by_a_workspace(
    nessie: Nessie, evil: Recorder, issuer: Issuer, *, trusted: bool
) -> None:
    for setting in ("issuer-url", "token-endpoint"):
        shutil.rmtree(nessie.folder / ".nessie", ignore_errors=True)
        plant(nessie, f'store = "{evil.url}"\n[access]\n{setting} = "{issuer.url}/realm"\n')
        env = {
            "NESSIE_OAUTH2_CLIENT_ID": CLIENT,
            "NESSIE_OAUTH2_CLIENT_SECRET": SECRET,
            "NESSIE_TRUSTED_ENDPOINTS": evil.url,
        }
        env |= {"NESSIE_SAFE_DIRECTORIES": str(nessie.folder)} if trusted else {}
        refused = nessie("log", env=env)
        assert (refused.code, issuer.asked, evil.requests) == (6, [], [])
        assert "only the workspace names it" in refused.err
    accepted = nessie("log", env=env | {"NESSIE_TRUSTED_ENDPOINTS": f"{evil.url},{issuer.url}"})
    assert accepted.code != 6


def test_credentials_are_not_sent_through_a_proxy_named_by_a_workspace(
    nessie: Nessie, evil: Recorder
) -> None:
    with proxying() as proxy:
        plant(nessie, f'store = "{evil.url}"\n[access]\nproxy = "{proxy.url}"\n')
        env = {"NESSIE_AUTH_TOKEN": TOKEN, "NESSIE_TRUSTED_ENDPOINTS": evil.url}
        refused = nessie("log", env=env)
        refused.expect(6, "only the workspace names it")
        assert evil.requests == []
        nessie.ok("log", env=env | {"NESSIE_PROXY": "none"})


def test_an_alias_of_a_workspace_cannot_name_a_server(nessie: Nessie, evil: Recorder) -> None:
    plant(nessie, f'[alias]\nlg = "log --store {evil.url}"\n')
    refused = nessie("lg", env={"NESSIE_AUTH_TOKEN": TOKEN})
    assert (refused.code, evil.requests) == (2, [])
    assert "so its alias.lg is ignored; `nessie config set safe-directories" in refused.err
    assert nessie("__complete", "--", "lg", "ma", env={"NESSIE_AUTH_TOKEN": TOKEN}).out == ""
    assert evil.requests == []


def test_a_plug_in_does_not_accept_the_server_of_a_workspace(
    nessie: Nessie, evil: Recorder, tmp_path: Path
) -> None:
    import sys

    plant(nessie, f'store = "{evil.url}"\n')
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "nessie-look"
    program.write_text(
        f'#!/bin/sh\necho "store=$NESSIE_STORE"\nexec {sys.executable} -m nessie_cli log\n'
    )
    program.chmod(0o755)
    ran = nessie("look", env={"NESSIE_AUTH_TOKEN": TOKEN, "PATH": f"{programs}:{os.defpath}"})
    assert (ran.code, ran.out, evil.requests) == (6, "store=\n", [])


# -- consent of the user -------------------------------------------------------------------------
def test_a_server_named_by_the_user_gets_the_token(nessie: Nessie, evil: Recorder) -> None:
    token = {"NESSIE_AUTH_TOKEN": TOKEN}
    for way in ({"NESSIE_STORE": evil.url}, {"NESSIE_ENDPOINT": evil.url}):
        nessie.ok("log", env=token | way)
    nessie.ok("log", "--store", evil.url, env=token)
    plant(nessie, f'store = "{evil.url}"\n')
    nessie.ok("log", "--store", evil.url, env=token)
    assert nessie("log", env=token).code == 6
    nessie.ok("config", "set", "profile.work.store", evil.url, "--user")
    nessie.ok("log", env=token)
    assert evil.sent == {BEARER}


@pytest.mark.parametrize("other", ["scheme", "host", "port"])
def test_a_server_is_a_scheme_a_host_and_a_port(nessie: Nessie, evil: Recorder, other: str) -> None:
    bare = evil.url.removesuffix("/api/v2")
    accepted = {
        "scheme": bare.replace("http", "https"),
        "host": bare.replace("127.0.0.1", "localhost"),
        "port": bare + "1",
    }[other]
    plant(nessie, f'store = "{evil.url}"\n')
    # Ports end at 65535.
    accepted = accepted if len(accepted.rpartition(":")[2]) <= 5 else bare[:-1]
    refused = nessie("log", env={"NESSIE_AUTH_TOKEN": TOKEN, "NESSIE_TRUSTED_ENDPOINTS": accepted})
    assert (refused.code, evil.requests) == (6, [])
    nessie.ok(
        "log",
        env={
            "NESSIE_AUTH_TOKEN": TOKEN,
            "NESSIE_TRUSTED_ENDPOINTS": f"https://one.example.org {bare}/",
        },
    )


def test_a_server_is_accepted_once(nessie: Nessie, evil: Recorder) -> None:
    plant(nessie, f'store = "{evil.url}"\n')
    token = {"NESSIE_AUTH_TOKEN": TOKEN}
    assert nessie("log", env=token).code == 6
    assert nessie.ok("login", evil.url).out == f"accepted {evil.url.removesuffix('/api/v2')}\n"
    nessie.ok("log", env=token)
    assert evil.sent == {BEARER}
    nessie.ok("login", evil.url, "--forget")
    assert nessie("log", env=token).code == 6
    assert nessie("login", evil.url, "--forget").code == 4


def test_init_accepts_its_server(nessie: Nessie, evil: Recorder) -> None:
    nessie.ok("init", "--store", evil.url, env={"NESSIE_AUTH_TOKEN": TOKEN})
    nessie.ok("log", env={"NESSIE_AUTH_TOKEN": TOKEN})
    assert evil.sent == {BEARER}


def test_login_stores_a_token_without_a_terminal(nessie: Nessie, evil: Recorder) -> None:
    plant(nessie, f'store = "{evil.url}"\n')
    done = nessie.ok("login", evil.url, "--token-stdin", "--json", stdin=f"{TOKEN}\n")
    assert done.json == {
        "server": evil.url.removesuffix("/api/v2"),
        "token": True,
        "accepted": True,
    }
    assert TOKEN not in done.out + done.err
    nessie.ok("log")
    assert nessie.ok("__complete", "--", "switch", "ma").out.startswith("main")
    assert evil.sent == {BEARER}
    kept = [
        path
        for path in Path(nessie.environment["HOME"]).rglob("*")
        if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]
    nessie.ok("login", evil.url, "--forget")
    assert not kept[0].exists()


def test_login_sends_no_secret_of_another_server(
    nessie: Nessie, evil: Recorder, tmp_path: Path
) -> None:
    for name, value in {
        "store": "http://127.0.0.1:1/api/v2",
        "token-file": secret_file(tmp_path / "token"),
    }.items():
        nessie.ok("config", "set", f"profile.work.{name}", value, "--user")
    nessie.ok("config", "set", "default-profile", "work", "--user")
    plant(nessie, f'store = "{evil.url}"\n[access]\ntoken-file = "{tmp_path / "token"}"\n')
    for env in ({}, {"NESSIE_PROFILE": "work"}, {"NESSIE_SAFE_DIRECTORIES": "*"}):
        nessie.ok("login", evil.url, env=env)
    assert evil.requests == []


def test_login_does_not_store_a_refused_token(nessie: Nessie) -> None:
    with listening(
        lambda _: Answer(
            401,
            json.dumps({"status": 401, "message": "no", "errorCode": "X", "reason": "Y"}).encode(),
        )
    ) as url:
        refused = nessie("login", url, "--token-stdin", stdin=TOKEN)
        refused.expect(6, "does not take the token")
    assert nessie("login", url, "--forget").code == 4


@pytest.mark.parametrize(
    ("words", "stdin", "line"),
    [
        (("login", "catalog.example.org"), "", "write https://host[:port]"),
        (("login", "http://127.0.0.1:1", "--token-stdin"), "\n", "the bearer token is empty"),
        (("login", "https://ann:pw@host"), "", "the URL holds a password"),
        (("login", "postgresql://host/catalog", "--token-stdin"), "t", "a database takes no token"),
    ],
)
def test_invalid_arguments_of_login_are_refused(
    nessie: Nessie, words: tuple[str, ...], stdin: str, line: str
) -> None:
    refused = nessie(*words, stdin=stdin)
    refused.expect(2, line)


# -- without TLS ---------------------------------------------------------------------------------
@pytest.fixture
def elsewhere(evil: Recorder) -> dict[str, str]:
    """A catalog on another host, `http://nessie:19120` as in Compose, behind a proxy."""
    return {
        "NESSIE_ENDPOINT": "http://nessie:19120",
        "NESSIE_PROXY": evil.url.removesuffix("/api/v2"),
        "NESSIE_AUTH_TOKEN": TOKEN,
    }


def test_credentials_leave_this_machine_only_by_https(
    nessie: Nessie, evil: Recorder, elsewhere: dict[str, str]
) -> None:
    refused = nessie("log", env=elsewhere)
    assert (refused.code, evil.requests) == (6, [])
    assert (
        "over https only; `nessie config set allow-http nessie:19120 --add` (or NESSIE_ALLOW_HTTP)"
        in refused.err
    )
    login = nessie(
        "login",
        "http://nessie:19120",
        "--token-stdin",
        stdin=TOKEN,
        env={"NESSIE_PROXY": elsewhere["NESSIE_PROXY"]},
    )
    assert (login.code, evil.requests) == (6, [])
    assert nessie("__complete", "--", "switch", "", env=elsewhere).out == ""
    assert evil.requests == []


@pytest.mark.parametrize(
    "allowed", ["1", "true", "nessie", "nessie:19120", "http://nessie:19120", "other nessie"]
)
def test_http_may_be_allowed(
    nessie: Nessie, evil: Recorder, elsewhere: dict[str, str], allowed: str
) -> None:
    nessie("log", env=elsewhere | {"NESSIE_ALLOW_HTTP": allowed})
    assert evil.sent == {BEARER}


@pytest.mark.parametrize("allowed", ["0", "false", "other", "nessie:19121", "https://nessie:19120"])
def test_http_is_allowed_only_for_the_named_server(
    nessie: Nessie, evil: Recorder, elsewhere: dict[str, str], allowed: str
) -> None:
    assert nessie("log", env=elsewhere | {"NESSIE_ALLOW_HTTP": allowed}).code == 6
    assert evil.requests == []


def test_the_users_configuration_may_allow_http(
    nessie: Nessie, evil: Recorder, elsewhere: dict[str, str]
) -> None:
    nessie.ok("config", "set", "allow-http", "nessie:19120", "--add")
    nessie("log", env=elsewhere)
    assert evil.sent == {BEARER}


def test_a_workspace_cannot_allow_http(
    nessie: Nessie, evil: Recorder, elsewhere: dict[str, str]
) -> None:
    settings = f'allow-http = "true"\ntrusted-endpoints = "{evil.url} http://nessie:19120"\nsafe-directories = "*"\n'
    plant(nessie, f'store = "{evil.url}"\n{settings}')
    assert nessie("log", env={"NESSIE_AUTH_TOKEN": TOKEN}).code == 6
    assert nessie("log", env=elsewhere).code == 6
    assert evil.requests == []
    for name in ("allow-http", "trusted-endpoints", "safe-directories"):
        refused = nessie("config", "set", name, evil.url, "--workspace")
        refused.expect(2, "is not a setting of the workspace")


def test_a_pipeline_in_compose_works(
    nessie: Nessie, evil: Recorder, elsewhere: dict[str, str]
) -> None:
    """A workspace from version control, a token that is a secret of the pipeline, and a service
    without TLS."""
    plant(nessie, 'store = "http://nessie:19120/api/v2"\n')
    env = {name: value for name, value in elsewhere.items() if name != "NESSIE_ENDPOINT"}
    assert nessie("log", env=env).code == 6
    assert nessie("log", env=env | {"NESSIE_TRUSTED_ENDPOINTS": "http://nessie:19120"}).code == 6
    assert evil.requests == []
    nessie(
        "log",
        env=env
        | {"NESSIE_TRUSTED_ENDPOINTS": "http://nessie:19120", "NESSIE_ALLOW_HTTP": "nessie"},
    )
    assert evil.sent == {BEARER}


def test_credentials_never_follow_a_redirect(nessie: Nessie, evil: Recorder) -> None:
    with listening(
        lambda request: Answer(
            307, b"", {"Location": evil.url.removesuffix("/api/v2") + request.path}
        )
    ) as url:
        env = {
            "NESSIE_ENDPOINT": url,
            "NESSIE_AUTH_TOKEN": TOKEN,
            "NESSIE_TRUSTED_ENDPOINTS": evil.url,
        }
        assert nessie("log", env=env).code == 2
        assert nessie("login", url, "--token-stdin", stdin=TOKEN).code == 2
        assert nessie("__complete", "--", "switch", "", env=env).out == ""
    assert evil.requests == []
