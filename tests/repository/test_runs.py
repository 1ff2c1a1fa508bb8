"""The records of runs, and the guard against failed runs: embedded and at a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from nessie_cli.errors import NotAllowed, NotFound, ReferenceNotFound
from nessie_cli.model.runs import PipelineRun, RunStage, RunState
from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.failed_runs import is_guarding
from nessie_cli.repository.opening import connect, create
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.remote.opening import open_remote
from nessie_cli.repository.runs import RunRecord
from nessie_cli.runs import lifecycle
from nessie_cli.runs.lifecycle import ActiveRun, expire_branches, id_of_key, join
from tests.repository.runs import begun, failed
from tests.repository.servers import Servers
from tests.repository.vocabulary import Catalog
from tests.store.postgres_server import new_url

ALLOWED = MergeOptions(allow_failed_run=True)
REFUSED = "the source has commits of run"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


@pytest.fixture
def address(servers: Servers, tmp_path: Path) -> Iterator[str]:
    """The address of a server over a new store."""
    url = f"sqlite:///{tmp_path}/store.sqlite"
    create(url).close()
    with servers.serving(url) as address:
        yield address


@pytest.fixture(params=["memory", "postgres", "server"])
def repository(request: pytest.FixtureRequest) -> Iterator[Repository]:
    if request.param == "memory":
        with connect("memory:") as opened:
            yield opened
    elif request.param == "postgres":
        with new_url() as url, create(url) as opened:
            yield opened
    else:
        with connect(request.getfixturevalue("address")) as opened:
            yield opened


@pytest.fixture
def catalog(repository: Repository) -> Catalog:
    """The repository, with a table on main."""
    found = Catalog(repository)
    found.write("main", {"t": 1})
    return found


def refuses(catalog: Catalog, source: str, target: str = "main") -> bool:
    """Whether a merge is refused because of a failed run; otherwise it is made."""
    before = catalog.head(target)
    try:
        catalog.repository.merge(target, catalog.hash(source))
    except NotAllowed as error:
        return error.message.startswith(REFUSED) and catalog.head(target) == before
    return False


# -- records -------------------------------------------------------------------------------------


def test_a_record_is_returned_unchanged(catalog: Catalog) -> None:
    active = begun(catalog.repository, key="nightly", tag="v1")
    record = catalog.repository.runs.get(active.run.id)
    assert record is not None
    assert record.run == active.run
    assert (record.run.base, record.run.state, record.run.key, record.run.tag) == (
        catalog.head(),
        RunState.RUNNING,
        "nightly",
        "v1",
    )
    assert catalog.head(active.branch) == catalog.head()


def test_records_are_listed_by_time_and_state(catalog: Catalog) -> None:
    records = catalog.repository.runs
    runs = [
        PipelineRun(id=id_, target="main", base=catalog.head(), who="", began=began, expires=9)
        for id_, began in (("b", 1), ("a", 2), ("c", 2))
    ]
    for run in reversed(runs):
        assert records.put(RunRecord(run)) is not None
    assert [record.run.id for record in records.all()] == ["b", "a", "c"]
    assert records.all(RunState.FAILED) == []
    assert len(records.all(RunState.RUNNING)) == 3


def test_of_two_changes_of_one_version_the_second_is_not_stored(catalog: Catalog) -> None:
    records = catalog.repository.runs
    active = begun(catalog.repository)
    record = records.get(active.run.id)
    assert record is not None
    active.change(reason="first")
    assert records.put(RunRecord(replace(record.run, reason="second"), record.version)) is None
    assert records.put(RunRecord(record.run)) is None, "it is not new"
    stored = records.get(active.run.id)
    assert stored is not None
    assert stored.run.reason == "first"


def test_a_deleted_record_is_gone(catalog: Catalog) -> None:
    active = begun(catalog.repository)
    catalog.repository.runs.delete(active.run.id)
    assert catalog.repository.runs.get(active.run.id) is None
    with pytest.raises(NotFound, match=f"there is no run {active.run.id}"):
        join(catalog.repository, active.run.id)


def test_one_run_has_a_key(catalog: Catalog) -> None:
    first = begun(catalog.repository, key="dag/2026-11-30")
    catalog.write("main", {"t": 2})
    second = begun(catalog.repository, key="dag/2026-11-30")
    assert second.run == first.run
    assert begun(catalog.repository, key="dag/2026.11.30").run.id != first.run.id


def test_a_run_whose_process_died_before_its_branch_gets_it(catalog: Catalog) -> None:
    run = PipelineRun(
        id=id_of_key("k"),
        target="main",
        base=catalog.head(),
        who="",
        key="k",
        began=1,
        expires=2**33,
    )
    assert catalog.repository.runs.put(RunRecord(run)) is not None
    assert begun(catalog.repository, key="k").head() == run.base


def test_expired_branches_are_deleted_with_their_records(catalog: Catalog) -> None:
    old, young = failed(catalog.repository, "a"), failed(catalog.repository, "b")
    old.change(expires=1_000)
    assert [run.id for run in expire_branches(catalog.repository)] == [old.run.id]
    with pytest.raises(ReferenceNotFound):
        old.head()
    assert young.head()
    assert [record.run.id for record in catalog.repository.runs.all()] == [young.run.id]


def forged(catalog: Catalog, who: str, number: int) -> PipelineRun:
    """Stores an expired record that claims the whole history, which a caller of a server made."""
    run = PipelineRun(
        id=f"{who}{number}",
        target="nowhere",
        base="",
        who=who,
        began=number,
        expires=1,
        state=RunState.FAILED,
        head=catalog.head(),
        is_remote=True,
    )
    assert catalog.repository.runs.put(RunRecord(run)) is not None
    return run


@pytest.mark.parametrize("repository", ["memory"], indirect=True)
def test_forged_records_are_compared_for_a_limited_time(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = failed(catalog.repository, "a")
    own.change(expires=1_000)
    records = [forged(catalog, who, number) for who in ("eve", "bob") for number in range(3)]
    reported: list[str] = []
    monkeypatch.setattr(lifecycle, "MOST_SECONDS", -1)
    expired = expire_branches(
        catalog.repository, report=lambda run, error: reported.append(f"{run.id}: {error.message}")
    )
    assert [run.id for run in expired] == [own.run.id], "a record of this machine is not limited"
    assert len(reported) == len(records)
    assert "comparing the commits of the runs of bob takes longer than" in reported[0]
    monkeypatch.undo()

    left: dict[str, list[float]] = {}

    def spy(repository: ReadableRepository, run: PipelineRun, until: float) -> bool:
        left.setdefault(run.who, []).append(until - time.monotonic())
        time.sleep(0.01)
        return is_guarding(repository, run, until)

    monkeypatch.setattr(lifecycle, "is_guarding", spy)
    assert len(expire_branches(catalog.repository)) == len(records)
    for times in left.values():
        assert times == sorted(times, reverse=True), "the time is for all runs of a caller"
        assert times[0] > lifecycle.MOST_SECONDS - 1, "and not for those of others"


# -- the guard -----------------------------------------------------------------------------------


def test_the_branch_of_a_failed_run_is_not_merged(catalog: Catalog) -> None:
    run = failed(catalog.repository, "a", "b")
    assert refuses(catalog, run.branch)
    with pytest.raises(NotAllowed, match=f"{REFUSED} {run.run.id}.*exit code 2"):
        catalog.repository.transplant("main", [run.head()])
    catalog.repository.merge("main", run.head(), ALLOWED)
    assert catalog.numbers() == {"t": 1, "a": 10, "b": 11}


def test_a_transplant_of_its_commits_can_be_allowed(catalog: Catalog) -> None:
    run = failed(catalog.repository, "a", "b")
    catalog.repository.transplant("main", [run.head()], ALLOWED)
    assert catalog.numbers() == {"t": 1, "b": 11}


def test_the_commits_count_and_not_the_name_of_the_branch(catalog: Catalog) -> None:
    """Other branches begin at the end of the run, in the middle of it, and at its base."""
    run = failed(catalog.repository, "a", "b")
    middle = catalog.log(run.branch)[1].hash
    for name, start in (("end", run.head()), ("middle", middle), ("base", run.run.base)):
        catalog.branch(name, start)
        catalog.write(name, {name: 7})
    assert refuses(catalog, "end")
    assert refuses(catalog, "middle")
    assert not refuses(catalog, "base")
    assert catalog.numbers() == {"t": 1, "base": 7}


def test_deleting_the_branch_does_not_help(catalog: Catalog) -> None:
    run = failed(catalog.repository, "a")
    catalog.branch("copy", run.branch)
    run.discard()
    with pytest.raises(ReferenceNotFound):
        run.head()
    assert refuses(catalog, "copy")


def test_commits_after_the_end_of_a_failed_command_are_refused_too(catalog: Catalog) -> None:
    run = failed(catalog.repository, "a")
    catalog.write(run.branch, {"late": 1})
    assert refuses(catalog, run.branch)


def test_a_branch_that_has_merged_the_failed_run_is_refused(catalog: Catalog) -> None:
    run = failed(catalog.repository, "a")
    catalog.branch("dev")
    assert refuses(catalog, run.branch, "dev")
    catalog.repository.merge("dev", run.head(), ALLOWED)
    assert refuses(catalog, "dev")


def merged_with_main(catalog: Catalog, **changes: object) -> ActiveRun:
    """Returns a failed run that has merged commits of main, as before a second check."""
    run = begun(catalog.repository)
    catalog.write(run.branch, {"a": 4})
    catalog.write("main", {"b": 2})
    catalog.write("main", {"c": 3})
    target = catalog.head()
    catalog.repository.merge(run.branch, target)
    run.change(**{"head": run.head(), "against": target, **changes})
    run.fail(RunStage.CHECK, "check failed: sql: SELECT 1")
    return run


def test_commits_of_the_target_are_no_commits_of_the_run(catalog: Catalog) -> None:
    """Branches that begin on main between the base of the run and what it has merged."""
    catalog.branch("other")
    run = merged_with_main(catalog)
    for number, entry in enumerate(catalog.log()):
        catalog.branch(f"dev{number}", entry.hash)
        catalog.write(f"dev{number}", {f"d{number}": 20 + number})
        assert not refuses(catalog, f"dev{number}", "other")
    assert refuses(catalog, run.branch)
    assert refuses(catalog, run.branch, "other")


def test_the_merge_itself_is_a_commit_of_the_run(catalog: Catalog) -> None:
    run = merged_with_main(catalog)
    catalog.branch("dev", run.head())
    catalog.write("dev", {"d": 20})
    assert refuses(catalog, "dev")


def test_a_run_killed_between_the_merge_of_main_and_its_record(catalog: Catalog) -> None:
    run = merged_with_main(catalog, head="", against="")
    run.change(head=run.head(), against=run.run.base)
    catalog.branch("other", run.run.base)
    catalog.branch("dev")
    assert not refuses(catalog, "dev", "other")
    assert refuses(catalog, run.branch)


def test_published_and_unrelated_branches_merge(catalog: Catalog) -> None:
    failed(catalog.repository, "x")
    run = begun(catalog.repository)
    catalog.write(run.branch, {"a": 4})
    catalog.branch("copy", run.branch)
    run.change(state=RunState.PUBLISHED)
    assert not refuses(catalog, "copy")


def test_a_failed_run_that_main_has_accepted_is_no_longer_refused(catalog: Catalog) -> None:
    run = failed(catalog.repository, "a")
    catalog.branch("old")
    catalog.repository.merge("main", run.head(), ALLOWED)
    catalog.branch("dev")
    catalog.write("dev", {"d": 20})
    assert not refuses(catalog, "dev"), "main has these commits already"


def test_a_failed_run_without_commits_forbids_nothing(catalog: Catalog) -> None:
    failed(catalog.repository)
    catalog.branch("dev")
    catalog.write("dev", {"d": 20})
    assert not refuses(catalog, "dev")


def test_a_run_that_was_killed_during_its_command_is_refused(catalog: Catalog) -> None:
    """Its record still says that it is running."""
    run = begun(catalog.repository)
    catalog.write(run.branch, {"a": 4})
    assert refuses(catalog, run.branch)
    catalog.branch("copy", run.branch)
    assert refuses(catalog, "copy")
    run.end_command(0)
    assert refuses(catalog, run.branch), "its checks are to come"
    run.change(stage=RunStage.PUBLISH)
    assert not refuses(catalog, run.branch), "its publication is to come"


# -- plain REST ----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [None, "true"])
def test_plain_rest_has_its_own_rules_unless_a_setting_says_otherwise(
    address: str, setting: str | None
) -> None:
    with (
        connect(address) as ours,
        open_remote(address, Access(), lambda size: b"r" * size, extensions=False) as plain,
    ):
        catalog = Catalog(ours)
        catalog.write("main", {"t": 1})
        run = failed(ours, "a", "b")
        if setting:
            ours.put_setting("refuse-failed-runs", setting)
        catalog.branch("copy", run.branch)
        assert refuses(Catalog(plain), "copy") == bool(setting)
        if setting:
            with pytest.raises(NotAllowed, match=REFUSED):
                plain.transplant("main", [run.head()])
            assert catalog.numbers() == {"t": 1}


# -- other ways to commits of a failed run ---------------------------------------------------------


@pytest.mark.parametrize("stage", [RunStage.COMMAND, RunStage.CHECK])
def test_a_run_whose_process_was_killed_is_refused(catalog: Catalog, stage: RunStage) -> None:
    active = begun(catalog.repository)
    catalog.write(active.branch, {"u": 1})
    active.change(stage=stage, head="" if stage is RunStage.COMMAND else active.head())
    assert refuses(catalog, active.branch)


def test_a_run_that_waits_for_its_publication_is_merged(catalog: Catalog) -> None:
    active = begun(catalog.repository)
    catalog.write(active.branch, {"u": 1})
    active.change(stage=RunStage.CHECK, head=active.head())
    active.ready()
    assert not refuses(catalog, active.branch)


def test_a_branch_is_not_moved_to_a_failed_run(catalog: Catalog) -> None:
    repository, active = catalog.repository, failed(catalog.repository, "u")
    before, source = catalog.head(), active.head()
    with pytest.raises(NotAllowed, match=REFUSED):
        repository.assign_reference("main", source, expected_hash=before)
    catalog.branch("other", active.branch)
    catalog.write("other", {"later": 1})
    with pytest.raises(NotAllowed, match=REFUSED):
        repository.assign_reference("main", catalog.head("other"), expected_hash=before)
    # Back, and the branch of the run itself.
    repository.assign_reference("other", before, expected_hash=catalog.head("other"))
    repository.assign_reference(active.branch, before, expected_hash=source)
    repository.assign_reference(active.branch, source, expected_hash=before)
    assert catalog.head() == before
    moved = repository.assign_reference("main", source, expected_hash=before, allow_failed_run=True)
    assert moved.hash == catalog.head() == source


@pytest.mark.parametrize("setting", [None, "true"])
def test_plain_rest_moves_branches_as_the_original_does(address: str, setting: str | None) -> None:
    with (
        connect(address) as ours,
        open_remote(address, Access(), lambda size: b"r" * size, extensions=False) as plain,
    ):
        catalog = Catalog(ours)
        before = catalog.write("main", {"t": 1})
        source = failed(ours, "a").head()
        if setting:
            ours.put_setting("refuse-failed-runs", setting)
            with pytest.raises(NotAllowed, match=REFUSED):
                plain.assign_reference("main", source, expected_hash=before)
            assert catalog.head() == before
        else:
            assert plain.assign_reference("main", source, expected_hash=before).hash == source
