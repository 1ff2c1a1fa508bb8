"""TLS: versions, certificates of both sides, and refused files, with a real server process."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from nessie_cli import create
from nessie_cli.server.auth.tokens import add_token
from nessie_cli.server.runtime.tls import Tls
from tests.server.certificates import Authority
from tests.server.client import EMPTY
from tests.server.processes import PATIENCE, SERVE, started


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def trusting(authority, files=None):
    context = ssl.create_default_context(cafile=authority.certificate)
    if files:
        context.load_cert_chain(files.certificate, files.key)
    return context


def config_of(url, context, headers=None):
    """Returns the status and JSON of a request for the configuration."""
    return answer_of(url, context, "/api/v2/config", headers)


def answer_of(url, context, path, headers=None):
    parts = urlsplit(url)
    connection = http.client.HTTPSConnection(
        parts.hostname, parts.port, timeout=PATIENCE, context=context
    )
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_only_tls_connections_are_accepted(tmp_path, authority, workers):
    create(str(tmp_path / "s.sqlite")).close()
    files = authority.server()
    options = (
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
        "--workers",
        workers,
    )
    with started("--store", str(tmp_path / "s.sqlite"), *options) as (_, url):
        assert url.startswith("https://127.0.0.1:")
        status, body = config_of(url, trusting(authority))
        assert (status, body["defaultBranch"]) == (200, "main")
        assert config_of(url.replace("127.0.0.1", "localhost"), trusting(authority))[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            config_of(url, ssl.create_default_context())
        plain = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=PATIENCE)
        plain.request("GET", "/api/v2/config")
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.getresponse()
        plain.close()
        assert config_of(url, trusting(authority))[0] == 200


def test_versions_before_1_2_are_refused(authority):
    files = authority.server()
    assert Tls(files.certificate, files.key).context().minimum_version == ssl.TLSVersion.TLSv1_2
    with started(
        "--store", "memory:", "--tls-cert", str(files.certificate), "--tls-key", str(files.key)
    ) as (_, url):
        context = trusting(authority)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert config_of(url, context)[0] == 200


def test_key_and_certificate_may_be_in_one_file(authority):
    files = authority.server()
    files.key.write_bytes(files.certificate.read_bytes() + files.key.read_bytes())
    with started("--store", "memory:", "--tls-cert", str(files.key)) as (_, url):
        assert config_of(url, trusting(authority))[0] == 200


def test_the_password_of_an_encrypted_key_is_in_the_environment(authority):
    files = authority.server(password="open sesame")
    options = (
        "--store",
        "memory:",
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
    )
    with started(*options, env={"NESSIE_TLS_KEY_PASSWORD": "open sesame"}) as (process, url):
        assert config_of(url, trusting(authority))[0] == 200
        assert b"sesame" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    for password in ("", "wrong"):
        done = refused(*options, env={"NESSIE_TLS_KEY_PASSWORD": password})
        assert "NESSIE_TLS_KEY_PASSWORD" in done.stderr
        assert not password or password not in done.stderr


def test_client_certificates_can_be_required(authority):
    files, client = authority.server(), authority.client()
    options = (
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
        "--tls-client-ca",
        str(authority.certificate),
    )
    with started("--store", "memory:", *options) as (_, url):
        assert config_of(url, trusting(authority, client))[0] == 200
        assert answer_of(url, trusting(authority, client), "/api/openapi.json")[1]["security"] == [
            {"mutualTLS": []}
        ]
        with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
            config_of(url, trusting(authority))
        stranger = Authority(files.key.parent, "stranger").client("stranger-client")
        with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
            config_of(url, trusting(authority, stranger))


@contextmanager
def connected(url, context, session=None):
    parts = urlsplit(url)
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname=parts.hostname, session=session) as connection,
    ):
        yield connection


def shown(url, authority, clients):
    """Returns the certificates that a server shows to several new clients, connected at once.

    Each worker gets some of them.
    """
    with ExitStack() as stack:
        connections = [
            stack.enter_context(connected(url, trusting(authority))) for _ in range(clients)
        ]
        return {connection.getpeercert(binary_form=True) for connection in connections}


def replace(files, others):
    others.key.replace(files.key)
    others.certificate.replace(files.certificate)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_renewed_certificate_is_used_for_the_next_client(tmp_path, authority, workers):
    create(str(tmp_path / "s.sqlite")).close()
    files, renewed = authority.server(), authority.server("renewed")
    old, new = (
        ssl.PEM_cert_to_DER_cert(found.certificate.read_text()) for found in (files, renewed)
    )
    options = (
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
        "--workers",
        str(workers),
    )
    with started("--store", str(tmp_path / "s.sqlite"), *options) as (process, url):
        parts = urlsplit(url)
        kept = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=PATIENCE, context=trusting(authority)
        )
        kept.request("GET", "/api/v2/config")
        assert kept.getresponse().read()
        assert shown(url, authority, 2 * workers) == {old}
        replace(files, renewed)
        assert shown(url, authority, 2 * workers) == {new}
        kept.request("GET", "/api/v2/config")
        assert kept.getresponse().read()
        kept.close()
        files.certificate.write_text("hello")
        assert shown(url, authority, 2 * workers) == {new}
        said = process.stderr.readline()
        assert str(files.certificate) in said
        assert "PEM" in said
        assert "stays in force" in said
        replace(files, authority.server("again"))
        assert shown(url, authority, 2 * workers).isdisjoint({old, new})


def test_clients_are_verified_with_the_current_authority_and_resume_no_sessions(
    tmp_path, authority
):
    files, other = authority.server(), Authority(tmp_path, "other")
    theirs, ours = authority.client(), other.client("their-client")
    ca = tmp_path / "clients.pem"
    ca.write_bytes(authority.certificate.read_bytes())
    options = (
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
        "--tls-client-ca",
        str(ca),
    )
    with started("--store", "memory:", *options) as (_, url):
        before = trusting(authority, theirs)
        before.maximum_version = ssl.TLSVersion.TLSv1_2
        with connected(url, before) as connection:
            session = connection.session
        with connected(url, before, session) as connection:
            assert connection.session_reused
        assert config_of(url, trusting(authority, theirs))[0] == 200
        ca.write_bytes(other.certificate.read_bytes())
        assert config_of(url, trusting(authority, ours))[0] == 200
        with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
            config_of(url, trusting(authority, theirs))
        with pytest.raises((ssl.SSLError, OSError)), connected(url, before, session):
            pass


def test_tokens_over_tls(tmp_path, authority, now):
    files = authority.server()
    token, _ = add_token(tmp_path / "tokens", "ada", (), None, now)
    options = (
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
        "--tokens",
        str(tmp_path / "tokens"),
    )
    with started("--store", "memory:", *options) as (_, url):
        assert config_of(url, trusting(authority))[0] == 401
        assert config_of(url, trusting(authority), {"authorization": f"Bearer {token}"})[0] == 200
    # No warning about unencrypted tokens is printed: the first line is the one with the URL.
    with started("--store", "memory:", "--host", "0.0.0.0", *options) as (_, url):
        assert url.startswith("https://0.0.0.0:")


def refused(*arguments, env=None):
    done = subprocess.run(
        [*SERVE, "--port", "0", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | (env or {}),
    )
    assert done.returncode in (2, 6), done
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def now():
    from datetime import UTC, datetime

    return datetime.now(UTC)


@pytest.mark.parametrize(
    ("harm", "code", "message"),
    [
        ("mode", 6, "chmod 600"),
        ("other", 2, "not that of the certificate"),
        ("text", 2, "PEM"),
        ("no key", 2, "cannot be read"),
        ("no certificate", 2, "cannot be read"),
        ("ca", 2, "CA"),
    ],
)
def test_unusable_files_are_reported_in_one_line(authority, harm, code, message):
    files = authority.server()
    more = ()
    if harm == "mode":
        files.key.chmod(0o644)
    elif harm == "other":
        files.key.write_bytes(authority.server("other").key.read_bytes())
    elif harm == "text":
        files.certificate.write_text("hello")
    elif harm == "no key":
        files.key.unlink()
    elif harm == "no certificate":
        files.certificate.unlink()
    else:
        more = ("--tls-client-ca", str(files.key))
    done = refused(
        "--store",
        "memory:",
        "--tls-cert",
        str(files.certificate),
        "--tls-key",
        str(files.key),
        *more,
    )
    assert done.returncode == code
    assert message in done.stderr


def test_a_key_without_a_certificate_is_refused(authority):
    assert (
        "--tls-cert"
        in refused("--store", "memory:", "--tls-key", str(authority.server().key)).stderr
    )


def test_files_can_be_set_in_the_environment(tmp_path, authority):
    files = authority.server()
    names = {
        "NESSIE_SERVE_TLS_CERT": str(files.certificate),
        "NESSIE_SERVE_TLS_KEY": str(files.key),
    }
    with started("--store", "memory:", env=names) as (_, url):
        status, body = config_of(url, trusting(authority))
        assert (status, body["noAncestorHash"]) == (200, EMPTY)
