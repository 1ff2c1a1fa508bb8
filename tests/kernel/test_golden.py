"""The format never changes: bytes and ids of every kind of object, and a store file of an
older program (tests/golden)."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from nessie_cli.kernel.forms import decode_commit, decode_node, decode_value
from nessie_cli.repository.opening import connect, create
from nessie_cli.store import STORE_FORMAT
from nessie_cli.store.backup import load_backup
from tests.golden.facts import COMMIT, objects, readable
from tests.golden.make_store import HERE, LATER
from tests.golden.story import CONTENTS, clock, one_more, randomness, tell

LOADED = 3
"""The older format that a program can load."""
OBJECTS = "objects-format-1.json"
"""Objects have had one format so far."""


def golden(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("part", list(golden(OBJECTS)))
def test_objects_have_their_golden_bytes_and_ids(part: str) -> None:
    assert plain(objects()[part]) == golden(OBJECTS)[part]


def test_ids_match_the_documentation() -> None:
    facts = golden(OBJECTS)
    assert facts["empty history"] == sha256(b"empty").hexdigest()
    for number, kind in ((1, "values"), (2, "nodes")):
        for entry in facts[kind].values():
            assert (
                entry["id"]
                == sha256(
                    b"nessie\x00\x01" + bytes([number]) + bytes.fromhex(entry["bytes"])
                ).hexdigest()
            )
    commit = facts["commit"]
    assert (
        commit["id"] == sha256(b"nessie\x00\x01\x03" + bytes.fromhex(commit["bytes"])).hexdigest()
    )
    assert (
        facts["empty tree"]
        == sha256(b"nessie\x00\x01\x02" + msgpack.encode([0, [], b""])).hexdigest()
    )


def test_golden_bytes_are_decoded() -> None:
    facts = golden(OBJECTS)
    for name, content in CONTENTS.items():
        data = bytes.fromhex(facts["values"][name]["bytes"])
        assert decode_value(data, "an id") == content.with_id("an id")
        assert json.loads(data)["type"] == content.type_name
    assert decode_commit(bytes.fromhex(facts["commit"]["bytes"])) == COMMIT
    assert decode_node(bytes.fromhex(facts["nodes"]["inner"]["bytes"])).count() == 3 + 65536


def test_the_same_history_has_the_same_hashes(tmp_path: Path) -> None:
    facts = golden(f"store-format-{LOADED}.json")
    for url in ("memory:", f"{tmp_path}/store.sqlite"):
        if url == "memory:":
            with create(url, clock=clock(), random=randomness(), who="golden") as repository:
                assert tell(repository) == facts["hashes"]
            continue
        with create(url, clock=clock(), random=randomness(), who="golden") as repository:
            assert tell(repository) == facts["hashes"]
            config = [*facts["readable"]["config"]]
            config[2] = str(STORE_FORMAT)
            # The program that wrote the golden file recorded no changes of settings.
            current = plain(readable(repository))
            current["reflog"] = [e for e in current["reflog"] if not e[1].startswith("setting:")]
            assert current == facts["readable"] | {"config": config}


def test_a_store_of_format_3_is_loaded_read_and_written(tmp_path: Path) -> None:
    facts = golden(f"store-format-{LOADED}.json")
    path = str(tmp_path / "new.sqlite")
    load_backup(str(HERE / f"store-format-{LOADED}.sqlite"), path)
    with connect(path) as repository:
        assert list(repository.check()) == []
    with connect(
        path, clock=clock(LATER["clock"]), random=randomness(LATER["random"]), who="golden"
    ) as repository:
        created, default_branch, settings = (
            facts["readable"]["config"][1],
            facts["readable"]["config"][0],
            facts["readable"]["config"][3],
        )
        assert plain(readable(repository)) == facts["readable"] | {
            "config": [default_branch, created, str(STORE_FORMAT), settings]
        }
        assert one_more(repository) == facts["later"]
        assert list(repository.check()) == []
    with connect(path) as repository:
        assert repository.reference("main").hash == facts["later"]
