"""Rules: forbidden data stays hidden in every request, and allowed operations work."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from nessie_cli import connect
from nessie_cli.errors import CommitNotFound, InvalidInput
from nessie_cli.model import Secret
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.rights import MOST_FAILURES
from nessie_cli.server.auth.rules import Question, read_rules
from tests.server.client import EMPTY, delete, namespace, put, table
from tests.server.guarding import guarded

OURS = {"nessie-cli": "1"}
ALL_OPS = (
    "['VIEW_REFERENCE', 'READ_ENTRIES', 'READ_CONTENT_KEY', 'READ_ENTITY_VALUE', 'LIST_COMMIT_LOG']"
)
READ_PUBLIC = (
    (
        "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'LIST_COMMIT_LOG'] && ref == 'main' && role =="
        " 'reader'"
    ),
    (
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && ref == 'main' && role == 'reader' &&"
        " path.startsWith('public')"
    ),
)
"""Readers see `main`, and on it the keys below `public`."""


@pytest.fixture
def server(tmp_path):
    with guarded(tmp_path, *READ_PUBLIC) as found:
        admin = found.as_("root", "admin")
        found.admin = admin
        found.first = admin.commit(
            "main", EMPTY, put("public", content=namespace("public")), put("public", "t")
        ).body["targetBranch"]["hash"]
        found.main = admin.commit(
            "main", found.first, put("secret", content=table(2)), message="on main"
        ).body["targetBranch"]["hash"]
        admin.send(
            "POST",
            "/api/v2/trees?name=hidden&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": found.main},
        )
        found.hidden = admin.commit(
            "hidden", found.main, put("public", "plan"), message="nobody knows"
        ).body["targetBranch"]["hash"]
        yield found


def keys(answer, name="entries", attribute="name"):
    return [
        ".".join((entry[attribute] if attribute else entry)["elements"])
        for entry in answer.body[name]
    ]


def test_operations_without_a_rule_are_forbidden(server):
    stranger = server.as_("eve")
    head = server.main
    for method, path, body in (
        ("GET", "/api/v2/trees/main", None),
        ("GET", "/api/v2/trees/main/entries", None),
        ("GET", "/api/v2/trees/main/history", None),
        ("GET", "/api/v2/trees/main/contents/public.t", None),
        ("GET", f"/api/v2/trees/@{head}/entries", None),
        ("GET", "/api/v2/trees/main/recent-changes", None),
        ("GET", "/api/v2/trees/main/diff/hidden", None),
        ("GET", "/api/v2/config/repository?type=GARBAGE_COLLECTOR", None),
        (
            "POST",
            "/api/v2/config/repository",
            {"config": {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": "NONE"}},
        ),
        (
            "POST",
            "/api/v2/trees?name=mine&type=BRANCH",
            {"type": "BRANCH", "name": "main", "hash": head},
        ),
        ("PUT", f"/api/v2/trees/main@{head}", {"type": "BRANCH", "name": "main", "hash": EMPTY}),
        ("DELETE", f"/api/v2/trees/hidden@{server.hidden}", None),
        (
            "POST",
            f"/api/v2/trees/main@{head}/history/commit",
            {"commitMeta": {"message": "m"}, "operations": [put("x")]},
        ),
        (
            "POST",
            f"/api/v2/trees/main@{head}/history/merge",
            {"fromRefName": "hidden", "fromHash": server.hidden},
        ),
        (
            "POST",
            f"/api/v2/trees/main@{head}/history/transplant",
            {"fromRefName": "hidden", "hashesToTransplant": [server.hidden]},
        ),
        ("GET", "/api/v1/trees/tree/main", None),
        ("GET", "/api/v1/trees/tree", None),
        ("GET", "/api/v1/trees/tree/main/log", None),
        ("GET", "/api/v1/contents/public.t?ref=main", None),
        ("GET", "/api/v1/diffs/main...hidden", None),
        ("GET", "/api/v1/namespaces/main", None),
        ("PUT", "/api/v1/namespaces/namespace/main/n", {"type": "NAMESPACE", "elements": ["n"]}),
    ):
        answer = stranger.send(method, path, body)
        assert (answer.status, answer.body["errorCode"]) == (403, "FORBIDDEN"), (
            method,
            path,
            answer,
        )
        assert "'eve'" in answer.body["message"], path
    assert stranger.get("/api/v2/trees").body["references"] == []
    assert stranger.get("/api/v1/trees").body["references"] == []
    assert stranger.get("/api/v2/config").status == 200


ON_MAIN = "'{}' is not allowed for role 'eve' on reference 'main'"
SEEN, LISTED, READ = (
    ON_MAIN.format(op) for op in ("VIEW_REFERENCE", "LIST_COMMIT_LOG", "READ_ENTRIES")
)
COMMITTED = ON_MAIN.format("COMMIT_CHANGE_AGAINST_REFERENCE")


@pytest.mark.parametrize(
    ("path", "failed"),
    [
        ("v2/trees/main", [SEEN]),
        ("v2/trees/main/history", [SEEN, LISTED]),
        ("v2/trees/main/entries", [SEEN, READ]),
        ("v2/trees/main/diff/hidden", [SEEN, READ]),
        ("v1/trees/tree/main/log", [SEEN, LISTED]),
        ("v1/trees/tree/main/entries", [SEEN, READ]),
        ("v1/diffs/main...hidden", [SEEN, READ]),
    ],
)
def test_a_refusal_names_every_failed_check(server, path, failed):
    assert server.as_("eve").get(f"/api/{path}").body["message"] == ", ".join(failed)


def test_a_refusal_names_only_failed_checks(server):
    server.rule(
        "op == 'LIST_COMMIT_LOG' && role == 'eve'", "op == 'VIEW_REFERENCE' && role == 'bob'"
    )
    assert server.as_("eve").get("/api/v2/trees/main/history").body["message"] == SEEN
    assert server.as_("bob").get("/api/v2/trees/main/history").body["message"] == LISTED.replace(
        "eve", "bob"
    )


@pytest.mark.parametrize("version", [1, 2])
def test_the_refusal_of_a_commit_names_every_failed_check(server, version):
    of_content = "'{}' is not allowed for role '{}' on content '{}'"
    made, gone = (
        of_content.format("CREATE_ENTITY", "eve", "in.a"),
        of_content.format("DELETE_ENTITY", "eve", "secret"),
    )
    stranger = server.as_("eve")
    answer = stranger.commit(
        "main", server.main, put("in", "a"), put("in", "a"), delete("secret"), version=version
    )
    assert answer.body["message"] == f"{SEEN}, {COMMITTED}, {made}, {gone}", answer
    # The draft is checked again as a whole, whatever the first check allowed.
    server.rule(
        "op in ['VIEW_REFERENCE', 'COMMIT_CHANGE_AGAINST_REFERENCE', 'UPDATE_ENTITY'] && role =="
        " 'bob'"
    )
    answer = server.as_("bob").commit(
        "main", server.main, put("new"), put("other"), version=version
    )
    assert answer.body["message"] == ", ".join(
        of_content.format("CREATE_ENTITY", "bob", key) for key in ("new", "other")
    )


def test_a_caller_without_rights_is_refused_after_a_hundred_checks(server):
    operations = [delete(f"k{number}") for number in range(5_000)]
    body = {"commitMeta": {"message": "m"}, "operations": operations}
    path = f"/api/v2/trees/main@{server.admin.head()}/history/commit"
    begun = time.process_time()
    answer = server.as_("nobody", "guest").send("POST", path, body)
    assert time.process_time() - begun < 1
    assert answer.status == 403
    assert answer.body["message"].count("is not allowed") == MOST_FAILURES


def test_hidden_references_are_not_listed(server):
    names = [
        found["name"]
        for found in server.as_("ada", "reader").get("/api/v2/trees").body["references"]
    ]
    assert names == ["main"]


def test_the_existence_of_a_hidden_reference_is_not_revealed(server):
    reader = server.as_("ada", "reader")
    texts = {
        reader.get(f"/api/v2/trees/{name}").body["message"].replace(name, "NAME")
        for name in ("hidden", "nosuch")
    }
    assert len(texts) == 1
    assert {reader.get(f"/api/v2/trees/{name}").status for name in ("hidden", "nosuch")} == {403}


def test_only_allowed_entries_and_contents_are_returned(server):
    reader = server.as_("ada", "reader")
    assert keys(reader.get("/api/v2/trees/main/entries")) == ["public", "public.t"]
    assert keys(reader.get("/api/v2/trees/main/entries?content=true")) == ["public", "public.t"]
    assert keys(reader.get("/api/v1/trees/tree/main/entries")) == ["public", "public.t"]
    assert keys(reader.get("/api/v1/trees/tree/main/entries?namespaceDepth=1")) == ["public"]
    assert reader.get("/api/v2/trees/main/contents/public.t").status == 200
    secret, missing = (
        reader.get("/api/v2/trees/main/contents/secret"),
        reader.get("/api/v2/trees/main/contents/nosuch"),
    )
    assert (secret.status, missing.status) == (403, 403)
    assert reader.get("/api/v2/trees/main/contents/public.nosuch").status == 404
    wanted = {"requestedKeys": [{"elements": ["public", "t"]}, {"elements": ["secret"]}]}
    assert reader.send("POST", "/api/v2/trees/main/contents", wanted).status == 403
    assert reader.send("POST", "/api/v1/contents?ref=main", wanted).status == 403


def test_pages_contain_exactly_the_visible_entries(server):
    admin = server.admin
    for number in range(12):
        admin.commit(
            "main", admin.head(), put("public" if number % 3 else "secrets", f"k{number:02}")
        )
    reader = server.as_("ada", "reader")
    found, token = [], ""
    while token is not None:
        answer = reader.get(
            "/api/v2/trees/main/entries?max-records=2" + (f"&page-token={token}" if token else "")
        )
        found += keys(answer)
        token = answer.body["token"]
        assert answer.body["hasMore"] is (token is not None)
    assert found == [
        "public",
        *(f"public.k{number:02}" for number in range(12) if number % 3),
        "public.t",
    ]


def test_the_log_shows_all_commits_but_only_visible_operations(server):
    log = server.as_("ada", "reader").get("/api/v2/trees/main/history?fetch=ALL").body["logEntries"]
    assert [entry["commitMeta"]["message"] for entry in log] == ["on main", "m"]
    assert [[op["key"]["elements"] for op in entry["operations"] or []] for entry in log] == [
        [],
        [["public"], ["public", "t"]],
    ]


def test_a_filter_cannot_detect_hidden_keys(server):
    reader = server.as_("ada", "reader")
    assert keys(
        reader.get("/api/v2/trees/main/entries?filter=entry.contentType%20==%20%27ICEBERG_TABLE%27")
    ) == ["public.t"]
    found = reader.get(
        "/api/v2/trees/main/history?fetch=ALL&filter=operations.exists(op,op.key==%27secret%27)"
    )
    assert found.body["logEntries"] == []


HIDDEN_COMMIT = (
    "trees/@{h}",
    "trees/@{h}/entries",
    "trees/@{h}/history",
    "trees/@{h}/contents/public.plan",
    "trees/main@{h}/entries",
    "trees/main@{h}/contents/public.plan",
    "trees/main@{h}/history",
    "trees/main/history?page-token={h}",
    "trees/main/diff/@{h}",
    "trees/@{h}/diff/main",
    "trees/main/diff/main@{h}",
    "trees/main@{h}~1*2999-01-01T00:00:00Z/diff/hidden",
)


@pytest.mark.parametrize("path", HIDDEN_COMMIT)
def test_a_commit_of_a_hidden_branch_cannot_be_read_by_hash(server, path):
    answer = server.as_("ada", "reader").get("/api/v2/" + path.format(h=server.hidden))
    assert answer.status == 403 or (answer.status == 400 and path == "trees/@{h}"), answer
    assert b"plan" not in answer.raw.replace(b"public.plan", b"")
    assert b"nobody knows" not in answer.raw


@pytest.mark.parametrize(
    "path",
    [
        "contents/public.plan?ref=main&hashOnRef={h}",
        "trees/tree/main/log?endHash={h}",
        "diffs/main...main*{h}",
        "trees/tree/main/entries?hashOnRef={h}",
    ],
)
def test_a_commit_of_a_hidden_branch_cannot_be_read_by_hash_in_v1(server, path):
    answer = server.as_("ada", "reader").get("/api/v1/" + path.format(h=server.hidden))
    assert answer.status == 403, answer


def test_a_commit_of_a_visible_branch_can_be_read_by_hash(server):
    reader = server.as_("ada", "reader")
    for path in (
        f"trees/main@{server.first}/entries",
        f"trees/@{server.first}/entries",
        f"trees/main/diff/@{server.first}",
        f"trees/@{server.first}/history",
    ):
        assert reader.get(f"/api/v2/{path}").status == 200, path
    assert keys(reader.get(f"/api/v2/trees/@{server.main}/entries")) == ["public", "public.t"]


def test_a_diff_shows_keys_that_are_readable_on_both_sides(server):
    server.rule(*READ_PUBLIC, f"op in {ALL_OPS} && ref == 'hidden' && role == 'reader'")
    reader = server.as_("ada", "reader")
    diffs = reader.get(f"/api/v2/trees/@{EMPTY}/diff/main").body["diffs"]
    assert [entry["key"]["elements"] for entry in diffs] == [["public"], ["public", "t"]]
    diffs = reader.get("/api/v2/trees/main/diff/hidden").body["diffs"]
    assert [entry["key"]["elements"] for entry in diffs] == [["public", "plan"]]


ON_BOTH = (
    "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'LIST_COMMIT_LOG'] && role == 'half' && ref in"
    " ['main', 'hidden']"
)


@pytest.mark.parametrize("right", ["READ_CONTENT_KEY", "READ_ENTITY_VALUE"])
def test_a_content_requires_the_rights_to_its_key_and_value(server, right):
    """A caller who may know the key but not the value, or the reverse, gets no content in logs,
    diffs and entries."""
    server.rule(ON_BOTH, f"op == '{right}' && role == 'half'")
    half = server.as_("hal", "half")
    for path in ("trees/main/history?fetch=ALL", "trees/main/history?fetch=ALL&filter=true"):
        log = half.get(f"/api/v2/{path}").body["logEntries"]
        assert [entry["operations"] or [] for entry in log] == [[], []]
    assert [
        entry["operations"] or []
        for entry in half.get("/api/v1/trees/tree/main/log?fetch=ALL").body["logEntries"]
    ] == [[], []]
    for path in (
        f"v2/trees/@{EMPTY}/diff/main",
        f"v2/trees/main/diff/@{EMPTY}",
        "v2/trees/main/diff/hidden",
        "v1/diffs/main...hidden",
    ):
        answer = half.get(f"/api/{path}")
        assert (answer.status, answer.body["diffs"]) == (200, []), path
    assert half.get("/api/v2/trees/main/entries?content=true").body["entries"] == []
    known = ["public", "public.t", "secret"] if right == "READ_CONTENT_KEY" else []
    assert keys(half.get("/api/v2/trees/main/entries")) == known
    assert half.get("/api/v2/trees/main/contents/public.t").status == (
        403 if right == "READ_CONTENT_KEY" else 200
    )


@pytest.mark.parametrize("side", ["main", "hidden"])
def test_a_diff_requires_both_rights_on_each_side(server, side):
    server.admin.commit("hidden", server.hidden, delete("secret"), put("more"))
    server.rule(
        ON_BOTH,
        f"op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && role == 'half' && ref == '{side}'",
        "op == 'READ_CONTENT_KEY' && role == 'half'",
    )
    found = server.as_("hal", "half").get("/api/v2/trees/main/diff/hidden").body["diffs"]
    assert [entry["key"]["elements"] for entry in found] == (
        [["secret"]] if side == "main" else [["more"], ["public", "plan"]]
    )


def test_recent_changes_and_the_reflog_show_only_visible_references(server):
    admin = server.admin
    admin.send(
        "PUT",
        f"/api/v2/trees/hidden@{server.hidden}",
        {"type": "BRANCH", "name": "main", "hash": server.main},
    )
    reader = server.as_("ada", "reader")
    recent = reader.get("/api/v2/trees/main/recent-changes").body
    assert [state["commitHash"] for state in recent["previous"]] == [server.first, EMPTY]
    assert reader.get("/api/v2/trees/hidden/recent-changes").status == 403
    entries = reader.get("/api/v2/reflog", **OURS).body["reflog"]
    assert {entry["reference"] for entry in entries} == {"main"}
    assert reader.get("/api/v2/reflog?ref=hidden", **OURS).body["reflog"] == []
    server.rule("op == 'VIEW_REFERENCE' && role == 'reader'")
    assert reader.get("/api/v2/reflog", **OURS).body["reflog"] == []


def test_divisions_and_logs_of_keys_do_not_reveal_hidden_keys(server):
    reader = server.as_("ada", "reader")
    assert reader.get(f"/api/v2/divisions?at={server.hidden}&most=1", **OURS).status == 403
    assert reader.get("/api/v2/trees/main/history?key=secret", **OURS).status == 403
    assert reader.get("/api/v2/trees/main/history?key=public.t", **OURS).status == 200
    for token in (server.hidden[:12], server.hidden[:12] + "~2"):
        assert (
            reader.get(f"/api/v2/trees/main/history?key=public.t&page-token={token}", **OURS).status
            == 404
        )


@pytest.mark.parametrize("steps", ["", "~2", "^1"])
def test_abbreviated_hashes_do_not_reveal_hidden_commits(server, steps):
    token = server.as_("ada", "reader").token
    with connect(f"{server.url}/api/v2", access=Access(Bearer(Secret(token)))) as repository:
        assert repository.resolve(f"@{server.main[:12]}").hash == server.main
        for digits in (4, 12, 63):
            with pytest.raises(CommitNotFound):
                repository.resolve(f"@{server.hidden[:digits]}{steps}")


@pytest.mark.parametrize("steps", ["", "~1", "~2", "^1", "*2999-01-01T00:00:00Z"])
def test_hidden_and_unknown_commits_get_the_same_error(server, steps):
    reader = server.as_("ada", "reader")

    def denied(digits):
        answer = reader.get(f"/api/v2/divisions?at={digits}{steps}&most=1", **OURS)
        return (
            answer.status,
            answer.body["errorCode"],
            answer.body["message"].replace(digits, "HASH"),
        )

    unknown = next(
        digits
        for number in range(256)
        if not any(h.startswith(digits := f"{number:02x}00") for h in (server.hidden, server.main))
    )
    for digits in (server.hidden[:4], server.hidden[:12], server.hidden[:63]):
        assert denied(digits) == denied(unknown)
        assert denied(digits)[0] == 404


def test_the_result_of_a_request_is_shown_only_to_writers_of_its_branch(server):
    mine = {**OURS, "nessie-request-id": "nightly"}
    body = {"commitMeta": {"message": "m"}, "operations": [put("public", "x")]}
    assert (
        server.admin.send(
            "POST", f"/api/v2/trees/hidden@{server.hidden}/history/commit", body, headers=mine
        ).status
        == 200
    )
    server.rule(*READ_PUBLIC, "role == 'writer' && ref == 'main'")
    writer = server.as_("bob", "writer")
    # As for an unknown id: the name of its branch is hidden.
    nightly, unknown = (
        writer.get(f"/api/v2/requests/{id_}", **OURS) for id_ in ("nightly", "nosuch")
    )
    assert (nightly.status, nightly.raw) == (unknown.status, unknown.raw)
    assert nightly.body == {"result": None}
    server.rule(*READ_PUBLIC, "role == 'writer' && ref == 'hidden' && op == 'VIEW_REFERENCE'")
    refused = writer.get("/api/v2/requests/nightly", **OURS)
    refused.expect(403, "'COMMIT_CHANGE_AGAINST_REFERENCE' is not allowed")
    server.rule(*READ_PUBLIC, "role == 'writer' && ref == 'main'")
    repeated = writer.send(
        "POST", f"/api/v2/trees/main@{server.main}/history/commit", body, headers=mine
    )
    assert repeated.status == 400
    assert "was used" in repeated.body["message"]
    assert server.admin.get("/api/v2/requests/nightly", **OURS).body["result"]


def test_a_used_request_id_does_not_name_a_hidden_reference(server):
    mine = {**OURS, "nessie-request-id": "nightly"}
    path = f"/api/v2/trees/hidden@{server.hidden}/rename?name=main2"
    assert server.admin.send("POST", path, headers=mine).status == 200
    server.rule("role == 'writer' && (ref == 'main' || ref.startsWith('new'))")
    writer = server.as_("bob", "writer")
    source = {"type": "BRANCH", "name": "main", "hash": server.main}
    made = writer.send("POST", "/api/v2/trees?name=new&type=BRANCH", source, headers=mine)
    assert (made.status, "hidden" in made.body["message"]) == (400, False)
    assert "was used" in made.body["message"]


@pytest.mark.parametrize("id_", ["nightly", None])
def test_the_request_of_a_rename_does_not_name_its_new_reference(server, id_):
    """Callers see the id in the reflog of the old name."""
    mine = {**OURS, **({"nessie-request-id": id_} if id_ else {})}
    path = f"/api/v2/trees/hidden@{server.hidden}/rename?name=more-hidden"
    assert server.admin.send("POST", path, headers=mine).status == 200
    server.rule("role == 'writer' && ref == 'hidden'")
    writer = server.as_("bob", "writer")
    moves = writer.get("/api/v2/reflog", **OURS).body["reflog"]
    (given,) = {move["requestId"] for move in moves if move["operation"] == "rename"}
    assert given == id_ or id_ is None
    answer = writer.get(f"/api/v2/requests/{given}", **OURS)
    assert (answer.status, answer.body) == (200, {"result": None})
    assert server.admin.get(f"/api/v2/requests/{given}", **OURS).body["result"]


def test_the_result_of_a_request_names_only_keys_that_its_reader_may_know(server):
    mine = {**OURS, "nessie-request-id": "secret"}
    operations = [put("public", "x"), put("hushed")]
    body = {"commitMeta": {"message": "m"}, "operations": operations}
    path = f"/api/v2/trees/main@{server.main}/history/commit"
    made = server.admin.send("POST", path, body, headers=mine).body
    result = server.admin.get("/api/v2/requests/secret", **OURS).body["result"]
    assert result["addedContents"] == made["addedContents"][::-1]
    server.rule(
        *READ_PUBLIC,
        "role == 'writer' && ref == 'main' && op != 'READ_CONTENT_KEY' && op != 'READ_ENTITY_VALUE'",
        "role == 'writer' && ref == 'main' && path.startsWith('public')",
    )
    writer = server.as_("bob", "writer")
    shown = writer.get("/api/v2/requests/secret", **OURS).body["result"]["addedContents"]
    assert [one["key"]["elements"] for one in shown] == [["public", "x"]]


# -- writing -------------------------------------------------------------------------------------
WRITE = (
    "op in ['VIEW_REFERENCE', 'COMMIT_CHANGE_AGAINST_REFERENCE'] && ref == 'main' && role =="
    " 'writer'"
)


def kept(server, path, name="main"):
    return server.admin.get(f"/api/v2/trees/{name}/contents/{path}").body["content"]


def test_creating_updating_and_deleting_are_separate_rights(server):
    server.rule(
        WRITE,
        "op == 'CREATE_ENTITY' && role == 'writer' && path.startsWith('in.')",
        "op == 'DELETE_ENTITY' && path == 'public.t' && role == 'writer'",
    )
    writer = server.as_("bob", "writer")
    old = kept(server, "public.t")
    head = writer.commit("main", server.main, put("in", content=namespace("in"))).status
    assert head == 403
    server.admin.commit("main", server.main, put("in", content=namespace("in")))
    assert writer.commit("main", server.admin.head(), put("in", "a")).status == 200
    made = kept(server, "in.a")
    assert (
        writer.commit(
            "main", server.admin.head(), put("in", "a", content=table(5, made["id"]))
        ).status
        == 403
    )
    assert writer.commit("main", server.admin.head(), delete("in", "a")).status == 403
    assert writer.commit("main", server.admin.head(), put("in", "b"), put("else")).status == 403
    assert server.admin.get("/api/v2/trees/main/contents/in.b").status == 404
    assert (
        writer.commit(
            "main", server.admin.head(), put("public", "t", content=table(9, old["id"]))
        ).status
        == 403
    )
    assert writer.commit("main", server.admin.head(), delete("public", "t")).status == 200
    answer = writer.commit("main", server.admin.head(), delete("secret"))
    assert (answer.status, answer.body["message"]) == (
        403,
        "'DELETE_ENTITY' is not allowed for role 'writer' on content 'secret'",
    )


def test_rules_can_distinguish_content_types(server):
    server.rule(
        WRITE,
        (
            "op in ['CREATE_ENTITY', 'DELETE_ENTITY'] && contentType == 'NAMESPACE' && role =="
            " 'writer'"
        ),
    )
    writer = server.as_("bob", "writer")
    assert writer.commit("main", server.main, put("n", content=namespace("n"))).status == 200
    assert writer.commit("main", server.admin.head(), put("t")).status == 403
    assert writer.commit("main", server.admin.head(), delete("secret")).status == 403
    assert writer.commit("main", server.admin.head(), delete("n")).status == 200


def test_replacing_a_content_requires_the_rights_to_delete_and_create(server):
    server.rule(WRITE, "op in ['CREATE_ENTITY', 'UPDATE_ENTITY'] && role == 'writer'")
    writer = server.as_("bob", "writer")
    assert writer.commit("main", server.main, delete("secret"), put("secret")).status == 403
    content = kept(server, "secret")
    assert (
        writer.commit("main", server.main, put("secret", content=table(7, content["id"]))).status
        == 200
    )


def test_a_conflict_does_not_reveal_hidden_keys(server):
    server.rule(
        WRITE,
        "op in ['CREATE_ENTITY', 'UPDATE_ENTITY'] && role == 'writer' && path.startsWith('public')",
    )
    writer = server.as_("bob", "writer")
    answers = [writer.commit("main", server.first, put(key)) for key in ("secret", "nosuch")]
    assert [answer.status for answer in answers] == [403, 403]
    assert writer.commit("main", server.first, put("public", "t")).status in (400, 409)


def test_a_merge_requires_reading_the_source_and_writing_the_target(server):
    source = f"op in {ALL_OPS} && ref == 'hidden' && role == 'merger'"
    target = (
        "op in ['VIEW_REFERENCE', 'COMMIT_CHANGE_AGAINST_REFERENCE'] && ref == 'main' && role =="
        " 'merger'"
    )
    write = "op == 'CREATE_ENTITY' && ref == 'main' && role == 'merger'"
    merger = server.as_("mia", "merger")
    body = {"fromRefName": "hidden", "fromHash": server.hidden}
    path = f"/api/v2/trees/main@{server.main}/history/merge"
    for rules in (
        (source, target),
        (source, write),
        (target, write),
        (target, write, source.replace(", 'READ_ENTITY_VALUE'", "")),
    ):
        server.rule(*rules)
        for dry in (True, False):
            answer = merger.send("POST", path, body | {"isDryRun": dry})
            assert answer.status == 403, (rules, answer)
            assert (
                "plan" not in answer.raw.decode()
                or rules[0] == source
                or "READ_CONTENT_KEY" in rules[-1]
            )
    assert server.admin.head() == server.main
    server.rule(source, target, write)
    assert merger.send("POST", path, body).status == 200
    assert (
        server.admin.get("/api/v2/trees/main/history").body["logEntries"][0]["commitMeta"][
            "committer"
        ]
        == "mia"
    )


def test_a_transplant_also_requires_the_right_to_see_the_history(server):
    source = f"op in {ALL_OPS} && ref == 'hidden' && role == 'merger'"
    target = (
        "op in ['VIEW_REFERENCE', 'COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY'] && ref =="
        " 'main' && role == 'merger'"
    )
    merger = server.as_("mia", "merger")
    body = {"fromRefName": "hidden", "hashesToTransplant": [server.hidden]}
    path = f"/api/v2/trees/main@{server.main}/history/transplant"
    for rules in (
        (target,),
        (source,),
        (target, source.replace(", 'LIST_COMMIT_LOG'", "")),
        (target, source.replace(", 'READ_ENTITY_VALUE'", "")),
    ):
        server.rule(*rules)
        assert merger.send("POST", path, body).status == 403, rules
    server.rule(source, target)
    assert merger.send("POST", path, body).status == 200


def test_creating_assigning_and_deleting_references_require_rights(server):
    mine = "ref.startsWith('mine/') && role == 'owner'"
    make_and_move = (
        "op in ['CREATE_REFERENCE', 'VIEW_REFERENCE', 'ASSIGN_REFERENCE_TO_HASH',"
        f" 'DELETE_REFERENCE'] && {mine}"
    )
    owner = server.as_("olga", "owner")
    make = "/api/v2/trees?name={}&type=BRANCH"
    body = {"type": "BRANCH", "name": "main", "hash": server.main}
    # A new reference makes contents readable under its name, so the caller must be allowed to read
    # them at the source.
    server.rule(make_and_move, "op == 'VIEW_REFERENCE' && ref == 'main'")
    assert owner.send("POST", make.format("mine/a"), body).status == 403
    read = "op in ['VIEW_REFERENCE', 'READ_CONTENT_KEY', 'READ_ENTITY_VALUE'{}] && ref == 'main'"
    # It also makes the log and the list of keys readable.
    for only in ("", ", 'LIST_COMMIT_LOG'", ", 'READ_ENTRIES'"):
        server.rule(make_and_move, read.format(only))
        assert owner.send("POST", make.format("mine/a"), body).status == 403
    server.rule(make_and_move, read.format(", 'LIST_COMMIT_LOG', 'READ_ENTRIES'"))
    assert owner.send("POST", make.format("mine/a"), body).status == 200
    assert (
        owner.send("POST", make.format("mine/b"), {"type": "DETACHED", "hash": server.main}).status
        == 200
    )
    assert owner.send("POST", make.format("other"), body).status == 403
    for stolen in (
        {"type": "BRANCH", "name": "main", "hash": server.hidden},
        {"type": "DETACHED", "hash": server.hidden},
        {"type": "BRANCH", "name": "hidden", "hash": server.hidden},
    ):
        assert owner.send("POST", make.format("mine/c"), stolen).status == 403
        assert owner.send("PUT", f"/api/v2/trees/mine%2Fa@{server.main}", stolen).status == 403
    assert (
        owner.send(
            "PUT", f"/api/v2/trees/mine%2Fa@{server.main}", {**body, "hash": server.first}
        ).status
        == 200
    )
    assert (
        owner.send(
            "PUT", f"/api/v2/trees/main@{server.main}", {**body, "hash": server.first}
        ).status
        == 403
    )
    assert (
        owner.send(
            "POST", f"/api/v2/trees/mine%2Fa@{server.first}/rename?name=mine/z", {}, headers=OURS
        ).status
        == 200
    )
    assert (
        owner.send(
            "POST", f"/api/v2/trees/mine%2Fz@{server.first}/rename?name=stolen", {}, headers=OURS
        ).status
        == 403
    )
    assert owner.send("DELETE", f"/api/v2/trees/mine%2Fz@{server.first}").status == 200
    assert owner.send("DELETE", f"/api/v2/trees/hidden@{server.hidden}").status == 403


def test_configuration_rights_depend_on_its_type(server):
    gc = {"config": {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": "NONE"}}
    assert server.admin.send("POST", "/api/v2/config/repository", gc).status == 200
    server.rule("op == 'READ_REPOSITORY_CONFIG' && type == 'GARBAGE_COLLECTOR' && role == 'keeper'")
    keeper, other = server.as_("kim", "keeper"), server.as_("eve")
    assert (
        keeper.get("/api/v2/config/repository?type=GARBAGE_COLLECTOR").body["configs"][0][
            "defaultCutoffPolicy"
        ]
        == "NONE"
    )
    assert keeper.send("POST", "/api/v2/config/repository", gc).status == 403
    assert other.get("/api/v2/config/repository?type=GARBAGE_COLLECTOR").status == 403
    settings = "/api/v2/config/repository?type=NESSIE_CLI_SETTINGS"
    assert (
        "repository-config.GARBAGE_COLLECTOR"
        in keeper.get(settings, **OURS).body["configs"][0]["settings"]
    )
    assert other.get(settings, **OURS).body["configs"][0]["settings"] == {}


def test_answers_are_cached_per_caller(server):
    reader = server.as_("ada", "reader")
    for _ in range(3):
        assert keys(server.admin.get("/api/v2/trees/main/entries")) == [
            "public",
            "public.t",
            "secret",
        ]
        assert keys(reader.get("/api/v2/trees/main/entries")) == ["public", "public.t"]


def test_changed_rules_apply_from_the_next_request(server):
    reader = server.as_("ada", "reader")
    assert reader.get("/api/v2/trees/main").status == 200
    server.rule()
    assert reader.get("/api/v2/trees/main").status == 403
    server.rule("op == 'VIEW_REFERENCE'")
    assert reader.get("/api/v2/trees/main").status == 200


def test_the_last_valid_rules_apply_while_the_file_is_invalid(server, capfd):
    reader = server.as_("ada", "reader")
    server.rule("op == ")
    assert reader.get("/api/v2/trees/main").status == 200
    assert reader.get("/api/v2/trees/hidden").status == 403
    message = [line for line in capfd.readouterr().err.splitlines() if "rules" in line]
    assert len(message) == 1
    assert "rule_0" in message[0]


def test_rules_apply_to_anonymous_callers(tmp_path):
    with guarded(
        tmp_path, "op == 'VIEW_REFERENCE' && role == '' && ref == 'main'", anonymous=True
    ) as server:
        assert server.as_("").get("/api/v2/trees/main").status == 200
        assert server.as_("").get("/api/v2/trees/main/entries").status == 403
        assert server.as_("ada", "x").get("/api/v2/trees/main").status == 403


# -- the rules themselves ------------------------------------------------------------------------
ADA = Caller("ada", ("reader", "writer"))


def allowed(text, caller=ADA, api=2, **question):
    return read_rules(f"r = '''{text}'''".encode()).allow(
        caller, api, Question(**{"op": "VIEW_REFERENCE", **question})
    )


def test_the_variables_have_the_originals_names():
    assert allowed(
        "op == 'VIEW_REFERENCE' && ref == 'main' && path == '' && contentType == '' && actions =="
        " []",
        ref="main",
    )
    assert allowed("path == 'a.b' && contentType == 'UDF'", path="a.b", content_type="UDF")
    assert allowed("type == 'GARBAGE_COLLECTOR'", config="GARBAGE_COLLECTOR")
    assert allowed("api.apiName == 'Nessie' && api.apiVersion == 1", api=1)
    assert allowed("roles == ['reader', 'writer'] && user == 'ada'")
    assert allowed("ref.matches('ma.*')", ref="main")


def test_a_rule_is_evaluated_for_each_role_or_for_the_name():
    assert allowed("role == 'reader'")
    assert allowed("role == 'writer'")
    assert not allowed("role == 'ada'")
    assert allowed("role == 'ada'", Caller("ada"))
    assert allowed("role == ''", Caller())


def test_older_names_of_the_log_operation_are_accepted():
    assert allowed("op == 'LIST_COMMITLOG'", op="LIST_COMMIT_LOG")
    assert allowed("op == 'LIST_COMMIT_LOG'", op="LIST_COMMIT_LOG")
    assert allowed("op in ['LIST_COMMIT_LOG', 'LIST_COMMITLOG']", op="LIST_COMMIT_LOG")


@pytest.mark.parametrize(
    "rule",
    [
        "op != 'LIST_COMMIT_LOG'",
        "op != 'LIST_COMMITLOG'",
        "!(op in ['LIST_COMMIT_LOG', 'LIST_COMMITLOG'])",
    ],
)
def test_a_rule_without_the_log_operation_does_not_allow_its_other_name(rule: str):
    assert not allowed(rule, op="LIST_COMMIT_LOG")
    assert allowed(rule, op="READ_ENTRIES")


def test_a_failing_rule_allows_nothing_and_others_still_apply():
    bad = "ref.matches('(')"
    assert not allowed(bad, ref="main")
    rules = read_rules(f'a = """{bad}"""\nb = "op == \'VIEW_REFERENCE\'"'.encode())
    assert rules.allow(Caller("x"), 2, Question("VIEW_REFERENCE", "main"))


def test_an_empty_file_of_rules_allows_nothing():
    assert not read_rules(b"").allow(
        Caller("ada", ("admin",)), 2, Question("VIEW_REFERENCE", "main")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r = 'nosuch == 1'", "rule 'r'.*nosuch"),
        ("r = 'op =='", "rule 'r'"),
        ("r = 'op'", "rule 'r'.*condition"),
        ("r = 1", "rule 'r'.*quotes"),
        ("r = ", "TOML"),
        ("r = 'true'\n[rules]\nr = 'true'", "twice"),
        ("rules = 1", "table"),
        ("\udcff", "TOML"),
    ],
)
def test_invalid_rules_are_reported_by_name(text, message):
    with pytest.raises(InvalidInput, match=message):
        read_rules(text.encode("utf-8", "surrogateescape"))


def test_the_example_rules_of_the_documents_work():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "security.md").read_text(
        encoding="utf-8"
    )
    found = read_rules(page.partition("```toml\n")[2].partition("```")[0].encode())
    ada, root = Caller("ada", ("reader",)), Caller("root", ("admin",))

    def may(caller, op, ref, path=""):
        return found.allow(caller, 2, Question(op, ref, path))

    assert may(Caller("eve"), "LIST_COMMIT_LOG", "main")
    assert not may(Caller("eve"), "READ_ENTITY_VALUE", "main", "public.t")
    assert may(ada, "READ_ENTITY_VALUE", "main", "public.t")
    assert not may(ada, "READ_ENTITY_VALUE", "users/ada/x", "secret")
    assert may(ada, "COMMIT_CHANGE_AGAINST_REFERENCE", "users/ada/x")
    assert not may(ada, "COMMIT_CHANGE_AGAINST_REFERENCE", "users/bob/x")
    assert may(root, "DELETE_REFERENCE", "users/bob/x")


def test_rules_may_be_in_a_table():
    assert read_rules(b"[rules]\nr = 'true'").allow(Caller(), 2, Question("VIEW_REFERENCE"))


def test_divisions_use_only_visible_keys(server):
    admin, reader = server.admin, server.as_("ada", "reader")
    head = admin.commit("main", server.main, put("zebra", content=table(3))).body["targetBranch"][
        "hash"
    ]

    def cuts(client):
        return keys(client.get(f"/api/v2/divisions?at={head}&most=1", **OURS), "divisions", None)

    assert "secret" in cuts(admin)
    assert cuts(reader) == [key for key in cuts(admin) if key != "secret"]
    assert admin.get(f"/api/v2/divisions?at={head}", **OURS).status == 400
    assert admin.get(f"/api/v2/divisions?at={head}&most=1").status == 404


def test_a_value_that_a_change_expects_cannot_be_guessed_without_the_right_to_read_it(server):
    def replaced(client, expected):
        settings = {"settings": {"own": "2"}, "expected": {"own": expected}}
        body = {"config": {"type": "NESSIE_CLI_SETTINGS"} | settings}
        return client.send("POST", "/api/v2/config/repository", body, headers=OURS).status

    server.rule("role == 'keeper' && op == 'UPDATE_REPOSITORY_CONFIG'")
    assert replaced(server.admin, None) == 200
    keeper = server.as_("kim", "keeper")
    assert [replaced(keeper, guess) for guess in ("1", "2")] == [403, 403]
    server.rule("role == 'keeper' && op in ['UPDATE_REPOSITORY_CONFIG', 'READ_REPOSITORY_CONFIG']")
    assert [replaced(keeper, guess) for guess in ("1", "2")] == [409, 200]


def test_a_new_value_of_a_setting_does_not_show_the_hidden_previous_one(server):
    path = "/api/v2/config/repository"

    def replace(client, value):
        gc = {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": value}
        settings = {"type": "NESSIE_CLI_SETTINGS", "settings": {"own": value}}
        bodies = ({"config": gc}, {"config": settings})
        answers = [client.send("POST", path, body, headers=OURS) for body in bodies]
        assert [answer.status for answer in answers] == [200, 200]
        return json.dumps([answer.body["previous"] for answer in answers])

    server.rule("role == 'keeper' && op == 'UPDATE_REPOSITORY_CONFIG'")
    replace(server.admin, "P5D")
    keeper = server.as_("kim", "keeper")
    assert "P5D" not in replace(keeper, "P6D")
    server.rule("role == 'keeper' && op in ['UPDATE_REPOSITORY_CONFIG', 'READ_REPOSITORY_CONFIG']")
    assert "P6D" in replace(keeper, "P7D")
