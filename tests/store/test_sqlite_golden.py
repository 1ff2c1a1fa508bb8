"""A store file of an older format can be loaded into a new store.

The files in `golden/` are never rewritten.
"""

from contextlib import closing
from gzip import decompress
from pathlib import Path

import apsw
import pytest

from nessie_cli.errors import DamagedObject, UnsupportedFormat
from nessie_cli.store.backup import load_backup
from nessie_cli.store.opening import create_store, open_store
from nessie_cli.store.records import Done, StoredReference
from tests.store.samples import COMMIT, NODE, VALUE, a_move, an_object, commit, id_of, write

GOLDEN = Path(__file__).parent / "golden" / "format_3.sqlite.gz"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.sqlite"
    path.write_bytes(decompress(GOLDEN.read_bytes()))
    return path


def test_a_store_of_format_3_is_loaded_into_a_new_one(old: Path, tmp_path: Path) -> None:
    before = old.read_bytes()
    url = str(tmp_path / "new.sqlite")
    counts = load_backup(str(old), url)
    assert (counts.references, counts.moves) == (2, 3)
    assert old.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"old.sqlite", "new.sqlite"}
    with pytest.raises(UnsupportedFormat, match="nessie store load"):
        open_store(str(old))
    with closing(open_store(url)) as store:
        objects = [
            an_object("root", COMMIT, 300),
            *commit("main", "root", "next").objects,
            an_object("empty", VALUE, 0),
            an_object("long", VALUE, 70_000),
        ]
        assert {o.id: o for o in store.scan()} == {o.id: o for o in objects}
        assert store.get([o.id for o in objects]) == {o.id: o.data for o in objects}
        assert store.find_ids(NODE, "", 9) == [id_of("node next")]
        assert store.references() == [
            StoredReference("main", "BRANCH", id_of("next")),
            StoredReference("v1", "TAG", id_of("next")),
        ]
        moves = [
            a_move("main", None, "root", message="made"),
            a_move("main", "root", "next", request_id="request 7"),
            a_move("v1", None, "next", kind="TAG"),
        ]
        assert [row.move for row in reversed(store.reflog())] == moves
        request = store.request("request 7")
        assert request is not None
        assert (request.caller, request.time) == (moves[1].who, moves[1].time)
        assert store.settings().values == {".default-branch": "main"}
        assert list(store.verify_file()) == []
        assert write(store, commit("main", "next", "after")) == Done()
        assert list(store.verify_file()) == []


def test_a_store_of_format_3_is_loaded_into_an_existing_one(old: Path, tmp_path: Path) -> None:
    new, existing = (str(tmp_path / f"{name}.sqlite") for name in ("new", "existing"))
    create_store(existing).close()
    assert load_backup(str(old), new) == load_backup(str(old), existing)
    with closing(open_store(new)) as first, closing(open_store(existing)) as second:
        assert first.references() == second.references()
        assert list(first.scan()) == list(second.scan())
        assert list(second.verify_file()) == []


def test_a_damaged_store_of_format_3_is_not_loaded(old: Path, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(old))) as connection:
        connection.execute("UPDATE reflog SET who = 'nobody' WHERE number = 2")
    url = str(tmp_path / "new.sqlite")
    with pytest.raises(DamagedObject, match="table reflog, row 2"):
        load_backup(str(old), url)
    assert [path.name for path in tmp_path.iterdir()] == ["old.sqlite"]
