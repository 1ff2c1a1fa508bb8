"""UUIDs that the server recognises as its own."""

from __future__ import annotations

import uuid

from nessie_cli.iceberg.warehouses.issuing import UuidIssuer
from nessie_cli.model import ContentKey, Secret

KEY = ContentKey(("db", "orders"))
CHANGE = "ab" * 32


def test_an_issued_uuid_is_recognised_for_its_branch_and_key_until_the_next_change() -> None:
    issuer = UuidIssuer(Secret("a" * 32))
    for _ in range(100):
        made = issuer.issue("main", KEY, CHANGE)
        assert issuer.has_issued(made, "main", KEY, CHANGE)
        assert not issuer.has_issued(made, "feature", KEY, CHANGE)
        assert not issuer.has_issued(made, "main", ContentKey(("db.orders",)), CHANGE)
        assert not issuer.has_issued(made, "main", KEY, "")
        assert not UuidIssuer(Secret("b" * 32)).has_issued(made, "main", KEY, CHANGE)


def test_issued_uuids_are_uuids_and_differ() -> None:
    issuer = UuidIssuer(Secret("a" * 32))
    made = [issuer.issue("main", KEY, CHANGE) for _ in range(1000)]
    assert len(set(made)) == 1000
    for one in made:
        parsed = uuid.UUID(one)
        assert str(parsed) == one
        assert parsed.version == 4
        assert parsed.variant == uuid.RFC_4122


def test_other_texts_are_not_recognised() -> None:
    issuer = UuidIssuer(Secret("a" * 32))
    made = issuer.issue("main", KEY, CHANGE)
    changed = made[:-1] + ("0" if made[-1] != "0" else "1")
    for bad in (
        str(uuid.uuid4()),
        changed,
        made.upper(),
        made.replace("-", ""),
        "",
        "é",
        f"{{{made}}}",
    ):
        assert not issuer.has_issued(bad, "main", KEY, CHANGE)
