"""Runs command lines one after the other, each in a process of its own that is forked from this one, which has loaded everything already.

A fresh interpreter for every command would spend nine tenths of the time with imports. One JSON request per line on stdin, one answer on stdout;
bytes that are no UTF-8 are surrogates in both. Arguments name more modules to load.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from nessie_cli.cli.main import main

ROOMS = ("model", "kernel", "store", "wire", "repository", "workspace", "render", "cli")
LATE = ("pwd", "ctypes", "platformdirs.unix", "typer._click.decorators", "typer._click._textwrap")
"""What nearly every command loads when it runs, not when its module is loaded."""


def become(request: dict[str, Any], streams: list[Any]) -> None:
    """The child: the environment, folder, and streams that were asked for, then the command line."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if "seconds" in request:
        # A command that never ends is killed.
        signal.alarm(request["seconds"])
    sys.argv = ["nessie", *request["args"]]
    main()


def load(*more: str) -> None:
    """Load every module of the rooms that commands use, and more by name."""
    for room in ROOMS:
        package = import_module(f"nessie_cli.{room}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for name in (*LATE, *more):
        import_module(name)
    # A child that looks for garbage would copy the pages of everything that it shares with this process.
    gc.freeze()


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
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
            answer = [os.waitstatus_to_exitcode(status), *(stream.read().decode("utf-8", "surrogateescape") for stream in (out, err))]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    load(*sys.argv[1:])
    serve()
