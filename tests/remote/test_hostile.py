"""Answers of a hostile server: limits, listings without an end, and invalid JSON everywhere.

Each ends with one line that names the server, never with an internal error.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from nessie_cli import connect
from nessie_cli.errors import NessieError, StoreUnavailable
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.remote.opening import open_remote
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.repository.remote.transport import Transport
from nessie_cli.revisions import parse
from tests.command.process import Nessie
from tests.remote.listening import Answer, Request, forward, listening
from tests.server.serving import serving

JSON = {"Content-Type": "application/json"}
MIB = 1 << 20
SAMPLE = int(os.environ.get("NESSIE_TEST_HOSTILE", "60"))
"""Hostile answers to each operation."""


def log_at(nessie: Nessie, answering: Callable[[Request], Answer], *args: str) -> str:
    """Returns the error of a command that fails because of its server's answer."""
    with listening(answering) as url:
        outcome = nessie(*(args or ("log",)), env={"NESSIE_ENDPOINT": url, "NESSIE_TIMEOUT": "5"})
    assert (outcome.code, outcome.out) == (7, ""), outcome
    line = outcome.err.splitlines()[0]
    assert line.startswith(f"nessie: server {url}/api/v2: "), outcome.err
    return line


# -- size ------------------------------------------------------------------------------------------


def _bomb(size: int) -> bytes:
    """Returns spaces, compressed in as few bytes as possible."""
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([*(pack.compress(b" " * MIB) for _ in range(size // MIB)), pack.flush()])


def test_an_answer_that_expands_beyond_the_limit_is_refused(nessie: Nessie) -> None:
    bomb = _bomb(1024 * MIB)
    assert len(bomb) < 2 * MIB
    headers = {**JSON, "Content-Encoding": "gzip"}
    line = log_at(nessie, lambda _: Answer(body=bomb, headers=headers))
    assert "its answer is larger than 256 MiB, the limit of this client" in line


def test_many_members_of_gzip_are_one_answer_and_have_one_limit(nessie: Nessie) -> None:
    headers = {**JSON, "Content-Encoding": "gzip"}
    members = gzip.compress(b" " * MIB) * 300
    line = log_at(nessie, lambda _: Answer(body=members, headers=headers))
    assert "larger than 256 MiB" in line


@pytest.mark.parametrize("value", [b"{}", b"[]", b"0", b'{"a":0}'])
def test_an_answer_of_too_many_values_is_refused_before_it_is_read(
    nessie: Nessie, value: bytes
) -> None:
    body = b"[" + (value + b",") * 10_000_000 + value + b"]"
    line = log_at(nessie, lambda _: Answer(body=body, headers=JSON))
    assert "its answer has more than 10,000,000 JSON values, the limit of this client" in line


@pytest.mark.parametrize(
    "head",
    [
        "Transfer-Encoding: chunked",
        "Content-Length: 999999999999",
        "Connection: close",
        "Transfer-Encoding: chunked\r\nContent-Encoding: gzip",
    ],
)
def test_an_answer_without_an_end_is_refused(nessie: Nessie, head: str) -> None:
    data = gzip.compress(b"") * 3000 if "gzip" in head else b" " * MIB
    part = b"%x\r\n%s\r\n" % (len(data), data) if "chunked" in head else data

    def send(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        while True:
            connection.sendall(part)

    with raw_server(send) as url:
        outcome = nessie("log", env={"NESSIE_ENDPOINT": url, "NESSIE_TIMEOUT": "1"})
    assert outcome.code == 7
    assert "the limit of this client" in outcome.err
    assert outcome.err.startswith(f"nessie: server {url}/api/v2: its answer is ")


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"Content-Encoding": "br"}, b"{}", "compressed in a way that was not requested"),
        ({"Content-Encoding": "gzip, gzip"}, b"{}", "compressed in a way that was not requested"),
        ({"Content-Encoding": "gzip"}, b"{}", "cannot be decompressed (gzip)"),
    ],
)
def test_an_answer_that_cannot_be_decompressed_is_refused(
    nessie: Nessie, headers: dict[str, str], body: bytes, expected: str
) -> None:
    assert expected in log_at(nessie, lambda _: Answer(body=body, headers=JSON | headers))


# -- time ------------------------------------------------------------------------------------------


@contextmanager
def raw_server(send: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yields the URL of a server that sends what `send` does, once it has got a request."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def answer(connection: socket.socket) -> None:
        try:
            connection.recv(65536)
            send(connection)
        except OSError:
            pass

    def accept() -> None:
        while True:
            try:
                connections.append(listener.accept()[0])
            except OSError:
                return
            threading.Thread(target=answer, args=(connections[-1],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-Long: ", b""])
def test_an_answer_that_comes_a_byte_at_a_time_has_a_limit(nessie: Nessie, head: bytes) -> None:
    head = head or b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"

    def send(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)

    with raw_server(send) as url:
        outcome = nessie("log", env={"NESSIE_ENDPOINT": url, "NESSIE_TIMEOUT": "0.3"})
    assert outcome.code == 7
    assert outcome.err == (
        f"nessie: server {url}/api/v2: its answer is not complete after 3 seconds, the limit of"
        " this client (10 times NESSIE_TIMEOUT)\n"
    )


def test_a_write_whose_answer_exceeds_a_limit_may_have_happened(
    nessie: Nessie, server: str
) -> None:
    bomb = _bomb(257 * MIB)
    writes = []

    def answering(request: Request) -> Answer:
        if request.method == "POST":
            writes.append(request.path)
            return Answer(body=bomb, headers={**JSON, "Content-Encoding": "gzip"})
        return forward(server, request)

    with listening(answering) as url:
        outcome = nessie("branch", "b", env={"NESSIE_ENDPOINT": url})
    assert outcome.code == 7
    assert "larger than 256 MiB" in outcome.err
    assert "what was sent may have happened" in outcome.err
    assert len(writes) == 1


# -- JSON ------------------------------------------------------------------------------------------

DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (DEEP, "the JSON of its answer is nested too deeply"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "the JSON of its answer is nested too deeply"),
        (f'{{"maxSupportedApiVersion": {DIGITS}}}', "has a number of too many digits"),
    ],
)
@pytest.mark.parametrize("status", [200, 404, 503])
def test_json_that_python_does_not_read_is_named(
    nessie: Nessie, status: int, body: str, expected: str
) -> None:
    line = log_at(nessie, lambda _: Answer(status, body.encode(), JSON))
    assert expected in line


# -- listings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [["a"], ["a", "b"], [""]])
def test_a_listing_that_repeats_a_page_token_is_refused(
    nessie: Nessie, server: str, tokens: Sequence[str]
) -> None:
    pages: list[str] = []

    def answering(request: Request) -> Answer:
        if not request.path.startswith("/api/v2/trees?"):
            return forward(server, request)
        pages.append(request.path)
        token = tokens[len(pages) % len(tokens)]
        body = {"hasMore": True, "token": token, "references": []}
        return Answer(body=json.dumps(body).encode())

    line = log_at(nessie, answering, "branch", "--list")
    assert "its listing (references) does not end: it repeats a page token" in line
    assert len(pages) == len(tokens) + 1


def test_a_listing_of_endless_empty_pages_is_refused(nessie: Nessie, server: str) -> None:
    pages: list[str] = []

    def answering(request: Request) -> Answer:
        if not request.path.startswith("/api/v2/trees?"):
            return forward(server, request)
        pages.append(request.path)
        body = {"hasMore": True, "token": f"page {len(pages)}", "references": []}
        return Answer(body=json.dumps(body).encode())

    line = log_at(nessie, answering, "branch", "--list")
    assert "its listing (references) does not end: 100 pages in a row are empty" in line
    assert len(pages) == 100


def test_a_listing_with_some_empty_pages_is_read(nessie: Nessie, server: str) -> None:
    """A server ends a page early if its filter takes long."""
    pages: list[str] = []
    branch = {"type": "BRANCH", "name": "last", "hash": NO_ANCESTOR}

    def answering(request: Request) -> Answer:
        if not request.path.startswith("/api/v2/trees?"):
            return forward(server, request)
        pages.append(request.path)
        is_last = len(pages) == 200
        body = {
            "hasMore": not is_last,
            "token": None if is_last else f"page {len(pages)}",
            "references": [branch | {"name": f"b{len(pages)}"}] if len(pages) % 100 == 0 else [],
        }
        return Answer(body=json.dumps(body).encode())

    with listening(answering) as url:
        outcome = nessie("branch", "--list", env={"NESSIE_ENDPOINT": url})
    assert outcome.code == 0, outcome
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == ["b100", "b200"]


def test_a_listing_of_endless_records_is_refused(server: str) -> None:
    pages: list[str] = []

    def answering(request: Request) -> Answer:
        if not request.path.startswith("/api/v2/trees?"):
            return forward(server, request)
        pages.append(request.path)
        branch = {"type": "BRANCH", "name": f"b{len(pages)}", "hash": NO_ANCESTOR}
        body = {"hasMore": True, "token": f"page {len(pages)}", "references": [branch]}
        return Answer(body=json.dumps(body).encode())

    with listening(answering) as url:
        transport = Transport(f"{url}/api/v2")
        session = RestSession(transport, os.urandom, most_pages=300)
        with pytest.raises(StoreUnavailable, match="does not end: it has more than 300 pages"):
            list(session.pages("trees", "references", {}, str))
        transport.close()
    assert len(pages) == 300


# -- every place of every answer -------------------------------------------------------------------

TABLE, OTHER = ContentKey(("db", "t")), ContentKey(("db", "u"))
META = CommitMeta(message="more")


def _table(snapshot: int, id_: str | None = None) -> IcebergTable:
    return IcebergTable(
        id=id_,
        metadata_location=f"s3://lake/{snapshot}",
        snapshot_id=snapshot,
        schema_id=0,
        spec_id=0,
        sort_order_id=0,
    )


def fill(repository: Repository) -> None:
    """Makes two branches that have diverged in one table, a tag, and a deleted key."""
    first = [Put(ContentKey(("db",)), Namespace(elements=("db",))), Put(TABLE, _table(1))]
    repository.commit("main", first, META)
    repository.commit("main", [Put(OTHER, _table(2))], META)
    head = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    repository.create_reference(ReferenceType.TAG, "v1", head, message="one")
    id_ = repository.content("main", TABLE).id
    repository.commit("dev", [Put(TABLE, _table(3, id_), _table(1, id_))], META)
    repository.commit("main", [Delete(OTHER)], META)


def _conflicting(repository: Repository) -> object:
    before = repository.reference("main").hash
    id_ = repository.content("main", TABLE).id
    repository.commit("main", [Put(TABLE, _table(5, id_), _table(1, id_))], META)
    old = [Put(TABLE, _table(6, id_), _table(1, id_))]
    return repository.commit("main", old, META, expected_hash=before)


def _hash(repository: Repository, name: str) -> str:
    return repository.reference(name).hash


OPERATIONS: dict[str, Callable[[Repository], object]] = {
    "config": lambda r: r.config(),
    "reference": lambda r: r.reference("main", metadata=True),
    "resolve": lambda r: r.resolve(parse("main~1")),
    "resolve a time": lambda r: r.resolve(parse("main*2040-01-01T00:00:00Z")),
    "references": lambda r: list(r.references(metadata=True)),
    "reflog": lambda r: list(r.reflog()),
    "reflog of one": lambda r: list(r.reflog("main")),
    "messages": lambda r: r.messages(["v1"]),
    "log": lambda r: list(r.log("main", operations=True)),
    "log of all parents": lambda r: list(r.log("main", all_parents=True)),
    "log of key": lambda r: list(r.log_of_key("main", TABLE)),
    "commit at": lambda r: r.commit_at("dev"),
    "entries": lambda r: list(r.entries("main", content=True)),
    "contents": lambda r: r.contents("main", [TABLE, ContentKey(("db",))]),
    "content": lambda r: r.content("dev", TABLE),
    "diff": lambda r: list(r.diff("main", "dev")),
    "last change": lambda r: r.last_change("dev", TABLE),
    "merge base": lambda r: r.merge_base("main", "dev"),
    "is ancestor": lambda r: r.is_ancestor("v1", "dev"),
    "ahead behind": lambda r: r.ahead_behind("dev", "main"),
    "divisions": lambda r: r.divisions("main", 3),
    "commit": lambda r: r.commit("main", [Put(ContentKey(("new",)), _table(9))], META),
    "conflicting commit": _conflicting,
    "merge": lambda r: r.merge("main", "dev"),
    "dry merge": lambda r: r.merge("main", "dev", MergeOptions(dry_run=True)),
    "conflicting merge": lambda r: (_conflicting(r), r.merge("main", "dev")),
    "transplant": lambda r: r.transplant("main", [_hash(r, "dev")]),
    "create": lambda r: r.create_reference(ReferenceType.BRANCH, "x", _hash(r, "dev")),
    "assign": lambda r: r.assign_reference("v1", _hash(r, "dev"), expected_hash=_hash(r, "v1")),
    "rename": lambda r: r.rename_reference("v1", "v2", expected_hash=_hash(r, "v1")),
    "delete": lambda r: r.delete_reference("v1", expected_hash=_hash(r, "v1")),
    "setting": lambda r: r.put_setting("protected", "main"),
    "find request": lambda r: r.find_request("0" * 32, branch="main"),
}
HOSTILE: Sequence[Any] = (
    None,
    True,
    "",
    "\u0000\x1b[2J",
    "main",
    -1,
    10**4000,
    1e308,
    [],
    {},
    [[]],
    {"type": "X", "elements": [""]},
    json.loads("[" * 400 + "]" * 400),
)
"""Values that take the place of another one in an answer."""


def places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yields the path of every value in a JSON value."""
    yield above
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*above, name))


def replaced(value: Any, place: Sequence[str | int], hostile: Any) -> Any:
    """Returns a copy of a JSON value with another value at a place."""
    if not place:
        return hostile
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], hostile)
    return copy


def _connected(url: str, *, extensions: bool) -> Repository:
    return open_remote(url, Access(timeout=30), lambda size: b"\0" * size, extensions=extensions)


def recorded(operation: Callable[[Repository], object], *, extensions: bool) -> dict[str, Answer]:
    """Returns the answers of a server that is not hostile, by request."""
    answers: dict[str, Answer] = {}
    without = () if extensions else ("nessie-cli",)

    with connect("memory:") as repository, serving(repository) as server:
        fill(repository)

        def answering(request: Request) -> Answer:
            answer = forward(server, request, without)
            answers.setdefault(f"{request.method} {request.path}", answer)
            return answer

        with listening(answering) as url, suppress(NessieError):
            operation(_connected(url, extensions=extensions))
    return answers


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("NESSIE_TEST_SEED") or random.randrange(2**32))


def _cycle(server: str, request: Request) -> Answer:
    """Returns the answer of a server whose commits are their own parents."""
    answer = forward(server, request)
    document = json.loads(answer.body)
    for entry in document.get("logEntries", ()):
        own = entry["commitMeta"]["hash"]
        entry["parentCommitHash"] = own
        entry["commitMeta"]["parentCommitHashes"] = [own]
    return answer._replace(body=json.dumps(document).encode())


@pytest.mark.parametrize(
    "name", ["merge base", "is ancestor", "ahead behind", "resolve", "log of all parents"]
)
def test_commits_that_are_their_own_parents_end_a_walk(name: str) -> None:
    with connect("memory:") as repository, serving(repository) as server:
        fill(repository)
        with listening(lambda request: _cycle(server, request)) as url, suppress(NessieError):
            OPERATIONS[name](_connected(url, extensions=False))


@pytest.mark.parametrize("extensions", [True, False], ids=["ours", "others"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_hostile_value_in_an_answer_is_an_error_of_the_server(
    name: str, extensions: bool, seed: int
) -> None:
    draw = random.Random(f"{seed} {name} {extensions}")
    answers = recorded(OPERATIONS[name], extensions=extensions)
    hostile: dict[str, Answer] = {}

    def answering(request: Request) -> Answer:
        line = f"{request.method} {request.path}"
        missing = {"status": 404, "errorCode": "UNKNOWN", "message": "gone", "reason": ""}
        absent = Answer(404, json.dumps(missing).encode())
        return hostile.get(line) or answers.get(line, absent)

    cases = [
        (line, place, value)
        for line, answer in answers.items()
        for place in places(json.loads(answer.body))
        for value in (*HOSTILE, NO_ANCESTOR)
    ]
    with listening(answering) as url:
        for line, place, value in draw.sample(cases, min(len(cases), SAMPLE)):
            answer = answers[line]
            body = json.dumps(replaced(json.loads(answer.body), place, value)).encode()
            hostile.clear()
            hostile[line] = answer._replace(body=body)
            try:
                OPERATIONS[name](_connected(url, extensions=extensions))
            except NessieError:
                pass
            except Exception as error:
                error.add_note(f"{line}: {place} = {str(value)[:60]} (seed {seed})")
                raise
