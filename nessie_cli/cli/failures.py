"""How a command line can fail: the exit code, the one line on stderr, the hint, and with `--json` the error document on stdout."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from nessie_cli import errors
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.faults import fault_of, is_interrupt
from nessie_cli.cli.suggestions import nearest

EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.InvalidInput, 2),
    (errors.ReferenceMoved, 5),
    (errors.ReferenceConflict, 3),
    (errors.NotFound, 4),
    (errors.AlreadyExists, 5),
    (errors.NotAllowed, 6),
    (errors.StoreUnavailable, 7),
)
"""The first line that fits decides; what is in none of them is 1."""

FAILED = 1
PARTLY_DONE = 8
INTERRUPTED = 130
MOST_CONFLICTS = 50
"""Conflicts that people are shown of a refusal; programs get all."""


def report(error: BaseException, call: Invocation) -> int:
    """Say what went wrong, in every form that was asked for, and answer the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort) or is_interrupt(error):
        return _report_interrupt(call)
    if call.options.debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, TyperException):
        return _report_usage(error, call)
    fault = fault_of(error)
    _write(fault, call)
    return next((code for kind, code in EXIT_CODES if isinstance(fault, kind)), FAILED)


def partly_done(failures: Sequence[errors.NessieError], call: Invocation) -> NoReturn:
    """Tell what could not be done of a piece of work with many parts, one line each, and end; what was done has been told before."""
    for failure in failures:
        _write(failure, call)
    raise typer.Exit(PARTLY_DONE)


def _report_usage(error: TyperException, call: Invocation) -> int:
    """A fault that the parser found. A group without a command answers with its whole help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else _path(call)
    message = _plainly(error.format_message().rstrip("."))
    # The parser's class for this has no public name.
    if type(error).__name__ == "NoArgsIsHelpError":
        if not call.wants_json_errors:
            sys.stderr.write(message + "\n")
            return 2
        message = "missing command"
    from nessie_cli.cli.foreign_options import hint_for

    hint = hint_for(path, getattr(error, "option_name", None), message)
    message, _, near = message.partition(" (Possible options: ")
    unknown = getattr(error, "option_name", None) or ""
    if nearest(unknown, ["--version"]):
        message += "; did you mean --version?"
    elif near and not hint:
        message += f"; did you mean {near.rstrip(')').replace(', ', ' or ')}?"
    message = message[:1].lower() + message[1:]
    shows = "lists the commands" if message.startswith("no such command") else "shows what it takes"
    _write(errors.InvalidInput(message), call, hint or f"`{path} --help` {shows}")
    return 2


def _path(call: Invocation) -> str:
    """The command that was called, where the parser does not say for which one it speaks."""
    from nessie_cli.cli.options import command_position
    from nessie_cli.cli.registry import COMMANDS

    position = command_position(call.argv)
    words = ["nessie"]
    table = COMMANDS
    for word in call.argv[position:] if position is not None else ():
        if word not in table:
            break
        words.append(word)
        table = table[word].children or {}
    return " ".join(words)


_PARSERS_WORDS = (
    (r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"too many arguments: \1"),
    (r"is not a valid int(?:eger)?(?: range)?$", "is not an integer"),
    (r"Input should be a valid integer.*", "is not an integer"),
    (r"is not in the range x>=(-?\d+)$", r"must be \1 or more"),
    (r"is not in the range (-?\d+)<=x<=(-?\d+)$", r"must be from \1 to \2"),
)
"""What the parser says in the words of a programmer, and how it is said here."""


def _plainly(message: str) -> str:
    import re

    for pattern, said in _PARSERS_WORDS:
        message = re.sub(pattern, said, message)
    return message


def _report_interrupt(call: Invocation) -> int:
    """Who presses Ctrl-C knows; a program that reads JSON gets its document."""
    if call.wants_json_errors:
        _write(fault_of(KeyboardInterrupt()), call)
    return INTERRUPTED


def _write(error: errors.NessieError, call: Invocation, hint: str = "") -> None:
    """Write stdout first: where both are one terminal, what was printed so far stands above the error."""
    from nessie_cli.cli.hints import hints_for
    from nessie_cli.wire.facts import error_with_facts

    if call.wants_json_errors and not call.output.has_document:
        call.answer({"error": error_with_facts(error)})
    sys.stdout.flush()
    conflicts = error.conflicts if isinstance(error, errors.ReferenceConflict) else []
    too_many = len(conflicts) > MOST_CONFLICTS
    call.err.print_line(f"nessie: {_many(error, len(conflicts)) if too_many else error.message}")
    for line in [hint] if hint else hints_for(error, call):
        call.err.print_line(line)
    if isinstance(error, errors.ReferenceConflict) and error.conflicts and not call.wants_json_errors:
        from nessie_cli.cli.errors.conflicts import conflict_report
        from nessie_cli.render.conflicts import conflict_lines

        report = conflict_report(error, call)
        call.err.print_lines(conflict_lines(report._replace(conflicts=report.conflicts[:MOST_CONFLICTS]), call.err))
        if too_many:
            call.err.print_line(f"... and {len(conflicts) - MOST_CONFLICTS:,} more conflicts; --json tells all of them")


def _many(error: errors.NessieError, count: int) -> str:
    """The line of a refusal whose message would name so many keys that nobody reads it."""
    before, named, _ = error.message.partition(": ")
    return f"{before}: {count:,} conflicts, of which {MOST_CONFLICTS} are shown" if named else f"{count:,} conflicts"
