"""Checks a whole metadata file of a table or view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.validity.nodes import DocumentNode
from nessie_cli.iceberg.validity.tables import check_table
from nessie_cli.iceberg.validity.views import check_view


def check_metadata(document: Mapping[str, Any]) -> None:
    """Refuses metadata of a table or view that Iceberg's own parser refuses.

    Engines could not read it, and no change could be committed to it. Raises `InvalidInput`, which
    names the place in the file.
    """
    check = check_view if "view-uuid" in document else check_table
    try:
        check(DocumentNode(document))
    except RecursionError:
        raise InvalidInput("not valid Iceberg metadata: it is nested too deeply") from None


@contextmanager
def placed_faults(document: Mapping[str, Any], location: str) -> Iterator[None]:
    """Raises `InvalidInput` for an error that an invalid part of a metadata file has caused.

    A whole check takes long, so files of other programs are used without one. Errors that the
    document does not explain are raised unchanged.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        try:
            check_metadata(document)
        except InvalidInput as error:
            raise InvalidInput(f"{location}: {error.message}") from None
        raise
