"""Authorization rules: named CEL expressions, each of which may allow an operation.

Operations that no rule allows are forbidden. The variables are the original server's: `op`, `ref`,
`path`, `role`, `roles`, `contentType`, `type`, `api`, `actions` (always empty here); and `user`,
the caller's name. A rule is evaluated once for each role of the caller. Without roles, `role` is
the name, as it always is in the original server.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.repository.draft import PastChange
from nessie_cli.server.auth.identity import Caller
from nessie_cli.wire.toml_text import parse_toml

VIEW_REFERENCE = "VIEW_REFERENCE"
CREATE_REFERENCE = "CREATE_REFERENCE"
ASSIGN_REFERENCE_TO_HASH = "ASSIGN_REFERENCE_TO_HASH"
DELETE_REFERENCE = "DELETE_REFERENCE"
LIST_COMMIT_LOG = "LIST_COMMIT_LOG"
READ_ENTRIES = "READ_ENTRIES"
READ_CONTENT_KEY = "READ_CONTENT_KEY"
READ_ENTITY_VALUE = "READ_ENTITY_VALUE"
COMMIT_CHANGE_AGAINST_REFERENCE = "COMMIT_CHANGE_AGAINST_REFERENCE"
CREATE_ENTITY = "CREATE_ENTITY"
UPDATE_ENTITY = "UPDATE_ENTITY"
DELETE_ENTITY = "DELETE_ENTITY"
READ_REPOSITORY_CONFIG = "READ_REPOSITORY_CONFIG"
UPDATE_REPOSITORY_CONFIG = "UPDATE_REPOSITORY_CONFIG"
VIEW_REFLOG = "VIEW_REFLOG"
CHOOSE_LOCATION = "CHOOSE_LOCATION"
READ_ROWS = "READ_ROWS"
MANAGE_RUNS = "MANAGE_RUNS"
"""The operations, with the original server's names. The last four are ours."""
OPERATIONS = (
    VIEW_REFERENCE,
    LIST_COMMIT_LOG,
    READ_ENTRIES,
    READ_CONTENT_KEY,
    READ_ENTITY_VALUE,
    READ_ROWS,
    CREATE_REFERENCE,
    ASSIGN_REFERENCE_TO_HASH,
    DELETE_REFERENCE,
    COMMIT_CHANGE_AGAINST_REFERENCE,
    CREATE_ENTITY,
    UPDATE_ENTITY,
    DELETE_ENTITY,
    CHOOSE_LOCATION,
    MANAGE_RUNS,
    VIEW_REFLOG,
    READ_REPOSITORY_CONFIG,
    UPDATE_REPOSITORY_CONFIG,
)
"""All of them, those that read first."""

_OLD_WORD = "LIST_COMMITLOG"
"""An older word for `LIST_COMMIT_LOG`. A rule that has this word alone is asked about it.

To ask other rules as well would allow it by a rule such as `op != 'LIST_COMMIT_LOG'`.
"""
_CONTENT_TYPE = "contentType"
_CONTAINER = "nessie"
_TYPE = f"{_CONTAINER}.type"
"""The variable `type`: CEL has a function with that name, and searches the container first."""
_REMEMBERED = 20_000
_LONGEST = 10_000
_MOST_READERS, _HEADS_REMEMBERED = 1_000, 4


class Question(NamedTuple):
    """An operation to decide on.

    `ref` is a name or DETACHED, `path` a content key in the original server's encoding, `config` a
    type of configuration.
    """

    op: str
    ref: str = ""
    path: str = ""
    content_type: str = ""
    config: str = ""


class Readable(NamedTuple):
    """Commits whose whole history a caller may read through a reference.

    `without_rows` are the tables and views of this history whose rows the caller may not read.
    """

    heads: Sequence[str]
    without_rows: Collection[PastChange]


NOTHING_READABLE = Readable((), ())


class Rules:
    """The compiled rules of a file. Decisions are cached."""

    def __init__(self, expressions: Mapping[str, str]) -> None:
        self._rules = [
            (name, _compiled(name, text), _OLD_WORD in text and LIST_COMMIT_LOG not in text)
            for name, text in expressions.items()
        ]
        self.depend_on_content_type = any(_CONTENT_TYPE in text for text in expressions.values())
        """Whether the type of a content can decide."""
        self.allow = lru_cache(_REMEMBERED)(self._allow)
        self._readable: dict[tuple[Caller, int, str], Readable] = {}

    def readable(self, caller: Caller, api: int, through: str) -> Readable:
        """Returns commits whose whole history a caller may read through a reference."""
        return self._readable.get((caller, api, through), NOTHING_READABLE)

    def remember_readable(self, caller: Caller, api: int, through: str, readable: Readable) -> None:
        """Remembers such commits; the last few of each caller and reference."""
        if len(self._readable) >= _MOST_READERS:
            self._readable.clear()
        earlier = self._readable.get((caller, api, through), NOTHING_READABLE)
        heads = [*readable.heads, *earlier.heads][:_HEADS_REMEMBERED]
        tables = {*readable.without_rows, *earlier.without_rows}
        self._readable[caller, api, through] = Readable(heads, tables)

    def _allow(self, caller: Caller, api: int, question: Question) -> bool:
        return self.rule_for(caller, api, question) is not None

    def rule_for(self, caller: Caller, api: int, question: Question) -> str | None:
        """Returns the name of the first rule that allows this to the caller, or None."""
        allowing = (
            self._rule_for_role(caller, role, api, question)
            for role in caller.roles or (caller.name,)
        )
        return next((name for name in allowing if name is not None), None)

    def _rule_for_role(self, caller: Caller, role: str, api: int, question: Question) -> str | None:
        values = {
            "op": question.op,
            "ref": question.ref,
            "path": question.path,
            _CONTENT_TYPE: question.content_type,
            _TYPE: question.config,
            "role": role,
            "roles": list(caller.roles),
            "user": caller.name,
            "actions": [],
            "api": {"apiName": "Nessie", "apiVersion": api},
        }
        old = {**values, "op": _OLD_WORD} if question.op == LIST_COMMIT_LOG else values
        return next(
            (
                name
                for name, expression, has_old_word in self._rules
                if _holds(expression, old if has_old_word else values)
            ),
            None,
        )


def _holds(expression: Any, values: Mapping[str, Any]) -> bool:
    """Returns whether an expression is true. One that fails on these values allows nothing."""
    try:
        return expression.eval(data=values).value() is True
    except RuntimeError:
        return False


def read_rules(data: bytes) -> Rules:
    """Reads rules from TOML: `NAME = "EXPRESSION"`, at the top or in a table `[rules]`.

    Raises `InvalidInput` that names the rule.
    """
    try:
        document = parse_toml(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"not TOML: {error}") from None
    top = {name: value for name, value in document.items() if name != "rules"}
    table = document.get("rules", {})
    if not isinstance(table, dict):
        raise InvalidInput("rules must be a table of rules")
    expressions = {**top, **table}
    for name, text in expressions.items():
        if not isinstance(text, str):
            raise InvalidInput(f"rule '{name}' must be an expression in quotes")
        if name in top and name in table:
            raise InvalidInput(f"rule '{name}' occurs twice")
    return Rules(expressions)


def _compiled(name: str, text: str) -> Any:
    if len(text) > _LONGEST:
        raise InvalidInput(f"rule '{name}' has {len(text)} characters, {_LONGEST} are allowed")
    try:
        expression = _environment().compile(text)
    except RuntimeError as error:
        reason = (str(error).splitlines() or ["cannot be compiled"])[0]
        raise InvalidInput(
            f"rule '{name}': {reason.removeprefix('INVALID_ARGUMENT: ').removeprefix('ERROR: ')}"
        ) from None
    if expression.return_type() != _cel().Type.BOOL:
        raise InvalidInput(f"rule '{name}' is not a condition; it must be true or false")
    return expression


@cache
def _cel() -> Any:
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ImportError:
        raise NessieError(
            "rules need the CEL engine, which is not installed: pip install 'nessie-cli[serve]'"
        ) from None
    return cel


@cache
def _environment() -> Any:
    types = _cel().Type
    names = ("op", "ref", "path", _CONTENT_TYPE, _TYPE, "role", "user")
    texts = dict.fromkeys(names, types.STRING)
    lists = dict.fromkeys(("roles", "actions"), types.List(types.STRING))
    return _cel().NewEnv(
        container=_CONTAINER,
        variables={**texts, **lists, "api": types.Map(types.STRING, types.DYN)},
    )
