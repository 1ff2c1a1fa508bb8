from msgspec import json, to_builtins

from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.server.http.streams import MOST, Pieces
from nessie_cli.wire.commits import BareLogEntry


def entries(repository, *, operations=False):
    return list(repository.log("main", operations=operations))


def test_an_entry_is_encoded_once():
    with connect("memory:") as repository:
        for number in range(3):
            repository.commit(
                "main",
                [Put(ContentKey((f"t{number}",)), IcebergTable(metadata_location="x"))],
                CommitMeta(f"c{number} ä"),
            )
        pieces = Pieces()
        for entry in entries(repository):
            piece = pieces.log_entry(entry)
            assert json.decode(piece) == json.decode(json.encode(BareLogEntry.of(entry)))
            assert pieces.log_entry(entry) is piece
        whole = entries(repository, operations=True)
        assert [to_builtins(pieces.log_entry(entry)) for entry in whole] == [
            to_builtins(BareLogEntry.of(entry)) for entry in whole
        ]


def test_the_number_of_cached_entries_is_limited():
    pieces = Pieces()
    for number in range(3 * MOST):
        pieces._keep(str(number), b"piece")
    assert len(pieces._young) + len(pieces._old) <= 2 * MOST
