"""Every suggested command line works when it is pasted into a shell.

The tests cover every type of conflict, and keys that need quotes.
"""

import os
import shutil
from pathlib import Path

import pytest

from nessie_cli.model import IcebergView, Namespace, Put
from nessie_cli.repository.opening import connect
from tests.command.outcome import Outcome
from tests.command.process import Forker, run

from .conftest import key, table
from .test_resolve import CONFLICTS

ODD = 'db."order lines; $(touch pwned) \'x\' ""y"""'
"""A key with everything that a shell, or the parser of keys, could trip over."""


@pytest.fixture
def paste(tmp_path: Path, forker: Forker):
    """Runs a line in a shell, in a copy of the folder; `nessie` is this program."""
    programs = tmp_path / "bin"
    programs.mkdir()
    forker.write_program(programs / "nessie")

    def paste(line: str, folder: Path) -> Outcome:
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        return run(line, cwd=folder, env=environment, program=("bash", "-c"))

    return paste


def copies(tmp_path: Path, count: int) -> list[Path]:
    found = [tmp_path / f"copy{number}" for number in range(count)]
    for folder in found:
        folder.mkdir()
        shutil.copytree(tmp_path / ".nessie", folder / ".nessie")
    return found


def odd_update(nessie, catalog) -> None:
    catalog.commit("main", "odd", Put(key(ODD), table("odd", 1)))
    nessie(
        "content", "put", ODD, "--metadata-location", "s3://it's mine/$HOME", "--snapshot-id", "-1"
    )
    catalog.update("main", ODD, 30)


def odd_dash(nessie, catalog) -> None:
    catalog.commit("main", "dash", Put(key("-m"), table("dash", 1)))
    nessie("content", "put", "--metadata-location", "s3://mine", "--", "-m")
    catalog.update("main", "-m", 30)


def odd_namespace(nessie, catalog) -> None:
    nessie(
        "content", "put", f"{ODD}.t", "--type", "iceberg-table", "--metadata-location", "s3://mine"
    )


def view_with_sql(nessie, catalog) -> None:
    sql = "SELECT 'a', \"b\" FROM t -- $x\nWHERE c = `d`"
    options = ("--metadata-location", "s3://v", "--version-id", "1", "--schema-id", "0")
    nessie(
        "content",
        "put",
        "db.v",
        "--type",
        "iceberg-view",
        *options,
        "--sql-text",
        "SELECT 1",
        "--dialect",
        "spark",
        "-m",
        "view",
    )
    nessie("content", "put", "db.v", "--sql-text", sql)
    assert (
        nessie(
            "content",
            "put",
            "db.w",
            "--type",
            "udf",
            "--metadata-location",
            "m",
            "--version-id",
            "1",
        ).code
        == 0
    )
    nessie("reset", "db.w")
    found = catalog.repository.content("main", key("db.v"))
    catalog.commit(
        "main",
        "faster",
        Put(
            key("db.v"),
            IcebergView(id=found.id, metadata_location="s3://other", version_id=2, schema_id=0),
        ),
    )


BATCHES = [*CONFLICTS, odd_update, odd_dash, odd_namespace, view_with_sql]


@pytest.mark.parametrize("make", BATCHES)
def test_each_resolution_of_a_batch_resolves_its_conflict(
    nessie, catalog, tmp_path, paste, make
) -> None:
    make(nessie, catalog)
    ran = nessie("commit", "-m", "mine", "--json")
    assert ran.code == 3
    conflicts = ran.json["error"]["errorDetails"]["conflicts"]
    assert nessie("status", "--json").json["conflicts"] == conflicts
    assert all(conflict["resolutions"] for conflict in conflicts)
    for conflict in conflicts:
        for line, folder in zip(
            conflict["resolutions"], copies(tmp_path, len(conflict["resolutions"])), strict=True
        ):
            done = paste(line, folder)
            assert done.code == 0, f"{line}\n{done}"
            left = nessie("-C", str(folder), "status", "--json").json["conflicts"]
            assert conflict["key"] not in [other["key"] for other in left], line
            if len(conflicts) == 1:
                assert (
                    nessie("-C", str(folder), "commit", "-m", "now").code == 0
                    or "nothing is staged" in nessie("-C", str(folder), "status").out
                )
            shutil.rmtree(folder)
    assert not list(tmp_path.rglob("pwned"))


def changed(catalog) -> None:
    catalog.update("feature", "db.orders", 20)
    catalog.update("main", "db.orders", 30)


def deleted_there(catalog) -> None:
    catalog.update("feature", "db.orders", 20)
    catalog.drop("main", "db.orders")


def deleted_here(catalog) -> None:
    catalog.drop("feature", "db.orders")
    catalog.update("main", "db.orders", 30)


def created_twice(catalog) -> None:
    catalog.create("feature", "db.new", 20)
    catalog.create("main", "db.new", 30)


def other_type(catalog) -> None:
    catalog.commit("feature", "ns", Put(key("x"), Namespace(elements=("x",))))
    catalog.create("main", "x")


def renamed_there(catalog) -> None:
    catalog.rename("feature", "db.orders", "db.sales")
    catalog.update("feature", "db.sales", 20)
    catalog.update("main", "db.orders", 30)


def renamed_here(catalog) -> None:
    catalog.update("feature", "db.orders", 20)
    catalog.rename("main", "db.orders", "db.sales")
    catalog.update("main", "db.sales", 30)


def renamed_twice(catalog) -> None:
    catalog.rename("feature", "db.orders", "db.theirs")
    catalog.rename("main", "db.orders", "db.ours")


def deleted_and_renamed(catalog) -> None:
    catalog.drop("feature", "db.orders")
    catalog.rename("main", "db.orders", "db.ours")


def renamed_and_deleted(catalog) -> None:
    catalog.rename("feature", "db.orders", "db.theirs")
    catalog.drop("main", "db.orders")


def renamed_onto_another(catalog) -> None:
    catalog.rename("feature", "db.orders", "db.new")
    catalog.create("main", "db.new", 30)


def created_where_another_was_renamed(catalog) -> None:
    catalog.create("feature", "db.new", 30)
    catalog.rename("main", "db.orders", "db.new")


def swapped_and_changed(catalog) -> None:
    for old, new in (("db.orders", "t"), ("db.items", "db.orders"), ("t", "db.items")):
        catalog.rename("main", old, new)
    for name in ("db.orders", "db.items"):
        catalog.update("main", name, 30)
        catalog.update("feature", name, 20)


def namespace_gone(catalog) -> None:
    catalog.commit("feature", "ns", Put(key("db.sub"), Namespace(elements=("db", "sub"))))
    catalog.repository.merge("main", "feature")
    catalog.create("feature", "db.sub.t", 20)
    catalog.drop("main", "db.sub")


def namespace_filled(catalog) -> None:
    catalog.commit("main", "ns", Put(key("sub"), Namespace(elements=("sub",))))
    catalog.repository.merge("feature", "main")
    catalog.drop("feature", "sub")
    catalog.create("main", "sub.t", 30)


def odd_change(catalog) -> None:
    catalog.create("main", ODD, 1)
    catalog.repository.merge("feature", "main")
    catalog.update("feature", ODD, 20)
    catalog.update("main", ODD, 30)


MERGES = [
    changed,
    deleted_there,
    deleted_here,
    created_twice,
    other_type,
    renamed_there,
    renamed_here,
    renamed_twice,
    deleted_and_renamed,
    renamed_and_deleted,
    renamed_onto_another,
    created_where_another_was_renamed,
    swapped_and_changed,
    namespace_gone,
    namespace_filled,
    odd_change,
]


@pytest.mark.parametrize("verb", ["merge", "transplant"])
@pytest.mark.parametrize("make", MERGES)
def test_each_resolution_of_a_merge_resolves_its_conflict(
    nessie, catalog, paste, make, verb
) -> None:
    tmp_path = Path.cwd()
    catalog.branch("feature")
    make(catalog)
    argv = ["merge", "feature"] if verb == "merge" else ["transplant", "feature"]
    ran = nessie(*argv, "--json")
    assert ran.code == 3
    conflicts = ran.json["error"]["errorDetails"]["conflicts"]
    assert (
        nessie(*argv, "--dry-run", "--json").json["error"]["errorDetails"]["conflicts"] == conflicts
    )
    assert all(conflict["resolutions"] for conflict in conflicts)
    for conflict in conflicts:
        for line, folder in zip(
            conflict["resolutions"], copies(tmp_path, len(conflict["resolutions"])), strict=True
        ):
            done = paste(line, folder)
            assert done.code == 0 or len(conflicts) > 1, f"{line}\n{done}"
            if " content " in line:
                assert nessie("-C", str(folder), *argv).code == 0, line
            elif done.code == 0 and "--ours" not in line:
                with connect(str(folder / ".nessie" / "store.sqlite")) as repository:
                    assert repository.reference("main").hash != catalog.head("main")
            shutil.rmtree(folder)
    assert not list(tmp_path.rglob("pwned"))


def namespace_taken(catalog) -> None:
    catalog.branch("feature")
    catalog.drop("main", "n")
    catalog.create("main", "n", 1)
    catalog.create("feature", "n.t", 2)


def namespace_dropped(catalog) -> None:
    catalog.branch("feature")
    catalog.drop("main", "n")
    catalog.create("feature", "n.t", 2)


@pytest.mark.parametrize("case", [(namespace_taken, 2), (namespace_dropped, 1)])
def test_a_branch_that_changes_only_by_merges_is_prepared_by_another_one(
    nessie, catalog, tmp_path, paste, case
) -> None:
    make, steps = case
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    make(catalog)
    nessie("config", "set", "protect.main", "merge-only", "--repository")
    for _ in range(steps):
        (conflict,) = nessie("merge", "feature", "--json").error["errorDetails"]["conflicts"]
        (line,) = conflict["resolutions"]
        assert "(main changes only by merges)" in nessie("merge", "feature").err
        ran = paste(line, tmp_path)
        ran.expect(0)
    assert nessie("merge", "feature").code == 0
    assert catalog.snapshot("main", "n.t") == 2


def test_no_line_is_printed_that_a_protected_branch_refuses(nessie, catalog) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    namespace_dropped(catalog)
    nessie("config", "set", "protect.*", "merge-only", "--repository")
    (conflict,) = nessie("merge", "feature", "--json").error["errorDetails"]["conflicts"]
    assert conflict["conflictType"] == "NAMESPACE_ABSENT"
    assert conflict["resolutions"] == []


def test_without_a_workspace_the_lines_commit_by_themselves(
    nessie, catalog, tmp_path, paste
) -> None:
    store = tmp_path / "alone.sqlite"
    shutil.copytree(tmp_path / ".nessie", tmp_path / "kept")
    shutil.copy(tmp_path / "kept" / "store.sqlite", store)
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(tmp_path / ".nessie")
    words = (
        "--store",
        str(store),
        "content",
        "put",
        "new.t",
        "--type",
        "iceberg-table",
        "--metadata-location",
        "s3://t",
        "-m",
        "new",
    )
    ran = nessie("-C", str(outside), *words, "--json")
    assert ran.code == 3
    (line,) = ran.json["error"]["errorDetails"]["conflicts"][0]["resolutions"]
    assert paste(line, tmp_path).code == 0
    assert nessie("-C", str(outside), *words).code == 0


def test_the_lines_repeat_a_profile_and_a_reference(nessie, catalog, tmp_path, paste) -> None:
    catalog.branch("dev")
    (tmp_path / ".nessie").rename(tmp_path / "kept")
    nessie(
        "config",
        "set",
        "profile.work.store",
        f"sqlite:///{tmp_path / 'kept' / 'store.sqlite'}",
        "--user",
    )
    words = (
        "--profile",
        "work",
        "--ref",
        "dev",
        "content",
        "put",
        "new.t",
        "--type",
        "iceberg-table",
        "--metadata-location",
        "s3://t",
        "-m",
        "new",
    )
    (line,) = nessie(*words, "--json").error["errorDetails"]["conflicts"][0]["resolutions"]
    done = paste(line, tmp_path)
    assert (done.code, nessie(*words).code) == (0, 0), f"{line}\n{done}"


def test_the_lines_repeat_a_folder(nessie, catalog, tmp_path, tmp_path_factory, paste) -> None:
    nessie("content", "put", "db.orders", "--metadata-location", "s3://mine")
    catalog.update("main", "db.orders", 30)
    outside = tmp_path_factory.mktemp("outside")
    where = ("-C", str(tmp_path))
    lines = nessie(*where, "commit", "-m", "mine", "--json").error["errorDetails"]["conflicts"][0][
        "resolutions"
    ]
    assert len(lines) == 2
    done = paste(lines[0], outside)
    assert done.code == 0, f"{lines[0]}\n{done}"
    assert nessie(*where, "commit", "-m", "mine").code == 0
    assert (
        nessie(*where, "content", "show", "db.orders", "--json").json["content"]["metadataLocation"]
        == "s3://mine"
    )


def test_a_reference_that_moved_offers_the_command_with_its_hash(
    nessie, catalog, tmp_path, paste
) -> None:
    catalog.branch("dev")
    stale = catalog.head("dev")
    catalog.create("dev", "db.more")
    ran = nessie("branch", "-d", "dev", "--expected-hash", stale, "--json")
    assert ran.code == 5
    (line,) = ran.json["error"]["errorDetails"]["conflicts"][0]["resolutions"]
    assert paste(line, tmp_path).code == 0
    assert nessie("branch", "dev", "-l").code == 4


# -- reverts of main~1; main is a later change ---------------------------------------------------
def updated_since(catalog) -> str:
    catalog.update("main", "db.orders", 20)
    catalog.update("main", "db.orders", 30)
    return "main~1"


def dropped_since(catalog) -> str:
    catalog.update("main", "db.orders", 20)
    catalog.drop("main", "db.orders")
    return "main~1"


def made_again_since(catalog) -> str:
    catalog.drop("main", "db.orders")
    catalog.create("main", "db.orders", 30)
    return "main~1"


def renamed_since(catalog) -> str:
    catalog.update("main", "db.orders", 20)
    catalog.rename("main", "db.orders", "db.sales")
    return "main~1"


def updated_after_a_rename(catalog) -> str:
    catalog.rename("main", "db.orders", "db.sales")
    catalog.update("main", "db.sales", 30)
    return "main~1"


def taken_after_a_rename(catalog) -> str:
    catalog.rename("main", "db.orders", "db.sales")
    catalog.create("main", "db.orders", 30)
    return "main~1"


def namespace_filled_since(catalog) -> str:
    catalog.commit("main", "ns", Put(key("sub"), Namespace(elements=("sub",))))
    catalog.create("main", "sub.t", 30)
    return "main~1"


def namespace_dropped_since(catalog) -> str:
    catalog.commit("main", "ns", Put(key("sub"), Namespace(elements=("sub",))))
    catalog.create("main", "sub.t", 20)
    catalog.drop("main", "sub.t")
    catalog.drop("main", "sub")
    return "main~1"


def odd_since(catalog) -> str:
    catalog.create("main", ODD, 1)
    catalog.update("main", ODD, 20)
    catalog.update("main", ODD, 30)
    return "main~1"


def a_range_since(catalog) -> str:
    for snapshot in (10, 20):
        catalog.update("main", "db.orders", snapshot)
    catalog.drop("main", "db.items")
    catalog.update("main", "db.orders", 30)
    return "v1..main~1"


REVERTS = [
    updated_since,
    dropped_since,
    made_again_since,
    taken_after_a_rename,
    namespace_filled_since,
    namespace_dropped_since,
    odd_since,
    a_range_since,
]


@pytest.mark.parametrize(
    ("make", "name", "snapshot"),
    [(renamed_since, "db.sales", 1), (updated_after_a_rename, "db.orders", 30)],
)
def test_a_rename_and_a_change_are_reverted_apart(nessie, catalog, make, name, snapshot) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    assert nessie("revert", make(catalog)).code == 0
    after = catalog.repository.content("main", key(name))
    assert (after.id, after.snapshot_id) == (before.id, snapshot)
    assert [
        catalog.snapshot("main", other) for other in ("db.orders", "db.sales") if other != name
    ] == [None]


@pytest.mark.parametrize("make", REVERTS)
def test_each_resolution_of_a_revert_resolves_its_conflict(nessie, catalog, paste, make) -> None:
    tmp_path = Path.cwd()
    # By its hash: some of the lines commit, and then main~1 is another commit.
    what = make(catalog).replace("main~1", catalog.repository.resolve("main~1").hash)
    ran = nessie("revert", what, "--json")
    assert ran.code == 3, ran
    conflicts = ran.json["error"]["errorDetails"]["conflicts"]
    assert (
        nessie("revert", what, "--dry-run", "--json").json["error"]["errorDetails"]["conflicts"]
        == conflicts
    )
    assert all(conflict["resolutions"] for conflict in conflicts)
    for conflict in conflicts:
        for line, folder in zip(
            conflict["resolutions"], copies(tmp_path, len(conflict["resolutions"])), strict=True
        ):
            done = paste(line, folder)
            assert done.code == 0 or len(conflicts) > 1, (line, done.err)
            again = (
                nessie("-C", str(folder), "revert", what, "--json") if " content " in line else None
            )
            left = (
                again.json["error"]["errorDetails"]["conflicts"]
                if again and again.code == 3
                else []
            )
            assert conflict["key"] not in [other["key"] for other in left], line
            shutil.rmtree(folder)
    assert not list(tmp_path.rglob("pwned"))
