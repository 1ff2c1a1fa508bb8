"""`nessie version`."""

from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.help.versions import current_versions, version_line
from nessie_cli.wire.scalars import Count

EXAMPLES = ("nessie version", "nessie version --json")


class Options(Struct, frozen=True):
    """Print the versions of nessie and Python, and the newest store format that nessie supports."""


class Version(Document, frozen=True):
    """The versions of nessie and Python, and the newest supported store format."""

    version: str
    python: str
    store_format: Count


def run(options: Options, app: Invocation) -> Version:  # noqa: ARG001 - the shape of a command
    """Returns the versions."""
    return Version(*current_versions())


def show(result: Version, output: Output) -> None:  # noqa: ARG001 - the shape of a command
    """Prints the versions on one line."""
    output.out.print_text(version_line())
