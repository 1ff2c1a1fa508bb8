"""What each command answers with `--json`, as types, beside those that `wire.documents` has; the schemas in `docs/json/` are made of them.

Nothing loads this at run time. A new command gets a line in `ANSWERS`; tests hold its golden answers against it.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from nessie_cli.wire.shape import Shape

# -- workspace --------------------------------------------------------------------------------------------------------------------------


class Script(Shape):
    """The completion script of a shell."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


class Text(Shape):
    """A page of the manual, or the help that `--help` shows."""

    name: str
    text: str


# -- which command answers what -----------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The documents that a command may answer with, and for a listing the record, or records, that `--jsonl` prints one per line."""

    documents: tuple[Any, ...]
    record: Any = None


ANSWERS: Mapping[str, Answer] = {
    "help": Answer((Text,)),
    "completion": Answer((Script,)),
}
"""By the name of the command."""
HELP = Text
"""What `--help` answers at every command."""
