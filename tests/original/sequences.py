"""Random requests for two servers: a small catalog with few branches and keys, so that they
collide.

Requests avoid the known differences; each of these limits names its row of
`docs/reference/differences.md`.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.server.client import EMPTY

PLAIN = (("a",), ("b",), ("c",), ("n", "a"), ("n", "b"), ("n", "m", "x"), ("o", "y"))
SPACES = (("n",), ("n", "m"), ("o",))
NAMES = ("main", "dev", "team/x", "rel/1.0")
FILTERS = (
    "entry.contentType == 'NAMESPACE'",
    "entry.namespace.startsWith('n')",
    "size(entry.keyElements) > 1",
    "entry.name in ['a', 'x']",
)
Key = tuple[str, ...]


class Asked(NamedTuple):
    """A request for the original, with its hashes and ids."""

    method: str
    path: str
    body: Any = None


class Catalog:
    """The facts in the original's answers so far, and requests that fit them."""

    def __init__(self, seed: str, *, renames: bool) -> None:
        self.random = Random(seed)
        # D12: renames and merges are tried in different sequences.
        self.renames = renames
        self.heads: dict[str, tuple[str, str]] = {"main": ("BRANCH", EMPTY)}
        self.contents: dict[Key, dict[str, Any]] = {}
        self.hashes: dict[str, list[str]] = {"main": []}
        self.number = 0

    def next(self) -> list[Asked]:
        """Returns requests to send in turn: a change and reads of its result, or reads."""
        kinds = (
            [self.commit] * 5
            + [self.reference] * 2
            + [self.reads] * 3
            + ([] if self.renames else [self.merge] * 2 + [self.transplant])
        )
        return self.random.choice(kinds)()

    # -- contents --

    def content(self, key: Key, content_id: str | None = None) -> dict[str, Any]:
        self.number += 1
        if key in SPACES:
            content: dict[str, Any] = {
                "type": "NAMESPACE",
                "elements": list(key),
                "properties": {"v": str(self.number)},
            }
        elif key[-1] == "b":
            content = {
                "type": "ICEBERG_VIEW",
                "metadataLocation": f"file:/v/{self.number}.json",
                "versionId": self.number,
                "schemaId": 1,
            }
        else:
            content = {
                "type": "ICEBERG_TABLE",
                "metadataLocation": f"file:/t/{self.number}.json",
                "snapshotId": self.number,
            }
            content |= {"schemaId": 0, "specId": 0, "sortOrderId": 0}
        return content | ({"id": content_id} if content_id else {})

    def operations(self) -> list[dict[str, Any]]:
        """Returns operations that mostly fit the branch whose contents were read last, but not
        always."""
        keys = self.random.sample(PLAIN + SPACES, self.random.randint(1, 4))
        operations: list[dict[str, Any]] = []
        for key in keys:
            there = self.contents.get(key)
            change = self.random.choice(
                ["update", "update", "delete", "again", "unchanged", "rename", "wrong"]
                if there
                else ["create"] * 5 + ["delete"]
            )
            if (
                key in SPACES
                and change in ("delete", "again", "rename")
                and any(other[: len(key)] == key and other != key for other in keys)
            ):
                change = (
                    "update" if there else "create"
                )  # D11: no keys are added below a deleted namespace
            if change == "create":
                operations.append(put(key, self.content(key)))
            elif change == "update":
                operations.append(put(key, self.content(key, there and there["id"])))
            elif change == "wrong":
                operations.append(put(key, self.content(key)))
            elif change == "delete":
                operations.append(delete(key))
            elif change == "unchanged":
                operations.append({"type": "UNCHANGED", "key": {"elements": list(key)}})
            elif change == "again":
                operations += [delete(key), put(key, self.content(key))]
            elif self.renames and key[-1] not in "bx" and key not in SPACES:
                new = (*key[:-1], f"{key[-1]}{self.number}")
                operations += [delete(key), put(new, self.content(new, there and there["id"]))]
        return operations or [put(("a",), self.content(("a",)))]

    # -- requests --

    def branch(self) -> str:
        return self.random.choice(
            [name for name, (kind, _) in self.heads.items() if kind == "BRANCH"]
        )

    def at(self, name: str) -> str:
        return f"{quote(name, safe='')}@{self.heads[name][1]}"

    def commit(self) -> list[Asked]:
        name = self.branch()
        return [
            Asked("GET", f"/api/v2/trees/{quote(name, safe='')}/entries?content=true"),
            Asked("COMMIT", name),
        ]

    def commit_now(self, name: str) -> list[Asked]:
        """Returns a commit to the branch whose contents have just been read, at its HEAD or at an
        older commit."""
        hash_ = self.heads[name][1]
        if self.random.random() < 0.2 and self.hashes[name]:
            hash_ = self.random.choice(self.hashes[name])
        self.number += 1
        operations = self.operations()
        if hash_ != self.heads[name][1]:
            operations = [
                operation for operation in operations if operation["type"] != "UNCHANGED"
            ] or [put(("a",), self.content(("a",)))]
        body = {
            "commitMeta": {"message": f"commit {self.number}", "authors": ["ann", "bob"]},
            "operations": operations,
        }
        if self.random.random() < 0.25:
            body["commitMeta"] = {"message": f"commit {self.number}", "author": "ann"}
            return [
                Asked(
                    "POST",
                    f"/api/v1/trees/branch/{quote(name, safe='')}/commit?expectedHash={hash_}",
                    body,
                ),
                *self.reads(name),
            ]
        return [
            Asked("POST", f"/api/v2/trees/{quote(name, safe='')}@{hash_}/history/commit", body),
            *self.reads(name),
        ]

    def reference(self) -> list[Asked]:
        name = self.random.choice(NAMES)
        source = self.random.choice(list(self.heads))
        to = {"type": self.heads[source][0], "name": source, "hash": self.heads[source][1]}
        kind = self.random.choice(["BRANCH", "BRANCH", "TAG"])
        if name not in self.heads or self.random.random() < 0.2:
            asked = Asked("POST", f"/api/v2/trees?name={quote(name, safe='')}&type={kind}", to)
        elif self.random.random() < 0.5:
            asked = Asked("PUT", f"/api/v2/trees/{self.at(name)}", to)
        else:
            asked = Asked("DELETE", f"/api/v2/trees/{self.at(name)}")
        return [asked, Asked("GET", "/api/v2/trees?fetch=ALL"), Asked("GET", "/api/v1/trees")]

    def behaviors(self) -> dict[str, Any]:
        behaviors: dict[str, Any] = {"isReturnConflictAsResult": self.random.random() < 0.7}
        if self.random.random() < 0.4:
            behaviors["defaultKeyMergeMode"] = self.random.choice(["NORMAL", "FORCE", "DROP"])
        if self.random.random() < 0.2:
            behaviors["keyMergeModes"] = [
                {
                    "key": {"elements": ["a"]},
                    "mergeBehavior": self.random.choice(["NORMAL", "FORCE", "DROP"]),
                }
            ]
        return behaviors

    def merge(self) -> list[Asked]:
        target, source = self.branch(), self.random.choice(list(self.heads))
        hash_ = self.heads[source][1]
        if hash_ == EMPTY:  # D10
            return self.reads()
        body = {
            "fromRefName": source,
            "fromHash": hash_,
            "isDryRun": self.random.random() < 0.2,
        } | self.behaviors()
        if self.random.random() < 0.3:
            return [
                Asked(
                    "POST",
                    f"/api/v1/trees/branch/{quote(target, safe='')}/merge?expectedHash={self.heads[target][1]}",
                    body,
                ),
                *self.reads(target),
            ]
        return [
            Asked("POST", f"/api/v2/trees/{self.at(target)}/history/merge", body),
            *self.reads(target),
        ]

    def transplant(self) -> list[Asked]:
        target, source = self.branch(), self.branch()
        if not self.hashes[source]:
            return self.reads()
        # D15, D16: one commit at a time.
        body = {
            "fromRefName": source,
            "hashesToTransplant": [self.random.choice(self.hashes[source])],
            "isDryRun": self.random.random() < 0.2,
        }
        return [
            Asked(
                "POST",
                f"/api/v2/trees/{self.at(target)}/history/transplant",
                body | self.behaviors(),
            ),
            *self.reads(target),
        ]

    def reads(self, name: str | None = None) -> list[Asked]:
        """Returns one or two reads of a reference."""
        name = name or self.random.choice(list(self.heads))
        other = self.random.choice(list(self.heads))
        here, there = quote(name, safe=""), quote(other, safe="")
        step = self.random.choice(["", "", "~1", "%5E1", "~2"])
        limit = self.random.randint(1, 5)
        return self.random.sample(
            [
                Asked("GET", f"/api/v2/trees/{here}{step}/entries?content=true"),
                Asked("GET", f"/api/v2/trees/{here}/entries?max-records={limit}"),
                Asked(
                    "GET",
                    f"/api/v2/trees/{here}/entries?filter={quote(self.random.choice(FILTERS))}",
                ),
                Asked("GET", f"/api/v2/trees/{here}/entries?min-key=b&max-key=n.b"),
                Asked("GET", f"/api/v2/trees/{here}/entries?prefix-key=n"),
                Asked("GET", f"/api/v2/trees/{here}/history?fetch=ALL&max-records={limit}"),
                Asked("GET", f"/api/v2/trees/{here}/diff/{there}{step}"),
                Asked("GET", f"/api/v2/trees/{here}/contents?key=a&key=n.a&key=never"),
                Asked("GET", f"/api/v2/trees/{here}{step}/contents/n.m.x"),
                Asked("GET", f"/api/v2/trees/{here}{step}?fetch=ALL"),
                Asked("GET", f"/api/v1/trees/tree/{here}/log?fetch=ALL&maxRecords={limit}"),
                Asked("GET", f"/api/v1/trees/tree/{here}/entries?namespaceDepth={limit}"),
                Asked("GET", f"/api/v1/contents/n.a?ref={here}"),
                Asked("GET", f"/api/v1/diffs/{here}...{there}"),
            ],
            self.random.randint(1, 2),
        )

    # -- answers --

    def learn(self, asked: Asked, status: int, body: Any) -> None:
        """Learns from an answer of the original."""
        if status != 200 or not isinstance(body, dict):
            return
        if (
            asked.path.endswith("/entries?content=true")
            and "~" not in asked.path
            and "%5E" not in asked.path
        ):
            self.contents = {
                tuple(entry["name"]["elements"]): entry["content"] for entry in body["entries"]
            }
        if asked.path == "/api/v2/trees" and asked.method == "GET":
            self.heads = {ref["name"]: (ref["type"], ref["hash"]) for ref in body["references"]}
            for name, (_, hash_) in self.heads.items():
                hashes = self.hashes.setdefault(name, [])
                if hash_ != EMPTY and hash_ not in hashes:
                    hashes.append(hash_)


def put(key: Key, content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "PUT", "key": {"elements": list(key)}, "content": content}


def delete(key: Key) -> dict[str, Any]:
    return {"type": "DELETE", "key": {"elements": list(key)}}
