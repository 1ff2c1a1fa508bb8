"""Conflicts look the same on an embedded store, on our server, and on other servers.

The commands before the conflict run on the store itself; the conflicting one uses a server.
"""

from __future__ import annotations

import json
from itertools import compress
from pathlib import Path
from typing import Any

import pytest

from nessie_cli import connect
from tests.command.process import Forker, Nessie
from tests.json.golden import case_of, document_of, filled, named, of_command_lines, read
from tests.json.lake import STORE, Lakes, placeholders
from tests.remote.listening import forward, listening
from tests.server.serving import serving


def _has_a_conflict(name: str) -> bool:
    document = read(name)
    if document["run"].startswith(("nessie store", "nessie import")):
        # A server refuses the former; the latter's conflicts are those of a plan, not of a server.
        return False
    return document["exit"] in (3, 5) or document["run"].startswith(
        ("nessie status", "nessie diff", "nessie merge", "nessie transplant")
    )


CASES = [name for name in of_command_lines() if _has_a_conflict(name)]
TYPE_CHANGES = [
    f"errors/conflict-{name}" for name in ("key-exists", "not-a-namespace", "payload-differs")
]
"""Other servers cannot replace a content by one of another type, so the line is not offered."""
NOT_IN_PLAIN_REST = {
    "errors/conflict-key-does-not-exist": "a deleted content comes back only under a new id",
    "errors/conflict-merge-rename": "a rename with a change is refused",
    "errors/conflict-transplant-namespace": (
        "conflicts of namespaces are reported before keys are compared"
    ),
}


@pytest.fixture(scope="session")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    return Lakes(tmp_path_factory.mktemp("lakes"))


def test_there_is_a_golden_answer_for_every_kind_of_conflict() -> None:
    message = json.dumps([read(name)["stdout"] for name in CASES])
    kinds = (
        "VALUE_DIFFERS",
        "KEY_EXISTS",
        "KEY_DOES_NOT_EXIST",
        "PAYLOAD_DIFFERS",
        "CONTENT_ID_DIFFERS",
        "UNEXPECTED_HASH",
    )
    kinds += ("NAMESPACE_ABSENT", "NAMESPACE_NOT_EMPTY", "NOT_A_NAMESPACE")
    assert [kind for kind in kinds if f'"{kind}"' not in message] == []


@pytest.mark.parametrize("plain", [False, True], ids=["ours", "others"])
@pytest.mark.parametrize("name", CASES)
def test_a_conflict_looks_the_same_over_the_wire(
    lakes: Lakes, forker: Forker, tmp_path: Path, name: str, *, plain: bool
) -> None:
    if plain and name in NOT_IN_PLAIN_REST:
        pytest.skip(NOT_IN_PLAIN_REST[name])
    golden = read(name)
    case = case_of(golden)
    work, home = tmp_path / "work", tmp_path / "home"
    home.mkdir()
    names = dict(lakes.put(case.folder, work))
    nessie, known = Nessie(work, home, forker), placeholders(work)
    for line in case.given:
        nessie.ok(*filled(line, known))
    without = ("nessie-cli",) if plain else ()
    with (
        connect(str(work / STORE), who="tester") as repository,
        serving(repository) as server,
        listening(lambda request: forward(server, request, without)) as url,
    ):
        (work / ".nessie" / "config.toml").write_text(f'store = "{url}/api/v2"\n')
        rebind(work / ".nessie" / "batch.json")
        outcome = nessie(*filled(case.run, known), env=case.env, stdin=case.stdin)
        paths = {str(work): "<folder>", str(home): "<home>", f"{url}/api/v2": "<server>"}
        found = document_of(case, named(outcome, paths, names, known["shared"]))
    assert _lines(found) == _lines(
        _without_replacement(golden) if plain and name in TYPE_CHANGES else golden
    )


def rebind(batch: Path) -> None:
    """Changes the staged batch to the store of the workspace."""
    if batch.exists():
        try:
            document = json.loads(batch.read_text())
        except ValueError:
            return
        document.pop("store", None)
        batch.write_text(json.dumps(document))


def _without_replacement(document: Any) -> Any:
    """Removes the line that replaces a content by one of another type, with its effect."""
    if isinstance(document, list):
        return [_without_replacement(item) for item in document]
    if not isinstance(document, dict):
        return document
    document = {name: _without_replacement(value) for name, value in document.items()}
    if "effects" in document:
        offered = [
            not line.startswith("nessie content replace ") for line in document["resolutions"]
        ]
        for name in ("resolutions", "effects"):
            document[name] = list(compress(document[name], offered))
    return document


def _lines(document: Any) -> list[str]:
    return json.dumps(_comparable(document), indent=1, ensure_ascii=False).splitlines()


def _comparable(document: Any) -> Any:
    """Removes the committer and the store of the batch, which a server decides."""
    if isinstance(document, dict):
        return {
            name: _comparable(value)
            for name, value in document.items()
            if name not in ("committer", "store")
        }
    return [_comparable(item) for item in document] if isinstance(document, list) else document
