"""A file from a stranger cannot make a reader expand compressed objects without a limit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from zlib import crc32

import pytest
import zstandard

from nessie_cli.errors import DamagedObject, InvalidInput
from nessie_cli.store.backup import back_up, load_backup
from nessie_cli.store.base import Store
from nessie_cli.store.opening import create_store, open_store
from nessie_cli.store.records import DamagedId, StoredObject
from nessie_cli.store.rows import LONGEST_OBJECT, RAW, ZSTD, pack, unpack, verified
from nessie_cli.store.sqlite.store import create_sqlite
from tests.store.postgres_server import new_url, shared_server
from tests.store.raw import raw
from tests.store.samples import COMMIT, NODE, VALUE, an_object, id_of
from tests.store.test_postgres_faults import schema_of

ID = id_of("bomb")
KINDS = ("sqlite", "postgres")


def sealed(payload: bytes, codec: int = ZSTD, id_: bytes = ID, kind: int = NODE) -> bytes:
    """Returns the stored form of any payload, with a right checksum."""
    checksum = crc32(payload, crc32(id_ + bytes([kind, codec])))
    return bytes([codec]) + checksum.to_bytes(4, "big") + payload


def zeros(size: int) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(bytes(size))


def announcing(size: int) -> bytes:
    """Returns a frame whose header announces a size that its content does not have."""
    honest = zstandard.ZstdCompressor(level=1).compress(bytes(1 << 20))
    # Magic number, descriptor (four bytes of content size), window, content size.
    assert honest[:5] == b"\x28\xb5\x2f\xfd\x80"
    return honest[:4] + b"\xc0" + honest[5:6] + size.to_bytes(8, "little") + honest[10:]


def endless() -> bytes:
    """Returns a frame without a size."""
    compressor = zstandard.ZstdCompressor(level=1, write_content_size=False)
    return compressor.compress(bytes(LONGEST_OBJECT + 1))


BOMBS: dict[str, Callable[[], bytes]] = {
    "one byte too large": lambda: sealed(zeros(LONGEST_OBJECT + 1)),
    "a gigabyte": lambda: sealed(announcing(1 << 30)),
    "an exabyte": lambda: sealed(announcing(1 << 60)),
    "a size beyond 63 bits": lambda: sealed(announcing((1 << 64) - 3)),
    "too large, not compressed": lambda: sealed(bytes(LONGEST_OBJECT + 1), RAW),
    "no size": lambda: sealed(endless()),
    "too small a size": lambda: sealed(announcing(100)),
}


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BOMBS)
def test_an_object_is_refused_before_it_expands(name: str) -> None:
    blob = BOMBS[name]()
    reason = "more than 64 MiB" if name.endswith(("large", "gigabyte")) else "MiB|decompressed"
    with memory_below(len(blob) + (1 << 20)), pytest.raises(ValueError, match=reason):
        unpack(ID, NODE, blob)


def test_the_largest_object_is_read_and_a_larger_one_is_not_written() -> None:
    for byte in (b"\0", b"a"):
        largest = byte * LONGEST_OBJECT
        assert unpack(ID, NODE, pack(ID, NODE, largest)) == largest
        with pytest.raises(InvalidInput, match="more than 64 MiB"):
            pack(ID, NODE, largest + byte)


@pytest.mark.parametrize("kind", KINDS)
def test_no_store_writes_an_object_that_it_would_not_read(tmp_path: Path, kind: str) -> None:
    with a_url(tmp_path, kind) as url, closing(create_store(url)) as store:
        with pytest.raises(InvalidInput, match="more than 64 MiB"):
            store.put([StoredObject(ID, NODE, bytes(LONGEST_OBJECT + 1))])
        assert store.count() == 0


@contextmanager
def a_url(folder: Path, kind: str) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder}/store.sqlite"
        return
    with new_url() as url:
        yield url


@pytest.fixture(params=KINDS)
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Foreign]:
    with a_url(tmp_path, request.param) as url:
        yield Foreign(url)


class Foreign:
    """A store to which another program writes objects."""

    def __init__(self, url: str) -> None:
        self.url = url
        create_store(url).close()

    def add(self, blobs: dict[bytes, bytes], kind: int = NODE) -> None:
        rows = [(kind, id_, blob) for id_, blob in blobs.items()]
        if self.url.startswith("sqlite:"):
            with raw(self.url.removeprefix("sqlite:///")) as file:
                file.executemany(
                    "INSERT INTO objects (kind, id, packed, written) VALUES (?, ?, ?, 1)", rows
                )
            return
        with shared_server().connect() as connection:
            connection.execute(f"SET search_path TO {schema_of(self.url)}")
            connection.cursor().executemany(
                "INSERT INTO objects (number, kind, id, data, written)"
                " VALUES (nextval('numbers') << 24, %s, %s, %s, 1)",
                rows,
            )


def dumped(store: Store) -> object:
    with store.dump() as dump:
        return list(dump.objects())


READS: dict[str, Callable[[Store], object]] = {
    "get": lambda store: store.get([ID]),
    "get many": lambda store: store.get([ID, *(id_of(str(n)) for n in range(9))]),
    "dump": dumped,
}


@pytest.mark.parametrize("read", READS)
def test_every_read_refuses_it(foreign: Foreign, read: str) -> None:
    foreign.add({ID: BOMBS["a gigabyte"]()})
    with closing(open_store(foreign.url)) as store, memory_below(10 << 20):
        with pytest.raises(DamagedObject, match=f"{ID.hex()} is damaged: it takes more") as caught:
            READS[read](store)
        assert caught.value.object_id == ID.hex()


def test_a_scan_reports_it_and_a_read_ahead_passes_over_it(foreign: Foreign) -> None:
    small = an_object("small", NODE)
    foreign.add({ID: BOMBS["a gigabyte"](), small.id: pack(small.id, NODE, small.data)})
    with closing(open_store(foreign.url)) as store, memory_below(10 << 20):
        [damaged] = [one for one in store.scan() if isinstance(one, DamagedId)]
        assert damaged.id == ID
        assert "more than 64 MiB" in damaged.reason
        assert store.written_before(small.id, NODE, 10) == {small.id: small.data}


def many(number: int, size: int) -> dict[bytes, bytes]:
    payload = zeros(size)
    ids = [id_of(f"many {n}") for n in range(number)]
    return {id_: sealed(payload, id_=id_) for id_ in ids}


def test_objects_that_are_read_together_have_a_limit(foreign: Foreign) -> None:
    """40 objects of 2 kB would take 2.5 GB."""
    foreign.add(blobs := many(40, LONGEST_OBJECT))
    with closing(open_store(foreign.url)) as store:
        limit = memory_below((1 << 30) + 2 * LONGEST_OBJECT)
        with limit, pytest.raises(DamagedObject, match="with others it takes more than 1 GiB"):
            store.get(list(blobs))
        [last] = store.get(list(blobs)[-1:]).values()
        assert len(last) == LONGEST_OBJECT


def test_a_read_ahead_has_the_limit_of_one_object(foreign: Foreign) -> None:
    foreign.add(blobs := many(8, LONGEST_OBJECT // 2))
    with closing(open_store(foreign.url)) as store, memory_below(2 * LONGEST_OBJECT):
        assert len(store.written_before(list(blobs)[-1], NODE, 8)) == 2


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("kind", [VALUE, NODE, COMMIT])
def test_a_backup_with_it_is_not_loaded(tmp_path: Path, target: str, kind: int) -> None:
    backup = tmp_path / "foreign.sqlite"
    create_sqlite(str(backup)).close()
    blob = sealed(announcing(1 << 30), kind=kind)
    Foreign(f"sqlite:///{backup}").add({ID: blob}, kind)
    with a_url(tmp_path, target) as url, memory_below(10 << 20):
        with pytest.raises(DamagedObject, match="more than 64 MiB"):
            load_backup(str(backup), url)
        with closing(create_store(url)) as store:
            assert store.count() == 0


def test_a_backup_with_it_is_not_made(foreign: Foreign, tmp_path: Path) -> None:
    foreign.add({ID: BOMBS["a gigabyte"]()})
    with pytest.raises(DamagedObject, match="more than 64 MiB"):
        back_up(foreign.url, str(tmp_path / "backup.sqlite"))
    assert not (tmp_path / "backup.sqlite").exists()


def test_a_checksum_is_verified_without_expanding() -> None:
    blob = sealed(zeros(LONGEST_OBJECT))
    with memory_below(1 << 20):
        verified(ID, NODE, blob)
