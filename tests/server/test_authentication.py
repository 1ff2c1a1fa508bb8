"""Authentication: tokens in requests, refusals, names in commits and logs."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.gate import Security
from nessie_cli.server.auth.tokens import add_token, remove_tokens
from nessie_cli.server.pipeline.exchange import AccessLog
from tests.server.client import EMPTY, put
from tests.server.guarding import TokenClient, guarded, with_gate
from tests.server.serving import serving


@pytest.fixture
def server(tmp_path):
    with guarded(tmp_path, with_rules=False) as found:
        yield found


PATHS = (
    "/api/v2/config",
    "/api/v1/config",
    "/api/v2/trees",
    "/api/v2/nosuch",
    "/api/v2/reflog",
    "/api/v1/trees/tree",
)


@pytest.mark.parametrize("path", PATHS)
def test_requests_without_a_token_are_refused(server, path):
    answer = server.as_("").get(path)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="nessie"'
    assert (answer.body["status"], answer.body["reason"], answer.body["errorCode"]) == (
        401,
        "Unauthorized",
        "UNKNOWN",
    )


def test_a_body_is_not_read_before_authentication(server):
    assert (
        server.as_("").send("POST", "/api/v2/trees/main/history/commit", raw=b"no json").status
        == 401
    )


@pytest.mark.parametrize(
    "value",
    ["Bearer nonsense", "Bearer nessie_0123456789ab_" + "x" * 43, "Digest x", "Basic !", "nothing"],
)
def test_a_wrong_token_is_refused_and_not_quoted(server, value):
    answer = server.as_("").get("/api/v2/config", authorization=value)
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert value.split()[-1] not in answer.raw.decode().replace("nothing better", "")


def test_a_valid_token_is_accepted_and_its_name_is_in_commits(server):
    ada = server.as_("ada")
    assert ada.get("/api/v2/config").status == 200
    done = ada.commit("main", EMPTY, put("a"))
    assert done.status == 200
    meta = ada.get("/api/v2/trees/main/history").body["logEntries"][0]["commitMeta"]
    assert (meta["committer"], meta["authors"]) == ("ada", ["ada"])
    assert next(server.repository.reflog("main")).who == "ada"


def test_commits_merges_and_the_reflog_name_their_caller(server):
    ada, bob = server.as_("ada"), server.as_("bob")
    head = ada.commit("main", EMPTY, put("a")).body["targetBranch"]["hash"]
    assert (
        bob.send(
            "POST",
            "/api/v2/trees?name=dev&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": head},
        ).status
        == 200
    )
    head = ada.commit("dev", head, put("b")).body["targetBranch"]["hash"]
    merged = bob.send(
        "POST",
        f"/api/v2/trees/main@{ada.head()}/history/merge",
        {"fromRefName": "dev", "fromHash": head},
    )
    assert merged.status == 200
    log = ada.get("/api/v2/trees/main/history").body["logEntries"]
    assert log[0]["commitMeta"]["committer"] == "bob"
    assert [entry.who for entry in server.repository.reflog("dev")] == ["ada", "bob"]


def test_revoked_and_new_tokens_take_effect_at_once(server):
    ada = server.as_("ada")
    assert ada.get("/api/v2/config").status == 200
    remove_tokens(server.folder / "tokens", "ada")
    assert ada.get("/api/v2/config").status == 401
    assert server.as_("ada").get("/api/v2/config").status == 200


def test_basic_accepts_the_token_as_password(server):
    token = server.as_("ada").token
    for user, status in (("ada", 200), ("", 200), ("eve", 401)):
        value = base64.b64encode(f"{user}:{token}".encode()).decode()
        assert server.as_("").get("/api/v2/config", authorization=f"Basic {value}").status == status


def test_health_and_the_description_need_no_token_but_metrics_do(server):
    anonymous_client, ada = server.as_(""), server.as_("ada")
    for path in (
        "/q/health",
        "/q/health/live",
        "/q/health/ready",
        "/api/docs",
        "/api/openapi.json",
        "/q/openapi",
    ):
        assert anonymous_client.get(path).status == 200, path
    refused = anonymous_client.get("/q/metrics")
    assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Bearer realm="nessie"')
    assert b"nessie_http" not in refused.raw
    assert ada.get("/q/metrics").status == 200


@pytest.mark.parametrize(
    ("anonymous", "ways"),
    [(False, [{"bearer": []}, {"basic": []}]), (True, [{}, {"bearer": []}, {"basic": []}])],
)
def test_the_description_lists_the_ways_to_authenticate(tmp_path, anonymous, ways):
    with guarded(tmp_path, anonymous=anonymous) as server:
        anonymous_client = server.as_("")
        document = anonymous_client.get("/api/openapi.json").body
        assert document["security"] == ways
        assert {
            name: found["type"] for name, found in document["components"]["securitySchemes"].items()
        } == {
            "bearer": "http",
            "basic": "http",
            "mutualTLS": "mutualTLS",
        }
        shown = (
            "nothing, or <code>bearer</code>"
            if anonymous
            else "A request needs <code>bearer</code>, or <code>basic</code>."
        )
        assert shown in anonymous_client.get("/api/docs", accept="text/html").raw.decode()


def test_metrics_can_be_made_public(tmp_path):
    (tmp_path / "tokens").touch(0o600)
    with connect("memory:") as repository:
        app = with_gate(repository, Security(tokens=tmp_path / "tokens", open_metrics=True))
        with serving(app=app) as url:
            client = TokenClient(url, None)
            assert client.get("/q/metrics").status == 200
            assert client.get("/api/v2/config").status == 401
            client.close()


def test_anonymous_access_can_be_allowed_but_wrong_tokens_are_refused(tmp_path):
    with guarded(tmp_path, anonymous=True, with_rules=False) as server:
        anonymous_client = server.as_("")
        assert anonymous_client.commit("main", EMPTY, put("a")).status == 200
        assert (
            anonymous_client.get("/api/v2/trees/main/history").body["logEntries"][0]["commitMeta"][
                "committer"
            ]
            == ""
        )
        assert anonymous_client.get("/api/v2/config", authorization="Bearer wrong").status == 401


def test_the_log_contains_the_name_but_not_the_token(tmp_path):
    lines = []
    log = AccessLog(lines.append)
    path = tmp_path / "tokens"
    token, entry = add_token(path, "ada", (), None, datetime.now(UTC))
    with (
        connect("memory:") as repository,
        serving(app=with_gate(repository, Security(tokens=path), log)) as url,
    ):
        client = TokenClient(url, token)
        assert client.get("/api/v2/config").status == 200
        assert client.get("/api/v2/config", authorization=f"Bearer {token[:-1]}").status == 401
        client.close()
    log.close()
    text = b"".join(lines).decode()
    assert [json.loads(line)["principal"] for line in text.splitlines()] == ["ada", ""]
    assert token[:-1] not in text
    assert entry.hash not in text


def test_the_server_does_not_start_with_an_invalid_token_file(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("x")
    path.chmod(0o600)
    with connect("memory:") as repository, pytest.raises(InvalidInput, match="line 1"):
        with_gate(repository, Security(tokens=path))


def test_rules_require_authentication(tmp_path):
    (tmp_path / "rules").write_text("")
    with connect("memory:") as repository, pytest.raises(InvalidInput, match="--anonymous"):
        with_gate(repository, Security(rules=tmp_path / "rules"))
