"""`nessie __complete`: candidates on stdout and nothing on stderr, whatever happens.

`nessie __complete -- WORD...` answers one candidate per line, with a tab and a description where there is one. The words are those behind `nessie`,
without quotes; the last one is unfinished. `--bash BREAKS TYPE COLUMNS -- LINE` takes the line as bash has it and answers what bash has to insert.
`--debug` shows why nothing is answered.
"""

from __future__ import annotations

import sys

# Importing `typing` takes longer than a keystroke may; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMAND = "__complete"


def answer(argv: Sequence[str]) -> None:
    """Print the candidates for the words behind `__complete`."""
    debug = argv[:1] == ["--debug"]
    try:
        lines = _lines(argv[1:] if debug else argv)
    except Exception:  # noqa: BLE001 (a keystroke is no place for a message: nothing is completed)
        if debug:
            import traceback

            traceback.print_exc()
        return
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _lines(argv: Sequence[str]) -> list[str]:
    dashes = argv.index("--") if "--" in argv else -1
    options, words = argv[: max(dashes, 0)], argv[dashes + 1 :]
    if options[:1] == ["--bash"]:
        from nessie_cli.cli.completion.bash import replies

        return replies(words[0], breaks=options[1], listing=options[2] != "37", columns=int(options[3]))
    from nessie_cli.cli.completion.candidates import candidates

    return [f"{text}\t{said}" if said else text for text, said in candidates(words)]
