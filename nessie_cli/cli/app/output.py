"""The output of a command: the result on stdout, everything else on stderr.

The result is the records of a listing, a value, or one sentence about what the command did. A
sentence about records is a remark, so it goes to stderr.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from nessie_cli.cli.app.global_options import with_carried

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from nessie_cli.cli.app.global_options import GlobalOptions
    from nessie_cli.render.busy import Busy
    from nessie_cli.render.spans import Span
    from nessie_cli.render.terminal import Terminal


class Output:
    """Prints results and remarks in the form that the global options select."""

    def __init__(
        self, argv: Sequence[str], options: GlobalOptions, now: datetime, busy: Busy | None
    ) -> None:
        self.options = options
        self.has_document = False
        """Whether the one JSON document has been printed."""
        self._argv = argv
        self._now = now
        self._busy = busy

    @property
    def is_json(self) -> bool:
        """Whether stdout is JSON."""
        return self.options.json or self.options.jsonl

    @property
    def is_json_for_errors(self) -> bool:
        """Whether an error is printed as JSON, even if the parser failed before `--json`."""
        arguments = self._argv[: self._argv.index("--")] if "--" in self._argv else self._argv
        return self.is_json or "--json" in arguments or "--jsonl" in arguments

    @cached_property
    def out(self) -> Terminal:
        """The stream of the result."""
        return self._terminal(sys.stdout)

    @cached_property
    def err(self) -> Terminal:
        """The stream of everything else."""
        return self._terminal(sys.stderr)

    def _terminal(self, stream: TextIO) -> Terminal:
        from nessie_cli.render.terminal import Terminal
        from nessie_cli.workspace.environment import everything

        return Terminal(
            stream,
            environment=everything(),
            color=self.options.color,
            pager=not self.options.no_pager,
            now=self._now,
            busy=self._busy,
        )

    def say(self, *spans: Span | str) -> None:
        """Prints a sentence about what the command did, unless `--quiet` is set.

        A command that reads prints its result by `out`. Hints repeat the global options.
        """
        if not self.options.quiet:
            carried = (
                with_carried(span, self.options) if isinstance(span, str) else span
                for span in spans
            )
            self.out.print_text(*carried)

    def note(self, line: str) -> None:
        """Prints a remark on stderr, unless `--quiet` is set.

        What is on stdout comes first, also if both streams go to one pipe. Hints repeat the global
        options.
        """
        if not self.options.quiet:
            sys.stdout.flush()
            self.err.print_text(with_carried(line, self.options))

    def print_document(self, document: Any) -> None:
        """Prints the one JSON document of the command."""
        self.has_document = True
        if self.options.jsonl:
            self.out.print_json_lines([document])
        else:
            self.out.print_json(document)

    def print_listing(self, name: str, documents: Iterable[Any], **others: Any) -> None:
        """Prints a listing while it is read.

        With `--jsonl` each record is a line. Otherwise the records are the attribute `name` of one
        document with the `others`. If reading fails, the document stays well-formed: it contains
        the records read so far and the `error`. With `--jsonl` the error is the last line.
        """
        if self.options.jsonl:
            self.out.print_json_lines(documents)
            return
        from nessie_cli.render.terminal import json_text

        self.has_document = True
        write = self.out.write
        write(json_text(others | {name: []})[:-2])
        between = ""
        try:
            for document in documents:
                write(between + json_text(document))
                between = ","
        except BrokenPipeError:
            raise
        except (Exception, KeyboardInterrupt) as error:
            from nessie_cli.cli.errors.faults import fault_of
            from nessie_cli.wire.documents import Error

            write(f'],"error":{json_text(Error.of(fault_of(error)))}}}\n')
            raise
        write("]}\n")
