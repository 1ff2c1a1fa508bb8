"""Filters of rows, such as `amount < 0 and city = 'Oslo'`."""

from __future__ import annotations

import re

import pyarrow.compute as pc
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import Schema
from pyparsing import ParseException

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import first_line
from nessie_cli.iceberg.row_diff.schemas import missing_column

_MISSING = re.compile("Could not find field with name (.*), case_sensitive")


def row_filter(text: str, schema: Schema) -> pc.Expression:
    """Returns the filter of a text. Raises `InvalidInput` if it does not fit the columns."""
    try:
        return expression_to_pyarrow(bind(schema, parse(text), case_sensitive=True), schema)
    except ParseException as error:
        raise _not_a_filter(text, f"error at column {error.column}") from None
    except (ValueError, TypeError, NotImplementedError) as error:
        if missing := _MISSING.match(str(error)):
            raise missing_column(missing[1], schema) from None
        raise _not_a_filter(text, first_line(error)) from None


def _not_a_filter(text: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"{text!r} is not a filter: {reason}",
        hint="a filter compares columns with values: `amount < 0 and city = 'Oslo'`",
    )
