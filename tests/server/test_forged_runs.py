"""Records of runs that a caller makes up, and requests that outlive the command of a run."""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from nessie_cli import connect
from nessie_cli.errors import AlreadyExists, NotAllowed
from nessie_cli.model import CommitMeta, Put, ReferenceType
from nessie_cli.model.runs import PipelineRun, RunStage, RunState
from nessie_cli.repository import failed_runs
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.group_commit import Planned
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.runs.lifecycle import _SPACE, ActiveRun, id_of_key
from nessie_cli.runs.publication import check, publish
from nessie_cli.server.auth.run_rules import _REMEMBERED
from nessie_cli.server.http.messages import LARGE, Reply
from nessie_cli.server.nessie import runs as server_runs
from nessie_cli.server.pipeline.pipeline import Job
from tests.repository.runs import begun
from tests.repository.vocabulary import key, table
from tests.server.client import put
from tests.server.fence import LOADER, Fence, fence
from tests.server.guarding import write_rules

OURS = {"nessie-cli": "1"}
MANAGER = "role == 'guest' && (op.startsWith('VIEW') || op == 'MANAGE_RUNS')"
"""A rule by which guests may have runs, and write nothing."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Fence]:
    with fence(tmp_path, "rules", LOADER, MANAGER) as run:
        yield run


def sent(active: ActiveRun, version: int, **changes: Any) -> dict[str, Any]:
    return {"run": to_builtins(replace(active.run, **changes)), "version": version}


@pytest.mark.parametrize(
    "values",
    [
        {"head": "zzz"},
        {"head": "~1"},
        {"head": "main"},
        {"against": "A" * 64},
        {"result": "main"},
        {"tokens": ("é",)},
        {"expires": 2**63 - 1},
        {"expires": -1},
        {"ended": 10**30},
        {"tag": "a b"},
        {"command": ("x",) * 40_000},
        {"reason": "x" * 70_000},
    ],
    ids=lambda values: next(iter(values)),
)
def test_values_that_no_run_has_are_refused(run: Fence, values: dict[str, Any]) -> None:
    path = f"/api/v2/runs/{run.active.run.id}"
    answer = run.caller.send("PUT", path, sent(run.active, 2, **values), OURS)
    assert answer.status == 400, answer
    assert run.repository.runs.get(run.active.run.id) is not None


@pytest.mark.parametrize("values", [{"state": "failed"}, {"head": "ab" * 32}], ids=str)
def test_a_run_begins_as_running(run: Fence, values: dict[str, Any]) -> None:
    body = sent(run.active, 0, id="other", tokens=(), **values)
    run.caller.send("PUT", "/api/v2/runs/other", body, OURS).expect(400, "a new run is running")


def test_a_caller_has_a_number_of_runs(run: Fence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_runs, "MOST_RUNS", 2)
    begun(run.repository)
    with pytest.raises(Exception, match="there are 2 runs of this caller"):
        begun(run.repository)


def test_nobody_blocks_the_commits_of_others(run: Fence) -> None:
    """A guest claims that the commits of the loader are those of a failed run."""
    repository = run.repository
    base = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", base)
    head = repository.commit("dev", [Put(key("x"), table(1))], CommitMeta("x")).reference.hash
    access = run.access("eve", "guest")
    forged = {"id": "eve", "target": "main", "base": base, "tokens": (), "head": ""}
    guest = run.as_("eve", "guest")
    guest.send("PUT", "/api/v2/runs/eve", sent(run.active, 0, **forged), OURS).expect(200)
    failed = {**forged, "head": head, "state": RunState.FAILED}
    guest.send("PUT", "/api/v2/runs/eve", sent(run.active, 1, **failed), OURS).expect(200)
    with connect(f"{run.url}/api/v2", access=access) as eves:
        assert [each.run.head for each in eves.runs.all()] == [head]
    assert repository.merge("main", "dev").applied


def forged(run: Fence, name: str, head: str, **changes: Any) -> None:
    """Stores the record of a failed run whose commits are the whole history of `head`."""
    guest = run.as_(name, "guest")
    values = {"id": name, "target": "nowhere", "base": "", "tokens": (), "head": "", **changes}
    guest.send("PUT", f"/api/v2/runs/{name}", sent(run.active, 0, **values), OURS).expect(200)
    values |= {"head": head, "state": RunState.FAILED}
    guest.send("PUT", f"/api/v2/runs/{name}", sent(run.active, 1, **values), OURS).expect(200)


def test_nobody_takes_the_place_of_the_publication_of_others(run: Fence) -> None:
    """A guest uses up the request ids that follow from what others know of a run.

    The run was taken as published then, and its branch deleted.
    """
    write_rules(run.folder, [LOADER, "role == 'guest' && ref == 'dev'"])
    record = run.active.run
    run.repository.create_reference(ReferenceType.BRANCH, "dev", record.base)
    head = run.program.commit(run.branch, record.base, put("loaded")).body["targetBranch"]["hash"]
    run.active.end_command(0)
    check(run.active, lambda _head, _against: ())
    guest = run.as_("eve", "guest")
    for number, step in enumerate((f"publish {head}", "tag")):
        guessed = str(uuid.uuid5(_SPACE, f"{record.id} {record.began} {step}"))
        body = {"commitMeta": {"message": "m"}, "operations": [put(f"t{number}")]}
        headers = OURS | {"Nessie-Request-Id": guessed}
        path = f"/api/v2/trees/dev@{guest.head('dev')}/history/commit"
        guest.send("POST", path, body, headers).expect(200)
    assert run.active.published_commit() == ""
    publish(run.active, lambda *_: None, None, CommitMeta("m"))
    assert run.caller.get("/api/v2/trees/main/contents/loaded").status == 200


def test_no_record_is_made_for_a_branch_of_others(run: Fence) -> None:
    """Maintenance would delete the branch of an expired run, also for who may not delete it."""
    base = run.active.run.base
    run.repository.create_reference(ReferenceType.BRANCH, "run/mine", base)
    body = sent(run.active, 0, id="mine", tokens=(), expires=0)
    guest = run.as_("eve", "guest")
    guest.send("PUT", "/api/v2/runs/mine", body, OURS).expect(409, "run/mine")
    assert run.repository.reference("run/mine").hash == base


def test_a_run_does_not_begin_with_the_branch_of_others(run: Fence) -> None:
    """Others can know the id of a run with a key, and create its branch with their contents."""
    base, id_ = run.active.run.base, id_of_key("daily")
    run.repository.create_reference(ReferenceType.BRANCH, f"run/{id_}", base)
    run.repository.commit(f"run/{id_}", [Put(key("theirs"), table(1))], CommitMeta("x"))
    with pytest.raises(AlreadyExists, match=f"run/{id_}"):
        begun(run.repository, key="daily")
    assert run.repository.runs.get(id_) is None
    theirs = run.repository.reference(f"run/{id_}").hash
    run.repository.delete_reference(f"run/{id_}", expected_hash=theirs)
    # An earlier attempt of this run may have created the branch.
    first = begun(run.repository, key="daily")
    assert begun(run.repository, key="daily").head() == first.head() == base


def test_forged_records_cost_the_merges_of_others_nothing(
    run: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of a thousand records would let each merge read the whole history."""
    walked: list[str] = []
    walk = failed_runs._commits

    def spy(failed: PipelineRun, repository: ReadableRepository, until: float) -> Iterator[str]:
        walked.append(failed.id)
        return walk(failed, repository, until)

    monkeypatch.setattr(failed_runs, "_commits", spy)
    repository = run.repository
    base = repository.reference("main").hash
    for name in ("dev", "copy", "moved"):
        repository.create_reference(ReferenceType.BRANCH, name, base)
    head = repository.commit("dev", [Put(key("x"), table(1))], CommitMeta("x")).reference.hash
    forged(run, "eve", head)
    assert repository.merge("copy", "dev").applied
    assert repository.transplant("main", [head]).applied
    repository.assign_reference("moved", head, expected_hash=base, allow_failed_run=False)
    # The run of the caller is not walked either: its branch has none of these commits.
    assert walked == []


def test_comparing_with_own_failed_runs_takes_a_limited_time(
    run: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_runs, "MOST_SECONDS", -1)
    repository = run.repository
    base = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", base)
    repository.commit("dev", [Put(key("x"), table(1))], CommitMeta("x"))
    run.active.fail(RunStage.COMMAND, "no", head=base)
    with pytest.raises(NotAllowed, match="takes too long"):
        repository.merge("main", "dev")
    allowed = MergeOptions(allow_failed_run=True)
    assert repository.merge("main", "dev", allowed).applied


def test_commits_of_the_caller_are_guarded(run: Fence) -> None:
    run.program.commit(run.branch, run.active.head(), put("x")).expect(200)
    run.active.fail(RunStage.COMMAND, "no", head=run.active.head())
    with pytest.raises(NotAllowed, match="never published"):
        run.repository.merge("main", run.active.branch)


def test_others_learn_that_a_run_failed_but_not_its_text(run: Fence) -> None:
    """The text can be that of an exception, with values of rows."""
    run.program.commit(run.branch, run.active.head(), put("x")).expect(200)
    run.active.fail(RunStage.COMMAND, "no such user: ada@example.com", head=run.active.head())
    with pytest.raises(NotAllowed, match=r"ada@example\.com"):
        run.repository.merge("main", run.active.branch)
    with (
        connect(f"{run.url}/api/v2", access=run.access("root", "admin")) as others,
        pytest.raises(NotAllowed) as refused,
    ):
        others.merge("main", run.active.branch)
    assert f"commits of run {run.active.run.id} of etl" in refused.value.message
    assert "ada@" not in str((refused.value.message, refused.value.hint))


@pytest.mark.parametrize("end", ["check", "discarded"])
def test_a_request_that_outlives_the_command_writes_nothing(run: Fence, end: str) -> None:
    head = run.active.head()
    document = {"commitMeta": {"message": "late"}, "operations": [put("late")]}
    body = json.dumps(document).encode()
    address = urlsplit(run.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    with closing(connection):
        connection.putrequest("POST", f"/api/v2/trees/{run.branch}@{head}/history/commit")
        connection.putheader("Authorization", f"Bearer {run.token}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        # The server asks for the body after it has checked the token.
        assert b" 100 " in connection.sock.recv(1000)
        if end == "check":
            run.active.end_command(0)
        else:
            run.active.change(state=RunState.DISCARDED)
        connection.send(body)
        with connection.getresponse() as answer:
            assert answer.status == 403
    assert run.active.head() == head


def test_a_large_request_that_was_drafted_before_writes_nothing(
    run: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is drafted beside other writers. The command ends before the draft is written."""
    draft = Job.draft

    def end_behind(job: Job, repository: StoreRepository) -> Planned[Reply]:
        drafted = draft(job, repository)
        run.active.end_command(0)
        time.sleep(1.5 * _REMEMBERED)
        return drafted

    monkeypatch.setattr(Job, "draft", end_behind)
    head = run.active.head()
    late = run.program.commit(run.branch, head, put("late"), message="x" * LARGE)
    late.expect(403, f"a program of run {run.active.run.id}")
    assert run.active.head() == head
