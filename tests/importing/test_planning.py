"""Plans of imports: what comes, and every reason why something does not."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import Files
from nessie_cli.importing.plan import Action, ImportPlan, ImportRules, ProblemKind
from nessie_cli.importing.planning import Planner
from nessie_cli.importing.selection import Selection
from nessie_cli.importing.source import Listing, SourceContent, SourceKind
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, ImportRecord, Namespace, Put
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect
from tests.importing.lakes import MadeTables, listing


@pytest.fixture
def tables(tmp_path: Path) -> MadeTables:
    return MadeTables(tmp_path / "theirs")


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:") as repository:
        yield repository


def plan_of(
    repository: Repository,
    given: Listing,
    rules: ImportRules | None = None,
    record: ImportRecord | None = None,
) -> ImportPlan:
    planner = Planner(repository, Files(), given, rules or ImportRules(), "theirs")
    return planner.plan(repository.reference("main"), record)


def messages(plan: ImportPlan) -> list[str]:
    return [problem.message for problem in plan.problems]


def actions(plan: ImportPlan) -> dict[str, Action]:
    return {str(each.key): each.action for each in plan.contents}


def test_a_plan_reads_each_file_once_and_writes_nothing(
    repository: Repository, tables: MadeTables
) -> None:
    given = listing({"db.a": tables.table("db.a"), "db.b": tables.table("db.b")})
    before = {path.stat().st_mtime_ns for path in tables.folder.rglob("*")}
    seen: list[tuple[int, int | None]] = []
    planner = Planner(repository, Files(), given, ImportRules(), "theirs")
    head = repository.reference("main")
    plan = planner.plan(head, None, lambda done, total: seen.append((done, total)))
    assert actions(plan) == {"db.a": Action.IMPORT, "db.b": Action.IMPORT}
    assert [each.elements for each in plan.namespaces] == [("db",)]
    assert seen == [(1, 2), (2, 2)]
    assert planner.plan(head, None, lambda done, total: seen.append((done, total))) == plan
    assert len(seen) == 2
    assert {path.stat().st_mtime_ns for path in tables.folder.rglob("*")} == before


def test_damaged_files_are_named_with_their_fault(
    repository: Repository, tables: MadeTables
) -> None:
    files = {name: tables.table(name) for name in ("db.torn", "db.gone", "db.wrong", "db.view")}
    files["db.torn"].write_bytes(files["db.torn"].read_bytes()[:100])
    files["db.gone"].unlink()
    files["db.wrong"].write_text(files["db.wrong"].read_text().replace('"long"', '"lang"'))
    views = {"db.view": files.pop("db.view")}
    plan = plan_of(repository, listing(files, views))
    assert plan.contents == ()
    assert {problem.kind for problem in plan.problems} == {ProblemKind.INVALID}
    by_name = dict(zip([p.names[0][-1] for p in plan.problems], messages(plan), strict=True))
    for name, part in {
        "torn": "truncated",
        "gone": "no such file",
        "wrong": "lang",
        "view": "the metadata of a table, but the source has a view",
    }.items():
        assert by_name[name].startswith(f"db.{name}: ")
        assert part in by_name[name]


def test_one_table_under_two_names(repository: Repository, tables: MadeTables) -> None:
    first = tables.table("db.a")
    copied = first.with_name("00009-copy.metadata.json")
    copied.write_bytes(first.read_bytes())
    plan = plan_of(
        repository, listing({"db.a": first, "db.b": copied, "db.c": tables.table("db.c")})
    )
    (message,) = messages(plan)
    assert message.startswith("db.a, db.b: the source has one content (UUID ")
    assert actions(plan) == {"db.c": Action.IMPORT}


def test_one_view_file_under_two_names(repository: Repository, tables: MadeTables) -> None:
    view = tables.view("db.v")
    plan = plan_of(repository, listing({}, {"db.v": view, "db.w": view}))
    assert messages(plan)[0].startswith("db.v, db.w: the source has one content")


def test_names_that_no_key_can_have(repository: Repository, tables: MadeTables) -> None:
    path = tables.table("db.a")
    deep = tuple(f"n{number}" for number in range(21))
    contents = [
        SourceContent(name, SourceKind.TABLE, str(path))
        for name in (deep, ("db", ""), ("db", "a\x01"), ("x" * 501,))
    ]
    plan = plan_of(repository, Listing((), contents))
    assert len(plan.problems) == 4
    rules = ImportRules(Selection.parse(prefix="a.b"))
    assert len(plan_of(repository, Listing((), contents[:1]), rules).problems) == 1
    assert plan.contents == ()


def test_a_guess_is_asked_for(repository: Repository, tables: MadeTables) -> None:
    given = listing({"db.a": tables.table("db.a")})
    guessed = replace(given, contents=[replace(given.contents[0], guess="no version hint")])
    (message,) = messages(plan_of(repository, guessed))
    assert message == "db.a: no version hint. Hint: --guess imports such tables"
    assert not plan_of(repository, guessed, ImportRules(guess=True)).problems


def test_a_name_that_is_a_table_and_a_namespace(repository: Repository, tables: MadeTables) -> None:
    given = listing({"db": tables.table("x.db"), "db.a": tables.table("db.a")})
    plan = plan_of(repository, given)
    assert messages(plan) == ["db: the source has a table and a namespace of this name"]
    assert actions(plan) == {"db.a": Action.IMPORT}


def test_namespaces_of_the_branch_stay(repository: Repository, tables: MadeTables) -> None:
    ours = Namespace(elements=("db",), properties={"owner": "us"})
    repository.commit("main", [Put(ContentKey(("db",)), ours)], CommitMeta("ours"))
    given = listing({"db.x.a": tables.table("db.x.a")})
    plan = plan_of(repository, given, ImportRules(Selection.parse(prefix="in.side")))
    created = [each.elements for each in plan.namespaces]
    assert created == [
        ("in",), ("in", "side"), ("in", "side", "db"), ("in", "side", "db", "x"),
    ]  # fmt: skip
    assert [each.elements for each in plan_of(repository, given).namespaces] == [("db", "x")]


@pytest.mark.parametrize("prefix", [None, "db"])
def test_a_parent_that_is_a_table_here(
    repository: Repository, tables: MadeTables, prefix: str | None
) -> None:
    key = ContentKey(("db",))
    table = IcebergTable(metadata_location="s3://x/1.metadata.json")
    repository.commit("main", [Put(key, table)], CommitMeta("ours"))
    names = ["db.a", "db.b"] if prefix is None else ["a", "b"]
    given = listing({name: tables.table(f"x.{name}") for name in names})
    plan = plan_of(repository, given, ImportRules(Selection.parse(prefix=prefix)))
    (problem,) = plan.problems
    assert problem.kind is ProblemKind.CONFLICT
    assert problem.message.startswith("db: the branch has the type iceberg-table here")
    assert len(problem.names) == 2
    assert not plan.operations


READER = """
import os, sys
from nessie_cli.iceberg.files import Files
from nessie_cli.importing.reading import SourceReader
from nessie_cli.importing.source import SourceContent, SourceKind
content = SourceContent(("db", "a"), SourceKind.TABLE, sys.argv[1])
SourceReader(Files(), copies=True).read([content])  # every module is loaded
reader = SourceReader(Files(), copies=True)
if os.geteuid() == 0:
    # Root may write everywhere.
    os.setuid(65534)
reader.read([content])
print(reader.metadata(content))
"""


def test_a_folder_that_cannot_be_written_names_the_way_out() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = MadeTables(Path(folder) / "lake").table("db.a")
        Path(folder).chmod(0o755)
        path.parent.chmod(0o555)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", READER, str(path)],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
        finally:
            path.parent.chmod(0o755)
    assert f"{path.parent} cannot be written" in ran.stdout
    assert "--pointers-only" in ran.stdout


def test_pointers_only_needs_no_folder(repository: Repository, tables: MadeTables) -> None:
    given = listing({"db.a": tables.table("db.a")})
    plan = plan_of(repository, given, ImportRules(pointers_only=True))
    assert [each.is_copied for each in plan.committed] == [False]
    assert plan.committed[0].content == IcebergTable(
        metadata_location=given.contents[0].metadata_location
    )


def test_views_are_registered_as_they_are(repository: Repository, tables: MadeTables) -> None:
    plan = plan_of(repository, listing({}, {"db.v": tables.view("db.v")}))
    (view,) = plan.committed
    assert not view.is_copied
    assert view.content is not None
    assert view.content.metadata_location == f"file://{tables.view('db.v')}"


@pytest.mark.parametrize(
    ("properties", "action"), [({}, Action.UPDATE), ({"comment": "ours"}, None)]
)
def test_views_are_updated_if_their_versions_continue(
    repository: Repository,
    tables: MadeTables,
    properties: dict[str, str],
    action: Action | None,
) -> None:
    """The record names another file than the branch has, as after a discarded branch."""
    first = plan_of(repository, listing({}, {"db.v": tables.view("db.v")}))
    repository.commit("main", first.operations, CommitMeta("import"))
    record = ImportRecord("theirs", "theirs", (replace(first.rows[0], metadata="file:///x"),))
    if properties:
        tables.view("db.v", 1, **properties)
    newer = listing({}, {"db.v": tables.view("db.v", 2)})
    plan = plan_of(repository, newer, ImportRules(update=True), record)
    assert actions(plan) == ({"db.v": action} if action else {})
    assert len(plan.problems) == (0 if action else 1)


def test_a_plan_needs_little_memory_for_large_files(
    repository: Repository, tables: MadeTables
) -> None:
    """Metadata files of 2 MB each: at most eight are in memory."""
    files = {}
    for number in range(60):
        path = tables.table(f"db.t{number}", {"comment": "x" * 2_000_000})
        files[f"db.t{number}"] = path
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan = plan_of(repository, listing(files))
    assert len(plan.committed) == 60
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, f"{grown} KiB"


def test_a_selection_is_parsed() -> None:
    with pytest.raises(InvalidInput):
        Selection.parse(include=["a..b"])
    with pytest.raises(InvalidInput):
        Selection.parse(prefix="")
