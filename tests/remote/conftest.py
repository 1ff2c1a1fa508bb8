"""Real servers on loopback, and the command in its own environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli import connect
from nessie_cli.repository.base import Repository
from tests.command.process import Forker, Nessie, fresh
from tests.remote.issuer import Issuer, issuing
from tests.server.serving import serving

ENVIRONMENT = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes proxies and certificates of this machine."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def repository() -> Iterator[Repository]:
    """The repository behind the server."""
    with connect("memory:") as found:
        yield found


@pytest.fixture
def server(repository: Repository) -> Iterator[str]:
    """The URL of our server, without a path."""
    with serving(repository) as url:
        yield url


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


@pytest.fixture
def nessie(tmp_path: Path, forker: Forker) -> Nessie:
    """The command in an empty folder without a workspace."""
    return fresh(tmp_path, forker)
