"""Staged changes of contents that the branch moved: no decision loses another content."""

from __future__ import annotations

import random
import shlex
from contextlib import suppress
from pathlib import Path

import pytest

from nessie_cli.errors import NessieError
from nessie_cli.model import Delete, Namespace, Put
from tests.cli.conftest import Catalog, key, table
from tests.command.in_process import InProcess
from tests.repository.test_inverse import state_of

from .test_pasting_batches import COUNT, Attempt, staged_at_random


def conflicts_of(nessie: InProcess) -> list[dict[str, object]]:
    refused = nessie("commit", "-m", "mine", "--json")
    assert refused.code == 3, refused
    return refused.error["errorDetails"]["conflicts"]


def swap(catalog: Catalog, one: str, other: str) -> None:
    for old, new in ((one, "t"), (other, one), ("t", other)):
        catalog.rename("main", old, new)


@pytest.fixture
def below_another(nessie: InProcess, catalog: Catalog) -> Catalog:
    """A table is staged below its own key, which the branch has given to another table since."""
    catalog.create("main", "n", 7)
    catalog.create("main", "c", 8)
    assert nessie("content", "rename", "n", "n.b").code == 0
    swap(catalog, "n", "c")
    return catalog


def test_no_decision_about_a_table_replaces_another_one_by_a_namespace(
    nessie: InProcess, below_another: Catalog
) -> None:
    batch = nessie("status", "--json").json["batch"]
    refused = nessie("resolve", "--proposed", "n")
    refused.expect(2, "would replace another content by a namespace", "`nessie resolve`")
    assert nessie("status", "--json").json["batch"] == batch
    assert below_another.snapshot("main", "n") == 8


def test_no_line_is_printed_that_would_need_a_namespace_in_the_place_of_a_table(
    nessie: InProcess, below_another: Catalog
) -> None:
    (conflict,) = conflicts_of(nessie)
    assert conflict["resolutions"] == ["nessie reset n"]
    assert conflict["effects"] == ["unstages rename n to n.b"]
    assert "--proposed" not in nessie("commit", "-m", "mine").err


def test_on_a_terminal_the_namespace_is_a_question_of_its_own(
    answering, nessie: InProcess, below_another: Catalog
) -> None:
    shown = answering("p\np\n", "resolve", "--proposed", "n")
    assert shown.code == 2
    shown = answering("p\np\n", "resolve", "-m", "both")
    assert shown.code == 0, shown
    text = "\n".join(shown.lines)
    assert "replace n by a namespace and keep the changes below it" in text
    assert below_another.snapshot("main", "n.b") == 7


def test_a_key_that_is_free_is_still_made_a_namespace_by_its_decision(
    nessie: InProcess, catalog: Catalog
) -> None:
    catalog.create("main", "n", 7)
    assert nessie("content", "rename", "n", "n.b").code == 0
    catalog.rename("main", "n", "c")
    (conflict,) = conflicts_of(nessie)
    line, _ = conflict["resolutions"]
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "mine").code == 0
    assert catalog.snapshot("main", "n.b") == 7


def test_a_table_that_is_the_parent_of_a_new_one_is_named_by_a_decision_about_itself(
    nessie: InProcess, catalog: Catalog
) -> None:
    """The only question about `n` is whether it becomes a namespace."""
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    words = ("--type", "iceberg-table", "--metadata-location", "s3://n.a")
    assert nessie("content", "put", "n.a", *words).code == 0
    catalog.commit("main", "drop", Delete(key("n")))
    catalog.create("main", "n", 8)
    assert [each["conflictType"] for each in conflicts_of(nessie)] == ["NOT_A_NAMESPACE"]
    resolved = nessie("resolve", "--proposed", "n")
    assert resolved.code == 0
    assert ["replace", "n", "namespace"] in [line.split() for line in resolved.lines]
    assert nessie("commit", "-m", "mine").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("put", "b", "--metadata-location", "s3://mine", "--snapshot-id", "9"),
        ("rename", "b", "d"),
    ],
)
@pytest.mark.parametrize(
    ("first", "staged"),
    [(("rename", "a", "c"), "c"), (("put", "a", "--metadata-location", "s3://first"), "a")],
)
def test_a_content_that_the_branch_renamed_gets_no_second_key(
    nessie: InProcess,
    catalog: Catalog,
    first: tuple[str, ...],
    staged: str,
    words: tuple[str, ...],
) -> None:
    new = "d" if words[0] == "rename" else "b"
    catalog.create("main", "a", 7)
    assert nessie("content", *first).code == 0
    catalog.rename("main", "a", "b")
    batch = nessie("status", "--json").json["batch"]
    refused = nessie("content", *words)
    refused.expect(2, f"{new} has a change staged as {staged} already", f"`nessie reset {staged}`")
    assert nessie("status", "--json").json["batch"] == batch
    assert nessie("reset", staged).code == 0
    assert nessie("content", *words).code == 0
    assert nessie("commit", "-m", "mine").code == 0


def test_the_staged_keys_of_a_swap_and_a_chain_take_further_changes(
    nessie: InProcess, catalog: Catalog
) -> None:
    catalog.create("main", "a", 7)
    catalog.create("main", "b", 8)
    for old, new in (("a", "t"), ("b", "a"), ("t", "b"), ("db.orders", "x"), ("x", "db.orders")):
        assert nessie("content", "rename", old, new).code == 0
    for name in ("a", "b"):
        words = ("--metadata-location", f"s3://{name}-2", "--snapshot-id", "9")
        assert nessie("content", "put", name, *words).code == 0
    assert nessie("commit", "-m", "mine").code == 0
    assert [catalog.snapshot("main", name) for name in ("a", "b")] == [9, 9]


@pytest.fixture
def above_a_staged_table(nessie: InProcess, catalog: Catalog) -> Catalog:
    """The batch gives the key of a namespace to a table, and updates a table below it."""
    catalog.create("main", "a", 7)
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.a", 8)
    catalog.create("main", "n.b", 9)
    for old, new in (("a", "t"), ("n", "a"), ("t", "n")):
        assert nessie("content", "rename", old, new).code == 0
    assert nessie("content", "put", "n.b", "--metadata-location", "s3://b").code == 0
    return catalog


def test_no_line_moves_or_deletes_contents_if_others_are_staged_below_the_key(
    nessie: InProcess, above_a_staged_table: Catalog
) -> None:
    (conflict,) = conflicts_of(nessie)
    assert conflict["conflictType"] == "NAMESPACE_NOT_EMPTY"
    assert conflict["resolutions"] == ["nessie reset n"]
    assert conflict["effects"] == ["unstages rename a to n, rename n to a"]
    shown = nessie("commit", "-m", "mine").err
    assert "not possible       proposed, because a change of n.b is staged below n" in shown
    assert nessie("reset", "n").code == 0
    assert nessie("commit", "-m", "mine").code == 0


def test_the_answer_that_deletes_contents_is_not_possible_if_others_are_staged(
    answering, nessie: InProcess, above_a_staged_table: Catalog
) -> None:
    shown = answering("p\nc\n", "resolve", "-m", "mine")
    assert shown.code == 0, shown
    text = "\n".join(shown.lines)
    assert "[p]roposed not possible: a change of n.b is staged below n" in text
    assert above_a_staged_table.snapshot("main", "n.a") == 8


def test_no_line_creates_a_namespace_where_the_branch_has_moved_the_staged_table(
    nessie: InProcess, catalog: Catalog
) -> None:
    catalog.create("main", "b", 7)
    catalog.create("main", "c", 8)
    assert nessie("content", "rename", "b", "n.b").code == 0
    catalog.rename("main", "b", "n")
    catalog.rename("main", "c", "b")
    for conflict in conflicts_of(nessie):
        for line in conflict["resolutions"]:
            assert "--type namespace" not in line
            assert line.startswith("nessie reset ")
    assert nessie("reset", "n.b").code == 0
    assert catalog.snapshot("main", "n") == 7


def test_no_line_is_about_a_namespace_that_is_staged_under_its_former_key(
    nessie: InProcess, catalog: Catalog
) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    assert nessie("content", "rename", "n", "k").code == 0
    space = catalog.repository.content("main", key("n"))
    catalog.commit(
        "main", "rename", Delete(key("n")), Put(key("c"), Namespace(id=space.id, elements=("c",)))
    )
    catalog.create("main", "c.a", 7)
    conflicts = conflicts_of(nessie)
    assert [each["conflictType"] for each in conflicts][1:] == ["NAMESPACE_NOT_EMPTY"]
    lines = [line for each in conflicts for line in each["resolutions"]]
    assert lines == ["nessie reset n"]
    assert nessie("reset", "n").code == 0
    assert catalog.snapshot("main", "c.a") == 7


NESTED = ("a", "b", "n", "n.a", "n.b")


def deleted_by(line: str, effect: str) -> set[str]:
    """Returns the keys of which a line says that it deletes them."""
    words = shlex.split(line)
    named = set(words) if words[1:3] == ["content", "delete"] else set()
    parts = [part.partition(",")[0] for part in effect.split("; ")]
    return named | {name for name in NESTED if f"deletes the present {name}" in parts}


def moved_at_random(rng: random.Random, catalog: Catalog, tables: tuple[str, ...]) -> None:
    """Commits changes of another writer, most of them swaps. Some of them are refused."""
    for number in range(rng.randint(1, 4)):
        one, other = rng.sample(NESTED, 2)
        with suppress(NessieError):
            match rng.randrange(5):
                case 0 | 1:
                    swap(catalog, *rng.sample(tables, 2))
                case 2:
                    catalog.create("main", one, 50 + number)
                case 3:
                    catalog.rename("main", one, other)
                case _:
                    catalog.update("main", one, 60 + number)


@pytest.mark.parametrize("seed", range(COUNT))
def test_lines_about_random_batches_with_namespaces_work_and_lose_nothing_unsaid(
    nessie: InProcess, catalog: Catalog, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    nested = rng.random() < 0.5
    space = [Put(key("n"), Namespace(elements=("n",)))] if nested else []
    names = ("a", "b", "n.a") if nested else ("a", "b", "n")
    tables = [Put(key(name), table(f"base-{name}", 1)) for name in names]
    catalog.commit("main", "base", *space, *tables)
    if rng.random() < 0.7:
        nessie("content", "rename", rng.choice(names), "n.b")
    else:
        staged_at_random(rng, nessie, NESTED)
    if not (tmp_path / ".nessie" / "batch.json").exists():
        return
    moved_at_random(rng, catalog, names)
    attempt = Attempt(nessie, catalog, tmp_path)
    conflicts = attempt.conflicts()
    attempt.batch = attempt.file.read_bytes() if conflicts else attempt.batch
    deletable = {edit.before.id for edit in attempt.edits if edit.before and not edit.after}
    for conflict in conflicts:
        for line, effect in zip(conflict["resolutions"], conflict["effects"], strict=True):
            ran = nessie(*shlex.split(line)[1:])
            assert ran.code == 0, (line, ran)
            left = nessie("status", "--json").json["conflicts"]
            asked = [(each["conflictType"], each["key"]) for each in left]
            assert (conflict["conflictType"], conflict["key"]) not in asked, (line, effect)
            if not left and attempt.file.exists():
                assert nessie("commit", "-m", "now").code == 0, line
            after = {content.id for content in state_of(catalog.repository).values()}
            for name, content in attempt.before.items():
                is_said = content.id in deletable or str(name) in deleted_by(line, effect)
                assert content.id in after or is_said, (line, effect, f"{name} is lost")
            attempt.again()


def test_no_line_for_all_conflicts_deletes_a_namespace_with_contents(
    nessie: InProcess, catalog: Catalog
) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.a")
    assert nessie("content", "delete", "n").code == 0
    words = ("--type", "iceberg-table", "--metadata-location", "s3://mine")
    assert nessie("content", "put", "m", *words).code == 0
    before = catalog.repository.content("main", key("n"))
    changed = Namespace(id=before.id, elements=("n",), properties={"owner": "eva"})
    catalog.commit("main", "changed", Put(key("n"), changed))
    catalog.create("main", "m")
    refused = nessie("commit", "-m", "mine")
    assert "  m  created on main and in the batch" in refused.err
    assert "--proposed" not in refused.err
    for conflict in conflicts_of(nessie):
        assert nessie(*shlex.split(conflict["resolutions"][0])[1:]).code == 0
    (conflict,) = conflicts_of(nessie)
    assert conflict["conflictType"] == "NAMESPACE_NOT_EMPTY"


def test_no_line_puts_a_namespace_over_one_whose_change_is_staged_as_another_key(
    nessie: InProcess, catalog: Catalog
) -> None:
    """The branch has renamed `n` to `b` since, and changed it."""
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    assert nessie("content", "put", "n", "--property", "p=1").code == 0
    assert nessie("content", "put", "b", "--type", "namespace").code == 0
    id_ = catalog.repository.content("main", key("n")).id
    moved = Namespace(id=id_, elements=("b",))
    catalog.commit("main", "rename", Delete(key("n")), Put(key("b"), moved))
    lines = {line for each in conflicts_of(nessie) for line in each["resolutions"]}
    assert lines == {"nessie reset n", "nessie reset b"}
