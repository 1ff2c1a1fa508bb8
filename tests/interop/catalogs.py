"""Random requests to Iceberg's reference server and to ours; the answers are compared.

`make test-iceberg` runs it. Ids, times, locations and the texts of errors may differ. The requests
avoid known differences of the reference server: dots in names, purge, registering over a table, and
transactions that fail. The reference server does not require parent namespaces, so they are always
created first.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import pytest

from tests.engines.served import WAREHOUSE, Served, serving
from tests.interop.machine import Machine, machine
from tests.interop.metadata import Document, Updates
from tests.interop.reference import reference

__all__ = ["machine"]

SEQUENCES = 25
STEPS = 40
BRANCH = "feature/x"
MASKED = frozenset(
    {
        "last-updated-ms", "message", "metadata-file", "metadata-location",
        "metadata-log", "stack", "table-uuid", "timestamp-ms", "uuid", "view-uuid",
    }
)  # fmt: skip
ABSENT = frozenset({"config", "created-at", "iceberg-version", "location"})
"""Members that only one of the servers writes: locations of namespaces, `created-at` of
tables."""
BAD = (400, 406)
"""Refusals of a request, whose types the reference server names by its own Java classes."""
FAULT = 500
"""The reference server's status for some bad requests."""
PARENTS = ("a", "b")
NAMESPACES = [(name,) for name in PARENTS] + [("a", "x"), ("b", "y z"), ("b", "ü|%+")]
NAMES = ("t", "u", "v w", "ü|%+&")
Namespace = tuple[str, ...]
Key = tuple[Namespace, str]


class Asked(NamedTuple):
    """A request. Names in `path` are tuples for namespaces; `{uuid}` in a body is the table's
    own."""

    method: str
    path: tuple[str | Namespace, ...]
    body: Document | None = None
    query: dict[str, str] = {}  # noqa: RUF012 - never changed
    of: Key | None = None
    """The table or view of `{uuid}` and `{file}` in the body."""


class Side:
    """One server, with the UUID and the metadata file of each table and view."""

    def __init__(self, url: str, separator: str) -> None:
        parts = urlsplit(url)
        # `requests` decodes `%2E`.
        self._connection = HTTPConnection(str(parts.hostname), parts.port or 80, timeout=60)
        self._base = parts.path
        self._separator = separator
        self._facts: dict[Key, dict[str, str]] = {}

    def close(self) -> None:
        self._connection.close()

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Returns status and body."""
        path = "/".join(self._segment(one) for one in asked.path)
        body = filled(asked.body, self._facts.get(asked.of, {}) if asked.of else {})
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        self._connection.request(asked.method, f"{self._base}/{path}{query}", data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status == FAULT:
            return FAULT, None
        found = json.loads(text or "null")
        if asked.of and isinstance(found, dict) and "metadata" in found:
            metadata = found["metadata"]
            self._facts[asked.of] = {
                "{uuid}": metadata.get("table-uuid") or metadata.get("view-uuid"),
                "{file}": found.get("metadata-location", ""),
            }
        return answer.status, found

    def _segment(self, one: str | Namespace) -> str:
        levels = (one,) if isinstance(one, str) else one
        return self._separator.join(quote(level, safe="") for level in levels)


def filled(value: Any, facts: dict[str, str]) -> Any:
    """Returns a body with its placeholders filled."""
    if isinstance(value, dict):
        return {name: filled(inner, facts) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, facts) for inner in value]
    return facts.get(value, value) if isinstance(value, str) else value


def comparable(status: int, body: Any) -> Any:
    """Returns the parts of an answer that must be equal."""
    if status in BAD:
        return BAD
    if status >= 400 and isinstance(body, dict):
        return status, body["error"]["code"], body["error"]["type"]
    return status, masked(body)


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: "…" if name in MASKED else in_order(name, masked(inner))
            for name, inner in value.items()
            # A member without a value equals a missing one.
            if inner is not None and name not in ABSENT
        }
    return [masked(inner) for inner in value] if isinstance(value, list) else value


def in_order(name: str, value: Any) -> Any:
    """Returns lists that are sets in one order."""
    sets = {
        "namespaces",
        "identifiers",
        "statistics",
        "partition-statistics",
        "updated",
        "removed",
        "missing",
    }
    return sorted(value, key=str) if name in sets and isinstance(value, list) else value


class Requests:
    """Makes random requests that mostly succeed, from the previous answers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._updates = Updates(seed, int(time.time() * 1000))
        self.namespaces: set[Namespace] = set()
        self.tables: dict[Key, Document] = {}
        self.views: dict[Key, Document] = {}

    def first(self) -> Iterator[Asked]:
        """Yields the requests that create two namespaces."""
        for name in PARENTS:
            yield Asked("POST", ("namespaces",), {"namespace": [name]})
            yield Asked("GET", ("namespaces", (name,)))

    def next(self) -> Iterator[Asked]:
        """Yields one or two requests: a change and a read of its result, or only a read."""
        makers = (
            self._namespace, self._create, self._create, self._commit, self._commit, self._commit,
            self._commit, self._read, self._read, self._rename, self._drop, self._register,
            self._transaction, self._create_view, self._replace_view, self._missing,
        )  # fmt: skip
        yield from (self._random.choice(makers) if self.namespaces else self.first)()

    # -- namespaces

    def _namespace(self) -> Iterator[Asked]:
        name = self._random.choice(NAMESPACES)
        if len(name) > 1 and name[:1] not in self.namespaces:
            return
        kind = self._random.choice(["create", "create", "create", "properties", "drop"])
        if kind == "create":
            properties = {"owner": self._random.choice("ab")}
            body = {"namespace": list(name), "properties": properties}
            yield Asked("POST", ("namespaces",), body)
        elif kind == "properties":
            removals, updates = self._random.choice(
                [(["owner"], {"x": "1"}), (["none"], {}), ([], {"owner": "c"}), (["x"], {"x": "2"})]
            )
            body = {"removals": removals, "updates": updates}
            yield Asked("POST", ("namespaces", name, "properties"), body)
        elif not self._has_children(name):
            yield Asked("DELETE", ("namespaces", name))
        yield Asked("GET", ("namespaces", name))
        yield Asked("HEAD", ("namespaces", name))
        yield Asked("GET", ("namespaces",))
        if name[:1] in self.namespaces:
            yield Asked("GET", ("namespaces",), query={"parent": name[0]})

    def _has_children(self, name: Namespace) -> bool:
        return any(one != name and one[: len(name)] == name for one in self.namespaces)

    # -- tables

    def _create(self) -> Iterator[Asked]:
        key = self._key(self._random.choice(NAMES))
        metadata = self._updates.first()
        schema = next(one["schema"] for one in metadata if one["action"] == "add-schema")
        version = next(
            one["format-version"] for one in metadata if one["action"] == "upgrade-format-version"
        )
        body = {
            "name": key[1],
            "schema": schema,
            "properties": {"format-version": str(version), "gc.enabled": "false"},
        }
        # The reference server ignores views when a table is staged.
        if key not in self.views and self._random.random() < 0.2:
            yield Asked("POST", ("namespaces", key[0], "tables"), body | {"stage-create": True})
        else:
            yield Asked("POST", ("namespaces", key[0], "tables"), body, of=key)
        yield Asked("GET", ("namespaces", key[0], "tables"))

    def _commit(self) -> Iterator[Asked]:
        key = self._one_of(self.tables)
        if key is None:
            return
        yield Asked("POST", table(key), self._change(key), of=key)
        yield Asked(
            "GET", table(key), query={"snapshots": self._random.choice(["all", "refs"])}, of=key
        )

    def _change(self, key: Key) -> Document:
        metadata = self.tables[key]
        updates = [
            one for one in self._updates.some(metadata)
            if one["action"] not in ("assign-uuid", "set-location")
        ]  # fmt: skip
        return {"requirements": self._requirements(metadata), "updates": updates}

    def _requirements(self, metadata: Document) -> list[Document]:
        refs = metadata.get("refs", {})
        made: list[Document] = [
            {"type": "assert-table-uuid", "uuid": "{uuid}"},
            {
                "type": "assert-current-schema-id",
                "current-schema-id": metadata["current-schema-id"],
            },
            {"type": "assert-default-spec-id", "default-spec-id": metadata["default-spec-id"]},
            {
                "type": "assert-last-assigned-field-id",
                "last-assigned-field-id": metadata["last-column-id"],
            },
            {
                "type": "assert-last-assigned-partition-id",
                "last-assigned-partition-id": metadata.get("last-partition-id", 999),
            },
            {
                "type": "assert-default-sort-order-id",
                "default-sort-order-id": metadata["default-sort-order-id"],
            },
            {
                "type": "assert-ref-snapshot-id",
                "ref": "main",
                "snapshot-id": refs.get("main", {}).get("snapshot-id"),
            },
        ]
        failing: list[Document] = [
            {"type": "assert-create"},
            {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-00000000000f"},
            {"type": "assert-current-schema-id", "current-schema-id": 77},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 987654321},
            {"type": "assert-nothing"},
        ]
        chosen = self._random.sample(made, self._random.randint(0, 2))
        if self._random.random() < 0.15:
            one = self._random.choice(failing)
            # For the reference server, a requirement of creation excludes all others.
            return [one] if one["type"] == "assert-create" else [*chosen, one]
        return chosen

    def _read(self) -> Iterator[Asked]:
        key = self._one_of(self.tables) or self._key("t")
        yield Asked(
            "GET", table(key), query={"snapshots": self._random.choice(["all", "refs"])}, of=key
        )
        yield Asked("HEAD", table(key))
        view = self._one_of(self.views) or self._key("v w")
        yield Asked("GET", ("namespaces", view[0], "views", view[1]), of=view)
        yield Asked("HEAD", ("namespaces", view[0], "views", view[1]))
        yield Asked("GET", ("namespaces", view[0], "views"))

    def _rename(self) -> Iterator[Asked]:
        kind, found = self._random.choice([("tables", self.tables), ("views", self.views)])
        key = self._one_of(found)
        if key is None:
            return
        to = self._key(self._random.choice(NAMES))
        body = {"source": identifier(key), "destination": identifier(to)}
        if to != key:
            yield Asked("POST", (kind, "rename"), body)
        for one in (key, to):
            yield Asked("GET", ("namespaces", one[0], kind, one[1]), of=one)

    def _drop(self) -> Iterator[Asked]:
        kind, found = self._random.choice([("tables", self.tables), ("views", self.views)])
        key = self._one_of(found)
        if key is not None:
            yield Asked("DELETE", ("namespaces", key[0], kind, key[1]))
            yield Asked("GET", ("namespaces", key[0], kind))

    def _register(self) -> Iterator[Asked]:
        source = self._one_of(self.tables)
        if source is not None:
            to = self._key(self._random.choice(NAMES))
            body = {"name": to[1], "metadata-location": "{file}"}
            yield Asked("GET", table(source), of=source)
            yield Asked("POST", ("namespaces", to[0], "register"), body, of=source)
            yield Asked("GET", table(to), of=to)
            yield Asked("GET", table(source), of=source)

    def _transaction(self) -> Iterator[Asked]:
        """Returns a transaction that succeeds: properties of some tables."""
        keys = self._random.sample(sorted(self.tables), min(len(self.tables), 3))
        if not keys:
            return
        changes = [
            {
                "identifier": identifier(key),
                "requirements": [],
                "updates": [{"action": "set-properties", "updates": {"step": str(number)}}],
            }
            for number, key in enumerate(keys)
        ]
        yield Asked("POST", ("transactions", "commit"), {"table-changes": changes})
        for key in keys:
            yield Asked("GET", table(key), of=key)

    # -- views

    def _create_view(self) -> Iterator[Asked]:
        key = self._key(self._random.choice(NAMES))
        body = {
            "name": key[1],
            "schema": {"schema-id": 0, "type": "struct", "fields": [column("id")]},
            "view-version": self._version(1, key[0]),
            "properties": {"p": "1"},
        }
        yield Asked("POST", ("namespaces", key[0], "views"), body, of=key)
        yield Asked("GET", ("namespaces", key[0], "views"))

    def _replace_view(self) -> Iterator[Asked]:
        key = self._one_of(self.views)
        if key is None:
            return
        uuid = self._random.choice(["{uuid}", "{uuid}", "00000000-0000-0000-0000-00000000000f"])
        updates: list[Document] = [
            {
                "action": "add-schema",
                "schema": {"type": "struct", "fields": [column(self._random.choice("ab"))]},
            },
            {"action": "add-view-version", "view-version": self._version(9, key[0], schema=-1)},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
        if self._random.random() < 0.3:
            updates = [{"action": "set-properties", "updates": {"p": self._random.choice("12")}}]
        body = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": updates}
        path = ("namespaces", key[0], "views", key[1])
        yield Asked("POST", path, body, of=key)
        yield Asked("GET", path, of=key)

    def _version(self, number: int, namespace: Namespace, schema: int = 0) -> Document:
        sql = f"SELECT {self._random.randint(1, 3)}"
        return {
            "version-id": number,
            "timestamp-ms": 1_700_000_000_000,
            "schema-id": schema,
            "summary": {},
            "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
            "default-namespace": list(namespace),
        }

    # -- missing objects

    def _missing(self) -> Iterator[Asked]:
        gone = (("gone",), "t")
        made = [
            Asked("GET", ("namespaces", gone[0])),
            Asked("HEAD", ("namespaces", gone[0])),
            Asked("GET", ("namespaces", gone[0], "tables")),
            Asked("GET", ("namespaces", gone[0], "views")),
            Asked("GET", table(gone)),
            Asked("DELETE", table(gone)),
            Asked("DELETE", ("namespaces", gone[0])),
            Asked("POST", ("namespaces", gone[0], "properties"), {"updates": {"a": "b"}}),
            Asked("POST", table(gone), {"requirements": [], "updates": []}),
        ]
        yield from self._random.sample(made, 2)

    # -- random choices

    def _key(self, name: str) -> Key:
        return self._random.choice(sorted(self.namespaces)), name

    def _one_of(self, found: dict[Key, Document]) -> Key | None:
        return self._random.choice(sorted(found)) if found else None

    def empty(self, side: Side) -> None:
        """Drops everything."""
        for namespace in sorted(self.namespaces, key=len, reverse=True):
            for kind in ("tables", "views"):
                _, body = side.answer(Asked("GET", ("namespaces", namespace, kind)))
                for one in body["identifiers"]:
                    side.answer(Asked("DELETE", ("namespaces", namespace, kind, one["name"])))
            side.answer(Asked("DELETE", ("namespaces", namespace)))

    def learn(self, asked: Asked, status: int, body: Any) -> None:
        """Learns from an answer."""
        path = asked.path
        if path[0] == "namespaces" and len(path) == 2 and asked.method == "GET":
            assert isinstance(path[1], tuple)
            (self.namespaces.add if status == 200 else self.namespaces.discard)(path[1])
        elif path[0] == "namespaces" and len(path) == 3 and asked.method == "GET" and status == 200:
            found = self.tables if path[2] == "tables" else self.views
            there = {(tuple(one["namespace"]), one["name"]) for one in body["identifiers"]}
            for key in [key for key in found if key[0] == path[1] and key not in there]:
                del found[key]
        elif asked.of and len(path) == 4 and asked.method == "GET":
            found = self.tables if path[2] == "tables" else self.views
            if status == 200:
                found[asked.of] = body["metadata"]
            else:
                found.pop(asked.of, None)
        elif asked.of and len(path) == 3 and status == 200 and path[2] in ("tables", "views"):
            found = self.tables if path[2] == "tables" else self.views
            found[asked.of] = body["metadata"]


def table(key: Key) -> tuple[str | Namespace, ...]:
    return ("namespaces", key[0], "tables", key[1])


def identifier(key: Key) -> Document:
    return {"namespace": list(key[0]), "name": key[1]}


def column(name: str) -> Document:
    return {"id": 1, "name": name, "required": False, "type": "long"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("lake")) as running:
        yield running


def test_answers_to_random_requests_equal_the_reference_servers(
    machine: Machine, served: Served, tmp_path: Path
) -> None:
    seen: Counter[int] = Counter()
    with reference(machine, tmp_path) as url:
        theirs = Side(f"{url}/v1", "%2E")
        for seed in range(SEQUENCES):
            branch = f"{BRANCH}{seed}"
            served.nessie("branch", branch, "main")
            prefix = quote(f"{branch}|{WAREHOUSE}", safe="")
            ours = Side(f"{served.url}/iceberg/v1/{prefix}", "%1F")
            made = Requests(seed)
            compare(seed, made, ours, theirs, seen)
            made.empty(theirs)
            ours.close()
        theirs.close()
    assert seen[200] > 10 * SEQUENCES
    assert seen[409] > SEQUENCES
    assert seen[404] > SEQUENCES


def compare(seed: int, made: Requests, ours: Side, theirs: Side, seen: Counter[int]) -> None:
    asked: list[Asked] = []
    for step in range(STEPS):
        for one in made.next() if step else made.first():
            asked.append(one)
            expected, found = theirs.answer(one), ours.answer(one)
            if expected[0] == FAULT:
                assert 400 <= found[0] < FAULT, (seed, one, found)
                continue
            assert comparable(*found) == comparable(*expected), (
                seed,
                len(asked),
                one,
                found,
                expected,
            )
            made.learn(one, *expected)
            seen[expected[0]] += 1
