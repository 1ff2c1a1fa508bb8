"""What the record of a run has of command lines and checks: no value that looks secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nessie_cli.workspace.secrets import without_secrets

_NAMES = (
    r"(?:token|password|passwd|pwd|secret|credentials?|api[-_]?key|access[-_]?key|signature|\bsig)"
)
_SECRET_NAME = re.compile(rf"(?i){_NAMES}$")
_SECRET_VALUE = re.compile(rf"(?i)({_NAMES}(?:[-_.]?(?:key|id))?[\"']?\s*[=:]\s*[\"']?)[^\s\"'&;]+")
_CREDENTIALS = re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"']+")
_AUTHORIZATION = re.compile(r"(?i)authorization\W+(?:bearer|basic)\s+[^\s\"'*]")
_HIDDEN = "***"
_VARIABLE = re.compile(r"[\"']?\$(?:\w+|\{[^}]*\}|\([^)]*\))[\"']?")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")


def shown_command(command: Sequence[str]) -> tuple[str, ...]:
    """Returns a command line without values that look secret, also within its words."""
    shown: list[str] = []
    hides_next = False
    for word in command:
        if hides_next and not word.startswith("-"):
            shown.append(_HIDDEN)
        else:
            shown.append(_without_secrets(word))
        hides_next = word.startswith("-") and "=" not in word and bool(_SECRET_NAME.search(word))
    return tuple(shown)


def _without_secrets(text: str) -> str:
    return _CREDENTIALS.sub(lambda match: f"{match[1]} {_HIDDEN}", _without_values(text))


def _without_values(text: str) -> str:
    return _SECRET_VALUE.sub(lambda match: match[1] + _HIDDEN, without_secrets(text))


def _has_value(text: str) -> bool:
    # `without_secrets` also removes these characters at the end.
    return _without_values(text) != text.rstrip("?&;")


def has_secret(command: str) -> bool:
    """Returns whether a command line of the shell has a value that looks secret.

    Variables are none: the shell reads them from the environment.
    """
    text = _VARIABLE.sub(_HIDDEN, command).replace(f":{_HIDDEN}@", "@")
    arguments = text.split()
    return (
        any(map(_has_value, arguments))
        # The value is the next word.
        or any(
            shown == _HIDDEN != word
            for word, shown in zip(arguments, shown_command(arguments), strict=True)
        )
        or bool(_AUTHORIZATION.search(text))
    )


def has_secret_in_literal(query: str) -> bool:
    """Returns whether a string in a query of SQL has a value that looks secret.

    Outside of strings, `token = 'a'` compares a column.
    """
    return any(_has_value(text) or _AUTHORIZATION.search(text) for text in _LITERAL.findall(query))
