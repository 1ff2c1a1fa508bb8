"""`nessie stats --sizes --by-branch`: bytes that one branch holds alone, and small files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.lake import Lake
from tests.command.in_process import InProcess

SIZES = ("stats", "--sizes", "--by-branch")


def tables(nessie: InProcess, *more: str) -> dict[str, dict[str, Any]]:
    """Returns the table db.t by branch."""
    ran = nessie(*SIZES, "--json", *more)
    assert ran.code == 0, ran.err
    return {each["branch"]: each for each in ran.json["branches"]}


def size_of(paths: set[Path]) -> int:
    """Returns the bytes of new data files and manifests, which are counted."""
    return sum(path.stat().st_size for path in paths if is_counted(path))


def is_counted(path: Path) -> bool:
    return path.suffix == ".parquet" or (path.suffix == ".avro" and "snap-" not in path.name)


def test_branches_that_share_everything_hold_nothing_alone(nessie: InProcess, lake: Lake) -> None:
    found = tables(nessie)
    assert {name: each["onlyHere"] for name, each in found.items()} == {"main": 0, "dev": 0}
    (data,) = lake.data_files()
    assert found["dev"]["files"] == found["dev"]["smallFiles"] == 1
    assert found["dev"]["bytes"] == data.stat().st_size
    assert found["dev"]["oldestSnapshot"] == found["main"]["oldestSnapshot"] is not None
    assert nessie(*SIZES, "--json").json["sizes"]["largest"][0]["oldestSnapshot"] is not None


def test_new_files_belong_to_their_branch_until_it_is_merged(nessie: InProcess, lake: Lake) -> None:
    before = lake.files()
    lake.append("dev", 20, 21)
    own = size_of(lake.files() - before)
    found = tables(nessie)
    assert (found["main"]["onlyHere"], found["dev"]["onlyHere"]) == (0, own)
    assert (found["main"]["files"], found["dev"]["files"]) == (1, 2)
    assert nessie("merge", "dev").code == 0
    assert tables(nessie)["dev"]["onlyHere"] == 0


def test_a_file_of_two_branches_counts_for_none(nessie: InProcess, lake: Lake) -> None:
    before = lake.files()
    lake.append("dev", 20)
    dev = size_of(lake.files() - before)
    assert nessie("branch", "copy", "dev").code == 0
    lake.append("copy", 30)
    found = tables(nessie)
    assert found["dev"]["onlyHere"] == 0
    assert found["copy"]["onlyHere"] > 0
    assert nessie("branch", "-D", "copy").code == 0
    # The reflog can restore the deleted branch, so the files are not those of dev alone.
    assert tables(nessie)["dev"]["onlyHere"] == 0
    assert dev > 0


def test_what_a_branch_replaced_is_still_its_own(nessie: InProcess, lake: Lake) -> None:
    before = lake.files()
    lake.append("dev", 20)
    with lake.table("dev") as table:
        table.overwrite(table.scan().to_arrow())
    own = size_of(lake.files() - before)
    assert tables(nessie)["dev"]["onlyHere"] == own
    # Also when the branch has moved back: its reflog holds the commits.
    assert nessie("branch", "-f", "dev", "main").code == 0
    assert tables(nessie)["dev"]["onlyHere"] == own


def test_a_tag_is_another_holder(nessie: InProcess, lake: Lake) -> None:
    lake.append("dev", 20)
    assert tables(nessie)["dev"]["onlyHere"] > 0
    assert nessie("tag", "v1", "dev").code == 0
    assert tables(nessie)["dev"]["onlyHere"] == 0


def test_small_is_a_number_of_bytes(nessie: InProcess, lake: Lake) -> None:
    (data,) = lake.data_files()
    size = data.stat().st_size
    assert tables(nessie, "--small", str(size))["main"]["smallFiles"] == 0
    assert tables(nessie, "--small", str(size + 1))["main"]["smallFiles"] == 1


def test_the_table_for_people_and_its_limit(nessie: InProcess, lake: Lake) -> None:
    lake.append("dev", 20)
    ran = nessie(*SIZES, "-n", "1")
    assert ran.code == 0
    assert "Tables by branch\nBRANCH" in ran.out
    assert ran.lines[-1].startswith("dev")
    assert "1 table of branches not shown (-n)" in ran.err


def test_a_file_that_cannot_be_read_is_named(nessie: InProcess, lake: Lake) -> None:
    lake.append("dev", 20)
    with lake.table("dev") as table:
        snapshot = table.current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifest_list).unlink()
    found = tables(nessie)["dev"]
    assert found["onlyHere"] is None
    assert "no such file" in found["problem"]
    assert "no such file" in nessie(*SIZES).err


def test_it_needs_sizes(nessie: InProcess, lake: Lake) -> None:
    ran = nessie("stats", "--by-branch")
    assert (ran.code, ran.err) == (2, "nessie: --by-branch needs --sizes\n")
    assert lake.ids("main")
