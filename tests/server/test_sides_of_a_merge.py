"""Answers to a merge name keys of ours only to callers who may know them on the target.

Everybody has branches of their own, and may do everything there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from tests.server.client import Answer, delete, namespace, put, table
from tests.server.guarding import Guarded, TokenClient, guarded

OURS = {"nessie-cli": "1"}
OPEN = "(path == '' || path.startsWith('pub'))"
RULES = (
    "role == 'will' && ref.startsWith('dev')",
    f"role == 'will' && ref == 'main' && {OPEN}",
)


class World:
    """A server whose `main` and `dev` have `pub.t`; `will` does not know `secret` on `main`."""

    def __init__(self, server: Guarded) -> None:
        self.server = server
        self.admin = server.as_("root", "admin")
        self.will = server.as_("will", "will")
        self.commit("main", put("pub", content=namespace("pub")), put("pub", "t"))
        self.branch("dev")
        self.commit("main", put("secret", content=namespace("secret")))

    def commit(self, branch: str, *operations: Any) -> str:
        answer = self.admin.commit(branch, self.admin.head(branch), *operations)
        assert answer.status == 200, answer
        head: str = answer.body["targetBranch"]["hash"]
        return head

    def branch(self, name: str, source: str = "main") -> None:
        body = {"type": "BRANCH", "name": source, "hash": self.admin.head(source)}
        path = f"/api/v2/trees?name={name}&type=BRANCH"
        assert self.admin.send("POST", path, body).status == 200

    def content(self, branch: str, *key: str) -> dict[str, Any]:
        path = f"/api/v2/trees/{branch}/contents/{'.'.join(key)}"
        found: dict[str, Any] = self.admin.get(path).body["content"]
        return found

    def rename(self, branch: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        content = self.content(branch, *old)
        self.commit(branch, delete(*old), put(*new, content=content))

    def change(self, branch: str, *key: str) -> None:
        self.commit(branch, put(*key, content={**self.content(branch, *key), "snapshotId": 77}))

    def attempts(self, client: TokenClient, **more: Any) -> Iterator[Answer]:
        """Yields the answers of merges and transplants of `dev` into `main`, by all APIs."""
        head, source = self.admin.head(), self.admin.head("dev")
        merge = {"fromRefName": "dev", "fromHash": source}
        copy = {"fromRefName": "dev", "hashesToTransplant": [source]}
        for (verb, body), per_content, as_result, mode in product(
            (("merge", merge), ("transplant", copy)),
            (False, True),
            (False, True),
            ("NORMAL", "FORCE", "DROP"),
        ):
            given = {**body, "isDryRun": True, "defaultKeyMergeMode": mode, **more}
            given["isReturnConflictAsResult"] = as_result
            headers = OURS if per_content else {}
            given |= {"perContent": True} if per_content else {}
            path = f"/api/v2/trees/main@{head}/history/{verb}"
            yield client.send("POST", path, given, headers)
            if not per_content:
                path = f"/api/v1/trees/branch/main/{verb}?expectedHash={head}"
                yield client.send("POST", path, given)


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with guarded(tmp_path, *RULES) as server:
        yield World(server)


def renamed_on_the_target(world: World) -> None:
    world.rename("main", ("pub", "t"), ("secret", "plan"))
    world.change("dev", "pub", "t")


def renamed_and_changed_on_the_target(world: World) -> None:
    renamed_on_the_target(world)
    world.change("main", "secret", "plan")


def renamed_on_both_sides(world: World) -> None:
    world.rename("main", ("pub", "t"), ("secret", "plan"))
    world.rename("dev", ("pub", "t"), ("pub", "u"))


def deleted_on_the_source(world: World) -> None:
    world.rename("main", ("pub", "t"), ("secret", "plan"))
    world.commit("dev", delete("pub", "t"))


def second_key(world: World) -> None:
    """A content of `dev` came to the target by another branch, under another key."""
    world.commit("dev", put("pub", "x", content=table(9)))
    world.branch("hid", "dev")
    world.commit("hid", put("secret", content=namespace("secret")))
    world.rename("hid", ("pub", "x"), ("secret", "y"))
    body = {"fromRefName": "hid", "fromHash": world.admin.head("hid")}
    path = f"/api/v2/trees/main@{world.admin.head()}/history/merge"
    assert world.admin.send("POST", path, body).status == 200
    world.change("dev", "pub", "x")


def same_file(world: World) -> None:
    world.commit("main", put("secret", "y", content=table(9)))
    world.commit("dev", put("pub", "x", content=table(9)))


def claimed_key(world: World) -> None:
    """The content that holds a key which theirs claims was renamed on the source."""
    world.commit("main", put("secret", "h", content=table(5)))
    world.commit("dev", put("pub", "x", content=table(6)))
    world.rename("main", ("pub", "t"), ("pub", "x"))
    world.change("dev", "pub", "t")


CASES = [
    renamed_on_the_target,
    renamed_and_changed_on_the_target,
    renamed_on_both_sides,
    deleted_on_the_source,
    second_key,
    same_file,
    claimed_key,
]


@pytest.mark.parametrize("make", CASES)
def test_no_answer_names_a_hidden_key_of_the_target(
    world: World, make: Callable[[World], None]
) -> None:
    make(world)
    answers = list(world.attempts(world.will))
    assert {answer.status for answer in answers} <= {200, 403, 409}
    for answer in answers:
        assert "secret" not in json.dumps(answer.body), answer
    told = [json.dumps(answer.body) for answer in world.attempts(world.admin)]
    assert make is claimed_key or any("secret" in text for text in told)


@pytest.mark.parametrize("make", CASES[:-1])
def test_a_key_that_the_caller_may_know_on_the_target_is_named(
    world: World, make: Callable[[World], None]
) -> None:
    reading = "role == 'will' && ref == 'main' && op == 'READ_CONTENT_KEY'"
    world.server.rule(*RULES, reading)
    make(world)
    assert any("secret" in json.dumps(answer.body) for answer in world.attempts(world.will))


def test_a_deletion_by_theirs_is_in_the_answer(world: World) -> None:
    """If the caller may know its key on both sides: it need not be the same content there."""
    world.commit("dev", delete("pub", "t"))
    world.server.rule("role == 'will'")
    answers = world.attempts(world.will, defaultKeyMergeMode="NORMAL", perContent=True)
    merged = [answer for answer in answers if answer.status == 200]
    assert merged
    for answer in merged:
        assert {"elements": ["pub", "t"]} in [each["key"] for each in answer.body["details"]]


def test_a_refusal_names_the_keys_of_theirs(world: World) -> None:
    world.commit("dev", put("secret", content=namespace("secret")))
    world.commit("dev", put("secret", "mine"))
    for answer in world.attempts(world.will):
        if answer.status == 403:
            answer.expect(403, "'CREATE_ENTITY' is not allowed for role 'will'", "'secret.mine'")


def test_a_transplant_brings_no_content_that_is_hidden_at_its_source(world: World) -> None:
    """Whatever key the content has on the target."""
    world.commit("dev", put("secret", content=namespace("secret")))
    world.rename("dev", ("pub", "t"), ("secret", "t"))
    world.change("dev", "secret", "t")
    world.server.rule(
        f"role == 'will' && ref == 'dev' && {OPEN}",
        f"role == 'will' && ref == 'main' && {OPEN}",
    )
    for answer in world.attempts(world.will):
        assert "secret" not in json.dumps(answer.body), answer
        if answer.status == 200:
            assert not answer.body.get("details"), answer


def test_a_rename_on_the_target_needs_no_rights_for_its_key_on_the_source(world: World) -> None:
    """The content is read at the key that it has there."""
    world.rename("main", ("pub", "t"), ("pub2",))
    world.change("dev", "pub", "t")
    world.server.rule(
        "role == 'will' && ref == 'dev' && path != 'pub2'",
        "role == 'will' && ref == 'main'",
    )
    for answer in world.attempts(world.will, perContent=True):
        assert answer.status in (200, 409), answer


def test_a_hidden_key_that_has_changed_since_is_not_named(world: World) -> None:
    seen = world.admin.head()
    world.rename("main", ("pub", "t"), ("secret", "plan"))
    world.change("dev", "pub", "t")
    content_id = world.content("dev", "pub", "t")["id"]
    behavior = {
        "key": {"elements": ["pub", "t"]},
        "mergeBehavior": "DROP",
        "contentId": content_id,
    }
    body = {
        "fromRefName": "dev",
        "fromHash": world.admin.head("dev"),
        "perContent": True,
        "keyMergeModes": [behavior],
    }
    for client in (world.will, world.admin):
        path = f"/api/v2/trees/main@{seen}/history/merge"
        answer = client.send("POST", path, body, OURS)
        answer.expect(409, "'main' has changed pub.t")
        assert ("secret" in json.dumps(answer.body)) == (client is world.admin), answer
