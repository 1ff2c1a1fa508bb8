"""The user's editor, opened on one file. It is used on a terminal only."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.staging.batch import changes_of
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import visible
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.environment import editor
from nessie_cli.workspace.files import read_text, remove, replace_text

NEEDS_MESSAGE = "a commit needs a message: -m MSG or -F FILE"
COMMENT = "#"


def edit(path: Path) -> None:
    """Opens a file in the user's editor and waits for it.

    Raises `InvalidInput` if the editor cannot be run or reports a failure.
    """
    name = editor()
    try:
        with _interrupts_left_to_the_editor():
            # The editor needs a terminal even if stdout is redirected.
            out = None if sys.stdout.isatty() else sys.stderr
            # The user configured the command.
            command = [*shlex.split(name), str(path)]
            code = subprocess.run(command, check=False, stdout=out).returncode  # noqa: S603
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(
            f"the editor {name!r} cannot be run: {reason}",
            hint="NESSIE_EDITOR, VISUAL or EDITOR names another one",
        ) from None
    if code:
        raise InvalidInput(f"the editor {name!r} ended with {code}")


@contextmanager
def _interrupts_left_to_the_editor() -> Iterator[None]:
    """Ignores Ctrl-C in this process. A child process would inherit SIG_IGN, but not a handler."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def message_from_editor(
    app: Invocation, branch: str, staged: Sequence[Staged] | None
) -> Iterator[str]:
    """Yields the message that the user writes, for the block that commits with it.

    The file lists the `staged` operations in comments. If the commit fails, the workspace keeps the
    message as the beginning of the next one. Raises `InvalidInput` if there is no terminal, or if
    the message is empty.
    """
    if app.output.is_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(NEEDS_MESSAGE)
    path = app.store.need_workspace().message_path
    draft = without_comments(read_text(path) or "")
    replace_text(path, _template(draft, branch, staged))
    edit(path)
    message = without_comments(read_text(path) or "")
    if not message:
        remove(path)
        raise InvalidInput(
            "the message is empty; nothing was committed, and the batch stays staged"
        )
    try:
        yield message
    except Exception:
        app.output.err.print_text(
            f"the message is kept in {path}; the next `nessie commit` begins with it"
        )
        raise
    remove(path)


def without_comments(text: str) -> str:
    """Removes comment lines, trailing spaces, and empty lines around a message."""
    lines = (line.rstrip() for line in text.split("\n") if not line.startswith(COMMENT))
    return "\n".join(lines).strip("\n")


def _template(draft: str, branch: str, staged: Sequence[Staged] | None) -> str:
    changes = changes_of(tuple(staged or ()))
    lines = [
        "Write the message of the commit. Lines that begin with # are ignored.",
        "An empty message aborts the commit.",
        "",
        f"On branch {branch}:",
        *(f"  {change.verb:<10} {change.key}  {change.what}" for change in changes),
    ]
    comments = "".join(f"{COMMENT} {visible(line)}".rstrip() + "\n" for line in lines)
    return f"{draft}\n\n{comments}"
