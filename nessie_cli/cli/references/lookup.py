"""Looking up a reference of one type, and the hash that it must have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Reference, ReferenceType

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions

GLOB = frozenset("*?[")
"""Characters that reference names do not contain. A word with one of them is a glob pattern."""


def existing(
    app: Invocation,
    type_: ReferenceType,
    name: str,
    *,
    metadata: bool = False,
) -> Reference:
    """Returns a reference of a type.

    Raises `ReferenceNotFound`, or `InvalidInput` if the reference is of the other type.
    """
    reference = app.repository().reference(name, metadata=metadata)
    if reference.type is not type_:
        other = reference.type.lower()
        raise InvalidInput(f"'{name}' is a {other}, not a {type_.lower()}; use `nessie {other}`")
    return reference


def expected_hash(options: ReferenceOptions, app: Invocation, reference: Reference) -> str:
    """Returns the hash of `--expected-hash`, or the current hash of the reference."""
    if options.expected_hash is None:
        return reference.hash
    return app.repository().resolve(app.revision(options.expected_hash)).hash
