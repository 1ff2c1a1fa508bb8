"""Keys and globs of keys as arguments of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.errors import ContentNotFound
from nessie_cli.model import ContentKey
from nessie_cli.model.key_patterns import KeyPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def named_keys(
    arguments: Sequence[str],
    candidates: Callable[[KeyPattern], Iterable[ContentKey]],
    kind: str = "key",
) -> list[ContentKey]:
    """Returns the keys that arguments select, each once. An argument is a key or a glob.

    Raises `ContentNotFound` if a glob matches no candidate. `kind` is the noun in the message.
    """
    keys: dict[ContentKey, None] = {}
    for argument in arguments:
        pattern = KeyPattern.parse(argument)
        if pattern is None:
            keys[ContentKey.parse(argument)] = None
            continue
        matching = [key for key in candidates(pattern) if pattern.matches(key)]
        if not matching:
            raise ContentNotFound(f"no {kind} matches '{argument}'", ContentKey.parse(argument))
        keys |= dict.fromkeys(matching)
    return list(keys)
