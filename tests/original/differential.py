"""Sends the same random requests to the original server and to ours, and compares the
answers.

`make test-original` runs it. The requests depend on a seed, NESSIE_TEST_SEED or a fixed one, so a
failure is caused by a change. Python's own generator draws them, because Hypothesis changes its
choices between releases.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from nessie_cli import connect
from tests.original.comparison import Pairs, differences
from tests.original.sequences import Asked, Catalog
from tests.original.server import Original
from tests.server.client import EMPTY, Answer, Client
from tests.server.serving import serving

SEED = os.environ.get("NESSIE_TEST_SEED") or "20261121"
SEQUENCES = 16
REQUESTS = 60
PATIENCE = 120


@pytest.mark.parametrize("number", range(SEQUENCES))
def test_both_servers_answer_alike(server: Original, number: int):
    seed = f"{SEED}-{number}"
    with connect("memory:") as repository, serving(repository) as url:
        theirs, ours = Client(server.url, PATIENCE), Client(url, PATIENCE)
        try:
            cleared(theirs)
            Conversation(theirs, ours, Catalog(seed, renames=number % 4 == 0)).run()
        finally:
            theirs.close()
            ours.close()


class Conversation:
    """One sequence of requests to both."""

    def __init__(self, theirs: Client, ours: Client, catalog: Catalog) -> None:
        self._theirs, self._ours, self._catalog = theirs, ours, catalog
        self._pairs = Pairs()
        self._said: list[str] = []

    def run(self) -> None:
        self._pairs.agree(EMPTY, EMPTY)
        while len(self._said) < REQUESTS:
            for asked in self._catalog.next():
                for request in (
                    self._catalog.commit_now(asked.path) if asked.method == "COMMIT" else [asked]
                ):
                    self._exchange(request)
            self._exchange(Asked("GET", "/api/v2/trees"))

    def _exchange(self, asked: Asked) -> None:
        self._said.append(
            f"{asked.method} {asked.path} {asked.body if asked.body is not None else ''}"
        )
        theirs = self._theirs.send(*asked)
        ours = self._ours.send(
            asked.method, self._pairs.translated(asked.path), self._pairs.translated(asked.body)
        )
        differing = list(differences(*comparable(theirs, ours), self._pairs))
        assert not differing, "\n".join(
            [
                *self._said,
                f"original: {theirs.status} {theirs.body}",
                f"ours: {ours.status} {ours.body}",
                *differing,
            ]
        )
        self._catalog.learn(asked, theirs.status, theirs.body)


def comparable(theirs: Answer, ours: Answer) -> list[dict[str, Any]]:
    """Returns the comparable parts of two answers.

    Refusals by the web framework of the original have no body of the API, so only their status
    counts.
    """
    if theirs.status >= 400 and "errorCode" not in (theirs.body or {}):
        return [{"status": theirs.status}, {"status": ours.status}]
    return [{"status": answer.status, "body": answer.body} for answer in (theirs, ours)]


def cleared(client: Client) -> None:
    """Returns a client of a reset server: only `main`, at the empty history."""
    for reference in client.get("/api/v2/trees").body["references"]:
        path = f"/api/v2/trees/{reference['name'].replace('/', '%2F')}@{reference['hash']}"
        if reference["name"] == "main":
            assert (
                client.send("PUT", path, {"type": "BRANCH", "name": "main", "hash": EMPTY}).status
                == 200
            )
        else:
            assert client.send("DELETE", path).status == 200
