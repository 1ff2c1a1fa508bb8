"""Files of real tables that become live after a mark are not deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from nessie_cli.errors import InvalidInput, ReferenceMoved
from nessie_cli.gc.apply import MarkResult, apply, approve
from nessie_cli.gc.marker import RepositoryMarker
from nessie_cli.gc.run import MarkDatasets, Run
from nessie_cli.gc.staged import staged_states
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Put,
)
from nessie_cli.workspace.batch import BatchFile, Staged, StagedBatch
from nessie_cli.workspace.folder import Workspace, make_workspace
from nessie_cli.workspace.stash import Stashed, StashFile
from tests.gc.lakes import ROWS, Shore, candidates, now, shore, silent


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Shore]:
    """`db.gone` was dropped. The commit `before` still has it, but not through the reflog."""
    with shore(tmp_path) as made:
        made.create("kept").append(ROWS)
        made.create("gone").append(ROWS)
        made.before = made.repository.reference("main").hash
        made.on().drop_table("db.gone")
        yield made


class Meanwhile(RepositoryMarker):
    """A marker that calls a function immediately after its mark."""

    happens: Callable[[], object]

    def mark(self, marks: MarkDatasets) -> MarkResult:
        found = super().mark(marks)
        self.happens()
        return found


def applied(lake: Shore, run: Run, happens: Callable[[], object], **options: object) -> None:
    marker = Meanwhile(lake.repository, run.info.settings, {}, silent, **options)
    marker.happens = happens
    with run.changing():
        approve(run, "Ann", now())
        apply(run, marker, {}, now, lambda _done, _total: None)


def content(lake: Shore) -> IcebergTable:
    found = lake.repository.content(f"@{lake.before}", ContentKey(("db", "gone")))
    assert isinstance(found, IcebergTable)
    return structs.replace(found, id=None)


def data_files(lake: Shore) -> set[str]:
    return {path for path in lake.files() if path.startswith(f"{lake.warehouse}/db/gone/data/")}


@pytest.mark.parametrize("way", ["branch", "tag", "assign", "commit"])
def test_a_table_restored_between_the_mark_and_the_deletion_is_kept(lake, way):
    run = lake.planned(lake.settings("1"))
    before, data = lake.files(), data_files(lake)
    assert data <= set(candidates(run))

    def undo() -> None:
        main = lake.repository.reference("main").hash
        match way:
            case "branch" | "tag":
                lake.repository.create_reference(way.upper(), "rescue", lake.before)
            case "assign":
                lake.repository.assign_reference("main", lake.before, expected_hash=main)
            case "commit":
                lake.repository.commit(
                    "main",
                    [Put(ContentKey(("db", "back")), content(lake))],
                    CommitMeta("it is back"),
                )

    with pytest.raises(ReferenceMoved, match=r"db\.(gone|back) on (rescue|main) has become live"):
        applied(lake, run, undo)
    assert lake.files() == before
    with run.changing():
        apply(run, lake.marker(run), {}, now, lambda _done, _total: None)
    assert data_files(lake) == data
    assert lake.files() < before, "the other candidates are gone"


def test_a_commit_without_candidates_stops_nothing(lake):
    run = lake.planned(lake.settings("1"))

    def write() -> None:
        lake.on().load_table("db.kept").append(ROWS)
        lake.create("new")
        lake.repository.create_reference("BRANCH", "other", lake.repository.reference("main").hash)

    applied(lake, run, write)
    assert data_files(lake) == set()
    assert len(lake.on().load_table("db.kept").scan().to_arrow()) == 9


@pytest.mark.parametrize("broken", ["metadata", "manifest", "another format"])
def test_an_unreadable_content_that_is_restored_protects_its_location(lake, broken):
    run = lake.planned(lake.settings("1"))
    table = content(lake)
    before = lake.files()
    damaged = Path(table.metadata_location)

    def undo() -> None:
        if broken == "another format":
            location = f"{lake.warehouse}/db/gone/_delta_log/1.json"
            delta = DeltaLakeTable(
                metadata_location_history=(location,),
                checkpoint_location_history=(),
                last_checkpoint=None,
            )
            lake.repository.commit(
                "main",
                [Put(ContentKey(("db", "delta")), delta)],
                CommitMeta("a table of another format there"),
            )
            return
        lake.repository.create_reference("BRANCH", "rescue", lake.before)
        path = damaged
        if broken == "manifest":
            path = next(
                path for path in damaged.parent.glob("*.avro") if not path.name.startswith("snap-")
            )
        path.write_bytes(b"{")

    with pytest.raises(ReferenceMoved, match="has become live"):
        applied(lake, run, undo)
    assert lake.files() == before


def test_a_manifest_that_the_mark_could_not_read_is_read_again(lake):
    """Two tables share it. The second one has another location and is restored after the mark."""
    kept = lake.on().load_table("db.kept")
    torn = Path(kept.current_snapshot().manifests(kept.io)[0].manifest_path)
    run = lake.planned(lake.settings("1"))
    torn.write_bytes(b"no Avro")
    elsewhere = lake.warehouse / "db" / "gone" / "metadata" / "other.metadata.json"
    elsewhere.write_text(
        Path(kept.metadata_location)
        .read_text()
        .replace(f'{lake.warehouse}/db/kept"', f'{lake.warehouse}/db/gone"')
    )
    before = lake.files()
    other = IcebergTable(metadata_location=str(elsewhere), snapshot_id=-1)
    with pytest.raises(ReferenceMoved, match=r"db\.other on main"):
        applied(
            lake,
            run,
            lambda: lake.repository.commit(
                "main", [Put(ContentKey(("db", "other")), other)], CommitMeta("shares")
            ),
        )
    assert lake.files() == before


def test_a_table_staged_between_the_mark_and_the_deletion_is_kept(lake, tmp_path):
    run = lake.planned(lake.settings("1"))
    workspace = make_workspace(tmp_path, None)
    batch = StagedBatch(NO_ANCESTOR, (Staged(Put(ContentKey(("db", "back")), content(lake))),))
    before = lake.files()
    with pytest.raises(ReferenceMoved, match=r"db\.back on the staged batch"):
        applied(
            lake,
            run,
            lambda: BatchFile(workspace).write(batch),
            staged=lambda: staged_states(workspace),
        )
    assert lake.files() == before


def test_becoming_live_needs_a_mark(lake):
    run = lake.planned(lake.settings("1"))
    with pytest.raises(InvalidInput, match="nothing has been marked"):
        list(lake.marker(run).revived())


def test_verification_covers_all_objects_of_the_roots(lake):
    run = lake.planned(lake.settings("1"))
    verified = lake.marker(run).verify()
    assert verified is not None
    assert verified > 10
    lake.repository.create_reference("BRANCH", "rescue", lake.before)
    assert lake.marker(run).verify() == verified, "it is an ancestor of main"


# -- what is staged -------------------------------------------------------------------------------


def table(number: int) -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/{number}.json", snapshot_id=number)


def batch_of(*numbers: int) -> StagedBatch:
    return StagedBatch(
        NO_ANCESTOR,
        tuple(Staged(Put(ContentKey((f"t{number}",)), table(number))) for number in numbers),
    )


def staged(workspace: Workspace) -> set[tuple[str, str]]:
    found = list(staged_states(workspace))
    assert all(state.live and state.content_id == "" for state in found), (
        "they are new, so they have no id yet"
    )
    return {(state.reference, state.metadata_location) for state in found}


def test_all_staged_and_stashed_states_are_yielded(tmp_path):
    workspace = make_workspace(tmp_path, None)
    assert staged(workspace) == set()
    view = IcebergView(metadata_location="s3://lake/view.json", version_id=1, schema_id=0)
    delta = DeltaLakeTable(
        metadata_location_history=("s3://lake/delta.json",),
        checkpoint_location_history=(),
        last_checkpoint=None,
    )
    others = (
        Staged(Put(ContentKey(("v",)), view)),
        Staged(Put(ContentKey(("l",)), delta)),
        Staged(Put(ContentKey(("ns",)), Namespace(elements=("ns",)))),
        Staged(Delete(ContentKey(("d",))), table(9)),
    )
    BatchFile(workspace).write(StagedBatch(NO_ANCESTOR, (*batch_of(1).staged, *others)))
    stashes = StashFile(workspace)
    stashes.push(Stashed(batch_of(2), "", "main", now()))
    stashes.push(Stashed(batch_of(3, 4), "", "main", now()))
    assert staged(workspace) == {
        ("the staged batch", "s3://lake/1.json"),
        ("the staged batch", "s3://lake/view.json"),
        ("the staged batch", "s3://lake/delta.json"),
        ("stash 1", "s3://lake/2.json"),
        ("stash 0", "s3://lake/3.json"),
        ("stash 0", "s3://lake/4.json"),
    }


@pytest.mark.parametrize("way", ["push", "pop"])
def test_a_batch_stashed_meanwhile_is_yielded(tmp_path, way):
    workspace = make_workspace(tmp_path, None)
    stashes, file = StashFile(workspace), BatchFile(workspace)
    stashed, other = (Stashed(batch_of(number), "", "main", now()) for number in (1, 2))
    stashes.push(other)
    if way == "push":
        file.write(batch_of(1))
    else:
        stashes.push(stashed)
    staged = staged_states(workspace)
    # The first stash has been read when the first state is yielded.
    found = {next(staged).metadata_location}
    if way == "push":
        stashes.push(stashed)
        file.write(None)
    else:
        file.write(batch_of(1))
        stashes.drop(0)
    found |= {state.metadata_location for state in staged}
    assert found == {"s3://lake/1.json", "s3://lake/2.json"}
