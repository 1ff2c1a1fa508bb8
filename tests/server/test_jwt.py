"""JSON Web Tokens: which are valid, whom they identify, and where their keys come from.

The issuer is a real HTTP server that counts its requests.
"""

from __future__ import annotations

import hmac
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from nessie_cli import connect
from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth import jwt_keys
from nessie_cli.server.auth.gate import Security
from nessie_cli.server.auth.identity import Caller, Credentials, KeysUnavailable
from nessie_cli.server.auth.issuer import JwtSettings, TokenVerifier
from nessie_cli.server.auth.jwt_keys import KeyFile, KeyUrl, check_url, read_keys
from tests.server.client import EMPTY, Client, put
from tests.server.guarding import with_gate
from tests.server.serving import serving

ISSUER, AUDIENCE = "https://issuer.example/realm", "nessie"
RSA = rsa.generate_private_key(65537, 2048)
SMALL_RSA = rsa.generate_private_key(65537, 1024)
P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
FAMILIES = {
    "RSA": jwt.algorithms.RSAAlgorithm,
    "EC": jwt.algorithms.ECAlgorithm,
    "OKP": jwt.algorithms.OKPAlgorithm,
}


def public(key, kid, **more):
    family = "OKP" if key is ED else "RSA" if isinstance(key, rsa.RSAPrivateKey) else "EC"
    return {**json.loads(FAMILIES[family].to_jwk(key.public_key())), "kid": kid, **more}


KEYS = {"keys": [public(RSA, "rsa"), public(P256, "p256"), public(P384, "p384"), public(ED, "ed")]}
SIGNED = [
    *((name, RSA, "rsa") for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
    ("ES256", P256, "p256"),
    ("ES384", P384, "p384"),
    ("EdDSA", ED, "ed"),
]


def token(key=RSA, algorithm="RS256", kid="rsa", header=None, **claims: Any):
    body = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 3600, **claims}
    return jwt.encode(
        {name: value for name, value in body.items() if value is not None},
        key,
        algorithm,
        headers={"kid": kid, **(header or {})},
    )


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(KEYS))
    return path


def recognised(keys, text, reports=None, **settings):
    verified = TokenVerifier(
        JwtSettings(ISSUER, AUDIENCE, str(keys), **settings),
        (reports if reports is not None else []).append,
    ).verify(Credentials(text))
    return None if verified is None else verified.caller


@pytest.mark.parametrize(("algorithm", "key", "kid"), SIGNED)
def test_a_token_signed_by_the_issuer_is_valid(keys, algorithm, key, kid):
    assert recognised(keys, token(key, algorithm, kid)) == Caller("ada")


def test_every_accepted_algorithm_is_tested():
    assert {name for name, _, _ in SIGNED} == set(jwt_keys.ALGORITHMS)


SECRET = RSA.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def forged(**changes):
    """Returns a valid token whose header, signature or claims were changed afterwards."""
    head, body, sign = token().split(".")
    if "alg" in changes:
        head = jwt.utils.base64url_encode(
            json.dumps({"alg": changes["alg"], "kid": "rsa", "typ": "JWT"}).encode()
        ).decode()
    return ".".join((head, body, changes.get("sign", sign)))


def with_shared_secret(secret):
    """Returns a token signed by HMAC with public data, which the library refuses to create."""
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 2**33}
    parts = [
        jwt.utils.base64url_encode(json.dumps(part).encode())
        for part in ({"alg": "HS256", "kid": "rsa"}, claims)
    ]
    signature = hmac.digest(secret, b".".join(parts), "sha256")
    return b".".join([*parts, jwt.utils.base64url_encode(signature)]).decode()


BAD = {
    "not a token": "abc",
    "empty parts": "..",
    "algorithm none": jwt.encode(
        {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 2**33},
        None,
        "none",
        headers={"kid": "rsa"},
    ),
    "none with a signature": forged(alg="none"),
    "no signature": forged(sign=""),
    "public key as shared secret": with_shared_secret(SECRET),
    "another algorithm in the header": forged(alg="ES256"),
    "another key": token(rsa.generate_private_key(65537, 2048)),
    "a key of another name": token(P256, "ES256", "p384"),
    "an unknown key": token(kid="nosuch"),
    "another audience": token(aud="other"),
    "no audience": token(aud=None),
    "another issuer": token(iss="https://evil.example"),
    "no issuer": token(iss=None),
    "expired": token(exp=time.time() - 60),
    "no end": token(exp=None),
    "not yet good": token(nbf=time.time() + 10**8),
    "no name": token(sub=None),
    "a name of several lines": token(sub="ada\nroot"),
    "roles that are no texts": token(roles=[1]),
    "a critical extension": token(header={"crit": ["x"], "x": 1}),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_tokens_are_refused(keys, name):
    assert recognised(keys, BAD[name]) is None


def test_clocks_may_differ_slightly(keys):
    assert recognised(keys, token(nbf=time.time() + 15)) == Caller("ada")


def test_several_audiences_and_nested_claims_are_supported(keys):
    nested = {"preferred_username": "Ada", "realm_access": {"roles": ["reader", "writer"]}}
    assert recognised(
        keys,
        token(aud=["x", AUDIENCE], **nested),
        roles="realm_access.roles",
        name="preferred_username",
    ) == Caller("Ada", ("reader", "writer"))
    assert recognised(keys, token(scope="reader writer"), roles="scope") == Caller(
        "ada", ("reader", "writer")
    )
    assert recognised(keys, token(**{"https://x/roles": ["a"]}), roles="https://x/roles") == Caller(
        "ada", ("a",)
    )
    assert recognised(keys, token(roles=["a", "b"])) == Caller("ada", ("a", "b"))


def test_a_verified_token_is_cached_for_a_minute_at_most_until_its_expiry(keys):
    now = [1000.0]
    issuer = TokenVerifier(JwtSettings(ISSUER, AUDIENCE, str(keys)), print, lambda: now[0])
    good = Credentials(token())
    assert issuer.cached(good) is None
    verified = issuer.verify(good)
    assert verified is not None
    assert verified == issuer.cached(good)
    assert verified.caller == Caller("ada")
    assert issuer.cached(Credentials(token(sub="eve"))) is None
    now[0] += 61
    assert issuer.cached(good) is None


def test_a_token_may_expire_in_the_distant_future(keys):
    """Later than any time that a float has."""
    assert recognised(keys, token(exp=10**400)) == Caller("ada")


def test_unusable_keys_are_ignored():
    document = {
        "keys": [
            public(SMALL_RSA, "small"),
            {"kty": "oct", "k": "c2VjcmV0", "kid": "s"},
            public(P256, "enc", use="enc"),
            {"kty": "RSA"},
            1,
            public(ED, "ed"),
        ]
    }
    assert [key.key_id for key in read_keys(json.dumps(document).encode())] == ["ed"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"keys": []}', '{"keys": 1}', '{"keys": [{"kty": "oct", "k": "eA"}]}']
)
def test_a_file_without_keys_is_refused(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"keys\.json"):
        KeyFile(path, print)


def test_a_key_names_its_own_purpose(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [public(RSA, "rsa", alg="RS512")]}))
    assert recognised(path, token(algorithm="RS512")) == Caller("ada")
    assert recognised(path, token(algorithm="RS256")) is None


def test_a_changed_key_file_is_read_again(keys):
    issuer = TokenVerifier(JwtSettings(ISSUER, AUDIENCE, str(keys)), print)
    new = rsa.generate_private_key(65537, 2048)
    assert issuer.verify(Credentials(token(new, kid="new"))) is None
    beside = keys.with_name("new.json")
    beside.write_text(json.dumps({"keys": [public(new, "new")]}))
    beside.replace(keys)
    verified = issuer.verify(Credentials(token(new, kid="new")))
    assert verified is not None
    assert verified.caller == Caller("ada")
    assert issuer.verify(Credentials(token())) is None


# -- keys from a URL -----------------------------------------------------------------------------
class Provider:
    """An issuer's server: its answer for each path, and the paths that were requested."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pages: dict[str, bytes] = {}
        self.url = ""


@contextmanager
def providing():
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            provider.asked.append(self.path)
            body = provider.pages.get(self.path)
            self.send_response(302 if body == b"away" else 200 if body is not None else 404)
            if body == b"away":
                self.send_header("location", f"{provider.url}/keys")
            self.send_header("content-length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    provider.pages["/keys"] = json.dumps(KEYS).encode()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


LIFETIME, PAUSE = 0.5, 1.5
"""Seconds that replace the hour and the half minute of the server."""


def key_url(provider, reports, url="/keys", **seconds):
    return KeyUrl(ISSUER, provider.url + url if url else None, reports.append, **seconds)


def test_keys_are_fetched_once_and_again_after_their_lifetime():
    with providing() as provider:
        reports = []
        keys = key_url(provider, reports, lifetime=LIFETIME)
        for _ in range(5):
            assert len(keys.find("rsa", "RS256")) == 1
        assert len(provider.asked) == 1
        time.sleep(LIFETIME + 0.1)
        keys.find("rsa", "RS256")
        assert len(provider.asked) == 2
        assert reports == []


def test_the_server_refreshes_keys_hourly_and_at_most_every_half_minute():
    keys = KeyUrl(ISSUER, "https://issuer.example/keys", print)
    assert keys.jwk_set_cache.lifespan == 3600
    assert keys.cooldown_duration == 30


def test_an_unknown_key_causes_a_fetch_but_not_too_often():
    with providing() as provider:
        keys = key_url(provider, [], pause=PAUSE)
        keys.find("rsa", "RS256")
        for number in range(50):
            assert keys.find(f"made up {number}", "RS256") == []
        assert len(provider.asked) == 1
        time.sleep(PAUSE + 0.1)
        provider.pages["/keys"] = json.dumps({"keys": [public(RSA, "new")]}).encode()
        assert len(keys.find("new", "RS256")) == 1
        assert keys.find("rsa", "RS256") == []
        assert len(provider.asked) == 2


@pytest.mark.parametrize("page", [None, b"away", b"{}", b"x" * (1 << 20) + b"y"])
def test_previous_keys_remain_valid_if_keys_cannot_be_fetched(page):
    with providing() as provider:
        reports = []
        keys = key_url(provider, reports, lifetime=LIFETIME)
        keys.find("rsa", "RS256")
        if page is None:
            del provider.pages["/keys"]
        else:
            provider.pages["/keys"] = page
        time.sleep(LIFETIME + 0.1)
        for _ in range(3):
            assert len(keys.find("rsa", "RS256")) == 1
        assert len(provider.asked) == 2
        assert len(reports) == 1
        assert "stay in force" in reports[0]


def test_without_any_keys_authentication_is_unavailable():
    with providing() as provider:
        reports = []
        keys = key_url(provider, reports, "/nosuch", retry=PAUSE)
        for _ in range(3):
            with pytest.raises(KeysUnavailable):
                keys.find("rsa", "RS256")
        assert provider.asked == ["/nosuch"]
        assert len(reports) == 1
        provider.pages["/nosuch"] = provider.pages["/keys"]
        time.sleep(PAUSE + 0.1)
        assert len(keys.find("rsa", "RS256")) == 1


def test_the_openid_document_of_the_issuer_names_the_keys():
    with providing() as provider:
        issuer = f"{provider.url}/realm"
        document = {"issuer": issuer, "jwks_uri": f"{provider.url}/keys"}
        provider.pages["/realm/.well-known/openid-configuration"] = json.dumps(document).encode()
        assert len(KeyUrl(issuer, None, print).find("rsa", "RS256")) == 1
        for wrong in (
            {"issuer": "https://evil.example"},
            {"jwks_uri": "http://evil.example/keys"},
            {"jwks_uri": 1},
        ):
            provider.pages["/realm/.well-known/openid-configuration"] = json.dumps(
                document | wrong
            ).encode()
            reports: list[str] = []
            with pytest.raises(KeysUnavailable):
                KeyUrl(issuer, None, reports.append).find("rsa", "RS256")
            assert len(reports) == 1


@pytest.mark.parametrize(
    "url",
    ["https://a.example/keys", "http://127.0.0.1:1/k", "http://localhost/k", "http://[::1]/k"],
)
def test_trusted_urls_are_accepted(url):
    assert check_url(url, "x") == url


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/keys",
        "ftp://127.0.0.1/k",
        "file:///etc/passwd",
        "https:///k",
        "keys.json",
        "http://127.0.0.1.evil.example/k",
    ],
)
def test_untrusted_urls_are_refused(url):
    with pytest.raises(InvalidInput, match="https"):
        check_url(url, "x")


def test_contradictory_settings_are_refused(keys):
    for settings in (
        JwtSettings(ISSUER, ""),
        JwtSettings("nobody", AUDIENCE),
        JwtSettings(ISSUER, AUDIENCE, "http://a.example/k"),
        JwtSettings(ISSUER, AUDIENCE, str(keys) + "x"),
    ):
        with pytest.raises(InvalidInput):
            TokenVerifier(settings, print)


# -- with a server -------------------------------------------------------------------------------
def test_a_server_accepts_the_tokens_of_an_issuer(tmp_path):
    (tmp_path / "rules").write_text("writers = \"role == 'writer'\"")
    with providing() as provider, connect("memory:") as repository:
        security = Security(
            rules=tmp_path / "rules", jwt=JwtSettings(ISSUER, AUDIENCE, f"{provider.url}/keys")
        )
        with serving(app=with_gate(repository, security)) as url:
            client = Client(url)
            path, body = (
                f"/api/v2/trees/main@{EMPTY}/history/commit",
                {"commitMeta": {"message": "m"}, "operations": [put("a")]},
            )
            for good, status in (
                (token(), 403),
                (token(roles=["writer"]), 200),
                (BAD["expired"], 401),
                (BAD["algorithm none"], 401),
            ):
                answer = client.send(
                    "POST", path, body, headers={"authorization": f"Bearer {good}"}
                )
                assert answer.status == status, answer
                assert good not in answer.raw.decode()
            client.close()
        assert repository.commit_at("main").meta.committer == "ada"


def test_a_server_without_keys_asks_clients_to_retry():
    with providing() as provider, connect("memory:") as repository:
        security = Security(jwt=JwtSettings(ISSUER, AUDIENCE, f"{provider.url}/nosuch"))
        with serving(app=with_gate(repository, security)) as url:
            client = Client(url)
            answer = client.get("/api/v2/config", authorization=f"Bearer {token()}")
            assert (answer.status, answer.headers["retry-after"]) == (503, "2")
            assert "nosuch" not in answer.raw.decode()
            assert client.get("/q/metrics", authorization=f"Bearer {token()}").status == 503
            assert client.get("/api/v2/config").status == 401
            client.close()
