"""Streams that are closed, and more to tell than anybody reads."""

import json
import sys

import pytest

from nessie_cli.model import Delete
from tests.command.process import run
from tests.server.serving import serving

from .conftest import key

CONFLICTS = 120


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("commit --batch - -m x", 2, "stdin"),
        ("commit", 2, "a commit needs a message"),
        ("branch -d lost", 0, "deleted branch lost"),
        ("resolve", 1, "nothing is staged"),
        ("status", 0, "on branch main"),
    ],
)
def test_a_closed_stdin_is_empty(nessie, catalog, line, code, said) -> None:
    catalog.branch("lost")
    catalog.create("lost", "db.lost")
    if line == "commit":
        assert nessie("content", "put", "db.x", "--type", "namespace").code == 0
    command = ["sh", "-c", f'exec "$0" -m nessie_cli {line} <&-', sys.executable]
    done = run(program=command)

    done.expect(code, without=("internal error",))
    assert said in done.out + done.err


@pytest.fixture
def many(nessie, catalog, tmp_path):
    """Commits a batch in which many operations conflict."""

    def commit(*more, conflicts=CONFLICTS):
        keys = [{"elements": [f"none{number}"]} for number in range(conflicts)]
        operations = [{"type": "DELETE", "key": key} for key in keys]
        (tmp_path / "batch.json").write_text(json.dumps(operations))
        return nessie("commit", "--batch", "batch.json", "-m", "x", *more)

    return commit


def test_people_see_the_first_of_very_many_conflicts_and_their_number(many) -> None:
    ran = many()
    lines = ran.err.splitlines()

    assert ran.code == 3
    assert lines[0].endswith(": 120 conflicts, of which 50 are shown; nothing was written")
    assert len([line for line in lines if line.startswith("conflict: ")]) == 50
    assert lines[-1] == "... and 70 more conflicts; --json prints all of them"
    assert max(map(len, lines)) < 300


@pytest.mark.parametrize("is_served", [False, True], ids=["embedded", "server"])
def test_a_commit_reports_the_first_thousand_conflicts(many, catalog, is_served) -> None:
    with serving(catalog.repository) as url:
        store = ["--store", f"{url}/api/v2"] if is_served else []
        ran = many(*store, conflicts=1_200)
        answer = many(*store, "--json", conflicts=1_200)

    ran.expect(3)
    lines = ran.err.splitlines()
    assert lines[0].endswith(": 1,200 conflicts, of which 50 are shown; nothing was written")
    assert lines[-1] == "... and 1,150 more conflicts; --json prints the first 1,000"
    assert len(answer.json["error"]["errorDetails"]["conflicts"]) == 1_000
    assert answer.json["error"]["message"].endswith("and 200 more.")


def test_json_has_all_conflicts(many) -> None:
    ran = many("--json")

    assert len(ran.json["error"]["errorDetails"]["conflicts"]) == CONFLICTS
    assert f"none{CONFLICTS - 1}" in ran.json["error"]["message"]
    assert len(ran.err.splitlines()) == 1


def test_a_few_conflicts_are_all_shown(nessie, catalog) -> None:
    catalog.branch("dev")
    for name in ("db.orders", "db.items"):
        catalog.update("dev", name, 7)
        catalog.commit("main", "gone", Delete(key(name)))
    ran = nessie("merge", "dev")

    ran.expect(3, without=("more conflicts",))
    assert ran.err.count("\nconflict: ") == 2
