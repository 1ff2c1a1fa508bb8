"""The GitLab job of docs/guides/ci.md with each possible result, and the two small scripts
below it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.ci.conftest import GITLAB, OTHER_CLIENT, Catalog, Runner, blocks
from tests.command.outcome import Outcome

JOB = GITLAB["nightly load"]
SCRIPT = "\n".join(JOB["script"])
BRANCH = "load-77"
SECRET = "a-token-that-is-secret"


class Issues:
    """Records requests to GitLab's issues: path, token, document."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, str | None, Any]] = []
        self.url = ""


@pytest.fixture
def gitlab() -> Iterator[Issues]:
    """A server that accepts issues as GitLab's API does."""
    issues = Issues()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            issues.opened.append((self.path, self.headers["PRIVATE-TOKEN"], document))
            self.send_response(201)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    issues.url = f"http://127.0.0.1:{server.server_port}/api/v4"
    yield issues
    server.shutdown()
    thread.join()
    server.server_close()


def run(runner: Runner, gitlab: Issues | None = None, branch: str = BRANCH) -> Outcome:
    variables = {
        **JOB["variables"],
        "BRANCH": branch,
        "NESSIE_AUTH_TOKEN": SECRET,
        "ISSUES_TOKEN": "issues-only",
    }
    assert JOB["variables"]["BRANCH"] == "load-$CI_JOB_ID"
    return runner.run(
        SCRIPT, **variables, CI_API_V4_URL=gitlab.url if gitlab else "", CI_PROJECT_ID="9"
    )


def test_a_load_without_conflicts_is_merged_and_tagged(runner: Runner, catalog: Catalog) -> None:
    ran = run(runner)

    assert ran.code == 0, ran
    assert catalog.names() == [f"{BRANCH}-done", "main"]
    assert catalog.table("main") == catalog.table(f"{BRANCH}-done")
    assert SECRET not in ran.out + ran.err


def test_conflicts_become_an_issue(runner: Runner, catalog: Catalog, gitlab: Issues) -> None:
    runner.loads(meanwhile=OTHER_CLIENT)
    ran = run(runner, gitlab)

    assert ran.code == 3, ran
    ((path, token, document),) = gitlab.opened
    assert (path, token) == ("/api/v4/projects/9/issues", "issues-only")
    assert document["title"] == "nightly load: conflicts"
    assert "sales.orders" in document["description"]
    assert catalog.table("main").snapshot_id == 5
    assert catalog.names() == [BRANCH, "main"]


@pytest.mark.parametrize("catalog", ["a file"], indirect=True)
def test_a_missing_branch_ends_the_job_with_4(runner: Runner) -> None:
    runner.loads(meanwhile='nessie branch -d "$BRANCH" >/dev/null')
    ran = run(runner)

    assert ran.code == 4, ran
    assert f"no branch or tag '{BRANCH}'" in ran.err


@pytest.mark.parametrize("catalog", ["a file"], indirect=True)
def test_an_unavailable_server_ends_the_job_with_the_code_for_a_retry(
    runner: Runner,
) -> None:
    runner.environment |= {"NESSIE_STORE": "http://127.0.0.1:9/api/v2"}

    assert [run(runner).code] == JOB["retry"]["exit_codes"] == [7]


@pytest.mark.parametrize("catalog", ["a file"], indirect=True)
def test_a_gate_fails_if_a_table_would_be_deleted(runner: Runner, catalog: Catalog) -> None:
    gate, _ = blocks("sh")
    for line in (
        "nessie branch good main",
        "nessie content put sales.new --type udf --sql-text x --ref good -m new",
    ):
        assert runner.run(line).code == 0
    assert runner.run(gate, BRANCH="good") == (0, "", "")

    for line in (
        "nessie content rename sales.new sales.renamed --ref good -m rename",
        "nessie content rename sales.orders sales.all --ref good -m rename",
        "nessie content put sales.later --type udf --sql-text x --ref main -m later",
    ):
        assert runner.run(line).code == 0
    assert runner.run(gate, BRANCH="good") == (0, "", "")

    assert (
        runner.run(
            "nessie branch bad main && nessie content delete sales.orders --ref bad -m gone"
        ).code
        == 0
    )
    assert runner.run(gate, BRANCH="bad") == (1, "", "this would delete: sales.orders\n")


@pytest.mark.parametrize("catalog", ["a file"], indirect=True)
def test_a_file_can_be_the_catalog_of_tests(runner: Runner) -> None:
    _, scratch = blocks("sh")
    ran = runner.run(scratch)

    assert (ran.code, ran.out.splitlines()[-1]) == (0, "sales"), ran
