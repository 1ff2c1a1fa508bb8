"""Imports while others write, imports that are refused, and imports whose process is killed."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.errors import OutcomeUnknown, ReferenceConflict, WriteRefused
from nessie_cli.iceberg.files import Files
from nessie_cli.importing.performing import Imported, Importer, ImportTarget
from nessie_cli.importing.plan import ImportPlan, ImportRules
from nessie_cli.importing.planning import Planner
from nessie_cli.importing.records import ImportRecords
from nessie_cli.importing.selection import Selection
from nessie_cli.importing.source import Listing
from nessie_cli.importing.sources.folder import Folder
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    Secret,
)
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import Commit
from nessie_cli.repository.draft import Draft
from nessie_cli.repository.opening import connect, create
from tests.cli.importing.sql_lake import SqlLake
from tests.importing.lakes import MadeTables, listing
from tests.importing.table_folders import TableFolder, versions
from tests.importing.test_records import foreign_locations
from tests.server.guarding import guarded

NAMES = ("db.a", "db.b", "db.c")


@pytest.fixture
def tables(tmp_path: Path) -> MadeTables:
    return MadeTables(tmp_path / "theirs")


@pytest.fixture
def given(tables: MadeTables) -> Listing:
    return listing({name: tables.table(name) for name in NAMES})


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = str(tmp_path / "store.sqlite")
    create(url).close()
    return url


@pytest.fixture
def repository(store: str) -> Iterator[Repository]:
    with connect(store) as repository:
        yield repository


class Before:
    """Does something before each of the first commits, and nothing before the others."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        self._actions = list(actions)

    def check(self, draft: Draft[Any]) -> None:
        if isinstance(draft.change, Commit) and self._actions:
            self._actions.pop(0)()

    def done(self, draft: Draft[Any], answer: object) -> None:
        pass


def imported(
    repository: Repository,
    given: Listing,
    *,
    skip_invalid: bool = False,
    rules: ImportRules | None = None,
    record: str = "x",
) -> Imported:
    planner = Planner(repository, Files(), given, rules or ImportRules(), "theirs")

    def meta(plan: ImportPlan) -> CommitMeta:
        return CommitMeta(f"import {len(plan.committed)}")

    importer = Importer(repository, Files(), planner, ImportTarget("main", record, "theirs"), meta)
    return importer.perform(lambda: str(uuid.uuid4()), skip_invalid=skip_invalid)


def folder_listing(folder: Path) -> Listing:
    return Folder(str(folder), {}).listing([])


def keys(repository: Repository) -> list[str]:
    return [str(entry.key) for entry in repository.entries("main")]


def put(repository: Repository, key: str) -> None:
    table = IcebergTable(metadata_location=f"s3://x/{key}.metadata.json")
    elements = ContentKey.parse(key)
    above = [] if elements.parent is None else [elements.parent]
    existing = repository.contents("main", above)
    created = [
        Put(each, Namespace(elements=each.elements)) for each in above if each not in existing
    ]
    repository.commit("main", [*created, Put(elements, table)], CommitMeta("other"))


def test_a_branch_that_moves_is_planned_again(
    repository: Repository, store: str, given: Listing
) -> None:
    with connect(store) as other:
        # The namespace is created by both.
        repository.guard = Before(lambda: put(other, "db.z"), lambda: put(other, "y"))
        result = imported(repository, given)
    assert result.result is not None
    assert keys(repository) == ["db", *NAMES, "db.z", "y"]


def test_a_key_that_is_taken_meanwhile_is_a_problem(
    repository: Repository, store: str, given: Listing, tables: MadeTables
) -> None:
    with connect(store) as other:
        repository.guard = Before(lambda: put(other, "db.a"))
        result = imported(repository, given)
    assert result.result is None
    assert [problem.names for problem in result.plan.problems] == [(("db", "a"),)]
    assert keys(repository) == ["db", "db.a"]


def refuse() -> None:
    raise WriteRefused("not now")


def test_after_a_refusal_files_stay_and_are_taken(
    repository: Repository, given: Listing, tables: MadeTables
) -> None:
    repository.guard = Before(refuse)
    with pytest.raises(WriteRefused):
        imported(repository, given)
    assert keys(repository) == []
    assert len(tables.copies()) == 3
    # The record stays: garbage collection keeps what is not there.
    assert len(foreign_locations(ImportRecords(repository))) == 3
    copies = tables.copies()
    assert imported(repository, given).result is not None
    assert tables.copies() == copies


def unreadable(repository: Repository) -> list[str]:
    """Returns the keys of tables whose metadata files are missing."""
    return [
        str(entry.key)
        for entry in repository.entries("main", content=True)
        if isinstance(entry.content, IcebergTable)
        and not Path(entry.content.metadata_location.removeprefix("file://")).exists()
    ]


@pytest.mark.parametrize("is_other_store", [True, False])
def test_a_refused_import_breaks_no_other_import(
    repository: Repository, store: str, given: Listing, tmp_path: Path, is_other_store: bool
) -> None:
    """Another repository, or another prefix, has the same copies."""
    url = store
    if is_other_store:
        url = str(tmp_path / "other.sqlite")
        create(url).close()
    with connect(url) as other:
        rules = ImportRules(selection=Selection.parse(prefix="below"))

        def other_imports_and_this_is_refused() -> None:
            assert imported(other, given, rules=rules, record="y").result is not None
            raise WriteRefused("not now")

        repository.guard = Before(other_imports_and_this_is_refused)
        with pytest.raises(WriteRefused):
            imported(repository, given)
        assert len(keys(other)) == 5
        assert unreadable(other) == []


def test_imports_with_two_prefixes_at_once_make_no_second_key(
    repository: Repository, store: str, given: Listing
) -> None:
    """The second one changes other keys, so no commit is in conflict with another one."""
    below = ImportRules(selection=Selection.parse(prefix="below"))
    before = ["below", "below.db", *(f"below.{name}" for name in NAMES)]
    with connect(store) as other:
        repository.guard = Before(lambda: imported(other, given, rules=below, record="y"))
        with pytest.raises(ReferenceConflict, match="these have a second key now") as error:
            imported(repository, given)
    hash_ = error.value.hint.split()[2]
    assert repository.reference("main").hash.startswith(hash_)
    repository.guard = None
    assert imported(repository, given, rules=below, record="y").result is None
    assert len(imported(repository, given).plan.contents) == 3
    assert set(before) < set(keys(repository))


def test_imports_with_two_prefixes_one_after_the_other_make_no_second_key(
    repository: Repository, store: str, given: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one commits while this one writes its copies."""
    below = ImportRules(selection=Selection.parse(prefix="below"))
    put = ImportRecords.put

    def put_after_the_other(records: ImportRecords, *arguments: Any) -> None:
        monkeypatch.setattr(ImportRecords, "put", put)
        with connect(store) as other:
            assert imported(other, given, rules=below, record="y").result is not None
        put(records, *arguments)

    monkeypatch.setattr(ImportRecords, "put", put_after_the_other)
    result = imported(repository, given)
    assert {str(each.key) for each in result.plan.contents} == {f"below.{name}" for name in NAMES}
    assert keys(repository) == ["below", "below.db", *(f"below.{name}" for name in NAMES), "db"]


def test_a_table_with_the_file_names_of_a_dropped_one(
    repository: Repository, tmp_path: Path
) -> None:
    """Hadoop's catalog counts from v1 again. Nothing here takes the new table for the old one."""
    key = ContentKey.parse("db.t")
    lake = tmp_path / "lake"

    def import_again(*, update: bool = False) -> Imported:
        table = TableFolder(lake / "db" / "t")
        table.chain(versions(2))
        table.hint("2")
        return imported(repository, folder_listing(lake), rules=ImportRules(update=update))

    assert import_again().result is not None
    location = repository.contents("main", [key])[key].metadata_location  # type: ignore[attr-defined]
    before = Path(location).read_bytes()
    (planned,) = import_again().plan.contents
    assert planned.action == "newer"
    (problem,) = import_again(update=True).plan.problems
    assert "the source has another table with this name now" in problem.message
    shutil.rmtree(lake)
    (problem,) = import_again(update=True).plan.problems
    assert "the source has another table with this name now" in problem.message
    Path(location).write_bytes(before)
    repository.commit("main", [Delete(key)], CommitMeta("makes room"))
    assert import_again().result is not None
    assert Path(location).read_bytes() == before
    assert repository.contents("main", [key])[key].metadata_location != location  # type: ignore[attr-defined]


def test_another_state_with_the_name_of_a_copy_stays(
    repository: Repository, given: Listing, tables: MadeTables
) -> None:
    repository.guard = Before(refuse)
    with pytest.raises(WriteRefused):
        imported(repository, given)
    changed = min(tables.copies())
    data = changed.read_bytes().replace(b'"format-version":2', b'"format-version":1')
    changed.write_bytes(data)
    (problem,) = imported(repository, given).plan.problems
    assert "is the copy of another state" in problem.message
    assert changed.read_bytes() == data


def test_a_new_table_with_an_old_name_is_not_adopted(
    repository: Repository, tmp_path: Path
) -> None:
    key, records = ContentKey.parse("db.t"), ImportRecords(repository)
    for number in range(2):
        lake = tmp_path / f"lake{number}"
        table = TableFolder(lake / "db" / "t")
        table.chain(versions(2))
        table.hint("2")
        assert imported(repository, folder_listing(lake)).result is not None
        assert list(foreign_locations(records)) == [str(table.folder)]
        records.adopt([key])
        repository.commit("main", [Delete(key)], CommitMeta("makes room"))


def test_an_update_does_not_undo_what_was_put_back(
    repository: Repository, tables: MadeTables
) -> None:
    key = ContentKey.parse("db.a")
    assert imported(repository, listing({"db.a": tables.table("db.a")})).result is not None
    first = repository.contents("main", [key])[key]
    update = ImportRules(update=True)
    assert imported(repository, listing({"db.a": tables.append("db.a")}), rules=update).result
    second = repository.contents("main", [key])[key]
    repository.commit("main", [Put(key, first, second)], CommitMeta("the load was bad"))
    given = listing({"db.a": tables.append("db.a")})
    (problem,) = imported(repository, given, rules=update).plan.problems
    assert "it was changed here" in problem.message
    assert repository.contents("main", [key])[key] == first


def test_a_protected_branch_refuses_before_anything_is_written(
    repository: Repository, given: Listing, tables: MadeTables
) -> None:
    repository.put_setting("protect.main", "merge-only")
    with pytest.raises(WriteRefused):
        imported(repository, given)
    assert tables.copies() == set()
    assert ImportRecords(repository).all() == []


def test_an_import_without_the_right_to_list_commits_is_done(
    tmp_path: Path, given: Listing
) -> None:
    with guarded(tmp_path, "user == 'eve' && op != 'LIST_COMMIT_LOG'") as server:
        access = Access(Bearer(Secret(server.as_("eve").token or "")))
        with connect(f"{server.url}/api/v2", access=access) as repository:
            assert imported(repository, given).result is not None
        assert keys(server.repository) == ["db", *NAMES]


def unknown() -> None:
    raise OutcomeUnknown("the connection was lost", "id")


def test_after_an_unknown_outcome_files_stay_and_are_taken(
    repository: Repository, given: Listing, tables: MadeTables
) -> None:
    repository.guard = Before(unknown)
    with pytest.raises(OutcomeUnknown):
        imported(repository, given)
    files = {path: path.stat().st_mtime_ns for path in tables.copies()}
    assert len(files) == 3
    assert imported(repository, given).result is not None
    assert {path: path.stat().st_mtime_ns for path in tables.copies()} == files


def test_a_torn_copy_is_written_again(
    repository: Repository, given: Listing, tables: MadeTables
) -> None:
    repository.guard = Before(unknown)
    with pytest.raises(OutcomeUnknown):
        imported(repository, given)
    whole = {path: path.read_bytes() for path in tables.copies()}
    for size, path in zip((0, 1, 400), sorted(whole), strict=True):
        path.write_bytes(whole[path][:size])
    assert imported(repository, given).result is not None
    assert {path: path.read_bytes() for path in tables.copies()} == whole


def test_a_refused_import_leaves_the_files_of_another_one(
    repository: Repository, store: str, given: Listing, tables: MadeTables
) -> None:
    """Both import the same tables, so that the copies are the same files."""
    with connect(store) as other:

        def other_wins() -> None:
            assert imported(other, given).result is not None
            raise ReferenceConflict("a lost race")

        repository.guard = Before(other_wins)
        result = imported(repository, given)
    assert result.result is None
    assert {each.action for each in result.plan.contents} == {"unchanged"}
    assert len(tables.copies()) == 3


def test_concurrent_imports_make_one_state(store: str, given: Listing, tables: MadeTables) -> None:
    def run(_: int) -> Imported:
        with connect(store) as repository:
            return imported(repository, given)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(4)))
    assert sum(result.result is not None for result in results) == 1
    with connect(store) as repository:
        contents = repository.contents("main", map(ContentKey.parse, NAMES))
        (record,) = ImportRecords(repository).all()
    files = {getattr(content, "metadata_location", "") for content in contents.values()}
    assert files == {f"file://{path}" for path in tables.copies()}
    assert {row.metadata for row in record.tables} == files


def test_a_file_that_cannot_be_written_is_found_with_the_others(
    repository: Repository, given: Listing, tables: MadeTables
) -> None:
    """Whether an object store takes a file is only known by writing; here, a folder is there."""
    plan = Planner(repository, Files(), given, ImportRules(), "theirs").plan(
        repository.reference("main"), None
    )
    (copy,) = [each.content for each in plan.committed if str(each.key) == "db.b"]
    assert copy is not None
    Path(copy.metadata_location.removeprefix("file://")).mkdir()
    result = imported(repository, given)
    assert result.result is None
    (problem,) = result.plan.problems
    assert problem.names == (("db", "b"),)
    assert "--pointers-only" in problem.message
    assert imported(repository, given, skip_invalid=True).result is not None
    assert keys(repository) == ["db", "db.a", "db.c"]


# -- kill -9 ---------------------------------------------------------------------------------------

KILLER = """
import os, signal, sys, threading
from nessie_cli.cli.main import run
import nessie_cli.cli.importing.import_, nessie_cli.cli.importing.results
import nessie_cli.importing.performing, nessie_cli.importing.opening
import nessie_cli.importing.sources.iceberg_catalog, nessie_cli.importing.allowed_locations
import nessie_cli.repository.local, nessie_cli.store.sqlite.store

STEPS = {"_commit", "_put_rows", "_write_locally"}
FILES = ("importing/performing.py", "iceberg/files.py")

def dies_at(left):
    def watch(frame, event, argument):
        nonlocal left
        code = frame.f_code
        if event in ("call", "return") and code.co_name in STEPS:
            if code.co_filename.endswith(FILES):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
    threading.setprofile(watch)
    sys.setprofile(watch)

# Python starts once: each import is a fork of this process, which has no open files.
for line in sys.stdin:
    point, *arguments = line.split()
    child = os.fork()
    if not child:
        os.dup2(2, 1)
        if int(point):
            dies_at(int(point))
        os._exit(run(arguments))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_an_import_that_is_killed_at_any_step_is_completed(tmp_path: Path) -> None:
    lake = SqlLake(tmp_path / "theirs")
    lake.create(*NAMES)
    points = 0
    with subprocess.Popen(
        [sys.executable, "-c", KILLER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as killer:
        assert killer.stdin is not None
        assert killer.stdout is not None
        stdin, stdout = killer.stdin, killer.stdout

        def code(point: int, store: str) -> int:
            print(point, "import", lake.uri, "--store", store, file=stdin, flush=True)
            return int(stdout.readline())

        for point in itertools.count(1):
            for copy in lake.copies():
                copy.unlink()
            store = str(tmp_path / f"{point}.sqlite")
            create(store).close()
            ended = code(point, store)
            if ended == 0:
                break
            points += 1
            assert ended == -signal.SIGKILL
            with connect(store) as repository:
                assert keys(repository) in ([], ["db", *NAMES])
            assert code(0, store) == 0
            with connect(store) as repository:
                assert keys(repository) == ["db", *NAMES]
                assert len(list(repository.log("main"))) == 1
                contents = repository.contents("main", map(ContentKey.parse, NAMES)).values()
                (record,) = ImportRecords(repository).all()
            named = {getattr(content, "metadata_location", "") for content in contents}
            assert named == {f"file://{path}" for path in lake.copies()}
            assert {row.metadata for row in record.tables} == named
        stdin.close()
    # Two commits (the first one dry), the record and three files, each before and after.
    assert points == 12
