"""Beside the API: health, metrics, access log, the description of the API."""

import json
import re

from nessie_cli import connect
from nessie_cli.server.app import Parts
from nessie_cli.server.openapi import openapi
from nessie_cli.server.routes import ROUTES
from nessie_cli.server.runtime.access_log import AccessLog
from nessie_cli.server.runtime.running import application
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving


def test_health_says_up(client):
    assert client.get("/q/health/live").body["status"] == "UP"
    assert client.get("/q/health/ready").body["checks"] == [{"name": "store", "status": "UP"}]


def test_metrics_count_requests_by_route_not_by_path(client):
    for key in ("a", "b", "c"):
        client.get(f"/api/v2/trees/main/contents/{key}")
    client.get("/api/v2/nosuch/path")
    text = client.get("/q/metrics").raw.decode()
    assert 'nessie_http_requests_total{method="GET",route="/api/v2/trees/{ref}/contents/{key}",status="404"} 3' in text
    assert 'route="(none)",status="404"} 1' in text
    count = re.search(r'duration_seconds_count\{route="/api/v2/trees/\{ref\}/contents/\{key\}"\} (\d+)', text)
    assert count
    assert count[1] == "3"
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \S+ .+|[a-z_]+(\{.*\})? [0-9.e+-]+", line), line


def test_each_request_is_one_line_of_json_in_the_access_log():
    lines = []
    with connect("memory:") as repository, serving(app=application(repository, Parts(log=AccessLog(lines.append)))) as url:
        client = Client(url)
        client.commit("main", EMPTY, put("a"))
        client.get("/api/v2/trees/nosuch?fetch=ALL", **{"x-request-id": "job-1"})
        client.get("/q/health/live")
    records = [json.loads(line) for line in b"".join(lines).splitlines()]
    assert [(r["method"], r["status"], r["route"]) for r in records] == [
        ("POST", 200, "/api/v2/trees/{ref}/history/commit"),
        ("GET", 404, "/api/v2/trees/{ref}"),
        ("GET", 200, "/q/health/live"),
    ]
    assert records[1]["requestId"] == "job-1"
    assert records[1]["path"] == "/api/v2/trees/nosuch"
    assert records[0]["received"] > 0
    assert records[0]["milliseconds"] > 0


def test_the_description_names_every_route_and_every_shape_it_refers_to(client):
    document = client.get("/api/openapi.json").body
    assert document == json.loads(json.dumps(openapi()))
    assert {(method.upper(), path) for path, methods in document["paths"].items() for method in methods} == {(r.method, r.path) for r in ROUTES}
    shapes = document["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert referred <= shapes.keys()
    named = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(named) == len(set(named))


def test_the_page_loads_nothing_from_anywhere(client):
    page = client.get("/api/docs", accept="text/html").raw.decode()
    assert page.count("<details") > len(ROUTES)
    assert not re.search(r"<script|<link|<img|@import|url\(|https?://", page)


def test_the_root_leads_to_the_page(client):
    answer = client.get("/", accept="text/html")
    assert (answer.status, answer.headers["location"]) == (307, "/api/docs")
