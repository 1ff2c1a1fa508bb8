"""Random requests from our own OpenAPI document: no answer is a server error, and each has
the described shape.

`NESSIE_TEST_REQUESTS=N` is the number of requests for each endpoint.
"""

import os
from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy

import pytest
import requests
from hypothesis import HealthCheck, settings

from nessie_cli import connect
from nessie_cli.server.nessie.openapi import openapi
from tests.server.client import EMPTY, Client, namespace, put
from tests.server.serving import serving

schemathesis = pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed (group dev)"
)
checks = pytest.importorskip("schemathesis.checks")
conformance = pytest.importorskip("schemathesis.specs.openapi.checks")

REQUESTS = int(os.environ.get("NESSIE_TEST_REQUESTS", "1"))
SCHEMA = schemathesis.openapi.from_dict(openapi())
HELD = [
    checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Yields the URL of a server with some contents."""
    with connect("memory:") as repository, serving(repository) as found:
        client = Client(found)
        client.commit(
            "main", EMPTY, put("db", content=namespace("db")), put("db", "t"), put("db", "u")
        )
        client.send(
            "POST",
            "/api/v2/trees?name=dev&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": client.head()},
        )
        yield found


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Yields connections for all requests. It stores no cookies and reads no environment."""
    with requests.Session() as session:
        session.trust_env = False
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        yield session


@SCHEMA.parametrize()
@settings(
    max_examples=REQUESTS,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_conforms_to_the_description(case, url, session):
    case.call_and_validate(base_url=url, session=session, checks=HELD)
