"""The user's editor: it is opened on a terminal only, on one file, and what it leaves there is taken."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nessie_cli.cli.context import Invocation
    from nessie_cli.workspace.batch import Staged

NEEDS_MESSAGE = "a commit needs a message: -m MSG or -F FILE"
COMMENT = "#"


def edit(path: Path) -> None:
    """Let the user change a file; raises `InvalidInput` where the editor cannot be run or says that it failed."""
    import shlex
    import subprocess

    from nessie_cli.workspace.environment import editor

    name = editor()
    try:
        with _interrupts_left_to_the_editor():
            # The editor is the user's own setting. It needs a terminal to write to, also where the result goes elsewhere.
            out = None if sys.stdout.isatty() else sys.stderr
            code = subprocess.run([*shlex.split(name), str(path)], check=False, stdout=out).returncode  # noqa: S603
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"the editor {name!r} cannot be run: {reason}; NESSIE_EDITOR, VISUAL or EDITOR names another one") from None
    if code:
        raise InvalidInput(f"the editor {name!r} ended with {code}")


@contextmanager
def _interrupts_left_to_the_editor() -> Iterator[None]:
    """Ctrl-C is a key of the editor's as long as it runs. A handler, unlike ignoring, is not handed down to it."""
    import signal

    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def message_from_editor(call: Invocation, branch: str, staged: Sequence[Staged] | None) -> Iterator[str]:
    """The message that the user writes, for the block that commits with it; `staged` is what is told there.

    A message whose commit fails stays in the workspace, and the next one begins with it. Raises `InvalidInput` where nobody can be asked, and for
    an empty message.
    """
    if call.wants_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(NEEDS_MESSAGE)
    workspace = call.need_workspace()
    from nessie_cli.workspace.files import read_text, remove, replace_text

    path = workspace.message_path
    kept = without_comments(read_text(path) or "")
    replace_text(path, _template(kept, branch, staged))
    edit(path)
    message = without_comments(read_text(path) or "")
    if not message:
        remove(path)
        raise InvalidInput("given up, the message is empty; nothing was committed, and what is staged stays")
    try:
        yield message
    except Exception:
        call.err.print_line(f"the message is kept in {path}; the next `nessie commit` begins with it")
        raise
    remove(path)


def without_comments(text: str) -> str:
    """A message as git cleans it: without lines of comments, spaces at the ends of lines, and empty lines around it."""
    return "\n".join(line.rstrip() for line in text.split("\n") if not line.startswith(COMMENT)).strip("\n")


def _template(kept: str, branch: str, staged: Sequence[Staged] | None) -> str:
    from nessie_cli.cli.batch_view import changes_of
    from nessie_cli.render.text import visible

    lines = ["Write the message of the commit. Lines that begin with # are left out; an empty message gives up.", "", f"On branch {branch}:"]
    lines += [f"  {change.verb:<10} {change.key}  {change.what}" for change in changes_of(tuple(staged))] if staged else []
    return f"{kept}\n\n" + "".join(f"{COMMENT} {visible(line)}".rstrip() + "\n" for line in lines)
