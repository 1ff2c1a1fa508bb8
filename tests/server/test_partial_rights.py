"""Random requests of a caller with partial rights, against a model of what it may see.

The model is everything that the caller can read before it writes: no sequence of its writes may
make more readable. The caller knows every name, key and hash.
"""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest

from tests.server.client import EMPTY, put, table
from tests.server.guarding import Guarded, TokenClient, guarded

OURS = {"nessie-cli": "1"}
READS = ["VIEW_REFERENCE", "LIST_COMMIT_LOG", "READ_ENTRIES", "READ_CONTENT_KEY"]
READS += ["READ_ENTITY_VALUE", "VIEW_REFLOG"]
WRITES = ["COMMIT_CHANGE_AGAINST_REFERENCE", "CREATE_ENTITY", "UPDATE_ENTITY", "DELETE_ENTITY"]
WRITES += ["DELETE_REFERENCE", "ASSIGN_REFERENCE_TO_HASH", "CREATE_REFERENCE"]
REFERENCES = ("main", "stage/x", "stage/y", "team")
OWN = ("users/mal/a", "users/mal/b", "users/mal/c")
KEYS = ("k0", "k1", "k2", "k3")
_MARKS = re.compile(r"/t/\d+\.json|message-\d+")
ROUNDS, REQUESTS = 12, 60


class World:
    """A repository with a random history, and the names and hashes in it."""

    def __init__(self, server: Guarded, random: Random) -> None:
        self.random = random
        self.admin = server.as_("root", "admin")
        self.mal = server.as_("mal", "mal")
        self.hashes: list[str] = []
        self._number = 0
        self._ids: dict[tuple[str, str], str] = {}
        self.commit("main")
        for name in REFERENCES[1:]:
            body = {"type": "BRANCH", "name": "main", "hash": self.admin.head()}
            self.admin.send("POST", f"/api/v2/trees?name={name}&type=BRANCH", body)
            self.commit(name)
        for _ in range(6):
            self.commit(random.choice(REFERENCES))

    def commit(self, name: str) -> None:
        self._number += 1
        key = self.random.choice(KEYS)
        path = f"/api/v2/trees/{quoted(name)}"
        found = self.admin.get(f"{path}/contents/{key}")
        content_id = found.body["content"]["id"] if found.status == 200 else None
        head = self.admin.head(quoted(name)) if self.hashes else EMPTY
        answer = self.admin.commit(
            quoted(name),
            head,
            put(key, content=table(self._number, content_id)),
            message=f"message-{self._number}",
        )
        self.hashes.append(answer.body["targetBranch"]["hash"])

    def rules(self) -> list[str]:
        """Returns random rights on each reference, for all keys or for some."""
        found = ["role == 'mal' && ref.startsWith('users/mal/')"]
        for name in REFERENCES:
            for keys in (KEYS, self.random.sample(KEYS, 2)):
                ops = [op for op in READS if self.random.random() < 0.6]
                ops += [op for op in WRITES if self.random.random() < 0.4]
                path = f"(path == '' || path in {list(keys)})"
                found.append(f"role == 'mal' && ref == '{name}' && op in {ops} && {path}")
        return found


def quoted(name: str) -> str:
    return name.replace("/", "%2F")


def marks(text: bytes) -> set[str]:
    return set(_MARKS.findall(text.decode()))


def everything(client: TokenClient, names: tuple[str, ...], hashes: list[str]) -> set[str]:
    """Returns every content and message that a caller can read."""
    found: set[str] = set()
    revisions = [*map(quoted, names), *(f"@{hash_}" for hash_ in hashes)]
    revisions += [f"{quoted(name)}@{hash_}" for name, hash_ in product(names, hashes)]
    paths = ["/api/v2/trees?fetch=ALL", "/api/v2/reflog", "/api/v1/trees?fetch=ALL"]
    for one in revisions:
        paths += [
            f"/api/v2/trees/{one}/history?fetch=ALL",
            f"/api/v2/trees/{one}/entries?content=true",
            f"/api/v2/trees/{one}/contents?{'&'.join(f'key={key}' for key in KEYS)}",
            *(f"/api/v2/trees/{one}/contents/{key}" for key in KEYS),
        ]
    for path in paths:
        found |= marks(client.send("GET", path, headers=OURS).raw)
    return found


def attempt(world: World) -> bytes:
    """Makes one random request of the caller, and returns the answer."""
    random, mal = world.random, world.mal
    name, own = random.choice((*REFERENCES, *OWN)), random.choice(OWN)
    target = random.choice((own, own, *REFERENCES))
    hash_ = random.choice(world.hashes)
    relative = random.choice(("", "", "~1", "^1"))
    detached = random.random() < 0.3
    source = {
        "type": "DETACHED" if detached else "BRANCH",
        "name": "DETACHED" if detached else name,
        "hash": hash_ + relative,
    }
    at = head(world, target)
    verb = random.choice(("create", "assign", "rename", "merge", "transplant", "delete", "commit"))
    into, v1 = f"/api/v2/trees/{quoted(target)}@{at}", f"/api/v1/trees/branch/{quoted(target)}"
    old = random.random() < 0.3
    modes = [{"key": {"elements": [key]}, "mergeBehavior": "DROP"} for key in KEYS[:2]]
    copied = {"keyMergeModes": random.choice(([], modes)), "defaultKeyMergeMode": "FORCE"}
    if verb == "create":
        kind = random.choice(("BRANCH", "TAG"))
        return mal.send("POST", f"/api/v2/trees?name={own}&type={kind}", source).raw
    if verb == "assign":
        return mal.send("PUT", f"{v1}?expectedHash={at}" if old else into, source).raw
    if verb == "rename":
        return mal.send("POST", f"{into}/rename?name={own}", {}, OURS).raw
    if verb == "delete":
        return mal.send("DELETE", f"{v1}?expectedHash={at}" if old else into).raw
    if verb == "commit":
        return mal.commit(quoted(target), at, put(random.choice(KEYS), content=table(0))).raw
    if verb == "merge":
        body = {"fromRefName": source["name"], "fromHash": hash_, **copied}
        path = f"{v1}/merge?expectedHash={at}" if old else f"{into}/history/merge"
    else:
        hashes = random.sample(world.hashes, random.choice((1, 2)))
        body = {"fromRefName": name, "hashesToTransplant": hashes, "anyOrder": True, **copied}
        path = f"{into}/history/transplant"
    return mal.send("POST", path, body, OURS).raw


def head(world: World, name: str) -> str:
    found = world.admin.get(f"/api/v2/trees/{quoted(name)}")
    return str(found.body["reference"]["hash"]) if found.status == 200 else EMPTY


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_sequence_of_writes_makes_more_readable(tmp_path, seed: int) -> None:
    with guarded(tmp_path) as server:
        world = World(server, Random(seed))
        server.rule(*world.rules())
        allowed = everything(world.mal, REFERENCES, world.hashes) | {"/t/0.json"}
        for number in range(REQUESTS):
            more = marks(attempt(world)) - allowed
            assert not more, (seed, number, more)
        for name in (*REFERENCES, *OWN):
            now = head(world, name)
            world.hashes += [now] if now != EMPTY else []
        more = everything(world.mal, (*REFERENCES, *OWN), world.hashes) - allowed
        assert not more, (seed, more)


def test_refusals_about_a_hidden_key_reveal_its_type_and_id_but_no_value(tmp_path) -> None:
    """What a caller learns who may change a key but not read it."""
    rights = ["VIEW_REFERENCE", *WRITES[:4]]
    with guarded(tmp_path, f"role == 'writer' && op in {rights}") as server:
        admin, writer = server.as_("root", "admin"), server.as_("will", "writer")
        admin.commit("main", EMPTY, put("hidden", content=table(123456789)))
        hidden = admin.get("/api/v2/trees/main/contents/hidden").body["content"]["id"]
        at = admin.head()
        other = "00000000-0000-0000-0000-000000000000"
        attempts = {
            "another id": put("hidden", content=table(1, other)),
            "no id": put("hidden", content=table(1)),
            "another type": put("hidden", content={"type": "UDF", "id": hidden, "version": "1"}),
            "expected": put("hidden", content=table(1, hidden))
            | {"expectedContent": table(2, hidden)},
        }
        for headers, (name, operation) in product(({}, OURS), attempts.items()):
            body = {"commitMeta": {"message": "x"}, "operations": [operation]}
            path = f"/api/v2/trees/main@{at}/history/commit"
            refused = writer.send("POST", path, body, headers)
            assert refused.status in (400, 403, 409), (name, refused)
            # It is the snapshot id, and part of the location.
            assert "123456789" not in str(refused.body), (name, refused)
        assert admin.head() == at
