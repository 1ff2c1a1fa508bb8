"""`nessie __complete`: prints candidates on stdout, and nothing on stderr.

`nessie __complete -- WORD...` prints one candidate per line, with a tab and a description if there
is one. The words are those after `nessie`, without quotes; the last one is incomplete.

The generated scripts know the command tree. They pass `--kind KIND`, so that no parser is loaded;
`=A,B` is a list of choices. `--bash BREAKS TYPE COLUMNS -- LINE` takes the line as bash passes it
and prints the text that bash inserts. `--debug` prints the traceback of a failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr

from nessie_cli.cli.completion.candidates import Candidates, answer, shown
from nessie_cli.cli.completion.request import Request, request_of_kind

COMMAND = "__complete"


def complete(argv: Sequence[str]) -> None:
    """Prints the candidates for the words behind `__complete`."""
    debug = argv[:1] == ["--debug"]
    argv = argv[1:] if debug else argv
    lines: list[str] = []
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):  # noqa: PTH123
        try:
            lines = _lines(argv)
        except BaseException:  # noqa: BLE001 - an error message would disturb typing
            if debug:
                import traceback

                traceback.print_exc(file=sys.__stderr__)
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def _lines(argv: Sequence[str]) -> list[str]:
    dashes = argv.index("--") if "--" in argv else len(argv)
    options, arguments = list(argv[:dashes]), list(argv[dashes + 1 :])
    kind = None
    if options[:1] == ["--kind"]:
        kind, options = options[1], options[2:]
    if options[:1] == ["--bash"]:
        from nessie_cli.cli.completion.bash import ShellLine

        breaks, type_, columns = options[1:4]
        line = ShellLine(arguments[0], breaks)
        return line.replies(
            candidates(line.words[1:], kind), is_listing=type_ != "37", columns=int(columns)
        )
    return [
        f"{text}\t{description}" if description else text
        for text, description in candidates(arguments, kind)
    ]


def candidates(arguments: Sequence[str], kind: str | None = None) -> Candidates:
    """Returns candidates for the last word after `nessie`. `kind` is its kind, if known."""
    if kind is not None:
        choices = tuple(kind[1:].split(",")) if kind.startswith("=") else kind
        return answer(request_of_kind(choices, arguments))
    from nessie_cli.cli.completion.parser import read

    request = read(arguments)
    return (
        answer(request)
        if isinstance(request, Request)
        else shown(request, arguments[-1] if arguments else "")
    )
