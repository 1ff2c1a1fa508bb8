"""Tokens of an OAuth2 server: grants, renewal, sign-in, and stored tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, NotAllowed, StoreUnavailable
from nessie_cli.model import Secret
from nessie_cli.repository.access import (
    Access,
    OAuth2,
    OAuth2Grant,
    OAuth2Tokens,
    read_tokens,
    write_tokens,
)
from nessie_cli.repository.remote.oauth import TokenSource
from nessie_cli.workspace.tokens import TokenFile
from tests.remote.issuer import CLIENT, SECRET, Issuer
from tests.remote.listening import Answer, Request, listening


@pytest.fixture
def cache(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "state" / "tokens" / "one.json")


def client(server: Issuer, cache: TokenFile | None = None, **more: object) -> OAuth2:
    return OAuth2(CLIENT, Secret(SECRET), f"{server.url}/realm", cache=cache)._replace(**more)


@contextmanager
def source(client: OAuth2) -> Iterator[TokenSource]:
    found = TokenSource(client, Access())
    try:
        yield found
    finally:
        found.close()


def old(cache: TokenFile, age: float, lifetime: float, refresh: str | None = "refresh-0") -> None:
    """Stores a token that was issued this many seconds ago."""
    begin = time.time() - age
    with cache.locked():
        write_tokens(
            cache,
            OAuth2Tokens(
                Secret("token-0"), begin, begin + lifetime, Secret(refresh) if refresh else None
            ),
        )


def test_a_client_gets_a_token_with_its_secret_and_stores_it(issuer: Issuer) -> None:
    with source(client(issuer, scopes=("catalog", "sign"))) as tokens:
        assert [tokens.header(), tokens.header()] == ["Bearer token-1"] * 2
    assert issuer.asked == [{"grant_type": "client_credentials", "scope": "catalog sign"}]


def test_client_credentials_are_in_the_form_if_the_server_requires_it(issuer: Issuer) -> None:
    issuer.methods = ["client_secret_post"]
    with source(client(issuer)) as tokens:
        assert tokens.header() == "Bearer token-1"


def test_endpoints_may_be_named_without_an_issuer(issuer: Issuer) -> None:
    with source(client(issuer, issuer=None, token_endpoint=f"{issuer.url}/token")) as tokens:
        assert tokens.header() == "Bearer token-1"


def test_a_token_is_renewed_before_it_expires(issuer: Issuer, cache: TokenFile) -> None:
    old(cache, age=3575, lifetime=3600, refresh=None)
    with source(client(issuer, cache)) as tokens:
        assert tokens.header() == "Bearer token-1"


def test_a_valid_token_is_shared_by_all_processes(issuer: Issuer, cache: TokenFile) -> None:
    for _ in range(2):
        with source(client(issuer, cache)) as tokens:
            assert tokens.header() == "Bearer token-1"
    assert issuer.grants == ["client_credentials"]


def test_a_refresh_token_is_preferred_and_replaced(issuer: Issuer, cache: TokenFile) -> None:
    issuer.refreshing, issuer.lifetime = True, 0
    with source(client(issuer, cache)) as tokens:
        assert [tokens.header() for _ in range(3)] == [
            "Bearer token-1",
            "Bearer token-2",
            "Bearer token-3",
        ]
    assert [form.get("refresh_token") for form in issuer.asked] == [None, "refresh-1", "refresh-2"]


def test_an_expired_refresh_token_causes_a_new_grant(issuer: Issuer, cache: TokenFile) -> None:
    old(cache, age=4000, lifetime=3600)
    with source(client(issuer, cache)) as tokens:
        assert tokens.header() == "Bearer token-1"
    assert issuer.grants == ["refresh_token", "client_credentials"]


def test_a_token_without_expiry_is_renewed_after_a_minute(issuer: Issuer) -> None:
    issuer.lifetime = None
    with source(client(issuer)) as tokens:
        tokens.header()
        assert tokens._tokens is not None
        assert tokens._tokens.end - tokens._tokens.begin == 60


def test_many_threads_share_one_token_request(issuer: Issuer) -> None:
    found: list[str] = []
    with source(client(issuer)) as tokens:
        barrier = threading.Barrier(8)

        def ask() -> None:
            barrier.wait()
            found.append(tokens.header())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["Bearer token-1"] * 8
    assert issuer.grants == ["client_credentials"]


def test_a_refused_token_is_replaced_once_for_all_threads(issuer: Issuer) -> None:
    with source(client(issuer)) as tokens:
        first = tokens.header()
        assert [tokens.refused(first), tokens.refused(first)] == [True, True]
        assert tokens.header() == "Bearer token-2"
    assert issuer.grants == ["client_credentials"] * 2


def test_a_request_to_a_busy_server_is_retried(issuer: Issuer) -> None:
    issuer.failing = [Answer(503), Answer(429)]
    with source(client(issuer)) as tokens:
        assert tokens.header() == "Bearer token-1"


def test_an_unavailable_server_is_reported(issuer: Issuer) -> None:
    issuer.failing = [Answer(503)] * 3
    with (
        source(client(issuer)) as tokens,
        pytest.raises(StoreUnavailable, match=r"OAuth2 server .* answered 503"),
    ):
        tokens.header()


def test_a_slow_server_is_reported(issuer: Issuer) -> None:
    def asleep(request: Request) -> Answer:
        time.sleep(0.5)
        return Answer(503)

    with listening(asleep) as url:
        tokens = TokenSource(
            client(issuer, issuer=None, token_endpoint=f"{url}/token"), Access(timeout=0.1)
        )
        with pytest.raises(
            StoreUnavailable,
            match=r"OAuth2 server .*: no answer within 0.1 seconds \(NESSIE_TIMEOUT\)",
        ):
            tokens.header()
        tokens.close()


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"access_token": 1}',
        b'{"access_token": "t", "token_type": "mac"}',
        b'{"access_token": "t", "expires_in": "soon"}',
    ],
)
def test_an_answer_without_a_token_is_reported(issuer: Issuer, body: bytes) -> None:
    issuer.failing = [Answer(200, body)]
    with (
        source(client(issuer)) as tokens,
        pytest.raises(StoreUnavailable, match="no bearer token that is understood"),
    ):
        tokens.header()


def test_a_wrong_secret_is_reported_without_the_servers_text(issuer: Issuer) -> None:
    with (
        source(client(issuer, client_secret=Secret("wrong"))) as tokens,
        pytest.raises(NotAllowed) as refusal,
    ):
        tokens.header()
    assert "did not take the client id and its secret (invalid_client)" in refusal.value.message
    assert SECRET not in refusal.value.message


def test_a_page_that_is_not_an_issuer_is_reported(issuer: Issuer) -> None:
    with (
        source(client(issuer, issuer=f"{issuer.url}/elsewhere")) as tokens,
        pytest.raises(InvalidInput, match="no issuer answers there"),
    ):
        tokens.header()


def test_a_user_signs_in_on_another_device(issuer: Issuer, cache: TokenFile) -> None:
    issuer.pending, issuer.public = 2, True
    shown: list[str] = []
    with source(
        client(
            issuer,
            cache,
            client_secret=None,
            grant=OAuth2Grant.DEVICE_CODE,
            print_line=shown.append,
        )
    ) as tokens:
        assert tokens.header() == "Bearer token-1"
    assert shown == [f"to sign in, open {issuer.url}/sign-in and give the code ABCD-EFGH"]
    assert issuer.grants == ["device_code"] * 3


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("access_denied", "the person has refused"),
        ("expired_token", "nobody has signed in in time"),
    ],
)
def test_a_failed_sign_in_is_reported(issuer: Issuer, code: str, line: str) -> None:
    issuer.denied = code
    with (
        source(client(issuer, grant=OAuth2Grant.DEVICE_CODE, print_line=lambda _: None)) as tokens,
        pytest.raises(NotAllowed, match=line),
    ):
        tokens.header()


def test_without_a_terminal_no_sign_in_is_started(issuer: Issuer) -> None:
    with (
        source(client(issuer, grant=OAuth2Grant.DEVICE_CODE)) as tokens,
        pytest.raises(NotAllowed, match="must sign in on a terminal"),
    ):
        tokens.header()
    assert issuer.asked == []


def test_stored_tokens_are_private(issuer: Issuer, cache: TokenFile) -> None:
    with source(client(issuer, cache)) as tokens:
        tokens.header()
    assert cache.path.stat().st_mode & 0o777 == 0o600
    assert cache.path.parent.stat().st_mode & 0o777 == 0o700


def test_stored_tokens_that_others_can_write_are_ignored(issuer: Issuer, cache: TokenFile) -> None:
    old(cache, age=0, lifetime=3600)
    cache.path.chmod(0o644)
    with source(client(issuer, cache)) as tokens:
        assert tokens.header() == "Bearer token-1"
    assert cache.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"accessToken": "a b", "begin": 0, "end": 1}', '{"accessToken": "t"}']
)
def test_invalid_stored_tokens_are_ignored(cache: TokenFile, text: str) -> None:
    with cache.locked():
        cache.write(text)
    assert read_tokens(cache) is None


# -- documents changed by an attacker or a mistake -----------------------------------------------
@pytest.mark.parametrize("shown", ["https://elsewhere.example.org", "", None, 1])
def test_a_document_of_another_issuer_is_not_used(issuer: Issuer, shown: object) -> None:
    issuer.changes = {"issuer": shown}
    with (
        source(client(issuer)) as tokens,
        pytest.raises(NotAllowed, match=r"its document names .*, not the configured one"),
    ):
        tokens.header()
    assert issuer.asked == []


def test_a_final_slash_of_an_issuer_is_ignored(issuer: Issuer) -> None:
    issuer.changes = {"issuer": f"{issuer.url}/realm/"}
    with source(client(issuer)) as tokens:
        assert tokens.header() == "Bearer token-1"


def test_a_secret_is_not_sent_to_an_endpoint_without_tls(
    issuer: Issuer,
) -> None:
    seen: list[Request] = []

    def thief(request: Request) -> Answer:
        seen.append(request)
        return Answer(200, b'{"access_token": "t"}')

    with listening(thief) as url:
        issuer.changes = {
            "token_endpoint": f"{url}/token",
            "device_authorization_endpoint": f"{url}/device",
        }
        with (
            source(client(issuer)) as tokens,
            pytest.raises(NotAllowed, match=r"its token_endpoint .* is not used"),
        ):
            tokens.header()
        with (
            source(
                client(issuer, grant=OAuth2Grant.DEVICE_CODE, print_line=lambda _: None)
            ) as tokens,
            pytest.raises(NotAllowed, match="is not used"),
        ):
            tokens.header()
    assert seen == []


def test_a_secret_does_not_follow_a_redirect(issuer: Issuer) -> None:
    seen: list[Request] = []

    def thief(request: Request) -> Answer:
        seen.append(request)
        return Answer(200, b'{"access_token": "t"}')

    with listening(thief) as url:
        issuer.failing = [Answer(307, b"", {"Location": f"{url}/token"})]
        with source(client(issuer)) as tokens, pytest.raises(NotAllowed, match="answered 307"):
            tokens.header()
    assert seen == []
