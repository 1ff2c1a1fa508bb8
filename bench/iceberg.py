"""The Iceberg REST catalog beside Iceberg's reference server and the original server.

The reference server stores its tables in a folder. The original needs an object store, so it is
compared with ours on the S3 of a moto server. All servers run at once, each in its own process; the
rows are measured in turns. The reference server and ours store their catalogs in SQLite files, the
original in RocksDB.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from math import nan
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.commands import How
from bench.report import MILLI, Line
from bench.traffic import OK, Answer, Request, Script, Server, drive
from nessie_cli import create
from tests.gc.s3 import KEY, SECRET
from tests.interop.machine import compiled
from tests.interop.reference import reference
from tests.maven import Unavailable
from tests.original.server import original

TURNS = 3
AHEAD, CONDITIONAL = 1.0, 3.0
NOT_MODIFIED = 304
AGAIN = frozenset({409, 429, 500, 502, 503, 504})
"""Statuses of a busy server or a contested branch, after which an append is sent again."""
TRIES = 20
HEAP = "-Xmx4g"
FIELDS = 20
Body = dict[str, Any]


class _Scale(NamedTuple):
    """Listed tables, snapshots of the loaded table, seconds of a turn and of the warm-up."""

    tables: int = 1_000
    snapshots: int = 50
    seconds: float = 1.5
    warm: float = 3.0


_SMALL = _Scale(20, 3, 0.3, 0.3)


class _Row(NamedTuple):
    """One kind of load."""

    what: str
    scripts: Callable[[Catalog, float, int], list[Script]]
    goal: float


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns rates as ratios."""
    scale = _SMALL if how.small else _Scale()
    rows = [row for row in _ROWS if how.only in row.what]
    if _LIST not in rows:
        scale = scale._replace(tables=0)
    with ExitStack() as stack:
        for ours, other, name in _pairs(scratch, stack):
            for one in (ours, other):
                one.fill(scale)
            for clients in (1, 8):
                for row in rows:
                    yield _line(row, clients, {"ours": ours, name: other}, scale)


def _line(row: _Row, clients: int, catalogs: dict[str, Catalog], scale: _Scale) -> Line:
    """Returns the line of a row. If a server fails, it has the error instead of a value."""
    many = f"{clients} client{'s' if clients > 1 else ''}"
    what = f"{row.what}, {many}: {' : '.join(catalogs)}"
    taken: dict[str, list[float]] = {name: [] for name in catalogs}
    spent = dict.fromkeys(catalogs, 0.0)
    for turn in range(TURNS + 1):
        for name, one in catalogs.items():
            try:
                scripts = row.scripts(one, scale.seconds if turn else scale.warm, clients)
                begun = time.perf_counter()
                times = drive(one.server, scripts)
            except (RuntimeError, OSError) as error:
                return Line(what, nan, "x", row.goal, f"given up: {name}: {error}", at_least=True)
            if turn:
                taken[name] += times
                spent[name] += time.perf_counter() - begun
    rates = [len(taken[name]) / spent[name] for name in catalogs]
    medians = [MILLI * sorted(times)[len(times) // 2] for times in taken.values()]
    made_of = " : ".join(
        f"{rate:,.0f}/s, p50 {median:.2f} ms" for rate, median in zip(rates, medians, strict=True)
    )
    return Line(what, rates[0] / rates[1], "x", row.goal, made_of, at_least=True)


# -- clients ---------------------------------------------------------------------------------------


class Catalog:
    """An Iceberg REST catalog and its tables; the URL is the parent of `namespaces`."""

    def __init__(self, url: str) -> None:
        self.server = Server(url)
        self._base = "/" + url.split("/", 3)[3]
        self._made = 0

    def request(self, method: str, path: str, body: Body | None = None, more: str = "") -> bytes:
        """Returns the bytes of a request."""
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        head = f"{method} {self._base}/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n{more}"
        if body is not None:
            head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
        return f"{head}\r\n".encode() + data

    def ask(self, method: str, path: str, body: Body | None = None) -> Body:
        """Returns the answer to a request."""
        found: Body = json.loads(self.server.ask(self.request(method, path, body))[0].body)
        return found

    def fill(self, scale: _Scale) -> None:
        """Creates the tables of the listing, and one with snapshots."""
        for name in ("many", "one", "written"):
            self.ask("POST", "namespaces", {"namespace": [name]})
        for number in range(scale.tables):
            self.ask("POST", "namespaces/many/tables", table(f"t{number}"))
        made = self.ask("POST", "namespaces/one/tables", table("t"))["metadata"]
        for number in range(1, scale.snapshots + 1):
            self.ask("POST", "namespaces/one/tables/t", append(made, number))

    def loads(self, seconds: float, clients: int) -> list[Script]:
        """Clients that load a table."""
        asked = self.request("GET", "namespaces/one/tables/t")
        return [_reader(asked, seconds, OK) for _ in range(clients)]

    def conditional(self, seconds: float, clients: int) -> list[Script]:
        """Clients that load a table whose ETag they have."""
        asked = self.request(
            "GET", "namespaces/one/tables/t", more=f"if-none-match: {self._tag()}\r\n"
        )
        return [_reader(asked, seconds, OK, NOT_MODIFIED) for _ in range(clients)]

    def _tag(self) -> str:
        """Returns the ETag of the table, or one that never matches."""
        with socket.create_connection(self.server.address) as connection:
            connection.sendall(
                self.request("GET", "namespaces/one/tables/t", more="connection: close\r\n")
            )
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(1 << 16)
        found = re.search(rb"(?i)\r\netag: *([^\r]+)", head)
        return found[1].decode() if found else '"none"'

    def lists(self, seconds: float, clients: int) -> list[Script]:
        """Clients that list all tables of a namespace."""
        asked = self.request("GET", "namespaces/many/tables")
        return [_reader(asked, seconds, OK) for _ in range(clients)]

    def appends(self, seconds: float, clients: int) -> list[Script]:
        """Clients that each append to their own table."""
        return [self._appender(seconds) for _ in range(clients)]

    def _appender(self, seconds: float) -> Script:
        self._made += 1
        name = f"t{self._made}"
        made = self.ask("POST", "namespaces/written/tables", table(name))["metadata"]
        return self._appends(name, made, seconds)

    def _appends(self, name: str, made: Body, seconds: float) -> Script:
        until = time.perf_counter() + seconds
        for number in count(1):
            asked = self.request("POST", f"namespaces/written/tables/{name}", append(made, number))
            answer = yield Request(asked)
            for _ in range(TRIES):
                if answer.status not in AGAIN:
                    break
                answer = yield Request(asked, again=True)
            _check(answer, OK)
            if time.perf_counter() >= until:
                return


_LIST = _Row("list 1,000 tables", Catalog.lists, AHEAD)
_ROWS = (
    _Row("load a table", Catalog.loads, AHEAD),
    _Row("load with If-None-Match", Catalog.conditional, CONDITIONAL),
    _LIST,
    _Row("commit an append", Catalog.appends, AHEAD),
)


def table(name: str) -> Body:
    """Returns the body that creates a table."""
    fields = [
        {"id": number, "name": f"column_{number}", "type": "long", "required": False}
        for number in range(1, FIELDS + 1)
    ]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    # The original requires the attribute for staged creation.
    return {"name": name, "schema": schema, "stage-create": False}


def append(metadata: Body, number: int) -> Body:
    """Returns the body that appends the snapshot `number` to a table."""
    id_ = 1_000_000 + number
    snapshot = {
        "snapshot-id": id_,
        "sequence-number": number,
        "timestamp-ms": metadata["last-updated-ms"] + number,
        "manifest-list": f"{metadata['location']}/metadata/snap-{id_}.avro",
        "summary": {"operation": "append", "added-records": "1", "total-records": str(number)},
        "schema-id": 0,
    }
    before: int | None = None
    if number > 1:
        before = snapshot["parent-snapshot-id"] = id_ - 1
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": before},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": id_,
            },
        ],
    }


def _reader(asked: bytes, seconds: float, *statuses: int) -> Script:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        answer = yield Request(asked)
        _check(answer, *statuses)


def _check(answer: Answer, *statuses: int) -> None:
    if answer.status not in statuses:
        raise RuntimeError(f"{answer.status} {answer.body[:300]!r}")


# -- servers ---------------------------------------------------------------------------------------


def _pairs(scratch: Path, stack: ExitStack) -> Iterator[tuple[Catalog, Catalog, str]]:
    """Yields our server and another one on warehouses of the same kind."""
    for name, pair in (("the reference server", _in_folders), ("the original", _in_s3)):
        folder = scratch / f"iceberg-{name.replace(' ', '-')}"
        folder.mkdir()
        try:
            ours, other = pair(folder, stack)
        except Unavailable as error:
            print(f"{name} is not measured: {error}", file=sys.stderr)
        else:
            yield Catalog(ours), Catalog(other), name


def _in_folders(folder: Path, stack: ExitStack) -> tuple[str, str]:
    classes = folder / "classes"
    classes.mkdir()
    other = reference(
        compiled(classes),
        folder / "reference",
        f"jdbc:sqlite:{folder}/reference.sqlite?busy_timeout=60000",
        options=[HEAP],
    )
    ours = _ours(folder, "--warehouse", f"lake={(folder / 'ours').as_uri()}")
    return stack.enter_context(ours), f"{stack.enter_context(other)}/v1"


def _in_s3(folder: Path, stack: ExitStack) -> tuple[str, str]:
    endpoint = stack.enter_context(_moto())
    settings = {
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": "s3://lake/original",
        "nessie.catalog.service.s3.default-options.endpoint": endpoint,
        "nessie.catalog.service.s3.default-options.region": "us-east-1",
        "nessie.catalog.service.s3.default-options.path-style-access": "true",
        "nessie.catalog.service.s3.default-options.access-key": "urn:nessie-secret:quarkus:key",
        "key.name": KEY,
        "key.secret": SECRET,
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    other = stack.enter_context(original(folder, folder / "rocksdb", "4g", options=options))
    (folder / "warehouses.toml").write_text(
        f"""
        [warehouse.lake]
        location = "s3://lake/ours"
        [warehouse.lake.storage]
        "s3.endpoint" = "{endpoint}"
        "s3.region" = "us-east-1"
        "s3.access-key-id" = "{KEY}"
        "s3.secret-access-key" = "{SECRET}"
        """
    )
    (folder / "warehouses.toml").chmod(0o600)
    ours = stack.enter_context(_ours(folder, "--warehouses", str(folder / "warehouses.toml")))
    return ours, f"{other.url}/iceberg/v1/{quote('main|lake', safe='')}"


@contextmanager
def _ours(folder: Path, *options: str) -> Iterator[str]:
    store = folder / "catalog.sqlite"
    create(f"sqlite:///{store}").close()
    words = ["serve", "--store", str(store), "--port", "0", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "nessie_cli", *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r"http://\S+?:\d+", said)
        assert found, said
        yield f"{found[0]}/iceberg/v1/main"
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def _moto() -> Iterator[str]:
    """Yields the URL of an S3 with the bucket `lake`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        from pyarrow.fs import S3FileSystem

        S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}",
            scheme="http",
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            allow_bucket_creation=True,
        ).create_dir("lake")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
