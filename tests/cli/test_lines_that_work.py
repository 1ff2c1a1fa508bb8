"""Each printed line can work: it names one content and repeats no contradicting option."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from nessie_cli.model import Delete, Namespace, Put
from tests.cli.conftest import Catalog, key, table
from tests.command.in_process import InProcess
from tests.command.outcome import Outcome


def lines_of(refused: Outcome) -> dict[str, str]:
    """Returns the printed lines with their effects."""
    assert refused.code == 3, refused
    conflicts = refused.error["errorDetails"]["conflicts"]
    return {
        line: effect
        for conflict in conflicts
        for line, effect in zip(conflict["resolutions"], conflict["effects"], strict=True)
    }


def test_a_revert_names_no_namespace_that_is_in_the_way_of_a_table_in_conflict(
    nessie: InProcess, catalog: Catalog
) -> None:
    """Theirs needs the key `c`, which is a namespace with contents on the branch."""
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "c", 3)
    moved = catalog.repository.content("main", key("c"))
    reverted = catalog.commit(
        "main", "move", Delete(key("c")), Put(key("n.a"), table("moved", 11, moved.id))
    )
    content = catalog.repository.content("main", key("n.a"))
    catalog.commit(
        "main",
        "namespace",
        Delete(key("n")),
        Delete(key("n.a")),
        Put(key("c"), Namespace(elements=("c",))),
        Put(key("c.a"), content),
        Put(key("c.b"), table("b", 1)),
    )
    (line,) = lines_of(nessie("revert", reverted, "--json"))
    assert "--ours c.a" in line
    assert nessie(*shlex.split(line)[1:], "--dry-run").code == 0


@pytest.mark.parametrize("words", [["--behavior", "force"], ["--behavior=force"]])
def test_a_default_that_moves_a_needed_content_away_can_be_left_out(
    nessie: InProcess, catalog: Catalog, words: list[str]
) -> None:
    catalog.create("main", "m")
    catalog.branch("dev")
    catalog.commit("dev", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.rename("dev", "m", "n.t")
    catalog.rename("main", "m", "n")
    refused = nessie("transplant", "dev", "--onto", "main", *words, "--json")
    lines = lines_of(refused)
    assert lines, refused
    assert all("--behavior" not in line for line in lines)
    assert all("starts over" in effect for effect in lines.values())
    for line in lines:
        assert nessie(*shlex.split(line)[1:], "--dry-run").code in (0, 3)


def test_no_line_repeats_a_glob_that_its_decision_contradicts(
    nessie: InProcess, catalog: Catalog
) -> None:
    """Theirs gives `b` back its key, which another table has on the branch; `*` keeps that one."""
    catalog.create("main", "b", 1)
    catalog.branch("x")
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.rename("main", "b", "n.b")
    catalog.update("main", "n.b", 7)
    catalog.create("main", "b", 8)
    catalog.update("x", "b", 5)
    words = ("merge", "x", "--theirs", "n.*", "--ours", "*")
    lines = lines_of(nessie(*words, "--json"))
    for line in lines:
        ran = nessie(*shlex.split(line)[1:], "--dry-run")
        assert ran.code in (0, 3), ran
    assert any("--ours n.b" in line for line in lines)


@pytest.mark.parametrize("verb", [("merge", "x"), ("resolve", "merge", "x")])
def test_a_value_counts_more_than_a_glob_and_the_report_names_what_the_glob_deletes(
    nessie: InProcess, catalog: Catalog, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    for name in ("a", "c"):
        catalog.create("main", name)
    catalog.branch("x")
    for branch, number in (("main", 10), ("x", 11)):
        catalog.update(branch, "c", number)
    catalog.drop("main", "a")
    catalog.create("main", "a", 50)
    catalog.update("x", "a", 12)
    value = {"type": "ICEBERG_TABLE", "metadataLocation": "s3://F", "snapshotId": 99}
    value |= {"schemaId": 0, "specId": 0, "sortOrderId": 0}
    (tmp_path / "F").write_text(json.dumps(value))
    merged = nessie(*verb, "--resolve", "c=F", "--theirs", "*")
    merged.expect(0, "a: the iceberg-table snapshot 50 of main is deleted")
    assert [catalog.snapshot("main", name) for name in ("a", "c")] == [12, 99]


def test_a_revert_takes_a_value_beside_a_glob(
    nessie: InProcess, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.create("main", "c")
    reverted = catalog.update("main", "c", 10)
    catalog.update("main", "c", 11)
    value = {"type": "ICEBERG_TABLE", "metadataLocation": "s3://F", "snapshotId": 99}
    value |= {"schemaId": 0, "specId": 0, "sortOrderId": 0}
    (tmp_path / "F").write_text(json.dumps(value))
    words = ("resolve", "revert", reverted, "--resolve", "c=F", "--theirs", "*")
    assert nessie(*words).code == 0
    assert catalog.snapshot("main", "c") == 99
