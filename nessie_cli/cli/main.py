"""The entry point: runs one command and reports every outcome by an exit code and a message.

Exit codes: 0 done; 1 failed, or differences found with `--exit-code`; 2 usage or invalid input; 3
conflict; 4 not found; 5 already exists or the reference moved; 6 not allowed; 7 store not reachable
or outcome unknown; 8 partly done; 130 interrupted; 141 the reader of a pipe went away.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from nessie_cli.cli.app.invocation import Invocation

GARBAGE_THRESHOLD = 100_000
"""Threshold of Python's garbage collector.

Loading a command creates some ten thousand permanent objects. With the default threshold,
collections would take a tenth of the time of a short command.
"""
INTERRUPTED = 130
PIPE_CLOSED = 141
SOON = 0.002
"""Seconds until a lost interrupt is raised again."""


def main() -> None:
    """Runs the command of `sys.argv` and exits with its exit code."""
    try:
        sys.unraisablehook = _interrupt_once_more
        gc.set_threshold(GARBAGE_THRESHOLD)
        _prepare_streams()
        code = run(sys.argv[1:])
        sys.stderr.flush()
        # Everything is flushed and closed. A regular exit of the interpreter would take as long as
        # the command itself.
        os._exit(code)
    except KeyboardInterrupt:
        # An interrupt before or after the command, or a second one while the first is reported.
        os._exit(INTERRUPTED)


def run(argv: list[str]) -> int:
    """Runs one command line and returns its exit code."""
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from nessie_cli.cli.errors.faults import is_interrupt

        if is_interrupt(error):
            return INTERRUPTED
        if not isinstance(error, OSError):
            raise
        # Only the last flush can fail here: the reader of stdout is gone.
        _abandon_stdout()
        sys.stderr.write(f"nessie: the result could not be written: {error.strerror}\n")
        return 1
    return code


def _run(argv: list[str]) -> int:
    if argv[:1] == ["__complete"]:
        from nessie_cli.cli.completion.answer import complete

        complete(argv[1:])
        return 0
    from nessie_cli.cli.help.versions import asks_for_version, show_version

    if asks_for_version(argv):
        show_version(argv)
        return 0
    from nessie_cli.cli.app.invocation import Invocation

    call = Invocation(argv)
    try:
        try:
            _invoke(call)
        except BrokenPipeError:
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the one place where every failure becomes a line and a code)
            from nessie_cli.cli.errors.report import report

            return report(error, call)
    finally:
        call.close()
    return 0


def _invoke(call: Invocation) -> None:
    """Parses and runs the command. The parser's own `main` would hide broken pipes and errors."""
    from nessie_cli.cli.app.aliases import expanded
    from nessie_cli.cli.app.group import root
    from nessie_cli.cli.git_habits import rewritten

    call.argv = tuple(rewritten(expanded(call.argv)))
    command = root()
    with command.make_context("nessie", list(call.argv), obj=call) as ctx:
        command.invoke(ctx)


def _interrupt_once_more(swallowed: Any) -> None:
    """Raises an interrupt again that Python lost in a finalizer."""
    if swallowed.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(swallowed)
        return
    import signal

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, SOON)


def _prepare_streams() -> None:
    """Escapes characters that the terminal cannot encode. Replaces a closed stdout or stdin."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 (lives as long as the process)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 (lives as long as the process)
        else:
            stream.reconfigure(errors="backslashreplace")


def _abandon_stdout() -> None:
    """Discards buffered output, so that the interpreter's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
