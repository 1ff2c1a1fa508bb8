"""The table of commands: what exists, where it lives, and its one line of help, so that `--help` and a typo import no command.

How a command is added:
1. copy `commands/version.py` (the shortest) to `commands/<name>.py`; the function's first docstring line is the help of the command,
   `EXAMPLES` are the command lines that its `--help` shows;
2. add a line here, with the same first line;
3. take everything from `Invocation.of(ctx)`: `.repository()`, `.reference_name()`, `.revision(text)`, `.now`, `.options`, `.workspace()`; give the
   result to `.answer(document)` with `--json` and `.say(line)` without; raise errors of `nessie_cli.errors` and nothing else.
Global options (`--json`, `--store`, ...) are added to every command by the group. Names with `_` before them are hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CommandEntry(NamedTuple):
    """One command: module below `nessie_cli.cli.commands`, function in it, one line of help, section of `nessie --help`.

    A group has no function; `children` is its own table.
    """

    module: str
    function: str
    help: str
    section: str
    children: Mapping[str, CommandEntry] | None = None
    hidden: bool = False


WORKSPACE = "Workspace"
CONTENT = "Contents and commits"
REFERENCES = "Branches and tags"
HISTORY = "History"
CARE = "Care"

CONTENT_COMMANDS: Mapping[str, CommandEntry] = {}

COMMANDS: Mapping[str, CommandEntry] = {
    "init": CommandEntry("init", "init", "Make a workspace here and, when there is none, its store.", WORKSPACE),
    "version": CommandEntry("version", "version", "Print the versions of nessie, of Python and of the store's format.", CARE),
}
"""Every command, in the order of `nessie --help`."""
