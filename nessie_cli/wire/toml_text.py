"""TOML that people write: settings, rules and warehouses."""

from __future__ import annotations

import tomllib
from typing import Any

from nessie_cli.errors import InvalidInput

MOST_STEPS = 10_000_000
"""The most steps through tables that the parser may take for dotted keys: about a second."""


def parse_toml(text: str) -> dict[str, Any]:
    """Returns the tables of a text.

    Raises `tomllib.TOMLDecodeError` for another syntax, and `InvalidInput` for a text that takes
    too long or that Python does not support.
    """
    if _steps(text) > MOST_STEPS:
        raise InvalidInput("has too many dots in its keys")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise InvalidInput("the TOML is nested too deeply") from None
    except ValueError:  # Python refuses to convert numbers of more than some thousand digits
        raise InvalidInput("a number has too many digits") from None


def _steps(text: str) -> int:
    """Returns an upper bound of the steps: the parser walks to each part of a dotted key."""
    steps = heading = 0
    for line in text.split("\n"):
        parts = line.count(".") + 1
        is_heading = line.lstrip().startswith("[")
        steps += parts * (parts if is_heading else heading + parts)
        heading = parts if is_heading else heading
    return steps
