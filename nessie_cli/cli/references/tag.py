"""`nessie tag`."""

from dataclasses import dataclass

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.references.options import ReferenceOptions
from nessie_cli.cli.references.results import (
    DeletedReferences,
    References,
    SingleReference,
    show,
)
from nessie_cli.cli.references.work import work
from nessie_cli.model import ReferenceType

__all__ = ["EXAMPLES", "Options", "run", "show"]

EXAMPLES = (
    "nessie tag",
    "nessie tag --sort -time --contains main~2",
    "nessie tag v1 main~1",
    "nessie tag -f v1 main",
    "nessie tag -m v1 release-1",
    "nessie tag -d release-1",
)


@dataclass(frozen=True, kw_only=True)
class Options(ReferenceOptions):
    """List, create, delete, rename or assign tags.

    With -v the list shows the commit of each tag.
    """


def run(
    options: Options,
    app: Invocation,
) -> References | SingleReference | DeletedReferences | None:
    """Performs the one action that the options ask for."""
    return work(options, app, ReferenceType.TAG)
