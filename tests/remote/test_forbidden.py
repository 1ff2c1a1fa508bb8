"""Access that the rules of a server forbid is "not allowed" in the command line, even if the
content does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command.process import Nessie
from tests.server.client import EMPTY, namespace, put, table
from tests.server.guarding import guarded

RULES = (
    "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'LIST_COMMIT_LOG'] && role == 'reader'",
    (
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && role == 'reader' &&"
        " path.startsWith('public')"
    ),
    "op == 'READ_CONTENT_KEY' && role == 'reader' && path.startsWith('known')",
    "op == 'READ_ENTITY_VALUE' && role == 'reader' && path.startsWith('value')",
)


@pytest.fixture
def reader(nessie: Nessie, tmp_path: Path) -> Iterator[Nessie]:
    """A caller who may only read keys below `public`."""
    folder = tmp_path / "server"
    folder.mkdir()
    with guarded(folder, *RULES) as server:
        operations = [
            put("public", content=namespace("public")),
            *(put(name, content=table(2)) for name in ("secret", "known", "value")),
        ]
        server.as_("root", "admin").commit("main", EMPTY, *operations)
        token = server.as_("ada", "reader").token
        nessie.environment |= {
            "NESSIE_ENDPOINT": f"{server.url}/api/v2",
            "NESSIE_AUTH_TOKEN": token or "",
        }
        yield nessie


@pytest.mark.parametrize("key", ["secret", "nosuch", "known", "value"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_forbidden_content_is_not_allowed(
    reader: Nessie, key: str, more: tuple[str, ...]
) -> None:
    refused = reader("content", "show", key, *more)
    assert refused.code == 6, refused
    if more:
        assert (refused.error["status"], refused.error["errorCode"]) == (403, "FORBIDDEN")


@pytest.mark.parametrize("key", ["secret", "nosuch"])
@pytest.mark.parametrize(
    "words",
    [
        ("content", "history", "KEY"),
        ("content", "delete", "KEY", "-m", "x"),
        ("restore", "KEY", "--source", "HEAD", "-m", "x"),
    ],
)
def test_other_commands_do_not_reveal_forbidden_contents(
    reader: Nessie, key: str, words: tuple[str, ...]
) -> None:
    refused = reader(*(key if word == "KEY" else word for word in words))
    assert refused.code == 6, refused


def test_a_missing_readable_content_is_not_found(reader: Nessie) -> None:
    assert reader("content", "show", "public.nosuch").code == 4
    assert reader.ok("content", "show", "public").out
