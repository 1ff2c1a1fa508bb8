"""No change makes rows readable that its caller may not read where they are.

That holds in warehouses in which callers need a right to choose locations.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.model import CommitMeta, ContentKey, Delete, Put
from tests.server.client import Answer, delete, namespace, put
from tests.server.guarding import Guarded, TokenClient
from tests.server.row_server import DIFF, KEY, OURS, RowServer, guarded_rows, lake_server

READS = f"user == 'eve' && ({DIFF} || op == 'LIST_COMMIT_LOG')"
OWN = "user == 'eve' && op != 'CHOOSE_LOCATION' && (ref.startsWith('eve/') || path == 'mine')"
WRITES = """user == 'eve' && ref == 'main'
  && op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'DELETE_ENTITY']"""
READ_ROWS = "'READ_ROWS' is not allowed for role 'eve' on content 'db.t'"
ROWS = "user == 'eve' && op == 'READ_ROWS'"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, RowServer]]:
    """`eve/old` has no table yet."""
    folder = tmp_path_factory.mktemp("rows")
    warehouse = {"choose_locations": False}
    with guarded_rows(folder, READS, OWN, served=lake_server, warehouse=warehouse) as both:
        guarded, server = both
        create(guarded.as_("root", "admin"), "eve/old", "main", first(server)).expect(200)
        yield both


@pytest.fixture
def eve(both: tuple[Guarded, RowServer]) -> Iterator[TokenClient]:
    guarded, _ = both
    guarded.rule(READS, OWN, WRITES)
    yield guarded.as_("eve")
    guarded.rule(READS, OWN, WRITES)


def create(eve: TokenClient, name: str, source: str, hash_: str) -> Answer:
    path = f"/api/v2/trees?name={name}&type=BRANCH"
    return eve.send("POST", path, reference(source, hash_))


def head_of(server: RowServer, name: str = "main") -> str:
    return server.repository.reference(name).hash


def test_rows_are_not_read_through_a_branch_of_ones_own(both, eve: TokenClient) -> None:
    guarded, server = both
    head, old = head_of(server), head_of(server, "eve/old")
    copied = {"fromRefName": "main", "hashesToTransplant": commits(server)[1:]}
    requests = {
        "create": ("POST", "/api/v2/trees?name=eve/new&type=BRANCH", reference("main", head)),
        "assign": ("PUT", f"/api/v2/trees/eve%2Fold@{old}", reference("main", head)),
        "merge": (
            "POST",
            f"/api/v2/trees/eve%2Fold@{old}/history/merge",
            {"fromRefName": "main", "fromHash": head},
        ),
        "transplant": ("POST", f"/api/v2/trees/eve%2Fold@{old}/history/transplant", copied),
    }
    for name, request in requests.items():
        answer = eve.send(*request)
        assert answer.status == 403, (name, answer)
        assert "'READ_ROWS' is not allowed for role 'eve' on reference 'main'" in str(answer.body)
    # A branch on which nobody but an administrator reads rows is allowed, and remembered.
    guarded.rule(READS, f"{OWN} && !(op == 'READ_ROWS' && ref != 'eve/rows')")
    create(eve, "eve/without", "main", head).expect(200)
    create(eve, "eve/rows", "main", head).expect(403, "READ_ROWS")
    # That does not depend on commits after the new branch.
    create(eve, "eve/rows", "main", first(server)).expect(200)
    # With the right to read the rows, or to choose locations anyway, nothing is refused.
    for number, more in enumerate((ROWS, ROWS.replace("READ_ROWS", "CHOOSE_LOCATION"))):
        guarded.rule(READS, OWN, more)
        create(eve, f"eve/all-{number}", "main", head).expect(200)


def test_a_request_need_not_name_the_branch_whose_rows_its_caller_may_read(
    both, eve: TokenClient
) -> None:
    """Our client creates branches by a hash alone."""
    guarded, server = both
    server.lake.append("main", 9)
    head = head_of(server)
    guarded.rule(READS, OWN)
    create(eve, "eve/by-hash", "DETACHED", head).expect(403, "READ_ROWS")
    guarded.rule(READS, OWN, f"{ROWS} && ref == 'main'")
    create(eve, "eve/by-hash", "DETACHED", head).expect(200)


def test_rows_are_not_read_under_another_key(both, eve: TokenClient) -> None:
    guarded, server = both
    head = head_of(server)
    content = eve.get("/api/v2/trees/main/contents/db.t").body["content"]
    renamed = delete("db", "t"), put("mine", content=content)
    eve.commit("main", head, *renamed).expect(403, READ_ROWS)
    # Other changes are not about rows.
    eve.commit("main", head, put("mine", content=namespace("mine"))).expect(200)
    server.repository.commit("main", [Delete(ContentKey(("mine",)))], CommitMeta("m"))

    # A deleted table comes back under another key.
    server.repository.commit("main", [Delete(KEY)], CommitMeta("m"))
    restored = put("mine", content=content)
    restored["restoredFrom"] = {"hash": head, "key": {"elements": list(KEY.elements)}}
    body = {"commitMeta": {"message": "m"}, "operations": [restored]}
    for rules, refusal in (WRITES, READ_ROWS), (f"{WRITES} || {ROWS}", "'CHOOSE_LOCATION' is"):
        guarded.rule(READS, OWN, rules)
        path = f"/api/v2/trees/main@{head_of(server)}/history/commit"
        eve.send("POST", path, body, headers=OURS).expect(403, refusal)


def test_rows_are_not_read_under_the_key_of_the_other_branch(both, eve: TokenClient) -> None:
    """The target has renamed the table, and the source has new rows under the old key."""
    guarded, server = both
    mine = ContentKey(("mine",))
    writes = f"{OWN} && (op != 'READ_ROWS' || path == 'mine')"
    for number, kind in enumerate(("merge", "transplant")):
        name, source = f"eve/renamed-{number}", f"dev-{number}"
        for branch in (name, source):
            create(guarded.as_("root", "admin"), branch, "dev", head_of(server, "dev")).expect(200)
        table = server.repository.content(name, KEY)
        server.repository.commit(name, [Delete(KEY), Put(mine, table)], CommitMeta("m"))
        server.lake.append(source, 9)
        new = head_of(server, source)
        body = {"perContent": True, "fromRefName": source}
        body |= {"fromHash": new} if kind == "merge" else {"hashesToTransplant": [new]}
        for form in ("", "combining-"):
            path = f"/api/v2/trees/{name}@{head_of(server, name)}/history/{form}{kind}"
            path = path.replace(name, name.replace("/", "%2F"))
            guarded.rule(READS, writes)
            eve.send("POST", path, body, headers=OURS).expect(403, "READ_ROWS")
        # A caller with rows of the source may bring them.
        guarded.rule(READS, writes, f"{ROWS} && ref == '{source}'")
        eve.send("POST", path, body, headers=OURS).expect(200)
        assert server.repository.content(name, mine) != table


def reference(name: str, hash_: str) -> dict[str, str]:
    return {"type": "BRANCH", "name": name, "hash": hash_}


def commits(server: RowServer) -> list[str]:
    """The commits of main, oldest first."""
    return [entry.hash for entry in server.repository.log("main")][::-1]


def first(server: RowServer) -> str:
    return commits(server)[0]
