"""A command that is repeated after its answer was lost looks up the first request, and does
nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from nessie_cli.repository.base import Repository
from tests.command.process import Nessie
from tests.remote.listening import CUT, Answer, Request, forward, listening


class Line:
    """The connection to a server. Once it is `breaking`, the next write arrives, its answer is
    lost, and later requests fail."""

    def __init__(self, server: str, without: tuple[str, ...]) -> None:
        self._server, self._without = server, without
        self.breaking = False
        self._broken = False
        self.writes = 0

    def mend(self) -> None:
        self.breaking = self._broken = False

    def __call__(self, request: Request) -> Answer:
        if self._broken:
            return CUT
        is_write = "/history/" in request.path and request.method == "POST"
        self.writes += is_write
        answer = forward(self._server, request, self._without)
        if self.breaking and is_write:
            self._broken = True
            return CUT
        return answer


@pytest.fixture(params=[(), ("nessie-cli",)], ids=["ours", "others"])
def line(server: str, request: pytest.FixtureRequest) -> Line:
    return Line(server, request.param)


@pytest.fixture
def at_server(nessie: Nessie, line: Line) -> Iterator[Nessie]:
    """A workspace on the server, with a branch `work` that has one commit more than `main`."""
    with listening(line) as url:
        nessie.ok("init", "--store", url)
        nessie.ok("content", "put", "db", "--type", "namespace", "-m", "add db")
        nessie.ok("branch", "work")
        nessie.table("db.one", 1, "-m", "one", "--ref", "work")
        yield nessie


OPERATIONS = json.dumps(
    [
        {
            "type": "PUT",
            "key": {"elements": ["bulk"]},
            "content": {"type": "NAMESPACE", "elements": ["bulk"]},
        }
    ]
)
COMMANDS = {
    "merge": ("merge", "work"),
    "commit": ("commit", "-m", "staged"),
    "commit-batch": ("commit", "--batch", "-", "-m", "bulk"),
    "transplant": ("transplant", "work"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_repetition_does_nothing_twice(
    at_server: Nessie, line: Line, repository: Repository, name: str, request: pytest.FixtureRequest
) -> None:
    stdin = OPERATIONS if name == "commit-batch" else ""
    if name == "commit":
        at_server.table("db.two", 2)
    line.breaking = True
    lost = at_server(*COMMANDS[name], stdin=stdin)
    assert lost.code == 7
    if name == "transplant" and "others" in request.node.name:
        # Its copies have the metadata of their sources, so the request leaves no trace on another
        # server.
        assert "before you repeat the command" in lost.err
        return
    assert "Repeat the command: it asks the store" in lost.err
    head = repository.reference("main").hash
    writes = line.writes
    line.mend()
    at_server.ok(*COMMANDS[name], stdin=stdin)
    assert repository.reference("main").hash == head
    assert [entry.meta.subject for entry in repository.log("main")][1:] == ["add db"]
    assert "others" not in request.node.name or line.writes == writes
    assert not (at_server.folder / ".nessie/requests.json").exists()


def test_an_answered_request_is_forgotten(at_server: Nessie) -> None:
    at_server.table("db.one", 2, "-m", "mine")
    assert at_server("merge", "work").code == 3
    assert at_server("merge", "work", "--ours", "db.one").code == 0
    assert not (at_server.folder / ".nessie/requests.json").exists()


def test_without_a_workspace_the_outcome_stays_unknown(at_server: Nessie, line: Line) -> None:
    url = (
        at_server.ok("status", "--json").json.get("store")
        or (at_server.folder / ".nessie/config.toml").read_text().split('"')[1]
    )
    elsewhere = at_server.folder.parent / "elsewhere"
    elsewhere.mkdir()
    line.breaking = True
    lost = at_server("merge", "work", "--into", "main", "--store", url, cwd=elsewhere)
    assert lost.code == 7
    assert "before you repeat the command" in lost.err


@pytest.mark.parametrize("trusted", [True, False])
def test_a_batch_that_cannot_be_read_hides_no_unknown_outcome(
    at_server: Nessie, line: Line, trusted: bool
) -> None:
    folder = at_server.folder / ".nessie"
    if not trusted:
        (folder / "identity").unlink()
    (folder / "batch.json").symlink_to("/dev/null")
    line.breaking = True
    lost = at_server("merge", "work")
    assert lost.code == 7, lost
    assert "Repeat the command: it asks the store" in lost.err
