"""A small OpenID Connect issuer over HTTP, for tests of logins."""

import hashlib
import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

KEY = rsa.generate_private_key(65537, 2048)


class Issuer:
    """An issuer with one client. `claims` replace those of its ID tokens.

    `callback` is the address to which a browser returns.
    """

    def __init__(self, callback=""):
        self.url = ""
        self.callback = callback
        self.claims = {}
        self.codes = {}
        self.asked = []
        self.secret = "s3cret"
        self.answer = None
        self.document = {}

    def log_in(self, url):
        """Does what a person does at the issuer; returns the query of the redirect."""
        query = dict(parse_qsl(urlsplit(url).query))
        assert query["response_type"] == "code"
        assert query["redirect_uri"] == self.callback
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"code={code}&state={query['state']}&iss={self.url.replace(':', '%3A')}"

    def token(self, form, authorization):
        """Returns the status and answer of the token endpoint."""
        query = self.codes.pop(form.get("code"), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(verifier).decode().rstrip("=")
        if query is None or query["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        if self.secret and authorization != "Basic " + _basic("web", self.secret):
            return 401, {"error": "invalid_client"}
        assert form["redirect_uri"] == self.callback
        claims = {
            "iss": self.url,
            "aud": "web",
            "sub": "ada",
            "roles": ["admin"],
            "nonce": query["nonce"],
            "iat": int(time.time()),
            "exp": int(time.time()) + 3600,
        } | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        id_token = jwt.encode(claims, KEY, "RS256", headers={"kid": "k"})
        return 200, {"access_token": "opaque", "token_type": "Bearer", "id_token": id_token}

    def page(self, path):
        if path == "/keys":
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
            return {"keys": [key | {"kid": "k", "use": "sig"}]}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize?tenant=1",
            "token_endpoint": f"{self.url}/token",
        } | self.document


def _basic(name, secret):
    return b64encode(f"{name}:{secret}".encode()).decode()


@contextmanager
def running_issuer(callback=""):
    """Yields an issuer at a port of this machine. Its login needs no person."""
    issuer = Issuer(callback)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            issuer.asked.append(self.path)
            if self.path.startswith("/authorize?"):
                self.reply(302, {}, f"{issuer.callback}?{issuer.log_in(self.path)}")
            else:
                self.reply(200, issuer.page(self.path))

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            issuer.asked.append(self.path)
            authorization = self.headers.get("authorization", "")
            self.reply(*(issuer.answer or issuer.token(dict(parse_qsl(body)), authorization)))

        def reply(self, status, document, location=None):
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if location is not None:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield issuer
    server.shutdown()
    server.server_close()
    thread.join()
