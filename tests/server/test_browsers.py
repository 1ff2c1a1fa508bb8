"""Requests that web pages make browsers send: no page reads the catalog under its own name,
and no foreign page changes it."""

import json
import socket
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.server.auth.gate import Hosts, Security
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import ServerSettings, application, check_address
from tests.server.client import EMPTY, Client, put
from tests.server.processes import started
from tests.server.serving import serving

COMMIT = f"/api/v2/trees/main@{EMPTY}/history/commit"
BODY = {"commitMeta": {"message": "m"}, "operations": [put("a")]}
LOOPBACK = [
    "localhost",
    "localhost:19120",
    "LocalHost",
    "localhost.",
    "127.0.0.1",
    "127.0.0.1:80",
    "127.8.8.8",
    "[::1]",
    "[::1]:19120",
]
FOREIGN = [
    "evil.example",
    "evil.example:19120",
    "localhost.evil.example",
    "xlocalhost",
    "192.0.2.1",
    "[2001:db8::1]",
    "127.0.0.1.evil.example",
    "::1:2",
]


@contextmanager
def named(hosts):
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(hosts=hosts))) as url,
    ):
        client = Client(url)
        yield client
        client.close()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/config",
        "/api/v1/trees",
        "/q/metrics",
        "/api/docs",
        "/",
        "/q/openapi",
        "/nosuch",
        "/api/v2/nosuch",
    ],
)
def test_dns_rebinding_is_refused(client, path):
    for host in FOREIGN:
        answer = client.get(path, host=host)
        assert (answer.status, answer.body["errorCode"]) == (403, "FORBIDDEN"), host
        assert "--allowed-host" in answer.body["message"]
        assert answer.headers["x-request-id"]
    for host in LOOPBACK:
        assert client.get(path, host=host).status != 403, host


@pytest.mark.parametrize("path", ["/q/health", "/q/health/live", "/q/health/ready"])
def test_health_probes_may_use_any_name(client, path):
    assert client.get(path, host="10.0.0.7:19120").status == 200


def test_only_the_host_header_counts(client):
    assert (
        client.get(
            "/api/v2/config",
            host="evil.example",
            **{"x-forwarded-host": "localhost", "forwarded": "host=localhost"},
        ).status
        == 403
    )
    assert client.get("/api/v2/config", **{"x-forwarded-host": "evil.example"}).status == 200


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ("", 403),
        ("host: localhost\r\nhost: evil.example\r\n", 400),
        ("host: evil.example\r\nhost: localhost\r\n", 400),
    ],
)
def test_a_request_must_have_one_host(hosts, status):
    with serving() as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(f"GET /api/v2/config HTTP/1.1\r\n{hosts}\r\n".encode())
            assert connection.recv(1000).startswith(f"HTTP/1.1 {status} ".encode())


def test_many_hosts_and_origins_are_refused_at_once():
    """Each origin was compared with each host: 60 KB held the server for seconds."""
    headers = b"host:\r\n" * 4_000 + b"origin:\r\n" * 2_500
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(hosts=Hosts(every=True)))) as url,
    ):
        parts = urlsplit(url)
        begun = time.perf_counter()
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(b"POST /api/v2/trees HTTP/1.1\r\n" + headers + b"\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 431 ")
        assert time.perf_counter() - begun < 1


def test_the_server_answers_under_configured_names():
    with named(
        Hosts(["Catalog.example.com", "*.lake.example", "192.0.2.7", "[2001:db8::7]"])
    ) as client:
        ours = (
            "catalog.example.com",
            "CATALOG.example.com:443",
            "a.lake.example",
            "a.b.lake.example:80",
            "192.0.2.7:1",
            "[2001:db8::7]:1",
        )
        for host in (*ours, *LOOPBACK):
            assert client.get("/api/v2/config", host=host).status == 200, host
        for host in (
            "x.catalog.example.com",
            "lake.example",
            "xlake.example",
            "192.0.2.8",
            *FOREIGN,
        ):
            assert client.get("/api/v2/config", host=host).status == 403, host


@pytest.mark.parametrize("name", ["http://a", "a:80", "a/b", "", "*", "a.*.b", "*a", "a b", "[x]"])
def test_invalid_host_names_are_refused(name):
    with pytest.raises(InvalidInput, match="--allowed-host"):
        Hosts([name])


FROM_ELSEWHERE = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:1"},
    {"origin": "http://[", "host": "localhost"},
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": "http://localhost", "host": "localhost"},
    {"sec-fetch-site": "same-origin", "origin": "null"},
    {"sec-fetch-site": "nonsense"},
]
FROM_HERE = [
    {},
    {"origin": "http://localhost:19120", "host": "localhost:19120"},
    {"origin": "https://LOCALHOST", "host": "localhost"},
    {"sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "none"},
    {
        "sec-fetch-site": "same-origin",
        "origin": "https://catalog.example.com",
        "host": "127.0.0.1:19120",
    },
]


@pytest.mark.parametrize("headers", FROM_ELSEWHERE)
def test_pages_of_other_sites_cannot_write(client, headers):
    for method, path, body in (
        ("POST", COMMIT, BODY),
        (
            "POST",
            "/api/v2/trees?name=x&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": EMPTY},
        ),
        ("PUT", f"/api/v2/trees/main@{EMPTY}", {"type": "BRANCH", "name": "main", "hash": EMPTY}),
        ("DELETE", f"/api/v1/trees/branch/x?expectedHash={EMPTY}", None),
        ("POST", "/api/v2/trees/main/contents", {"requestedKeys": []}),
    ):
        answer = client.send(method, path, body, headers=headers)
        assert (answer.status, answer.body["errorCode"]) == (403, "FORBIDDEN"), (path, answer)
    assert client.head() == EMPTY
    assert len(client.get("/api/v2/trees").body["references"]) == 1
    assert (
        client.get(
            "/api/v2/config", **{name: value for name, value in headers.items() if value}
        ).status
        == 200
    )


@pytest.mark.parametrize("headers", FROM_HERE)
def test_other_clients_and_own_pages_can_write(client, headers):
    assert client.send("POST", COMMIT, BODY, headers=headers).status == 200


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "",
    ],
)
def test_a_body_must_be_declared_as_json(client, kind):
    answer = client.send(
        "POST", COMMIT, headers={"content-type": kind}, raw=json.dumps(BODY).encode()
    )
    assert (answer.status, answer.body["errorCode"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert client.head() == EMPTY
    for wanted in ("application/json", "application/json; charset=utf-8", "APPLICATION/JSON"):
        found = client.send(
            "POST",
            "/api/v2/trees/main/contents",
            {"requestedKeys": [{"elements": ["a"]}]},
            headers={"content-type": wanted},
        )
        assert found.status == 200


def test_a_request_without_a_body_needs_no_content_type(client):
    client.send(
        "POST",
        "/api/v2/trees?name=b&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": EMPTY},
    )
    assert client.send("DELETE", f"/api/v2/trees/b@{EMPTY}").status == 200
    assert client.send("POST", COMMIT).status == 400
    body = json.dumps(BODY).encode()
    assert (
        client.send(
            "DELETE",
            f"/api/v2/trees/main@{EMPTY}",
            raw=body,
            headers={"content-type": "text/plain"},
        ).status
        == 415
    )


TOKENS = Security(tokens=__file__)


@pytest.mark.parametrize(
    ("settings", "allowed", "refused"),
    [
        (ServerSettings(), "localhost", "catalog"),
        (ServerSettings(security=TOKENS), "localhost", "catalog"),
        (ServerSettings(allowed_hosts=("catalog",)), "catalog", "other"),
        (ServerSettings("127.1"), "127.1", "catalog"),
        (ServerSettings("0.0.0.0", insecure=True), "192.0.2.1", "catalog"),
        (ServerSettings("0.0.0.0", insecure=True), "localhost", "evil.example"),
        (ServerSettings("0.0.0.0", allowed_hosts=("catalog",)), "catalog", "192.0.2.1"),
        (ServerSettings("192.0.2.1", allowed_hosts=("catalog",)), "192.0.2.1", "192.0.2.2"),
        (ServerSettings("0.0.0.0", security=TOKENS), "anything", None),
        (
            ServerSettings("0.0.0.0", security=TOKENS, allowed_hosts=("catalog",)),
            "catalog",
            "anything",
        ),
        (
            ServerSettings(
                "0.0.0.0", security=Security(tokens=__file__, rules=__file__, anonymous=True)
            ),
            "192.0.2.1",
            "anything",
        ),
    ],
)
def test_allowed_names_follow_from_address_and_authentication(settings, allowed, refused):
    check_address(settings)
    assert settings.hosts.check("GET", b"/", [(b"host", allowed.encode())]) is None
    if refused is not None:
        with pytest.raises(InvalidInput, match="--allowed-host"):
            settings.hosts.check("GET", b"/", [(b"host", refused.encode())])


def test_a_public_address_requires_authentication_or_names():
    with pytest.raises(NotAllowed, match="--allowed-host"):
        check_address(ServerSettings("0.0.0.0"))
    check_address(ServerSettings("0.0.0.0", allowed_hosts=("catalog",)))


def test_names_come_from_options_and_the_environment():
    for options, env in (
        (
            ("--allowed-host", "a.example,b.example", "--allowed-host", "c.example"),
            {"NESSIE_ALLOWED_HOSTS": "d.example"},
        ),
        ((), {"NESSIE_ALLOWED_HOSTS": "a.example, b.example,c.example"}),
    ):
        with started("--store", "memory:", *options, env=env) as (_, url):
            client = Client(url)
            statuses = [
                client.get("/api/v2/config", host=f"{name}.example").status for name in "abcd"
            ]
            client.close()
        assert statuses == [200, 200, 200, 403]
