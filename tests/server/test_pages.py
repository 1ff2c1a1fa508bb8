"""Pages beside the API: health, metrics, access log, the description of the API."""

import json
import re

from nessie_cli import connect
from nessie_cli.server.nessie.openapi import openapi
from nessie_cli.server.nessie.routes import ROUTES
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving


def test_health_is_up(client):
    assert client.get("/q/health/live").body["status"] == "UP"
    assert client.get("/q/health/ready").body["checks"] == [{"name": "store", "status": "UP"}]


def test_metrics_count_requests_by_route_not_by_path(client):
    for key in ("a", "b", "c"):
        client.get(f"/api/v2/trees/main/contents/{key}")
    client.get("/api/v2/nosuch/path")
    text = client.get("/q/metrics").raw.decode()
    assert (
        'nessie_http_requests_total{method="GET",route="/api/v2/trees/{ref}/contents/{key}",status="404"} 3'
        in text
    )
    assert 'route="(none)",status="404"} 1' in text
    count = re.search(
        r'duration_seconds_count\{route="/api/v2/trees/\{ref\}/contents/\{key\}"\} (\d+)', text
    )
    assert count
    assert count[1] == "3"
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \S+ .+|[a-z_]+(\{.*\})? [0-9.e+-]+", line), line


def test_metrics_for_dashboards_of_the_original_exist(client):
    client.commit("main", EMPTY, put("a"))
    client.commit("main", EMPTY, put("a"))
    for path in ("trees/main/diff/main", "trees/main/contents/nosuch", "nosuch"):
        client.get(f"/api/v2/{path}")
    client.get("/api/v1/diffs/main...main")
    text = client.get("/q/metrics").raw.decode()
    tagged = 'application="Nessie"'
    requests = f"http_server_requests_seconds_count{{{tagged}"
    store = f"nessie_versionstore_request_seconds_count{{{tagged}"
    for line in (
        f'{store},exception="none",method="commit"}} 1.0',
        f'{store},exception="CONFLICT",method="commit"}} 1.0',
        f'{store},exception="none",method="getDiffs"}} 2.0',
        f'{requests},method="GET",outcome="SUCCESS",status="200",uri="/api/v2/trees/{{from-ref}}/diff/{{to-ref}}"}} 1.0',
        f'{requests},method="GET",outcome="SUCCESS",status="200",uri="/api/v1/diffs/{{diff_params}}"}} 1.0',
        f'{requests},method="GET",outcome="CLIENT_ERROR",status="404",uri="NOT_FOUND"}} 1.0',
    ):
        assert line in text.splitlines(), line
    assert (
        f'nessie_versionstore_request_seconds_bucket{{{tagged},exception="none",le="+Inf",method="getDiffs"}} 2.0'
        in text
    )
    for name in (
        "nessie_versionstore_request_seconds_sum",
        "nessie_versionstore_request_seconds_max",
        "http_server_requests_seconds_max",
    ):
        values = [
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith(f"{name}{{{tagged}")
        ]
        assert values, name
        assert all(value > 0 for value in values), name
    assert f"process_cpu_usage{{{tagged}}}" in text


def test_each_request_is_one_line_of_json_in_the_access_log():
    lines = []
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(log=AccessLog(lines.append)))) as url,
    ):
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
    assert {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    } == {(r.method, r.path) for r in ROUTES}
    shapes = document["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert referred <= shapes.keys()
    named = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    assert len(named) == len(set(named))


def test_the_page_loads_no_external_resources(client):
    page = client.get("/api/docs", accept="text/html").raw.decode()
    assert page.count("<details") > len(ROUTES)
    assert not re.search(r"<script|<link|<img|@import|url\(|https?://", page)


def test_the_root_redirects_to_the_page(client):
    answer = client.get("/", accept="text/html")
    assert (answer.status, answer.headers["location"]) == (307, "/ui/branches")
