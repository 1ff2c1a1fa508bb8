import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.server.nessie.routes import ROUTES
from nessie_cli.server.pipeline.table import NoRoute, RouteTable

TABLE = RouteTable(ROUTES)


def found(method: str, path: str) -> tuple[str, dict[str, str]]:
    match = TABLE.match(method, path)
    return match.endpoint.path, dict(match.segments)


@pytest.mark.parametrize(
    ("path", "pattern", "segments"),
    [
        ("/api/v2/trees/main", "/api/v2/trees/{ref}", {"ref": "main"}),
        ("/api/v2/trees/main/", "/api/v2/trees/{ref}", {"ref": "main"}),
        ("/api/v2/trees/a%2Fb/entries", "/api/v2/trees/{ref}/entries", {"ref": "a/b"}),
        ("/api/v2/trees/a/b@/entries", "/api/v2/trees/{ref}/entries", {"ref": "a/b@"}),
        ("/api/v2/trees/a/b%40/entries", "/api/v2/trees/{ref}/entries", {"ref": "a/b@"}),
        (
            "/api/v2/trees/a/b@12345678/contents/x.y",
            "/api/v2/trees/{ref}/contents/{key}",
            {"ref": "a/b@12345678", "key": "x.y"},
        ),
        (
            "/api/v2/trees/a/b@/diff/c/d/e@",
            "/api/v2/trees/{from}/diff/{to}",
            {"from": "a/b@", "to": "c/d/e@"},
        ),
        (
            "/api/v2/trees/main/diff/c/d@",
            "/api/v2/trees/{from}/diff/{to}",
            {"from": "main", "to": "c/d@"},
        ),
        (
            "/api/v2/trees/main/contents/a%252Fb",
            "/api/v2/trees/{ref}/contents/{key}",
            {"ref": "main", "key": "a%2Fb"},
        ),
        (
            "/api/v2/trees/main/contents/%C3%A4%C3",
            "/api/v2/trees/{ref}/contents/{key}",
            {"ref": "main", "key": "ä\ufffd"},
        ),
        ("/api/v1/trees/tree", "/api/v1/trees/tree", {}),
        ("/api/v1/diffs/a*12345678...b", "/api/v1/diffs/{range}", {"range": "a*12345678...b"}),
    ],
)
def test_a_path_is_split_raw_and_each_segment_decoded_once(path, pattern, segments):
    assert found("GET", path) == (pattern, segments)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v2//trees",
        "/api/v2/trees/a/b",
        "/api/v2/trees/main/contents/a/b",
        "/api/v2/Trees",
        "/api/v2/trees//entries",
    ],
)
def test_an_unknown_path_has_no_route(path):
    with pytest.raises(NoRoute) as refused:
        TABLE.match("GET", path)
    assert refused.value.allowed == []


def test_the_error_for_a_wrong_method_lists_the_allowed_ones():
    with pytest.raises(NoRoute) as refused:
        TABLE.match("PATCH", "/api/v2/trees/a/b@/history/commit")
    assert refused.value.allowed == ["POST"]


@pytest.mark.parametrize(
    "path", ["/api/v2/trees/a%", "/api/v2/trees/a%4", "/api/v2/trees/%zz", "/api/v2/trees/a%4g"]
)
def test_an_invalid_escape_is_refused(path):
    with pytest.raises(InvalidInput):
        TABLE.match("GET", path)


def test_head_uses_the_route_of_get():
    assert found("HEAD", "/api/v2/config")[0] == "/api/v2/config"


def test_no_two_routes_match_the_same_requests():
    seen = [
        (
            endpoint.method,
            "/".join("{}" if part.startswith("{") else part for part in endpoint.path.split("/")),
        )
        for endpoint in ROUTES
    ]
    assert len(seen) == len(set(seen))


def test_a_reference_may_contain_what_ends_the_path_of_another_route():
    assert found("DELETE", "/api/v2/trees/a/contents/b@") == (
        "/api/v2/trees/{ref}",
        {"ref": "a/contents/b@"},
    )
    assert found("GET", "/api/v2/trees/a/contents/b@") == (
        "/api/v2/trees/{ref}/contents/{key}",
        {"ref": "a", "key": "b@"},
    )


@pytest.mark.parametrize("part", ["a/@/", "@/", "a/", "a/b/c@/"])
def test_a_path_has_few_readings_whatever_it_repeats(part):
    path = f"/api/v2/trees/{part * 5000}"
    assert len(list(TABLE.readings(path + "x@"))) < 200
