"""The command and `nessie serve`, both as real processes: tokens, rules and TLS of the
server, access settings of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli import create
from tests.command.process import Forker, Nessie
from tests.command.terminal import Running
from tests.remote.issuer import CLIENT, Issuer
from tests.remote.tls import TLS
from tests.server.processes import started


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/served.sqlite"
    create(url).close()
    return url


def test_a_server_with_tokens_and_private_certificates_can_be_used(
    nessie: Nessie, store: str, tmp_path: Path
) -> None:
    token = nessie.ok("token", "new", "ann", "--file", str(tmp_path / "tokens")).out.split()[-1]
    tls = (
        "--tls-cert",
        str(TLS / "server.pem"),
        "--tls-key",
        str(TLS / "server.key"),
        "--tls-client-ca",
        str(TLS / "ca.pem"),
    )
    with started("--store", store, "--tokens", str(tmp_path / "tokens"), *tls) as (_, url):
        env = {
            "NESSIE_ENDPOINT": url,
            "NESSIE_AUTH_TOKEN": token,
            "NESSIE_CA_FILE": str(TLS / "ca.pem"),
            "NESSIE_CERTIFICATE_FILE": str(TLS / "client.pem"),
            "NESSIE_KEY_FILE": str(TLS / "client.key"),
        }
        nessie.ok("content", "put", "db", "--type", "namespace", "-m", "add db", env=env)
        committed = nessie.ok("log", "--json", env=env).json["logEntries"][0]["commitMeta"]
        assert (committed["message"], committed["committer"]) == ("add db", "ann")
        basic = env | {
            "NESSIE_AUTH_TYPE": "basic",
            "NESSIE_AUTH_USERNAME": "ann",
            "NESSIE_AUTH_PASSWORD": token,
        }
        nessie.ok("log", env=basic)
        wrong = nessie("log", env=env | {"NESSIE_AUTH_TOKEN": "another"})
        wrong.expect(6, "does not take the token or password")
        anonymous = nessie(
            "log", env={name: value for name, value in env.items() if name != "NESSIE_AUTH_TOKEN"}
        )
        anonymous.expect(6, "authentication required (401)")


def test_one_sign_in_on_a_terminal_is_enough_for_all_commands(
    nessie: Nessie, server: str, issuer: Issuer, forker: Forker
) -> None:
    issuer.pending, issuer.public = 1, True
    sign_in = {
        "NESSIE_ENDPOINT": server,
        "NESSIE_OAUTH2_ISSUER_URL": f"{issuer.url}/realm",
        "NESSIE_OAUTH2_CLIENT_ID": CLIENT,
        "NESSIE_OAUTH2_GRANT_TYPE": "device_code",
    }
    running = Running(
        forker, ("branch",), nessie.folder, nessie.environment | sign_in, width=100, height=30
    )
    try:
        shown = running.end()
    finally:
        running.kill()
    assert shown.code == 0
    assert f"to sign in, open {issuer.url}/sign-in and give the code ABCD-EFGH" in shown.plain
    assert "token-1" not in shown.plain
    # After a sign-in, no terminal is needed.
    nessie.ok("branch", env=sign_in)
    assert issuer.grants == ["device_code"] * 2
