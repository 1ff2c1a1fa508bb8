from msgspec import json, to_builtins

from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.server.http.streams import MOST, LogEntryCache
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
        cache = LogEntryCache()
        for entry in entries(repository):
            encoded = cache.log_entry(entry)
            assert json.decode(encoded) == json.decode(json.encode(BareLogEntry.of(entry)))
            assert cache.log_entry(entry) is encoded
        whole = entries(repository, operations=True)
        assert [to_builtins(cache.log_entry(entry)) for entry in whole] == [
            to_builtins(BareLogEntry.of(entry)) for entry in whole
        ]


def test_the_number_of_cached_entries_is_limited():
    cache = LogEntryCache()
    for number in range(3 * MOST):
        cache._keep(str(number), b"piece")
    assert len(cache._young) + len(cache._old) <= 2 * MOST
