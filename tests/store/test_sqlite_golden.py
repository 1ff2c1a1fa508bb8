"""A store file of each released format can still be read.

The files in `golden/` are never rewritten.
"""

from gzip import decompress
from pathlib import Path

import pytest

from nessie_cli.store.records import STORE_FORMAT, Done, StoredReference
from nessie_cli.store.sqlite import open_sqlite
from tests.store.samples import COMMIT, NODE, VALUE, a_move, an_object, commit, id_of, write

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("format_", range(1, STORE_FORMAT + 1))
def test_a_store_of_every_released_format_is_read_and_written(tmp_path: Path, format_: int) -> None:
    path = tmp_path / "old.sqlite"
    path.write_bytes(decompress((GOLDEN / f"format_{format_}.sqlite.gz").read_bytes()))
    store = open_sqlite(str(path))
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
    assert write(store, commit("main", "next", "after")) == Done()
    store.close()
