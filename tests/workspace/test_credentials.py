"""Rules that decide which server may get credentials."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.credentials import (
    AllowedHttp,
    Consent,
    checked_endpoints,
    endpoint,
    is_loopback,
)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://catalog.example.org", "https://catalog.example.org:443"),
        ("HTTPS://Catalog.Example.ORG:443/api/v2", "https://catalog.example.org:443"),
        ("http://nessie:19120/api/v2", "http://nessie:19120"),
        ("http://[::1]/x", "http://[::1]:80"),
        ("postgres://ada@db/catalog", "postgresql://db:5432"),
        ("postgresql://db/catalog?host=evil", None),
        ("postgresql://db,evil/catalog", None),
        ("https://good\\@evil/", None),
        ("https://good\t.example", None),
        ("https:///path", None),
        ("https://host:port", None),
        ("https://host:0", None),
        ("ftp://host", None),
        ("host:19120", None),
        ("", None),
    ],
)
def test_a_server_is_scheme_host_and_port(url: str, server: str | None) -> None:
    assert endpoint(url) == server


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://localhost:19120", True),
        ("http://127.0.0.1", True),
        ("http://127.1.2.3", True),
        ("http://[::1]:1", True),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://0.0.0.0", False),
        ("http://nessie", False),
        ("http://127.0.0.1@evil", False),
    ],
)
def test_loopback_hosts_are_recognised(url: str, found: bool) -> None:
    assert is_loopback(url) == found


ACCEPTED = Consent(
    checked_endpoints(["https://catalog.example.org", "http://nessie:19120"], "here")
)


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://catalog.example.org/api/v2", ""),
        ("https://catalog.example.org:443/other", ""),
        ("https://catalog.example.org:444/api/v2", "only the workspace names it"),
        ("https://catalog.example.org.evil/api/v2", "only the workspace names it"),
        ("http://catalog.example.org/api/v2", "only the workspace names it"),
        ("https://evil/https://catalog.example.org", "only the workspace names it"),
        ("https://catalog.example.org@evil/", "only the workspace names it"),
        ("http://127.0.0.1:19120", "only the workspace names it"),
        ("http://nessie:19120", "over https only"),
        ("nonsense", "names no server"),
    ],
)
def test_a_server_named_by_a_workspace_must_be_accepted(url: str, refused: str) -> None:
    why = ACCEPTED.refusal(url, named=False)
    assert (refused in why) if why and refused else (why or "") == refused


@pytest.mark.parametrize(
    ("allowed", "url", "may"),
    [
        ([], "http://nessie:19120", False),
        ([], "https://nessie:19120", True),
        ([], "http://localhost:19120", True),
        (["1"], "http://nessie:19120", True),
        (["TRUE"], "http://nessie:19120", True),
        (["0"], "http://nessie:19120", False),
        (["no"], "http://no:19120", False),
        (["nessie"], "http://nessie:19120", True),
        (["nessie:19120"], "http://nessie:19120", True),
        (["nessie:19121"], "http://nessie:19120", False),
        (["http://nessie:19120"], "http://nessie:19120/api/v2", True),
        (["https://nessie:19120"], "http://nessie:19120", False),
        (["nessie"], "http://nessie.evil:19120", False),
    ],
)
def test_a_server_without_tls_must_be_allowed(allowed: list[str], url: str, may: bool) -> None:
    assert (Consent(http=AllowedHttp(allowed)).refusal(url, named=True) is None) == may


@pytest.mark.parametrize("text", ["nessie", "nessie:19120", "*", "https://", "ftp://nessie"])
def test_an_invalid_server_is_reported(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"NESSIE_TRUSTED_ENDPOINTS: .* names no server"):
        checked_endpoints([text], "NESSIE_TRUSTED_ENDPOINTS")
