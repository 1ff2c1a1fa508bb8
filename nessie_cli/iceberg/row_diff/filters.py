"""Filters of rows, such as `amount < 0 and city = 'Oslo'`."""

from __future__ import annotations

import pyarrow.compute as pc
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import Schema
from pyparsing import ParseException

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.files import first_line

_FORM = "a filter compares columns with values: `amount < 0 and city = 'Oslo'`"


def row_filter(text: str, schema: Schema) -> pc.Expression:
    """Returns the filter of a text. Raises `InvalidInput` if it does not fit the columns."""
    try:
        return expression_to_pyarrow(bind(schema, parse(text), case_sensitive=True), schema)
    except ParseException as error:
        raise InvalidInput(
            f"{text!r} is not a filter: error at column {error.column}", hint=_FORM
        ) from None
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInput(f"{text!r} is not a filter: {first_line(error)}", hint=_FORM) from None
