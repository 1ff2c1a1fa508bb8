"""`--filter`: a CEL expression that selects the records of a listing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nessie_cli.errors import InvalidInput


def by_filter(kind: str, text: str) -> Callable[[Any], bool]:
    """Returns the predicate of a filter for values of `references`, `log` or `entries`.

    The CEL engine is loaded with the first filter. Raises `InvalidInput` if the text is not a
    filter or the engine is not installed.
    """
    from nessie_cli.wire.filters import FilterKind, compile_filter

    try:
        test = compile_filter(FilterKind(kind), text)
    except InvalidInput as error:
        raise InvalidInput(f"--{error.message}") from None
    return test
