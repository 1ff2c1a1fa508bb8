"""The range of keys that a filter of entries can match."""

from __future__ import annotations

import random

import pytest

from nessie_cli.model import ContentKey, Entry
from nessie_cli.wire.filter_range import prefix_of
from nessie_cli.wire.filters import FilterKind, compile_filter


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("entry.namespace == 'db'", ("db",)),
        ("'db' == entry.namespace", ("db",)),
        ("entry.namespace == 'a.b\\x1dc'", ("a", "b.c")),
        ("entry.encodedKey == 'a.b'", ("a", "b")),
        ("entry.namespace.startsWith('a.b.')", ("a", "b")),
        ("entry.namespace.startsWith('a.b')", ("a",)),
        ("entry.encodedKey.startsWith('a.b')", ("a",)),
        ("entry.namespace == 'a' && entry.contentType == 'ICEBERG_TABLE'", ("a",)),
        ("entry.contentType == 'UDF' && (entry.namespace == 'a' && entry.name == 'x')", ("a",)),
        ("entry.namespace.startsWith('a.b.') && entry.namespace == 'a.b.c'", ("a", "b", "c")),
        ("entry.namespace == ''", None),
        ("entry.namespace == 'a..b'", None),
        ("entry.namespace.startsWith('a')", None),
        ("entry.namespace == 'a' || entry.namespace == 'b'", None),
        ("!(entry.namespace == 'a')", None),
        ("entry.namespace != 'a'", None),
        ("entry.namespace == entry.name", None),
        ("entry.name == 'a'", None),
        ("entry.namespace == 'a' ? true : false", None),
        ("entry.namespace.endsWith('a.b')", None),
        ("'a.b.c'.startsWith(entry.namespace)", None),
        ("['a'].exists(one, entry.namespace == one)", None),
        ("true", None),
    ],
)
def test_the_prefix_follows_from_terms_that_must_be_true(text, prefix) -> None:
    assert prefix_of(text) == (ContentKey(prefix) if prefix else None)


def test_no_entry_that_a_random_filter_matches_is_outside_its_range() -> None:
    rng = random.Random(7)
    names = ["a", "b", "a.b", "ab", "c\u0301"]

    def term() -> str:
        literal = ".".join(
            rng.choice(names).replace(".", "\\x1d") for _ in range(rng.randrange(1, 3))
        )
        name = rng.choice(["namespace", "encodedKey", "name"])
        return rng.choice(
            [
                f"entry.{name} == '{literal}'",
                f"entry.{name}.startsWith('{literal}')",
                f"!entry.{name}.startsWith('{literal}')",
                "entry.contentType == 'NAMESPACE'",
            ]
        )

    entries = [
        Entry(
            ContentKey(tuple(rng.choice(names) for _ in range(rng.randrange(1, 4)))),
            "UDF",
            "x",
            "y",
        )
        for _ in range(200)
    ]
    matched = 0
    for _ in range(300):
        text = rng.choice([" && ", " || "]).join(term() for _ in range(rng.randrange(1, 4)))
        test, prefix = compile_filter(FilterKind.ENTRIES, text), prefix_of(text)
        for entry in filter(test, entries):
            matched += prefix is not None
            assert prefix is None or entry.key.starts_with(prefix), (text, entry)
    assert matched > 100
