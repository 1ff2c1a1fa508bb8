"""The fence around the programs of a run at a server, and the records of its callers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from nessie_cli import connect, create
from nessie_cli.errors import InvalidInput, NotAllowed, NotFound
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import CommitMeta, Put, Secret
from nessie_cli.model.runs import RunStage
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.repository.runs import TOKEN_LIFE, RunRecord
from nessie_cli.runs.lifecycle import ActiveRun, join
from nessie_cli.server.auth.issuer import LEEWAY
from nessie_cli.server.auth.tokens import add_token
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.wire.extensions import SETTINGS
from tests.repository.runs import begun
from tests.repository.vocabulary import key, table
from tests.server.client import Answer, put
from tests.server.fence import KINDS, LOADER, Fence, fence
from tests.server.guarding import TokenClient
from tests.server.iceberg_rest.lake import IcebergClient
from tests.server.processes import started
from tests.server.test_jwt import token as json_web_token

OURS = {"nessie-cli": "1"}
FORBIDDEN = 403


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fence]:
    """A run at each kind of server."""
    with fence(tmp_path, request.param) as found:
        yield found


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Fence]:
    """A run at a server with rules."""
    with fence(tmp_path, "rules") as found:
        yield found


def states(run: Fence) -> dict[str, str]:
    """The heads of all references but the branch of the run."""
    return {
        reference.name: reference.hash
        for reference in run.repository.references()
        if reference.name != run.active.branch
    }


def writes(run: Fence, ref: str) -> dict[str, Answer]:
    """The answers to all writes of contents on a reference, as the program requests them."""
    program, name = run.program, ref.replace("/", "%2F")
    head = program.head(name)
    from_ = "main" if ref != "main" else run.active.branch
    source = program.head(from_.replace("/", "%2F"))
    iceberg = run.iceberg(name)
    loaded = run.iceberg("main").load("db", "t").body
    changes = [
        {
            "identifier": {"namespace": ["db"], "name": table},
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"c": "d"}}],
        }
        for table in ("t", "u")
    ]
    return {
        "commit v2": program.commit(name, head, put(f"v2-{ref}")),
        "commit v1": program.commit(name, program.head(name), put(f"v1-{ref}"), version=1),
        "namespace": iceberg.namespace("more"),
        "create table": iceberg.create("db", "new"),
        "commit table": iceberg.set_properties("db", "t"),
        "transaction": iceberg.post("/transactions/commit", {"table-changes": changes}),
        "register": iceberg.post(
            "/namespaces/db/register",
            {"name": "registered", "metadata-location": loaded["metadata-location"]},
        ),
        "view": iceberg.view("db", "v"),
        "rename": iceberg.post(
            "/tables/rename",
            {
                "source": {"namespace": ["db"], "name": "t"},
                "destination": {"namespace": ["db"], "name": "t2"},
            },
        ),
        "drop": iceberg.send("DELETE", "/namespaces/db/tables/u"),
        "merge": program.send(
            "POST",
            f"/api/v2/trees/{name}@{program.head(name)}/history/merge",
            {"fromRefName": from_, "fromHash": source},
            OURS,
        ),
        "merge v1": program.send(
            "POST",
            f"/api/v1/trees/branch/{name}/merge?expectedHash={program.head(name)}",
            {"fromRefName": from_, "fromHash": source},
        ),
        "transplant": program.send(
            "POST",
            f"/api/v2/trees/{name}@{program.head(name)}/history/transplant",
            {"fromRefName": from_, "hashesToTransplant": [source]},
        ),
    }


def references(run: Fence, ref: str) -> dict[str, Answer]:
    """The answers to all requests that move or create references, and to changes of settings."""
    program, name = run.program, ref.replace("/", "%2F")
    head, base = program.head(name), run.active.run.base
    branch = {"type": "BRANCH", "name": ref, "hash": base}
    return {
        "create branch": program.send("POST", "/api/v2/trees?name=mine&type=BRANCH", branch),
        "create tag": program.send("POST", "/api/v2/trees?name=v1&type=TAG", branch),
        "create v1": program.send(
            "POST", f"/api/v1/trees/tree?sourceRefName={name}", {**branch, "name": "mine"}
        ),
        "assign": program.send("PUT", f"/api/v2/trees/{name}@{head}", branch),
        "rename": program.send("POST", f"/api/v2/trees/{name}@{head}/rename?to=mine", None, OURS),
        "delete": program.send("DELETE", f"/api/v2/trees/{name}@{head}"),
        "delete v1": program.send("DELETE", f"/api/v1/trees/branch/{name}?expectedHash={head}"),
        "settings": program.send(
            "POST",
            "/api/v2/config/repository",
            {"config": {"type": SETTINGS, "settings": {"protect.main": "no-delete"}}},
            OURS,
        ),
        "configuration": program.send(
            "POST",
            "/api/v2/config/repository",
            {"config": {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": "NONE"}},
        ),
    }


def statuses(answers: dict[str, Answer]) -> dict[str, int]:
    return {name: answer.status for name, answer in answers.items()}


def refused(answers: dict[str, Answer]) -> dict[str, int]:
    """The statuses of answers that do not refuse: expected to be empty."""
    return {name: status for name, status in statuses(answers).items() if status != FORBIDDEN}


# -- the fence -----------------------------------------------------------------------------------


def test_a_program_writes_the_branch_of_its_run_and_no_other(run: Fence) -> None:
    run.caller.send(
        "POST",
        "/api/v2/trees?name=dev&type=BRANCH",
        {"type": "BRANCH", "name": "main", "hash": run.active.run.base},
    )
    run.caller.commit("dev", run.active.run.base, put("dev"))
    another = begun(run.repository)
    before = states(run)
    for ref in ("main", "dev", another.branch):
        assert refused(writes(run, ref)) == {}, ref
    for ref in ("dev", another.branch):
        assert refused(references(run, ref)) == {}, ref
    assert refused(references(run, run.active.branch)) == {}
    assert states(run) == before
    assert run.active.head() == run.active.run.base

    allowed = statuses(writes(run, run.active.branch))
    assert {name: status for name, status in allowed.items() if status >= 300} == {}
    assert states(run) == before
    committer = next(iter(run.repository.log(run.active.branch))).meta.committer
    assert committer == "etl"


def test_a_program_writes_nothing_after_the_command(run: Fence) -> None:
    active, program = run.active, run.program
    assert program.commit(run.branch, active.head(), put("a")).status == 200
    active.end_command(0)
    head = active.head()
    assert refused(writes(run, active.branch)) == {}
    assert refused(references(run, active.branch)) == {}
    assert active.head() == head
    assert program.get(f"/api/v2/trees/{run.branch}/entries").status == 200, "checks read"
    assert run.iceberg(head).load("db", "t").status == 200


ENDS: dict[str, Any] = {
    "published": lambda active: active.published(active.head()),
    "discarded": lambda active: active.discard(),
    "failed": lambda active: active.fail(RunStage.COMMAND, "failed"),
    "ready": lambda active: active.ready(),
    "deleted": lambda active: active.repository.runs.delete(active.run.id),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_token_ends_with_its_run(tmp_path: Path, end: str) -> None:
    with fence(tmp_path, "tokens") as run:
        assert run.program.get("/api/v2/config").status == 200
        ENDS[end](run.active)
        assert run.program.get("/api/v2/config").status == 401
        assert run.program.commit("main", run.active.run.base, put("a")).status == 401


def test_each_process_has_a_token_until_another_one_takes_over(ruled: Fence) -> None:
    clients = [ruled.program, TokenClient(ruled.url, ruled.active.add_token())]
    assert [client.get("/api/v2/config").status for client in clients] == [200, 200]
    ruled.active.take_over()
    assert [client.get("/api/v2/config").status for client in clients] == [401, 401]


def test_a_token_ends_if_its_run_shows_no_signs_of_life(
    ruled: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr("nessie_cli.repository.runs.time.time", lambda: now + TOKEN_LIFE + 2)
    assert ruled.program.get("/api/v2/config").status == 401
    ruled.active.change()
    assert ruled.program.get("/api/v2/config").status == 200


def joined(run: Fence) -> tuple[TokenClient, ActiveRun]:
    """A program of the same run that another token of the caller has added."""
    other = connect(f"{run.url}/api/v2", access=run.access("etl", "loader"))
    active = join(other, run.active.run.id)
    return TokenClient(run.url, active.add_token()), active


def test_a_token_ends_if_that_of_its_caller_is_withdrawn(tmp_path: Path) -> None:
    with fence(tmp_path, "rules") as run:
        tokens = tmp_path / "tokens"
        first = tokens.read_text().splitlines()[1]
        program, active = joined(run)
        clients = [run.program, program]
        assert [client.get("/api/v2/config").status for client in clients] == [200, 200]
        tokens.write_text(tokens.read_text().replace(first, ""))
        assert [client.get("/api/v2/config").status for client in clients] == [401, 200]
        assert run.program.commit(run.branch, run.active.run.base, put("a")).status == 401
        # A sign of life by the other process revives nothing.
        active.change()
        assert [client.get("/api/v2/config").status for client in clients] == [401, 200]
        tokens.write_text("")
        assert [client.get("/api/v2/config").status for client in clients] == [401, 401]


def test_a_token_has_the_roles_that_its_caller_has_now(tmp_path: Path) -> None:
    with fence(tmp_path, "rules", LOADER) as run:
        assert run.program.commit(run.branch, run.active.run.base, put("a")).status == 200
        tokens = tmp_path / "tokens"
        tokens.write_text(tokens.read_text().replace("loader", "reader"))
        head = run.active.run.base
        assert run.program.commit(run.branch, head, put("b")).status in (FORBIDDEN, 404)


def test_a_token_ends_with_that_of_an_issuer_unless_its_caller_gets_another(
    tmp_path: Path,
) -> None:
    with fence(tmp_path, "jwt") as run:
        ends = time.time() + 2
        short = json_web_token(sub="etl", roles=["loader"], exp=int(ends) - LEEWAY)
        with connect(f"{run.url}/api/v2", access=Access(Bearer(Secret(short)))) as other:
            active = join(other, run.active.run.id)
            program = TokenClient(run.url, active.add_token())
        assert active.run.credentials == {}, "no caller sees them"
        assert program.get("/api/v2/config").status == 200
        time.sleep(max(0.0, ends - time.time()))
        assert [client.get("/api/v2/config").status for client in (run.program, program)] == [
            200,
            401,
        ]
        # The caller has another token, and shows a sign of life with it.
        run.active.change()
        assert [client.get("/api/v2/config").status for client in (run.program, program)] == [
            200,
            200,
        ]


def test_a_token_has_the_roles_of_the_token_of_an_issuer_that_added_it(tmp_path: Path) -> None:
    """A caller can have tokens with more and with fewer roles, and join a run with each."""
    few = "role == 'few' && (ref.startsWith('run/') || (ref == 'main' && !path.startsWith('db')))"
    with fence(tmp_path, "jwt", LOADER, few) as run:
        secret = "/api/v2/trees/main/contents/db.t"
        later = json_web_token(sub="etl", roles=["few"], exp=int(time.time()) + 7200)
        with connect(f"{run.url}/api/v2", access=Access(Bearer(Secret(later)))) as other:
            active = join(other, run.active.run.id)
            program = TokenClient(run.url, active.add_token())
        assert [each.get(secret).status for each in (run.program, program)] == [200, FORBIDDEN]
        run.active.change()
        assert [each.get(secret).status for each in (run.program, program)] == [200, FORBIDDEN]


@pytest.mark.parametrize(
    "shape", ["{token}x", "nessie-run_{id}_" + "x" * 43, "nessie-run_other_" + "x" * 43]
)
def test_a_changed_token_is_refused_and_not_quoted(ruled: Fence, shape: str) -> None:
    token = shape.format(token=ruled.token, id=ruled.active.run.id)
    answer = TokenClient(ruled.url, token).get("/api/v2/config")
    assert answer.status == 401
    assert token not in answer.raw.decode()


def test_a_program_has_no_more_rights_than_its_caller(tmp_path: Path) -> None:
    """The rules do not let loaders read or write `secret`, nor see other branches."""
    own = "role == 'loader' && (ref == 'main' || ref.startsWith('run/'))"
    rule = f"{own} && !path.startsWith('secret')"
    with fence(tmp_path, "rules", rule) as run:
        admin = run.as_("root", "admin")
        head = admin.commit("main", admin.head(), put("secret")).body["targetBranch"]["hash"]
        admin.send(
            "POST",
            "/api/v2/trees?name=hidden&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": head},
        )
        program = run.program
        assert program.get("/api/v2/trees/main/contents/secret").status in (403, 404)
        assert program.get("/api/v2/trees/hidden").status in (403, 404)
        assert program.commit(run.branch, run.active.head(), put("secret")).status == 403
        assert program.commit(run.branch, run.active.head(), put("open")).status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_chooses_no_location_that_its_caller_may_not_choose(
    tmp_path: Path, kind: str
) -> None:
    [warehouse] = from_options([str(tmp_path / "warehouse")]).all
    warehouses = Warehouses([replace(warehouse, choose_locations=False)])
    rule = f"{LOADER} && op != 'CHOOSE_LOCATION'"
    with fence(tmp_path, kind, rule, warehouses=warehouses) as run:
        of_u, of_t = (
            run.caller.get(f"/api/v2/trees/main/contents/db.{name}").body["content"]
            for name in "ut"
        )
        victim = of_u["metadataLocation"]
        for client in (run.caller, run.program):
            iceberg = IcebergClient(client, run.branch)
            registered = {"name": "v", "metadata-location": victim}
            chosen = f"{warehouse.location}/elsewhere"
            stolen = put("db", "t", content={**of_t, "metadataLocation": victim})
            answers = {
                "register": iceberg.post("/namespaces/db/register", registered),
                "create": iceberg.create("db", "w", location=chosen),
                "put": client.commit(run.branch, client.head(run.branch), stolen),
            }
            assert refused(answers) == {}
        assert run.active.head() == run.active.run.base


def test_rules_name_the_caller_and_the_roles_of_the_caller(tmp_path: Path) -> None:
    rules = ("user == 'etl' && ref.startsWith('run/')", "'loader' in roles && ref == 'main'")
    with fence(tmp_path, "rules", *rules) as run:
        assert run.program.get("/api/v2/trees/main/entries").status == 200
        assert run.program.commit(run.branch, run.active.head(), put("a")).status == 200


def test_the_fence_holds_on_several_workers(tmp_path: Path) -> None:
    """Each process sees at once that the command has ended."""
    store, tokens = str(tmp_path / "store.sqlite"), tmp_path / "tokens"
    create(store).close()
    loader = Secret(add_token(tokens, "etl", (), None, datetime.now(UTC))[0])
    options = ("--store", store, "--workers", "2", "--tokens", str(tokens))
    with (
        started(*options) as (_, url),
        connect(f"{url}/api/v2", access=Access(Bearer(loader))) as repository,
        ExitStack() as stack,
    ):
        repository.commit("main", [Put(key("t"), table(1))], CommitMeta("one"))
        active = begun(repository)
        token = active.add_token()
        clients = [TokenClient(url, token) for _ in range(8)]
        for client in clients:
            stack.callback(client.close)
        branch = active.branch.replace("/", "%2F")
        for number, client in enumerate(clients):
            assert client.commit("main", active.run.base, put("x")).status == 403
            assert client.commit(branch, active.run.base, put(f"t{number}")).status == 200
        active.end_command(0)
        assert {client.commit(branch, active.head(), put("late")).status for client in clients} == {
            403
        }
        active.discard()
        assert {client.get("/api/v2/config").status for client in clients} == {401}


# -- records -------------------------------------------------------------------------------------


def path(active: ActiveRun) -> str:
    return f"/api/v2/runs/{active.run.id}"


def body(active: ActiveRun, version: int, **changes: Any) -> dict[str, Any]:
    return {"run": to_builtins(replace(active.run, **changes)), "version": version}


def test_callers_have_their_own_runs(run: Fence) -> None:
    eve = run.as_("eve", "loader")
    active = run.active
    assert eve.send("GET", "/api/v2/runs", headers=OURS).body == {"runs": []}
    for answer in (
        eve.send("GET", path(active), headers=OURS),
        eve.send("PUT", path(active), body(active, 2, reason="mine"), OURS),
        eve.send("DELETE", path(active), headers=OURS),
    ):
        answer.expect(FORBIDDEN, f"run {active.run.id} was begun by another caller")
    with connect(f"{run.url}/api/v2", access=run.access("eve", "loader")) as repository:
        with pytest.raises(NotAllowed):
            join(repository, active.run.id)
        assert repository.runs.all() == []
        other = begun(repository)
        assert other.run.who == "eve"
    assert [record.run.id for record in run.repository.runs.all()] == [active.run.id]


def test_programs_manage_no_runs(run: Fence) -> None:
    active = run.active
    for answer in (
        run.program.send("GET", path(active), headers=OURS),
        run.program.send("PUT", path(active), body(active, 2, stage="command"), OURS),
        run.program.send("DELETE", path(active), headers=OURS),
    ):
        assert answer.status == FORBIDDEN, answer
    assert run.program.send("GET", "/api/v2/runs", headers=OURS).body == {"runs": []}


@pytest.mark.parametrize("allowed", [False, True])
def test_runs_need_a_right(tmp_path: Path, allowed: bool) -> None:
    right = " || (role == 'analyst' && op == 'MANAGE_RUNS')" if allowed else ""
    everything = "role == 'analyst' && op != 'MANAGE_RUNS' || role == 'loader'"
    with fence(tmp_path, "rules", everything + right) as run:
        access = run.access("ann", "analyst")
        with connect(f"{run.url}/api/v2", access=access) as repository:
            if allowed:
                assert begun(repository).head() == repository.reference("main").hash
                return
            with pytest.raises(NotAllowed, match="MANAGE_RUNS"):
                begun(repository)
            assert repository.runs.all() == []
        assert [ref.name for ref in run.repository.references() if ref.name != "main"] == [
            run.active.branch
        ]


def test_a_forged_record_gives_no_rights(tmp_path: Path) -> None:
    """Eve may have runs, but not write main or the branch of another run."""
    eves = (
        "role == 'guest' && (op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'READ_CONTENT_KEY',"
        " 'LIST_COMMIT_LOG', 'READ_ENTITY_VALUE', 'MANAGE_RUNS'] || ref == 'run/eve')"
    )
    with fence(tmp_path, "rules", LOADER, eves) as run:
        access = run.access("eve", "guest")
        with connect(f"{run.url}/api/v2", access=access) as repository:
            forged = replace(
                run.active.run, id="eve", who="root", roles=("admin",), tokens=(), target="main"
            )
            record = repository.runs.put(RunRecord(forged))
            assert record is not None
            active = ActiveRun(repository, repository.runs, record)
            assert active.run.who == "eve"
            token = active.add_token()
            program = TokenClient(run.url, token)
            head = program.head("main")
            assert program.commit("main", head, put("x")).status == FORBIDDEN
            assert program.commit(run.branch, head, put("x")).status == FORBIDDEN
            assert program.get("/api/v2/settings").status != 200
            for id_ in ("main", "..", "a..b", "run/eve", "a%2Fb", run.active.run.id):
                sent = body(active, 0, id=id_.replace("%2F", "/"))
                answer = run.as_("eve", "guest").send(
                    "PUT", f"/api/v2/runs/{id_.replace('/', '%2F')}", sent, OURS
                )
                if id_ == "main":
                    # A run of this name has the branch run/main.
                    assert answer.status == 200
                else:
                    assert answer.status in (400, FORBIDDEN, 404), id_
        told = run.as_("eve", "guest").send("GET", "/api/v2/runs/eve", headers=OURS).body
        assert "roles" not in told["run"]


def test_what_a_run_begins_with_stays(ruled: Fence) -> None:
    active, client = ruled.active, ruled.caller
    for changes in ({"target": "dev"}, {"base": "ab" * 32}, {"key": "k"}, {"began": 1}):
        client.send("PUT", path(active), body(active, 2, **changes), OURS).expect(
            400, "what a run begins with cannot change"
        )
    stale = client.send("PUT", path(active), body(active, 1), OURS)
    assert (stale.status, stale.body["run"]) == (200, None)
    client.send("PUT", "/api/v2/runs/other", body(active, 0), OURS).expect(400, "differs")
    client.send("GET", path(active)).expect(404)


@pytest.mark.parametrize(
    "sent",
    [None, {}, [], {"run": None, "version": 0}, {"run": {"id": "a"}, "version": 1}, {"version": 1}],
)
def test_wrong_records_are_refused(ruled: Fence, sent: Any) -> None:
    answer = ruled.caller.send("PUT", "/api/v2/runs/a", sent, OURS)
    assert answer.status == 400, answer


def test_a_server_of_others_has_no_runs(ruled: Fence) -> None:
    from nessie_cli.repository.remote.opening import open_remote

    with (
        open_remote(
            f"{ruled.url}/api/v2",
            ruled.access("etl", "loader"),
            lambda size: b"r" * size,
            extensions=False,
        ) as plain,
        pytest.raises(InvalidInput, match="this server has no runs"),
    ):
        begun(plain)


def test_an_unknown_run_is_not_found(ruled: Fence) -> None:
    with pytest.raises(NotFound):
        join(ruled.repository, "nosuch")
    ruled.caller.send("DELETE", "/api/v2/runs/nosuch", headers=OURS).expect(404, "there is no run")


# -- secrets -------------------------------------------------------------------------------------


def test_a_token_is_in_no_log_and_no_answer(tmp_path: Path) -> None:
    lines: list[bytes] = []
    log = AccessLog(lines.append)
    with fence(tmp_path, "rules", log=log) as run:
        run.program.get("/api/v2/trees/main")
        run.program.commit("main", run.active.run.base, put("a"))
        run.program.get("/api/v2/nosuch")
        run.active.fail(RunStage.COMMAND, "over")
        run.program.get("/api/v2/trees/main")
        answers = [run.caller.send("GET", "/api/v2/runs", headers=OURS).raw]
        answers.append(run.caller.get("/api/v2/trees/main/history").raw)
    log.close()
    secret = run.token[-43:].encode()
    assert b"etl" in b"".join(lines)
    assert secret not in b"".join(lines)
    assert secret not in b"".join(answers)


def test_a_refusal_by_the_fence_names_the_run(run: Fence) -> None:
    """The role of its caller may be allowed to do the same."""
    id_ = run.active.run.id
    nested = connect(f"{run.url}/api/v2", access=Access(Bearer(Secret(run.token))))
    with nested, pytest.raises(NotAllowed, match=f"a program of run {id_}.* begin no other run"):
        begun(nested)
    answer = run.program.commit("main", run.program.head("main"), put("a"))
    assert answer.status == FORBIDDEN
    assert f"a program of run {id_}, which can write the branch run/{id_}" in answer.raw.decode()
