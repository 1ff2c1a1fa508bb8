"""Filters of rows, such as `amount < 0 and city = 'Oslo'`.

A filter has comparisons of a column with a value (`=`, `!=`, `<`, `between`, `in`, `like`,
`is null`, `is nan`), joined by `and`, `or`, `not` and parentheses, with the meaning of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.row_diff.predicates import (
    NUMBER,
    Column,
    Condition,
    Literal,
    all_of,
    any_of,
    column_of,
    constant,
    negation,
)

_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<word>[^\W\d][\w$]*)
      | "(?P<quoted>(?:[^"]|"")+)"
      | '(?P<text>(?:[^']|'')*)'
      | (?P<number>{NUMBER.pattern})(?!\w)
      | (?P<symbol><=|>=|<>|!=|==|[=<>(),.])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_COMPARISONS = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST = 100


def row_filter(text: str, schema: Schema) -> Condition:
    """Returns the condition of a text. Raises `InvalidInput` if it does not fit the columns."""
    return _Parser(text, schema).condition()


def matching(batch: pa.RecordBatch, condition: Condition) -> list[int]:
    """Returns the numbers of the rows that match. A row for which that is unknown does not."""
    matches = pc.fill_null(condition(batch), fill_value=False)
    return list(pc.indices_nonzero(matches).to_pylist())


class _Token(NamedTuple):
    """A part of a filter, and where it begins."""

    kind: str
    text: str
    column: int

    def is_word(self, *keywords: str) -> bool:
        """Returns whether it is one of some keywords, in upper or lower case."""
        return self.kind == "word" and self.text.lower() in keywords

    def is_symbol(self, *symbols: str) -> bool:
        """Returns whether it is one of some symbols."""
        return self.kind == "symbol" and self.text in symbols


class _Parser:
    """Reads a filter from left to right."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._schema = schema
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    def condition(self) -> Condition:
        """Returns the condition of the whole text."""
        try:
            self._text.encode()
            condition = self._any()
        except UnicodeEncodeError:
            raise self._error("it is not UTF-8") from None
        except ValueError as error:
            raise self._error(str(error)) from None
        if self._token.kind != "end":
            raise self._error_here()
        return condition

    def _split(self) -> Iterator[_Token]:
        position = 0
        while True:
            part = _TOKEN.match(self._text, position)
            if part is None or part.lastgroup is None:
                blanks = len(self._text[position:]) - len(self._text[position:].lstrip())
                raise self._error(f"error at column {position + blanks + 1}")
            yield _Token(part.lastgroup, part[part.lastgroup], part.start(part.lastgroup) + 1)
            if part.lastgroup == "end":
                return
            position = part.end()

    # -- and, or, not -----------------------------------------------------------------------------

    def _any(self) -> Condition:
        return any_of(self._joined("or", self._all))

    def _all(self) -> Condition:
        return all_of(self._joined("and", self._negatable))

    def _joined(self, word: str, part: Callable[[], Condition]) -> Sequence[Condition]:
        parts = [part()]
        while self._skip_word(word):
            parts.append(part())
        return parts

    def _negatable(self) -> Condition:
        is_negated = False
        while self._skip_word("not"):
            is_negated = not is_negated
        condition = self._grouped() if self._token.is_symbol("(") else self._predicate()
        return negation(condition) if is_negated else condition

    def _grouped(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(f"it has more than {_DEEPEST} nested parentheses")
        self._expect("(")
        condition = self._any()
        self._expect(")")
        self._depth -= 1
        return condition

    # -- predicates -------------------------------------------------------------------------------

    def _predicate(self) -> Condition:
        if self._token.kind in ("text", "number"):
            literal = self._literal()
            operator = self._operator()
            return self._column().compared(_MIRRORED.get(operator, operator), literal)
        following = self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if self._token.is_word("true", "false") and not following.is_symbol(*_COMPARISONS, "."):
            return constant(value=self._advance().text.lower() == "true")
        column = self._column()
        if self._token.is_symbol(*_COMPARISONS):
            return column.compared(self._operator(), self._literal())
        is_null_test = self._skip_word("is")
        is_negated = self._skip_word("not")
        condition = self._null_test(column) if is_null_test else self._set_test(column)
        return negation(condition) if is_negated else condition

    def _null_test(self, column: Column) -> Condition:
        if self._skip_word("null"):
            return column.is_null()
        if self._skip_word("nan"):
            return column.is_nan()
        raise self._error_here()

    def _set_test(self, column: Column) -> Condition:
        if self._skip_word("between"):
            low = self._literal()
            if not self._skip_word("and"):
                raise self._error_here()
            return all_of([column.compared(">=", low), column.compared("<=", self._literal())])
        if self._skip_word("like"):
            if self._token.kind != "text":
                raise self._error_here()
            return column.is_like(str(self._literal()))
        if not self._skip_word("in"):
            raise self._error_here()
        self._expect("(")
        literals = [self._literal()]
        while self._token.is_symbol(","):
            self._advance()
            literals.append(self._literal())
        self._expect(")")
        return column.is_in(literals)

    # -- tokens -----------------------------------------------------------------------------------

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _advance(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _skip_word(self, word: str) -> bool:
        is_next = self._token.is_word(word)
        self._next += is_next
        return is_next

    def _expect(self, symbol: str) -> None:
        if not self._token.is_symbol(symbol):
            raise self._error_here()
        self._next += 1

    def _operator(self) -> str:
        if not self._token.is_symbol(*_COMPARISONS):
            raise self._error_here()
        return _COMPARISONS[self._advance().text]

    def _column(self) -> Column:
        names = [self._name()]
        while self._token.is_symbol("."):
            self._advance()
            names.append(self._name())
        return column_of(self._schema, names)

    def _name(self) -> str:
        if self._token.kind not in ("word", "quoted"):
            raise self._error_here()
        token = self._advance()
        return token.text.replace('""', '"') if token.kind == "quoted" else token.text

    def _literal(self) -> Literal:
        token = self._token
        if token.kind not in ("text", "number") and not token.is_word("true", "false"):
            raise self._error_here()
        self._advance()
        if token.kind == "text":
            return token.text.replace("''", "'")
        if token.kind == "word":
            return token.text.lower() == "true"
        try:
            return Decimal(token.text)
        except ArithmeticError:
            raise self._error_at(token) from None

    def _error_here(self) -> InvalidInput:
        return self._error_at(self._token)

    def _error_at(self, token: _Token) -> InvalidInput:
        return self._error(f"error at column {token.column}")

    def _error(self, reason: str) -> InvalidInput:
        return InvalidInput(
            f"{self._text!r} is not a filter: {reason}",
            hint="a filter compares columns with values: `amount < 0 and city = 'Oslo'`",
        )
