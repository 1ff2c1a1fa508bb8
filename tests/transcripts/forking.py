"""Runs command lines, each in a process forked from this one, which has loaded everything.

One JSON request per line on stdin, one answer on stdout; bytes that are not UTF-8 are surrogates in
both. Arguments name the modules to load.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
from importlib import import_module
from typing import Any

from nessie_cli.cli.main import main


def become(request: dict[str, Any], streams: list[Any]) -> None:
    """Sets the environment, folder and streams of the child, and runs the command line."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2)
    )
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if "seconds" in request:
        # A command that never ends is killed.
        signal.alarm(request["seconds"])
    sys.argv = ["nessie", *request["args"]]
    main()


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(request["stdin"].encode("utf-8", "surrogateescape"))
            given.seek(0)
            child = os.fork()
            if child == 0:
                try:
                    become(request, [given, out, err])
                finally:
                    os._exit(99)
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            answer = [
                os.waitstatus_to_exitcode(status),
                *(stream.read().decode("utf-8", "surrogateescape") for stream in (out, err)),
            ]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        import_module(name)
    # A child that looks for garbage would copy the pages of everything that it shares with this
    # process.
    gc.freeze()
    serve()
