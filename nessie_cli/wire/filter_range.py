"""The range of keys that a filter of entries can match, so that a listing reads no others.

Iceberg's NessieCatalog lists the tables of a namespace by `entry.namespace == 'db'`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey
from nessie_cli.wire import keys
from nessie_cli.wire.filter_engine import CHECKED, FilterKind, compiled
from nessie_cli.wire.filter_expression import checked_expression, text_of

_OF_KEY = ("namespace", "encodedKey")


def prefix_of(text: str) -> ContentKey | None:
    """Returns a key at or below which are all entries that a filter matches, or None.

    It follows from the terms that must all be true: `entry.namespace` or `entry.encodedKey` equals
    a literal text, or starts with one.
    """
    root = checked_expression(compiled(FilterKind.ENTRIES, CHECKED, text)).expr
    prefixes = [prefix for term in _terms(root) if (prefix := _prefix(term)) is not None]
    return max(prefixes, key=lambda prefix: len(prefix.elements), default=None)


def _terms(node: Any) -> Iterator[Any]:
    if node.WhichOneof("kind") == "call" and node.call.function == "_&&_":
        for argument in node.call.args:
            yield from _terms(argument)
    else:
        yield node


def _prefix(term: Any) -> ContentKey | None:
    if term.WhichOneof("kind") != "call":
        return None
    call = term.call
    if call.function == "_==_":
        texts = [text_of(argument) for argument in call.args if not _is_of_key(argument)]
        return _key(texts[0]) if len(texts) == 1 else None
    if call.function == "startsWith" and _is_of_key(call.target):
        # The last element may be longer than the text.
        return _key((text_of(call.args[0]) or "").rpartition(".")[0])
    return None


def _is_of_key(node: Any) -> bool:
    if node.WhichOneof("kind") != "select" or node.select.field not in _OF_KEY:
        return False
    operand = node.select.operand
    return bool(operand.WhichOneof("kind") == "ident" and operand.ident.name == "entry")


def _key(text: str | None) -> ContentKey | None:
    """Returns the key of a text as `encodedKey` has it; None if there is no such key."""
    with suppress(InvalidInput):
        return keys.decode(text) if text else None
    return None
