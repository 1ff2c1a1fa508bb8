"""The report of a failed command: an exit code, a line on stderr, and JSON if requested."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from nessie_cli import errors
from nessie_cli.cli.app.global_options import with_carried
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.errors.faults import fault_of, is_interrupt
from nessie_cli.cli.errors.messages import MOST_CONFLICTS, message_for_people
from nessie_cli.cli.errors.suggestions import nearest
from nessie_cli.cli.git_habits import hint_for_option

EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.InvalidInput, 2),
    (errors.ReferenceMoved, 5),
    (errors.ReferenceConflict, 3),
    (errors.NotFound, 4),
    (errors.AlreadyExists, 5),
    (errors.NotAllowed, 6),
    (errors.StoreUnavailable, 7),
)
"""Exit codes by error class. The first matching class applies; all other errors exit with 1."""

FAILED = 1
INVALID = 2
PARTLY_DONE = 8
INTERRUPTED = 130


def report(error: BaseException, app: Invocation) -> int:
    """Reports an error in every requested form and returns the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort) or is_interrupt(error):
        return _report_interrupt(app)
    if app.options.debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, TyperException):
        return _report_usage(error, app)
    fault = fault_of(error)
    _write(fault, app)
    if isinstance(fault, errors.CannotRun):
        return fault.exit_code
    return next((code for kind, code in EXIT_CODES if isinstance(fault, kind)), FAILED)


def partly_done(failures: Sequence[errors.NessieError], app: Invocation) -> NoReturn:
    """Reports the failed parts of a command and exits.

    The other parts have been reported before.
    """
    for failure in failures:
        _write(failure, app)
    raise typer.Exit(PARTLY_DONE)


def _report_interrupt(app: Invocation) -> int:
    """Prints nothing for people, because they pressed Ctrl-C themselves."""
    if app.output.is_json_for_errors:
        _write(fault_of(KeyboardInterrupt()), app)
    return INTERRUPTED


def _write(error: errors.NessieError, app: Invocation, hint: str = "") -> None:
    """Flushes stdout first, so that earlier output appears above the error on a terminal.

    Hints repeat the global options of the command.
    """
    from nessie_cli.cli.errors.hints import hints_for
    from nessie_cli.wire.documents import ErrorAnswer

    output = app.output
    error.message = with_carried(error.message, app.options)
    error.hint = with_carried(error.hint, app.options)
    if output.is_json_for_errors and not output.has_document:
        output.print_document(ErrorAnswer.of(error))
    sys.stdout.flush()
    blocks = _has_blocks(error) and not output.is_json_for_errors
    output.err.print_text(f"nessie: {message_for_people(error, with_blocks=blocks)}")
    for line in [hint] if hint else hints_for(error, app):
        output.err.print_text(with_carried(line, app.options))
    if blocks and isinstance(error, errors.ReferenceConflict):
        _write_conflicts(error, app.output)


def _has_blocks(error: errors.NessieError) -> bool:
    """Whether the report has a block for each conflict.

    A reference that has moved needs none: the message says all. Conflicts that the user was asked
    about have been shown.
    """
    return (
        isinstance(error, errors.ReferenceConflict)
        and not error.left
        and any(conflict.key for conflict in error.conflicts)
    )


def _write_conflicts(error: errors.ReferenceConflict, output: Output) -> None:
    from nessie_cli.cli.errors.conflicts import conflict_report
    from nessie_cli.render.conflicts import conflict_lines

    err = output.err
    conflicts = conflict_report(error)
    err.print_lines(
        conflict_lines(conflicts._replace(conflicts=conflicts.conflicts[:MOST_CONFLICTS]), err)
    )
    count = len(error.conflicts)
    if count > MOST_CONFLICTS:
        more = count + error.more - MOST_CONFLICTS
        listed = f"the first {count:,}" if error.more else "all of them"
        err.print_text(f"... and {more:,} more conflicts; --json prints {listed}")


# -- errors of the parser --------------------------------------------------------------------------


def _report_usage(error: TyperException, app: Invocation) -> int:
    """Reports an error of the parser. A group without a command prints its whole help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else _path(app)
    faults = getattr(error.__cause__, "errors", None)
    if faults and isinstance(error, typer.BadParameter) and error.message.startswith("Input "):
        # From 0.29 on, Typer uses pydantic, whose own messages do not include the value.
        error.message = f"{faults()[0]['input']!r} {error.message}"
    # The parser's class for this has no public name.
    if type(error).__name__ == "NoArgsIsHelpError":
        if not app.output.is_json_for_errors:
            sys.stderr.write(error.format_message() + "\n")
            return INVALID
        message = "missing command"
    else:
        message = _plain_words(error.format_message().rstrip("."))
    hint = hint_for_option(path.removeprefix("nessie "), getattr(error, "option_name", None) or "")
    message, _, near = message.partition(" (Possible options: ")
    unknown = getattr(error, "option_name", None) or ""
    if nearest(unknown, ["--version"]):
        message += "; did you mean --version?"
    elif near and not hint and (like := nearest(unknown, near.rstrip(")").split(", "))):
        message += f"; did you mean {' or '.join(like)}?"
    message = message[:1].lower() + message[1:]
    shows = "lists the commands" if message.startswith("no such command") else "shows its usage"
    _write(errors.InvalidInput(message), app, hint or f"`{path} --help` {shows}")
    return INVALID


def _path(app: Invocation) -> str:
    """Returns the command name in the command line, for an error that does not name it."""
    from nessie_cli.cli.app.global_options import command_position
    from nessie_cli.cli.registry import COMMANDS

    position = command_position(app.argv)
    path = ["nessie"]
    table = COMMANDS
    for word in app.argv[position:] if position is not None else ():
        if word not in table:
            break
        path.append(word)
        table = table[word].children or {}
    return " ".join(path)


_PARSERS_WORDS = (
    (r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"too many arguments: \1"),
    (r"is not a valid int(?:eger)?(?: range)?$", "is not an integer"),
    (r": Value error, ", ": "),
    (r"Input should be a valid integer.*", "is not an integer"),
    (r"'(-?\d+)' Input should be greater than or equal to (-?\d+)$", r"\1 must be \2 or more"),
    (r"'(-?\d+)' Input should be less than or equal to (-?\d+)$", r"\1 must be \2 or less"),
    (r"\. Choose from:\s+", ": "),
    (r",\n\t", ", "),
    (r"is not in the range x>=(-?\d+)$", r"must be \1 or more"),
    (r"is not in the range (-?\d+)<=x<=(-?\d+)$", r"must be from \1 to \2"),
)
"""Replacements for the parser's wording."""


def _plain_words(message: str) -> str:
    for pattern, text in _PARSERS_WORDS:
        message = re.sub(pattern, text, message)
    return message
