"""Every command of pynessie 0.67, the Python client of the original (API v1), against our
server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nessie_cli import connect
from tests.server.client import EMPTY
from tests.server.serving import serving

LIBRARIES = Path(__file__).parents[2] / ".venv" / "pynessie"
PATIENCE = 120
pytestmark = pytest.mark.skipif(
    not LIBRARIES.exists(), reason="pynessie is not installed: make .venv/.ready-pynessie"
)


class Pynessie:
    """Its command line, connected to one server."""

    def __init__(self, endpoint: str, home: Path) -> None:
        self._endpoint = endpoint
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(__file__).parent / "driver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ
            | {
                "PYTHONPATH": str(LIBRARIES),
                "HOME": str(home),
                "XDG_CONFIG_HOME": str(home),
                "NESSIEDIR": str(home),
            },
            text=True,
        )
        self.driven: set[str] = set()

    def _ask(self, **asked: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "pynessie has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def names(self) -> set[str]:
        """Returns the names of all its commands."""
        return set(self._ask(args=None)["names"])

    def run(self, command: str, *words: str, given: str | None = None, fails: bool = False) -> str:
        """Returns the output of a command, which must succeed, or fail if `fails`."""
        self.driven.add(command)
        answer = self._ask(
            args=["--json", "--endpoint", self._endpoint, *command.split(), *words], input=given
        )
        assert (answer["exit"] != 0) == fails, answer
        out: str = answer["out"]
        return out

    def read(self, command: str, *words: str) -> Any:
        """Returns the JSON output of a command."""
        return json.loads(self.run(command, *words))

    def head(self, name: str = "main") -> str:
        (found,) = [ref for ref in self.read("branch", "-l") if ref["name"] == name]
        hash_: str = found["hash"]
        return hash_

    def put(
        self, key: str, content: dict[str, Any], branch: str = "main", message: str = "put"
    ) -> str:
        self.run(
            "content commit",
            "-i",
            "-r",
            branch,
            "-c",
            self.head(branch),
            "-m",
            message,
            "--author",
            "ann",
            key,
            given=json.dumps(content),
        )
        return self.head(branch)

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.kill()
        self._process.wait(PATIENCE)


@pytest.fixture
def pynessie(tmp_path: Path) -> Iterator[Pynessie]:
    with connect("memory:") as repository, serving(repository) as url:
        client = Pynessie(f"{url}/api/v1", tmp_path)
        try:
            yield client
        finally:
            client.close()


def table(number: int, content_id: str | None = None) -> dict[str, Any]:
    found = {
        "type": "ICEBERG_TABLE",
        "metadataLocation": f"file:/t/{number}.json",
        "snapshotId": number,
    }
    return found | {"schemaId": 0, "specId": 0, "sortOrderId": 0, "id": content_id}


def test_every_command_works(pynessie: Pynessie):
    # references
    assert [(ref["name"], ref["hash"]) for ref in pynessie.read("branch")] == [("main", EMPTY)]
    one = pynessie.put("a", table(1), message="one")
    pynessie.run("branch", "dev", "main")
    assert pynessie.head("dev") == one
    pynessie.run("tag", "v1", "main")
    assert [(ref["name"], ref["hash"]) for ref in pynessie.read("tag", "-l")] == [("v1", one)]
    # contents
    (viewed,) = pynessie.read("content view", "-r", "main", "a")
    assert (viewed["metadataLocation"], viewed["snapshotId"]) == ("file:/t/1.json", 1)
    two = pynessie.put("a", table(2, viewed["id"]), branch="dev", message="two")
    three = pynessie.put("b", table(3), branch="dev", message="three")
    assert [entry["name"]["elements"] for entry in pynessie.read("content list", "-r", "dev")] == [
        ["a"],
        ["b"],
    ]
    assert pynessie.read("content list", "-r", "dev", "-t", "DELTA_LAKE_TABLE") == []
    assert (
        len(
            pynessie.read(
                "content list", "-r", "dev", "--filter", "entry.contentType == 'ICEBERG_TABLE'"
            )
        )
        == 2
    )
    # history
    assert [entry["message"] for entry in pynessie.read("log", "dev")] == ["three", "two", "one"]
    assert [entry["hash"] for entry in pynessie.read("log", "-n", "1", "dev")] == [three]
    assert [entry["hash"] for entry in pynessie.read("log", "--author", "ann", f"dev@{two}")] == [
        two,
        one,
    ]
    assert pynessie.read("log", "--author", "nobody", "dev") == []
    (changed, added) = pynessie.read("diff", "main", "dev")["diffs"]
    assert (changed["from"]["snapshotId"], changed["to"]["snapshotId"], added["from"]) == (
        1,
        2,
        None,
    )
    # merges and transplants
    pynessie.run("cherry-pick", "-b", "main", "-c", pynessie.head(), "-s", "dev", two)
    assert pynessie.read("log", "-n", "1", "main")[0]["message"] == "two"
    pynessie.run("branch", "other", "v1")
    pynessie.run("merge", "-b", "other", "-c", pynessie.head("other"), "dev")
    assert pynessie.read("diff", "dev", "other")["diffs"] == []
    pynessie.run(
        "content commit", "-R", "-r", "other", "-c", pynessie.head("other"), "-m", "drop", "b"
    )
    assert [
        entry["name"]["elements"] for entry in pynessie.read("content list", "-r", "other")
    ] == [["a"]]
    # moving and deleting references
    pynessie.run("branch", "-f", "other", "main")
    assert pynessie.head("other") == pynessie.head("main")
    pynessie.run("tag", "-f", "v1", "dev")
    assert pynessie.read("tag", "-l", "v1")["hash"] == three
    pynessie.run("branch", "-d", "other")
    pynessie.run("tag", "-d", "v1")
    assert [ref["name"] for ref in pynessie.read("branch")] == ["dev", "main"]
    assert pynessie.read("tag") == []
    # settings of pynessie
    pynessie.run("remote add", "http://127.0.0.1:1/api/v1")
    pynessie.run("remote set-head", "dev")
    assert "main" in pynessie.run("remote show")
    assert "dev" in pynessie.run("config", "--list")
    pynessie.run("config", "--add", "verify", "--type", "bool", "false")
    assert pynessie.driven == pynessie.names()


def test_refusals_are_reported(pynessie: Pynessie):
    one = pynessie.put("a", table(1))
    assert "already exists" in pynessie.run("branch", "main", "main", fails=True)
    assert pynessie.run("log", "nosuch", fails=True)
    pynessie.put("a", table(2, pynessie.read("content view", "-r", "main", "a")[0]["id"]))
    words = ("-i", "-r", "main", "-c", one, "-m", "late", "a")
    refused = pynessie.run(
        "content commit",
        *words,
        given=json.dumps(table(3, pynessie.read("content view", "a")[0]["id"])),
        fails=True,
    )
    assert "409" in refused or "onflict" in refused
