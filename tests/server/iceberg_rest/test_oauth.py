"""OAuth tokens, and clients that authenticate with them."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.auth.tokens import add_token, remove_tokens
from tests.server.client import Answer, Client
from tests.server.iceberg_rest.lake import Lake, error_of, lake

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class Tokens:
    """A server that requires tokens."""

    def __init__(self, served: Lake, file: Path) -> None:
        self.client = Client(served.url)
        self._file = file

    def new(self, name: str = "ada", expires: datetime | None = None) -> str:
        return add_token(self._file, name, ["reader"], expires, datetime.now(UTC))[0]

    def remove(self, name: str) -> None:
        remove_tokens(self._file, name)

    def ask(self, path: str = "/iceberg/v1/oauth/tokens", basic: str = "", **form: str) -> Answer:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if basic:
            headers["authorization"] = f"Basic {b64encode(basic.encode()).decode()}"
        return self.client.send("POST", path, raw=urlencode(form).encode(), headers=headers)

    def config(self, token: str) -> Answer:
        return self.client.get("/iceberg/v1/config", authorization=f"Bearer {token}")


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    file = tmp_path / "tokens"
    file.touch(0o600)
    gate = open_gate(Security(tokens=file))
    with lake(tmp_path / "warehouse", gate=gate) as served:
        found = Tokens(served, file)
        yield found
        found.client.close()


def test_a_request_without_a_token_is_refused(tokens: Tokens) -> None:
    answer = tokens.client.get("/iceberg/v1/config")
    assert error_of(answer) == (401, "NotAuthorizedException")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert error_of(tokens.config("nessie_wrong")) == (401, "NotAuthorizedException")


def test_client_credentials_contain_the_token_in_one_or_two_parts(tokens: Tokens) -> None:
    token = tokens.new()
    _, id_, secret = token.split("_", 2)
    for form in (
        {"client_id": "ada", "client_secret": token},
        {"client_secret": token},
        {"client_id": f"nessie_{id_}", "client_secret": secret},
        {"client_id": id_, "client_secret": secret},
    ):
        answer = tokens.ask(grant_type="client_credentials", scope="catalog", **form)
        assert answer.status == 200, answer.body
        assert answer.body["access_token"] == token
        assert answer.body["token_type"] == "bearer"
        assert answer.body["issued_token_type"] == ACCESS_TOKEN
        assert answer.headers["cache-control"] == "no-store"
        assert tokens.config(answer.body["access_token"]).status == 200
    answer = tokens.ask(
        "/iceberg/main/v1/oauth/tokens", f"{id_}:{secret}", grant_type="client_credentials"
    )
    assert answer.body["access_token"] == token


def test_errors_have_the_format_of_oauth(tokens: Tokens) -> None:
    def refused(**form: str) -> tuple[int, Any]:
        answer = tokens.ask(**form)
        assert set(answer.body) == {"error", "error_description"}
        return answer.status, answer.body["error"]

    wrong = {"grant_type": "client_credentials", "client_id": "x", "client_secret": "secret"}
    assert refused(**wrong) == (401, "invalid_client")
    assert "secret" not in tokens.ask(**wrong).body["error_description"].replace("secrets", "")
    assert refused(grant_type="password") == (400, "unsupported_grant_type")
    assert refused() == (400, "unsupported_grant_type")
    jwt = {"subject_token": "a.b.c", "subject_token_type": ACCESS_TOKEN}
    assert refused(grant_type=EXCHANGE, **jwt) == (400, "invalid_grant")
    answer = tokens.client.send("POST", "/iceberg/v1/oauth/tokens", {"grant_type": "x"})
    assert (answer.status, answer.body["error"]) == (400, "invalid_request")


def test_a_token_is_renewed_until_its_own_expiry(tokens: Tokens) -> None:
    short = tokens.new("short", datetime.now(UTC) + timedelta(seconds=3))
    form = {"subject_token": short, "subject_token_type": ACCESS_TOKEN}
    first = tokens.ask(grant_type=EXCHANGE, **form)
    assert 1 <= first.body["expires_in"] <= 3
    long = tokens.new("long")
    assert (
        tokens.ask(grant_type="client_credentials", client_secret=long).body["expires_in"] == 3600
    )
    deadline = time.monotonic() + 20
    while tokens.config(short).status == 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert tokens.ask(grant_type=EXCHANGE, **form).body["error"] == "invalid_client"
    form = {"subject_token": long, "subject_token_type": ACCESS_TOKEN}
    assert tokens.ask(grant_type=EXCHANGE, **form).body["access_token"] == long


def test_a_revoked_token_is_not_issued_again(tokens: Tokens) -> None:
    token = tokens.new()
    tokens.remove("ada")
    answer = tokens.ask(grant_type="client_credentials", client_secret=token)
    assert (answer.status, answer.body["error"]) == (401, "invalid_client")


def test_the_token_endpoint_of_a_server_without_tokens_is_refused(served: Lake) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = served.client.send(
        "POST", "/iceberg/v1/oauth/tokens", raw=b"grant_type=client_credentials", headers=headers
    )
    assert (answer.status, answer.body["error"]) == (400, "unauthorized_client")
